"""Open foreign Parquet files as a read-only table: `open_parquet`.

The table has one version, which exists in memory only. It is planned and read like any other table;
nothing is written.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, TypeAlias

import pyarrow as pa

from rowsieve import clock
from rowsieve.arguments import Example, checked
from rowsieve.arguments.annotations import StorageOptions
from rowsieve.arguments.kinds import ANY_TEXT
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import InvalidInput, VersionNotFound
from rowsieve.foreign.footers import read_footers
from rowsieve.foreign.hive import partitions_of
from rowsieve.foreign.joined_columns import join_columns
from rowsieve.foreign.paths import find_files, root_of
from rowsieve.foreign.placed_parts import parts_of
from rowsieve.objects import ObjectStore, open_store
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import Snapshot, TableInfo
from rowsieve.table import Table
from rowsieve.types.schema import Schema

Path: TypeAlias = Annotated[str | os.PathLike[str], ANY_TEXT]
Paths: TypeAlias = Annotated[
    Path | Sequence[Path], Example("'folder'", "a path, a directory, a glob or a list of these")
]
HiveTypes: TypeAlias = Annotated[
    bool | Mapping[str, pa.DataType | str],
    Example("{'year': 'int32'}", "True, False, or a mapping of columns to types"),
]

_READ_ONLY: Final = (
    "the files were opened with open_parquet, which changes nothing; import them into a table with "
    "from_parquet"
)


@checked
def open_parquet(
    paths: Paths,
    *,
    hive: HiveTypes | None = None,
    schema: pa.Schema | None = None,
    binary_as_string: bool = False,
    storage_options: StorageOptions | None = None,
) -> Table:
    """Open Parquet files as a read-only table with one version; reads only their footers.

    `paths` is a file, a directory, a glob (`data/**/*.parquet`) or a list of these. Columns are
    matched by name, and a column that a file lacks is NULL there. `hive`: directories such as
    `year=2024` below the given one are columns (default); False ignores them, True takes those of
    the whole path, and a mapping gives their types. `schema` chooses columns and their types.
    `binary_as_string`: bytes without a type of Parquet are text, as some writers store it.
    NotFound if there are no files; SchemaMismatch if their columns do not fit together.
    """
    files = find_files(paths, storage_options)
    store = open_store(root_of(files).uri, storage_options)
    footers = read_footers(store, [file.uri for file in files])
    partitions = partitions_of(files, hive)
    joined = join_columns(footers, partitions, schema=schema, binary_as_string=binary_as_string)
    if not len(joined.schema):
        raise InvalidInput("open_parquet: the files have no columns; give files with columns")
    parts = parts_of(footers, joined, partitions, on_demand=True)
    return view_of(store, joined.schema, joined.next_id, parts, _READ_ONLY, storage_options)


def view_of(
    store: ObjectStore,
    schema: Schema,
    next_id: int,
    parts: PartTable,
    reason: str,
    storage_options: StorageOptions | None,
) -> Table:
    """Return a table of these parts that has one version, in memory; changes fail with `reason`."""
    snapshot = Snapshot(
        version=0,
        commit_id=uuid.uuid4().hex,
        timestamp_us=clock.now_us(),
        table=TableInfo(uuid=uuid.uuid4().hex, key=(), mode="append"),
        schema=schema,
        next_field_id=next_id,
        parts=parts.with_commit_ts(0) if len(parts) and parts.in_memory else parts,
        tokens={},
    )
    log = _OneVersion(store, snapshot)
    return Table(Handle(store, log, snapshot, read_only=reason, storage_options=storage_options))


class _OneVersion(CommitLog):
    """The log of a table that exists in memory only, with one version."""

    def __init__(self, store: ObjectStore, snapshot: Snapshot) -> None:
        super().__init__(store)
        self._only = snapshot

    def latest(self, known: Snapshot | None = None) -> Snapshot:  # noqa: ARG002
        """The version."""
        return self._only

    def at(self, version: int) -> Snapshot:
        """The version; an error for another number."""
        if version != 0:
            raise VersionNotFound(
                f"there is no version {version}: the files have version 0 only; leave version= out"
            )
        return self._only

    def as_of(self, timestamp_us: int) -> Snapshot:
        """The version; an error for a time before the files were opened."""
        if timestamp_us < self._only.timestamp_us:
            raise VersionNotFound(
                "the files have no version from before they were opened; leave as_of= out"
            )
        return self._only

    def history(self, limit: int | None = None) -> list[Commit]:  # noqa: ARG002
        """No commits."""
        return []

    def exists(self) -> bool:
        """Return whether there is a table on disk: no."""
        return False
