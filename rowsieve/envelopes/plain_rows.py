"""The rows in a message of plain JSON, before it is decoded for the columns of a table.

Names beside the rows, such as `name` in Debezium's `source`, are no columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rowsieve.envelopes.formats import Format

Row = Mapping[str, Any]


def rows_after(message: Any, format_: Format) -> Iterator[Row]:
    """The rows after the change."""
    payload = message.get("payload", message) if isinstance(message, Mapping) else None
    if not isinstance(payload, Mapping):
        return
    if format_.listed is not None:
        yield from format_.listed(payload)
    elif format_.beside:
        yield payload
    else:
        yield from _at(payload, format_.after)


def names_of_rows(message: Any, format_: Format) -> set[str]:
    """The names of columns in all rows, before and after the change."""
    names = {str(name) for row in rows_after(message, format_) for name in row}
    payload = message.get("payload", message) if isinstance(message, Mapping) else None
    if isinstance(payload, Mapping) and format_.listed is None and not format_.beside:
        for path in (format_.before, format_.deleted):
            names.update(str(name) for row in _at(payload, path) for name in row)
    return names


def _at(payload: Row, path: str) -> Iterator[Row]:
    rows = payload.get(path, payload.get(path.replace("_", "-")))
    for row in rows if isinstance(rows, list) else [rows]:
        if isinstance(row, Mapping):
            yield row
