"""The inline tables of a query: where the rows of each `VALUES` begin and end.

Only lists of rows in parentheses are found, `VALUES (1, 'a'), (2, 'b')`: those are tables, whatever
stands around them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_VALUES = re.compile(r"\bVALUES\s*(?=\()", re.IGNORECASE)
_QUOTES = "'\"`"
_SKIPPED = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


def with_views(sql: str, view_of: Callable[[str], str | None]) -> str:
    """The query with views instead of its inline tables; without a name a table is kept."""
    pieces, start = [], 0
    for begin, stop in _inline_tables(sql):
        name = view_of(sql[begin:stop])
        if name is not None:
            pieces += [sql[start:begin], f"(TABLE {name})"]
            start = stop
    return "".join([*pieces, sql[start:]])


def _inline_tables(sql: str) -> Iterator[tuple[int, int]]:
    """Begin and stop of each `VALUES (…), (…)` outside of quotes and comments."""
    position = 0
    while position < len(sql):
        if (after := _after_quotes(sql, position)) != position:
            position = after
        elif (match := _VALUES.match(sql, position)) and (stop := _end_of_rows(sql, match.end())):
            yield position, stop
            position = stop
        else:
            position += 1


def _end_of_rows(sql: str, position: int) -> int | None:
    """Where the rows end that begin here; None where one does not end or is not in parentheses."""
    comma = re.compile(r"\s*,\s*")
    while sql.startswith("(", position):
        depth = 0
        while position < len(sql):
            if (after := _after_quotes(sql, position)) != position:
                position = after
                continue
            depth += {"(": 1, ")": -1}.get(sql[position], 0)
            position += 1
            if depth == 0:
                break
        following = comma.match(sql, position)
        if depth or following is None:
            return None if depth else position
        position = following.end()
    return None


def _after_quotes(sql: str, position: int) -> int:
    """Where the text, the quoted name or the comment ends that begins here, else the position."""
    if match := _SKIPPED.match(sql, position):
        return match.end()
    quote = sql[position]
    if quote not in _QUOTES:
        return position
    position += 1
    while position < len(sql) and sql[position] != quote:
        position += 2 if sql[position] == "\\" and quote != "`" else 1
    return position + 1
