"""What is known of a table, as rows: its commits, its versions, its details."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

if TYPE_CHECKING:
    from rowsieve.storage.log.log_entry import Commit
    from rowsieve.table import Table

_TIME: Final = pa.timestamp("us", tz="UTC")
_NOTES: Final = pa.map_(pa.string(), pa.string())
_COMMITS: Final = {
    "version": pa.int64(),
    "timestamp": _TIME,
    "operation": pa.string(),
    "rows_written": pa.int64(),
    "rows_deleted": pa.int64(),
    "parts_added": pa.int64(),
    "parts_removed": pa.int64(),
    "metadata": _NOTES,
}
_SNAPSHOTS: Final = {
    "committed_at": _TIME,
    "snapshot_id": pa.int64(),
    "operation": pa.string(),
    "summary": _NOTES,
}


def commits_of(table: Table, limit: int | None) -> pa.Table:
    """The commits of a table, newest first; at most `limit` of them."""
    rows = [
        {
            "version": commit.version,
            "timestamp": commit.timestamp,
            "operation": commit.operation,
            "rows_written": commit.rows_written,
            "rows_deleted": commit.rows_deleted,
            "parts_added": commit.parts_added,
            "parts_removed": commit.parts_removed,
            "metadata": _notes(commit),
        }
        for commit in table.history(limit)
    ]
    return pa.Table.from_pylist(rows, pa.schema(_COMMITS))


def snapshots_of(table: Table) -> pa.Table:
    """The versions of a table, in the order and with the names of columns that Iceberg has."""
    rows = [
        {
            "committed_at": commit.timestamp,
            "snapshot_id": commit.version,
            "operation": commit.operation,
            "summary": _notes(commit),
        }
        for commit in reversed(table.history())
    ]
    return pa.Table.from_pylist(rows, pa.schema(_SNAPSHOTS))


def detail_of(table: Table) -> pa.Table:
    """One row of facts about the version that the table has pinned."""
    facts = table.detail()
    facts |= {
        "timestamp": table.handle.pinned.timestamp,
        "properties": list(facts["properties"].items()),
    }
    del facts["distinct_counts"]
    kinds = {"timestamp": _TIME, "key": pa.list_(pa.string()), "properties": _NOTES}
    types = {
        name: kinds.get(name, pa.int64() if isinstance(value, int) else pa.string())
        for name, value in facts.items()
    }
    return pa.Table.from_pylist([facts], pa.schema(types))


def _notes(commit: Commit) -> list[tuple[str, str]]:
    return [(name, _text(value)) for name, value in commit.metadata.items()]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
