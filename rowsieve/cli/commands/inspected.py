"""What `inspect` shows of a table: a row for each column, and for each part."""

from __future__ import annotations

from typing import Any

from rowsieve.table import Table
from rowsieve.types.logical import type_name
from rowsieve.types.shown_values import python_value


def columns_of(table: Table) -> list[dict[str, Any]]:
    """A row for each column, with comments if any column has one."""
    snapshot = table.handle.pinned
    has_comments = any(field.comment for field in snapshot.schema)
    return [
        {
            "id": field.id,
            "name": field.name,
            "type": type_name(field.type),
            "nullable": field.nullable,
            **({"comment": field.comment or ""} if has_comments else {}),
        }
        for field in snapshot.schema
    ]


def parts_of(table: Table) -> list[dict[str, Any]]:
    """A row for each part: sizes, hidden rows, and its first and last key."""
    parts, key = table.handle.pinned.parts, tuple(table.key)
    entries = parts.entries(range(len(parts)))
    return [
        {
            "part": entry.part_id,
            "commits": [entry.commit_ts_min, entry.commit_ts_max],
            "rows": 0 if entry.data is None else entry.data.rows,
            "hidden": sum(ref.rows for ref in (entry.dv, entry.vector) if ref is not None),
            "tombstones": 0 if entry.deletes is None else entry.deletes.rows,
            "size_bytes": sum(
                ref.size_bytes
                for ref in (entry.data, entry.deletes, entry.dv, entry.vector)
                if ref is not None
            ),
            "key_lower": _bound(key, entry.key_lower),
            "key_upper": _bound(key, entry.key_upper),
            "data": None if entry.data is None else entry.data.path,
        }
        for entry in entries
    ]


def _bound(key: tuple[str, ...], values: tuple[Any, ...]) -> dict[str, Any]:
    return {
        name: None if value is None else python_value(value)
        for name, value in zip(key, values, strict=False)
    }


def flags_set(table: Table) -> list[str]:
    """The flags of the table that have another value than usual, and why."""
    flags = table.handle.pinned.table.flags.by_name.values()
    return [str(flag) for flag in flags if not flag.is_usual]
