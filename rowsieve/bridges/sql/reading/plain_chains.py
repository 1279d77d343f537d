"""Fast path for long chains of plain comparisons, such as `a = 1 AND b < 2 OR a = 3 AND b < 4`.

The grammar takes 60 microseconds per comparison, and generated texts have thousands that differ
only in their numbers. So the chain is split at its top-level tokens. Terms of one *shape* (the same
tokens except for the digits of numbers) are read alike, and the grammar reads only the first term
of each shape.

Soundness: the result must be the tree that the grammar gives. The first term of each shape is
compared with it; a chain with a term of another form, or with a term that the two read differently,
is left to the grammar as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from sqlglot.tokenizer_core import TokenType

from rowsieve.bridges.sql.constructs.sql_literals import negated, number
from rowsieve.bridges.sql.plain_shapes import between
from rowsieve.bridges.sql.reading.source_text import SqlSource
from rowsieve.predicate import ir

MIN_TERMS: Final = 64  # the grammar reads fewer fast enough
_OPS: Final = {
    TokenType.EQ: ir.ComparisonOp.EQ,
    TokenType.NEQ: ir.ComparisonOp.NE,
    TokenType.LT: ir.ComparisonOp.LT,
    TokenType.LTE: ir.ComparisonOp.LE,
    TokenType.GT: ir.ComparisonOp.GT,
    TokenType.GTE: ir.ComparisonOp.GE,
}
_JUNCTIONS: Final[Mapping[TokenType, type[ir.And | ir.Or]]] = {
    TokenType.AND: ir.And,
    TokenType.OR: ir.Or,
}
_NAMES: Final = (TokenType.VAR, TokenType.IDENTIFIER)
_PLAIN: Final = frozenset(
    {*_OPS, *_JUNCTIONS, *_NAMES}
    | {TokenType.NUMBER, TokenType.DASH, TokenType.L_PAREN, TokenType.R_PAREN}
    | {TokenType.BETWEEN}
)


def plain_chain(
    source: SqlSource, read: Callable[[Sequence[Any]], ir.Predicate]
) -> ir.Predicate | None:
    """Read a long chain of plain comparisons, or return None; `read` is the grammar."""
    tokens = source.tokens
    if len(tokens) < 4 * MIN_TERMS or any(token.token_type not in _PLAIN for token in tokens):
        return None
    kind = TokenType.OR
    pieces = list(_split(tokens, kind))
    if len(pieces) == 1:
        kind = TokenType.AND
        pieces = list(_split(tokens, kind))
    if len(pieces) < MIN_TERMS:
        return None
    shapes: set[tuple[Any, ...]] = set()
    terms: list[ir.Predicate] = []
    try:
        for piece in pieces:
            term = _term(piece, source)
            if term is None or (isinstance(term, _JUNCTIONS[kind]) and not _is_between(piece)):
                return None
            shape = tuple(
                (token.token_type, "" if token.token_type == TokenType.NUMBER else token.text)
                for token in piece
            )
            if shape not in shapes:
                if read(piece) != term:
                    return None
                shapes.add(shape)
            terms.append(term)
    except ValueError:  # an invalid number: the grammar raises with its position
        return None
    return ir.And(tuple(terms)) if kind == TokenType.AND else ir.Or(tuple(terms))


def _is_between(tokens: Sequence[Any]) -> bool:
    return len(tokens) > 1 and tokens[1].token_type == TokenType.BETWEEN


def _split(tokens: Sequence[Any], kind: TokenType) -> Iterator[Sequence[Any]]:
    """Split the tokens at those of the kind outside parentheses, and not at BETWEEN's AND."""
    depth = start = between = 0
    for place, token in enumerate(tokens):
        token_type = token.token_type
        if token_type == TokenType.L_PAREN:
            depth += 1
        elif token_type == TokenType.R_PAREN:
            depth -= 1
        elif depth:
            continue
        elif token_type == TokenType.BETWEEN:
            between += 1
        elif token_type == TokenType.AND and between:
            between -= 1
        elif token_type == kind:
            yield tokens[start:place]
            start = place + 1
    yield tokens[start:]


def _term(tokens: Sequence[Any], source: SqlSource) -> ir.Predicate | None:
    """Read comparisons joined by AND, or by either in one pair of parentheses; None for others."""
    kinds = [TokenType.AND]
    if tokens and tokens[0].token_type == TokenType.L_PAREN:
        if tokens[-1].token_type != TokenType.R_PAREN:
            return None
        tokens = tokens[1:-1]
        kinds.append(TokenType.OR)
    for kind in kinds:
        pieces = list(_split(tokens, kind))
        if len(pieces) > 1:
            comparisons = [_comparison(piece, source) for piece in pieces]
            terms = tuple(term for term in comparisons if term is not None)
            if len(terms) < len(comparisons):
                return None
            return ir.And(terms) if kind == TokenType.AND else ir.Or(terms)
    return _comparison(tokens, source)


def _comparison(tokens: Sequence[Any], source: SqlSource) -> ir.Predicate | None:
    if _is_between(tokens):
        return _between(tokens, source)
    for place in (1, 2):
        if place < len(tokens) and (op := _OPS.get(tokens[place].token_type)) is not None:
            left, right = _value(tokens[:place], source), _value(tokens[place + 1 :], source)
            return None if left is None or right is None else ir.Comparison(op, left, right)
    return None


def _between(tokens: Sequence[Any], source: SqlSource) -> ir.Predicate | None:
    ends = list(_split(tokens[2:], TokenType.AND))
    operand = _value(tokens[:1], source)
    if len(ends) != 2 or operand is None:
        return None
    low, high = (_value(end, source) for end in ends)
    if low is None or high is None:
        return None
    return between(operand, low, high)


def _value(tokens: Sequence[Any], source: SqlSource) -> ir.Operand | None:
    """Read a column, or a number with an optional sign."""
    kinds = tuple(token.token_type for token in tokens)
    if kinds == (TokenType.NUMBER,):
        return number(tokens[0].text, source.dialect)
    if kinds == (TokenType.DASH, TokenType.NUMBER):
        return negated(number(tokens[1].text, source.dialect), source.dialect)
    return ir.Column(tokens[0].text) if len(kinds) == 1 and kinds[0] in _NAMES else None
