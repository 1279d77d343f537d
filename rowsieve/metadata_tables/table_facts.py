"""What is known of the pinned version of a table, as rows: properties, files and their sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.metadata_tables.version_list import NOTES, TIME
from rowsieve.properties import settings_among

if TYPE_CHECKING:
    from rowsieve.table import Table

_CONTENTS: Final = {"data": 0, "vector": 1, "deletes": 2}
"""Iceberg's numbers: rows, places of deleted rows, keys of deleted rows."""
_FILES: Final = {
    "content": pa.int32(),
    "file_path": pa.string(),
    "file_format": pa.string(),
    "record_count": pa.int64(),
    "file_size_in_bytes": pa.int64(),
    "part": pa.string(),
}
_PARTITIONS: Final = {
    "record_count": pa.int64(),
    "file_count": pa.int32(),
    "total_data_file_size_in_bytes": pa.int64(),
    "position_delete_file_count": pa.int32(),
    "equality_delete_record_count": pa.int64(),
    "equality_delete_file_count": pa.int32(),
    "last_updated_at": TIME,
    "last_updated_snapshot_id": pa.int64(),
}


def files_of(table: Table) -> pa.Table:
    """The files of a table, in the columns that Iceberg has, and the part of each.

    Paths are relative to the table. A deletion vector has no `record_count` and no format of
    Iceberg's.
    """
    rows = [
        {
            "content": _CONTENTS[file["kind"]],
            "file_path": file["path"],
            "file_format": None if file["kind"] == "vector" else "PARQUET",
            "record_count": file["rows"],
            "file_size_in_bytes": file["size_bytes"],
            "part": file["part"],
        }
        for file in table.files().to_pylist()
    ]
    return pa.Table.from_pylist(rows, pa.schema(_FILES))


def partitions_of(table: Table) -> pa.Table:
    """One row: a table has no partitions, and Iceberg shows such a table as one without a key.

    `record_count` has all stored rows, those that others hide and those in the log included.
    """
    files, snapshot = files_of(table), table.handle.pinned
    data, positions, keys = (
        files.filter(pc.equal(files["content"], content)) for content in _CONTENTS.values()
    )
    row = {
        "record_count": int(snapshot.parts.data_rows().sum()),
        "file_count": data.num_rows,
        "total_data_file_size_in_bytes": pc.sum(data["file_size_in_bytes"], min_count=0).as_py(),
        "position_delete_file_count": len(set(positions["file_path"].to_pylist())),
        "equality_delete_record_count": pc.sum(keys["record_count"], min_count=0).as_py(),
        "equality_delete_file_count": keys.num_rows,
        "last_updated_at": snapshot.timestamp,
        "last_updated_snapshot_id": snapshot.version,
    }
    return pa.Table.from_pylist([row], pa.schema(_PARTITIONS))


def properties_of(table: Table) -> pa.Table:
    """The properties of a table that are set, by name."""
    settings = settings_among(table.handle.pinned.table.properties)
    rows = [{"key": name, "value": value} for name, value in settings.items()]
    return pa.Table.from_pylist(rows, pa.schema({"key": pa.string(), "value": pa.string()}))


def detail_of(table: Table) -> pa.Table:
    """One row of facts about the version that the table has pinned."""
    facts = table.detail()
    facts |= {
        "timestamp": table.handle.pinned.timestamp,
        "properties": list(facts["properties"].items()),
    }
    del facts["distinct_counts"], facts["flags"]
    names = pa.list_(pa.string())
    kinds = {"timestamp": TIME, "key": names, "sequence": names, "properties": NOTES}
    types = {
        name: kinds.get(name, pa.int64() if isinstance(value, int) else pa.string())
        for name, value in facts.items()
    }
    return pa.Table.from_pylist([facts], pa.schema(types))
