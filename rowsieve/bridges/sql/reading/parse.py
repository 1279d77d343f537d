"""Parse SQL text to a tree: measure, tokenise, parse with sqlglot, and read node by node.

Only a condition or an expression is parsed, never a statement. Errors of sqlglot become
`InvalidPredicate` with the position in the given text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import TokenType

from rowsieve.bridges.chains import flattened
from rowsieve.bridges.sql.dialects import Dialect, dialect_named
from rowsieve.bridges.sql.grammars import condition_of, tokens_of
from rowsieve.bridges.sql.placeholders import StandIns
from rowsieve.bridges.sql.reading.lifted_lists import Lifted, lift_lists, stand_in_place
from rowsieve.bridges.sql.reading.plain_chains import plain_chain
from rowsieve.bridges.sql.reading.read_nodes import SqlReader
from rowsieve.bridges.sql.reading.source_text import (
    SqlSource,
    cast_of_typed_text,
    is_after_distinct,
    split_at_and,
)
from rowsieve.bridges.sql.reading.text_limits import MAX_NESTING, check_length, too_deep
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.ir import IsNull, Operand, Predicate
from rowsieve.predicate.limits import check_text
from rowsieve.predicate.text_cache import cached_by_text

_NOT_COLUMNS = frozenset(
    {
        *(TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NULL),
        *(TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.IS, TokenType.IN),
        *(TokenType.LIKE, TokenType.ILIKE, TokenType.BETWEEN, TokenType.ESCAPE),
    }
)
"""Words that are not keywords, or that a condition has: other ones may be meant as a column."""
_STATEMENTS = re.compile(
    "SELECT|WITH|INSERT|UPDATE|DELETE|MERGE|CREATE|DROP|ALTER|TRUNCATE|CALL|EXPLAIN|SET|SHOW|USE|"
    "COPY|GRANT|REVOKE|VALUES|FROM|WHERE|ATTACH|PRAGMA",
    re.IGNORECASE,
)
_SHORT = 1_000  # characters; shorter texts are cached
# PostgreSQL operators with a lower precedence than in the grammar.
# Operators that a grammar reads and we refuse, by grammar.
_OPERATORS: Mapping[str, Mapping[str, str]] = {
    "postgres": {
        "|/": "write sqrt(…)",
        "||/": "cube roots have no counterpart in Rowsieve",
        "!": "write NOT",
        "!!": "write NOT",
        "^@": "write starts_with(text, prefix)",
        "?-": "geometric operators have no counterpart in Rowsieve",
    }
}


def predicate(
    text: str, dialect: str, conditions: Mapping[str, Predicate] | None = None
) -> Predicate:
    """Read a condition; `conditions` are the values of names in the text."""
    source = _source(text, dialect_named(dialect))
    if conditions:
        source = replace(source, lifted=replace(source.lifted, conditions=conditions))
    return _predicate(source)


def expression(text: str, dialect: str) -> Operand:
    """Read a value."""
    with _limited_nesting():
        source, node = parsed(text, dialect_named(dialect), "expression")
        return SqlReader(source).operand(node)


def encoded(text: str, stand_ins: StandIns, dialect: Dialect) -> Predicate:
    """Read a condition whose names stand for constants, lists and conditions."""
    if len(text) > _SHORT:
        source = _tokenised(text, dialect)  # SQL text inside a column may have long lists
        lifted = replace(
            source.lifted,
            lists={**source.lifted.lists, **stand_ins.lists},
            constants=stand_ins.constants,
            conditions=stand_ins.conditions,
        )
        return _predicate(_checked(replace(source, lifted=lifted, is_encoded=True)))
    lifted = Lifted(
        text, stand_ins.lists, constants=stand_ins.constants, conditions=stand_ins.conditions
    )
    tokens, node = _shape(text, dialect.name)
    with _limited_nesting():
        return SqlReader(SqlSource(text, lifted, tokens, dialect, is_encoded=True)).predicate(node)


@cached_by_text
def _shape(text: str, dialect: str) -> tuple[list[Any], Any]:
    """Return tokens and tree of a short text; constants are names there, so texts repeat."""
    known, lifted = dialect_named(dialect), Lifted(text, {})
    source = _checked(SqlSource(text, lifted, _tokens(lifted, known), known, is_encoded=True))
    with _limited_nesting():
        return source.tokens, _node(source, source.tokens)


def conditions(text: str, dialect: str) -> list[tuple[str, Predicate | InvalidPredicate]]:
    """Return the text of each conjunct, with its predicate or the reason why it is unsupported.

    Text that is not a condition is `InvalidPredicate`, as for `predicate`.
    """
    with _limited_nesting():
        source, node = parsed(text, dialect_named(dialect))
        pieces, terms = split_at_and(source), _terms(node)
        if len(pieces) != len(terms):
            return [(text.strip(), _attempt(source, node))]
        return [(piece, _attempt(source, term)) for piece, term in zip(pieces, terms, strict=True)]


def uncollated(text: str, dialect: str) -> list[Predicate]:
    """Return the ordering comparisons in a condition without `COLLATE "C"` on their left."""
    source, node = parsed(text, dialect_named(dialect))
    reader = SqlReader(source)
    tests = node.find_all(exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)
    choices = node.find_all(exp.Greatest, exp.Least)
    return [
        *(reader.predicate(each) for each in tests if not isinstance(each.this, exp.Collate)),
        *(IsNull(reader.operand(each)) for each in choices if type(each.this) is not exp.Collate),
    ]


def _predicate(source: SqlSource) -> Predicate:
    def read(tokens: Sequence[Any]) -> Predicate:
        return SqlReader(source).predicate(_node(source, tokens))

    with _limited_nesting():
        chain = plain_chain(source, read)
        return read(source.tokens) if chain is None else chain


def _attempt(source: SqlSource, node: Any) -> Predicate | InvalidPredicate:
    try:
        return SqlReader(source).predicate(node)
    except InvalidPredicate as error:
        return error


def _terms(node: Any) -> list[Any]:
    def terms_of(item: Any) -> tuple[Any, Any] | None:
        return (item.this, item.expression) if type(item) is exp.And else None

    return flattened(node, terms_of)


@contextmanager
def _limited_nesting() -> Iterator[None]:
    """Raise InvalidPredicate where Python's recursion ends."""
    try:
        yield
    except RecursionError:
        message = "the filter nests too deeply to be read; simplify it"
        raise InvalidPredicate(message) from None


