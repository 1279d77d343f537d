"""The versions of a table as rows, oldest first, in the columns that Iceberg gives them.

Soundness: no version after the pinned one is listed, so that the list and the rows of a table agree
within a statement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowsieve.storage.log.log_entry import Commit
    from rowsieve.table import Table

TIME: Final = pa.timestamp("us", tz="UTC")
NOTES: Final = pa.map_(pa.string(), pa.string())
_COUNTS: Final = {
    "rows_written": pa.int64(),
    "rows_deleted": pa.int64(),
    "parts_added": pa.int64(),
    "parts_removed": pa.int64(),
}
_COMMITS: Final = {
    "version": pa.int64(),
    "timestamp": TIME,
    "operation": pa.string(),
    **_COUNTS,
    "metadata": NOTES,
}
_SNAPSHOTS: Final = {
    "committed_at": TIME,
    "snapshot_id": pa.int64(),
    "parent_id": pa.int64(),
    "operation": pa.string(),
    "summary": NOTES,
    **_COUNTS,
}
_REFS: Final = {"name": pa.string(), "type": pa.string(), "snapshot_id": pa.int64()}
_HISTORY: Final = {
    "made_current_at": TIME,
    "snapshot_id": pa.int64(),
    "parent_id": pa.int64(),
    "is_current_ancestor": pa.bool_(),
}


def commits_of(table: Table, limit: int | None) -> pa.Table:
    """The commits of a table, newest first; at most `limit` of them."""
    return _rows(table.history(limit), _COMMITS)


def snapshots_of(table: Table) -> pa.Table:
    """The versions up to the pinned one, with what each commit did."""
    return _rows(_until_pinned(table), _SNAPSHOTS)


def history_of(table: Table) -> pa.Table:
    """When each version up to the pinned one became the current one.

    All are ancestors of the current version: `restore` adds a version and removes none.
    """
    return _rows(_until_pinned(table), _HISTORY)


def refs_of(table: Table) -> pa.Table:
    """The table itself as the branch `main`, then its branches and tags of now."""
    rows = [
        {"name": row["name"], "type": row["kind"].upper(), "snapshot_id": row["version"]}
        for row in table.refs().to_pylist()
    ]
    main = {"name": "main", "type": "BRANCH", "snapshot_id": table.version}
    return pa.Table.from_pylist([*([] if table.ref else [main]), *rows], pa.schema(_REFS))


def _until_pinned(table: Table) -> list[Commit]:
    return [each for each in reversed(table.history()) if each.version <= table.version]


def _rows(commits: Iterable[Commit], columns: dict[str, pa.DataType]) -> pa.Table:
    """One row for each commit, with those of its facts that `columns` names."""
    rows = [_facts(commit) for commit in commits]
    return pa.Table.from_pylist(rows, pa.schema(columns))


def _facts(commit: Commit) -> dict[str, Any]:
    notes = [(name, _text(value)) for name, value in commit.metadata.items()]
    return {
        "version": commit.version,
        "snapshot_id": commit.version,
        "parent_id": commit.version - 1 if commit.version else None,
        "timestamp": commit.timestamp,
        "committed_at": commit.timestamp,
        "made_current_at": commit.timestamp,
        "is_current_ancestor": True,
        "operation": commit.operation,
        "rows_written": commit.rows_written,
        "rows_deleted": commit.rows_deleted,
        "parts_added": commit.parts_added,
        "parts_removed": commit.parts_removed,
        "metadata": notes,
        "summary": notes,
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
