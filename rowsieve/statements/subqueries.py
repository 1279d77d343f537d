"""Subqueries of a query's conditions that are a value, or the members of IN, as ranges of tokens.

Soundness: tokens, not patterns, so a literal or a name is never taken for a subquery. Subqueries
that may give a column of the result its name are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from rowsieve.statements.tokens import StatementTokens

_MAY_HAVE: Final = re.compile(r"\(\s*select\b", re.IGNORECASE)
_COMPARISONS: Final = frozenset({"=", "<>", "!=", "<", ">", "<=", ">="})
_CONDITIONS: Final = frozenset({"WHERE", "ON", "HAVING"})
_CLAUSES: Final = _CONDITIONS | {"SELECT", "FROM", "GROUP", "ORDER", "LIMIT", "VALUES", "QUALIFY"}
_BEFORE_VALUE: Final = _COMPARISONS | {"BETWEEN", "AND", "+", "-"}


def may_have_subqueries(query: str) -> bool:
    """Return whether a text may have subqueries whose values can be known."""
    return _MAY_HAVE.search(query) is not None


def subqueries(tokens: StatementTokens) -> Iterator[tuple[int, int]]:
    """The ranges of subqueries, with their brackets, that are a value or the members of IN.

    Only those of conditions: others may give a column of the result its name.
    """
    clauses = [""]
    at = 0
    while at < tokens.count - 1:
        word = tokens.words[at]
        if word in _CLAUSES:
            clauses[-1] = word
        elif word == ")" and len(clauses) > 1:
            clauses.pop()
        elif word == "(" and at and tokens.words[at + 1] == "SELECT" and clauses[-1] in _CONDITIONS:
            tokens.at = at
            tokens.bracket()
            before = tokens.words[at - 1]
            after = tokens.words[tokens.at] if tokens.at < tokens.count else ""
            if before in _BEFORE_VALUE or before == "IN" or after in _COMPARISONS:
                yield at, tokens.at
                at = tokens.at
                continue
        if word == "(":
            clauses.append(clauses[-1])
        at += 1


def replaced(
    tokens: StatementTokens, spans: Sequence[tuple[int, int]], texts: Sequence[str]
) -> str:
    """The statement with these texts in place of the ranges."""
    pieces, at = [], 0
    for (start, stop), text in zip(spans, texts, strict=True):
        pieces += [tokens.piece(at, start), text]
        at = stop
    return " ".join([*pieces, tokens.piece(at, tokens.count)])