def parsed(text: str, dialect: Dialect, kind: str = "filter") -> tuple[SqlSource, Any]:
    """Return the tokens of the text, and its tree in the grammar; errors name the `kind`."""
    source = _source(text, dialect, kind)
    return source, _node(source, source.tokens)


def _source(text: str, dialect: Dialect, kind: str = "filter") -> SqlSource:
    check_text(text)
    if dialect.variables is not None and (variable := dialect.variables.search(text)) is not None:
        raise _variable_refusal(variable, dialect, kind)
    return _checked(_tokenised(text, dialect, kind))


def _variable_refusal(variable: re.Match[str], dialect: Dialect, kind: str) -> InvalidPredicate:
    """The refusal of a variable, which the engine replaces by a setting before it parses."""
    return InvalidPredicate(
        f"cannot read the {kind} at offset {variable.start()}, {variable[0]!r}: {dialect.name} "
        "replaces it by a setting of the session, even inside a string; write its value, or "
        "\\u0024{ for these characters in a string",
        position=variable.start(),
    )


def _checked(source: SqlSource) -> SqlSource:
    """Return the source; refuse empty text, `;`, operators of other engines and deep nesting."""
    dialect = source.dialect
    refused = _OPERATORS.get(dialect.grammar, {})
    if not source.tokens:
        raise InvalidPredicate("the filter is empty; write a condition, as in delay > 5")
    for token, after in zip(source.tokens, [*source.tokens[1:], None], strict=True):
        if token.token_type == TokenType.SEMICOLON:
            raise source.refusal_at(
                token.start, token.end + 1, "a filter is one condition, without ';'"
            )
        if token.text == "!" and after is not None and after.text in ("~", "~*"):
            continue
        operator = token.text
        if operator == "?" and after is not None and after.start == token.end + 1:
            operator += after.text  # the grammar has no `?-`, a geometric operator
        if operator in refused and not _is_quoted(token):
            raise source.refusal_at(token.start, token.end + 1, refused[operator])
    if dialect.greedy_distinct and (token := is_after_distinct(source.tokens)) is not None:
        why = "put the IS DISTINCT FROM before it in parentheses, its place among the operators"
        raise source.refusal_at(token.start, token.end + 1, f"{why} is unclear")
    if (token := cast_of_typed_text(source.tokens)) is not None:
        why = "put the constant in parentheses, as in (DATE '2020-01-01')::text"
        raise source.refusal_at(token.start, token.end + 1, why)
    if (token := too_deep(source.tokens)) is not None:
        raise source.refusal_at(token.start, token.end + 1, f"nesting is deeper than {MAX_NESTING}")
    return source


