"""Limits on the length and nesting of SQL text, checked before anything recursive reads it.

The grammar recurses once or more per parenthesis, CASE, NOT and sign, so these are counted on the
tokens, which are made iteratively. Text beyond a limit is rejected with the position in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot.tokenizer_core import TokenType

from rowsieve.errors import InvalidPredicate

MAX_TEXT = 2_000_000  # characters, without long IN lists
MAX_NESTING = 32
MAX_OPERATOR_DEPTH = 100
MAX_MEMBERS = 10_000_000

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
_NEGATIONS = {TokenType.NOT, TokenType.EXCLAMATION}
_SIGNS = {TokenType.DASH, TokenType.PLUS, TokenType.TILDE}
_SEPARATORS = {TokenType.AND, TokenType.OR, TokenType.COMMA, TokenType.WHEN, TokenType.THEN}


def check_length(text: str) -> None:
    """Raise for text that is too long for a filter."""
    if len(text) > MAX_TEXT:
        raise InvalidPredicate(
            f"the filter has {len(text):,} characters besides its long IN lists, at most "
            f"{MAX_TEXT:,} are read; pass long lists as `IN` lists of plain constants"
        )


def too_deep(tokens: Sequence[Any]) -> Any | None:
    """Return the first token that nests deeper than `MAX_NESTING`, or None.

    A NOT nests until its conjunct ends, a sign until its operand begins. Subscripts of subscripts
    count too, because the grammar's cost is quadratic in them.
    """
    open_: list[int] = []  # NOTs before each open parenthesis or CASE
    depth = negations = signs = subscripts = 0
    previous = None
    for token in tokens:
        kind = token.token_type
        signs = signs + 1 if kind in _SIGNS else 0
        if kind == TokenType.L_BRACKET:
            subscripts = subscripts + 1 if previous == TokenType.R_BRACKET else 0
        previous = kind
        if kind in _NEGATIONS:
            negations += 1
        elif kind in _OPENING or kind == TokenType.CASE:
            open_.append(negations)
            depth += negations + 1
            negations = 0
        elif kind in _CLOSING or kind == TokenType.END:
            if open_:
                negations = open_.pop()
                depth -= negations + 1
        elif kind in _SEPARATORS:
            negations = 0
        if max(depth + negations + signs, subscripts) > MAX_NESTING:
            return token
    return None
