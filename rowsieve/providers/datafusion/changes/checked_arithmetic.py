"""Makes arithmetic of integers fail in assigned values, where DataFusion would wrap around.

DataFusion 55 computes `+`, `-`, `*` and negation of integers modulo 2^64 (or 2^32 and so on), and
has no setting that makes them fail. In a query that is its answer; stored by UPDATE or MERGE it
would be a wrong row. So a statement computes each such value once more, in a form whose integer
operations are those of decimals, cast back by a cast that fails.

Soundness: what is stored is what DataFusion computes from the text of the statement. The second
form only fails or not, and in the same rows: a CASE guards it as it guards the first. A text with
such an operator that cannot be checked is refused. Subqueries are queries, and not checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

import pyarrow as pa

from rowsieve.bridges.sql.dialects import DATAFUSION
from rowsieve.bridges.sql.grammars import damage_as_parse_error
from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.storage.snapshot import Snapshot

_OPERATORS: Final = frozenset("+-*")
_NAMES: Final = {
    **{getattr(pa, f"int{bits}")(): f"Int{bits}" for bits in (8, 16, 32, 64)},
    **{getattr(pa, f"uint{bits}")(): f"UInt{bits}" for bits in (8, 16, 32, 64)},
}
"""The names of integer types in DataFusion's arrow_cast."""
_OPERAND_WORDS: Final = frozenset({"any", "regexp", "rlike", "values", "variadic"})
"""Words that begin an operand in sqlglot, which would drop the plus of `values + 1`."""
_WIDE: Final = "Decimal128(20, 0)"  # has the values of all of them


class TypesOfQueries(Protocol):
    """Plans queries over the tables of a statement."""

    def types(self, query: str, at: Snapshot) -> list[pa.DataType]:
        """Return the types of the columns of a query; InvalidInput if it cannot be planned."""


def overflow_checks(
    queries: TypesOfQueries, at: Snapshot, texts: Sequence[str], relation: str
) -> list[str]:
    """Return expressions over the rows of a relation that fail where one of the texts overflows.

    UnsupportedOperation for a text that cannot be checked.
    """
    columns = frozenset(at.schema.names)
    trees = [_parsed(text, columns) for text in texts if not _OPERATORS.isdisjoint(text)]
    operations = [node for tree in trees for node in _operations(tree)]
    if not operations:
        return []
    nodes = [each for node in operations for each in (node, *_operands(node).values())]
    try:
        types = queries.types(_query(map(_text, nodes), relation), at)
    except InvalidInput as error:
        queries.types(_query(texts, relation), at)  # raises what is wrong with the text itself
        raise _unchecked(_text(operations[0])) from error
    type_of = {id(node): type_ for node, type_ in zip(nodes, types, strict=True)}
    checked = [
        (node, _NAMES[type_of[id(node)]])
        for node in operations
        if type_of[id(node)] in _NAMES
        # The days between two dates always fit.
        and not any(pa.types.is_date(type_of[id(each)]) for each in _operands(node).values())
    ]
    roots = {id(node.root()): node.root() for node, _ in checked}
    for node, name in reversed(checked):  # those inside of others first
        node.replace(_failing(node, name))
    return [_text(root) for root in roots.values()]


def _query(texts: Iterable[str], relation: str) -> str:
    columns = ", ".join(f"({text}) AS c{place}" for place, text in enumerate(texts))
    return " ".join(["SELECT", columns, "FROM", relation])


def _parsed(text: str, columns: frozenset[str]) -> Any:
    """The text in parentheses as a tree of sqlglot.

    Where no clause can follow, DataFusion reads a keyword as a column's name. sqlglot begins an
    operand with some of them, and fails for others: then those are quoted that name columns.
    """
    import sqlglot  # noqa: PLC0415 - it takes 0.1 s to import

    grammar = sqlglot.Dialect.get_or_raise(DATAFUSION.grammar)
    failure: Exception | None = None
    for names in (_OPERAND_WORDS, columns):
        try:
            with damage_as_parse_error():
                tokens = _with_names(grammar.tokenize(f"({text})"), names)
                (tree,) = grammar.parser().parse(tokens, text)
                return tree
        except (sqlglot.ParseError, sqlglot.TokenError) as error:
            failure = error
    raise _unchecked(text) from failure


def _with_names(tokens: Sequence[Any], names: frozenset[str]) -> list[Any]:
    """The tokens, with quoted names for keywords that are spelled like one of the names."""
    from sqlglot.tokenizer_core import Token, TokenType  # noqa: PLC0415

    def named(token: Any, following: Any) -> Any:
        word = token.text.lower()
        calls = following is not None and following.token_type == TokenType.L_PAREN
        is_word = token.end - token.start + 1 == len(word)  # neither quoted nor x'ab'
        if not (word in names and word.isidentifier() and is_word) or calls:
            return token
        place = (token.line, token.col, token.start, token.end)
        return Token(TokenType.IDENTIFIER, word, *place)

    return [named(*pair) for pair in zip(tokens, [*tokens[1:], None], strict=True)]


def _operations(tree: Any) -> list[Any]:
    """The operators of a tree outside of its subqueries, outer ones first."""
    from sqlglot import exp  # noqa: PLC0415

    nodes = tree.walk(bfs=False, prune=lambda node: isinstance(node, exp.Query))
    kinds = (exp.Add, exp.Sub, exp.Mul, exp.Neg)
    return [
        node
        for node in nodes
        if isinstance(node, kinds)
        and not (isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal))
    ]


def _failing(node: Any, name: str) -> Any:
    """The operation of decimals, cast to the integer type of this name."""
    from sqlglot import exp  # noqa: PLC0415

    def cast(operand: Any, to: str) -> Any:
        return exp.Anonymous(this="arrow_cast", expressions=[operand, exp.Literal.string(to)])

    operands = {key: cast(operand.copy(), _WIDE) for key, operand in _operands(node).items()}
    return cast(type(node)(**operands), name)


def _operands(node: Any) -> dict[str, Any]:
    """The operands of an operation, by their places in the tree."""
    places = ("this", "expression")
    return {key: node.args[key] for key in places if node.args.get(key) is not None}


def _text(tree: Any) -> str:
    return str(tree.sql(dialect=DATAFUSION.grammar))


def _unchecked(text: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"sql: the assigned value {text} has an operator that may overflow, and cannot be checked "
        "for that; nothing was changed. Compute it in a query, and MERGE its rows"
    )