def _node(source: SqlSource, tokens: Sequence[Any]) -> Any:
    """Parse the tokens with the grammar; InvalidPredicate has the place of a syntax error."""
    try:
        node = condition_of(
            tokens,
            source.lifted.text,
            source.dialect.grammar,
            arrows_are_json=source.dialect.json_operators,
        )
    except ParseError as error:
        raise _syntax_refusal(source, error) from error
    except IndexError as error:  # the grammar's own error, as for map(key)
        raise InvalidPredicate(
            f"cannot read the {source.kind}: a function has too few arguments"
        ) from error
    if node is None:
        raise _start_refusal(source)
    return node


def _is_quoted(token: Any) -> bool:
    return token.token_type in (TokenType.STRING, TokenType.IDENTIFIER)


def _tokenised(text: str, dialect: Dialect, kind: str = "filter") -> SqlSource:
    lifted = lift_lists(text, dialect)
    source = SqlSource(text, lifted, _tokens(lifted, dialect, kind), dialect, kind=kind)
    if not lifted.lists or stand_in_place(lifted, source.tokens):
        return source
    plain = Lifted(text, {})
    return SqlSource(text, plain, _tokens(plain, dialect, kind), dialect, kind=kind)


def _tokens(lifted: Lifted, dialect: Dialect, kind: str = "filter") -> list[Any]:
    check_length(lifted.text)
    try:
        tokens = tokens_of(lifted.text, dialect.grammar)
    except TokenError as error:
        raise InvalidPredicate(
            f"cannot read the {kind}: a quote or comment is not closed ({error})"
        ) from error
    if dialect.float_is_single:
        for token in tokens:
            if token.text.upper() == "FLOAT" and token.token_type == TokenType.DOUBLE:
                token.token_type = TokenType.FLOAT
    return tokens


def _syntax_refusal(source: SqlSource, error: ParseError) -> InvalidPredicate:
    if (refusal := _statement_refusal(source)) is not None:
        return refusal
    details = [item for item in error.errors if item.get("line") is not None]
    if not details:
        return InvalidPredicate(f"cannot read the {source.kind}: {error}")
    place = (details[0]["line"], details[0]["col"])
    for before, token in zip([None, *source.tokens], source.tokens, strict=False):
        if (token.line, token.col) == place:
            why = _unexpected(source, before, token)
            return source.refusal_at(token.start, token.end + 1, why)
    return InvalidPredicate(f"cannot read the {source.kind}: {details[0]['description']}")


def _unexpected(source: SqlSource, before: Any, token: Any) -> str:
    """Why a token is not expected; how the dialect quotes what the text seems to mean."""
    text, quote = source.lifted.text, source.dialect.quote
    if text[token.start - 1 : token.start] == "`":
        return f"names are quoted as in {quote}name{quote}"
    why = "this is not expected here"
    if token.text.isidentifier() and token.token_type not in _NOT_COLUMNS:
        return f"{why}; a column of that name is written {quote}{token.text}{quote}"
    if before is None or not {before.token_type, token.token_type} <= {TokenType.VAR}:
        return why
    return f"{why}; a name with a space is written {quote}{before.text} {token.text}{quote}"


def _start_refusal(source: SqlSource) -> InvalidPredicate:
    token = source.tokens[0]
    plain = source.refusal_at(token.start, token.end + 1, "this does not begin a condition")
    return _statement_refusal(source) or plain


def _statement_refusal(source: SqlSource) -> InvalidPredicate | None:
    token = source.tokens[0]
    if not _STATEMENTS.fullmatch(token.text):
        return None
    why = "leave out WHERE" if token.text.upper() == "WHERE" else "this is a statement"
    return source.refusal_at(
        token.start, token.end + 1, f"{why}; write only the condition, as in delay > 5"
    )
