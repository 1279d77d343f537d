"""Clauses of statements that change tables which this session does not run, refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rowsieve.errors import UnsupportedOperation
from rowsieve.statements.tokens import StatementTokens

_BEFORE_COLUMN: Final = frozenset(
    {
        *("SELECT", "DISTINCT", "ALL", "WHERE", "ON", "HAVING", "BY", "SET", "AND", "OR", "NOT"),
        *("IN", "BETWEEN", "LIKE", "FROM", "JOIN", "INTO", "UPDATE", "AS"),
        *(",", ".", "=", "<>", "!=", "<", ">", "<=", ">=", "+", "-", "/", "%", "||"),
    }
)
"""Words after which RETURNING and LIMIT are names of columns or tables."""

_HAS_VALUES: Final = frozenset({"INSERT", "REPLACE", "UPDATE", "MERGE"})
_BEFORE_VALUE: Final = frozenset({"(", ",", "="})
_AFTER_VALUE: Final = frozenset({")", ",", "WHERE", "WHEN", ""})


def check_clauses(reader: StatementTokens) -> None:
    """Raise UnsupportedOperation for a clause of another system's grammar."""
    for what, instead in _refused(reader):
        raise UnsupportedOperation(f"sql: {what} is not available for a Rowsieve table{instead}")


def _refused(reader: StatementTokens) -> Iterator[tuple[str, str]]:
    words = reader.words
    place = reader.find("RETURNING", last=True)
    if place < reader.count - 1 and words[place - 1] not in _BEFORE_COLUMN:
        yield (
            "RETURNING",
            (
                ": the result of the statement is the number of rows. Leave it out, and query the "
                "rows afterwards, or read the change feed of the commit"
            ),
        )
    if reader.find("DEFAULT", "VALUES") < reader.count:
        yield "DEFAULT VALUES", "; name the columns that have values, the others get their defaults"
    if words[0] in _HAS_VALUES and any(_is_value(words, i) for i in range(1, reader.count)):
        yield (
            "DEFAULT as a value",
            ': leave the column out of an INSERT; a column of that name is written "default"',
        )
    if words[0] == "UPDATE":
        limited = min(reader.find("ORDER", "BY"), reader.find("LIMIT"))
        if limited < reader.count and words[limited - 1] not in _BEFORE_COLUMN:
            yield f"UPDATE with {words[limited]}", "; choose the rows by a condition"


def _is_value(words: list[str], place: int) -> bool:
    after = words[place + 1] if place + 1 < len(words) else ""
    return words[place] == "DEFAULT" and words[place - 1] in _BEFORE_VALUE and after in _AFTER_VALUE
