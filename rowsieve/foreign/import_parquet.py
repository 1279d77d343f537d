"""Import Parquet files of other writers into a new table without copying them: `from_parquet`.

The first version of the table refers to the files where they are. Changes write files of the
table's own; compaction copies the rows into such files. The imported files are never changed or
deleted (invariants, rule 15).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import pyarrow as pa

from rowsieve.arguments import checked
from rowsieve.arguments.annotations import (
    ColumnNames,
    Metadata,
    Properties,
    StorageOptions,
    TableUri,
)
from rowsieve.changes.settings import check_columns
from rowsieve.errors import InvalidInput, TableExists
from rowsieve.foreign.footers import Footer, read_footers
from rowsieve.foreign.hive import partitions_of
from rowsieve.foreign.joined_columns import JoinedColumns, join_columns
from rowsieve.foreign.key_proof import prove_key
from rowsieve.foreign.many_keys import PlacedFile
from rowsieve.foreign.open_parquet import HiveTypes, Paths
from rowsieve.foreign.paths import FoundFile, find_files
from rowsieve.foreign.place_files import with_bounds
from rowsieve.foreign.placed_parts import parts_of
from rowsieve.objects import Location, ObjectStore, open_store
from rowsieve.properties import check_properties
from rowsieve.storage.commit_log import CommitLog
from rowsieve.storage.commit_request import CommitRequest, check_request
from rowsieve.storage.manifest import PartTable
from rowsieve.storage.snapshot import PLACED_FILES, TableInfo
from rowsieve.table import Table
from rowsieve.types.keys import KeyOrder
from rowsieve.types.schema import Schema
from rowsieve.types.stored_names import has_tags


@checked
def from_parquet(
    paths: Paths,
    uri: TableUri,
    key: ColumnNames | None = None,
    *,
    hive: HiveTypes | None = None,
    schema: pa.Schema | None = None,
    match: Literal["name", "field_id"] = "name",
    properties: Properties | None = None,
    storage_options: StorageOptions | None = None,
    metadata: Metadata | None = None,
) -> Table:
    """Create a table of Parquet files where they are, as version 0; copies no rows.

    `paths`, `hive` and `schema` are those of `open_parquet`. With a key, the key columns are read
    once to prove that every file is sorted by it and that no key occurs twice; KeyViolation
    otherwise. `match="field_id"` matches the columns of different files by their ids in Parquet.
    The files are never changed or deleted, and must stay as they are. TableExists if a table exists
    at `uri`.
    """
    if match not in ("name", "field_id"):
        raise InvalidInput(f"from_parquet: match must be 'name' or 'field_id', not {match!r}")
    checked_properties = check_properties(properties or {})
    if has_tags(checked_properties):
        raise InvalidInput(
            "from_parquet: column_names is 'tag', but the files keep their names; use "
            "create_table with this property, and append the rows"
        )
    notes = dict(metadata or {})
    check_request(CommitRequest("create", metadata=notes))
    store = open_store(uri, storage_options)
    files = find_files(paths, storage_options)
    check_place("from_parquet", Location.parse(uri), files)
    log = CommitLog(store)
    if log.exists():
        raise TableExists(f"from_parquet: a table already exists at {store.uri}; give another uri")
    footers = read_footers(store, [file.uri for file in files])
    partitions = partitions_of(files, hive)
    joined = join_columns(footers, partitions, schema=schema, by_field_id=match == "field_id")
    table = _with_key(joined, tuple(key or ()))
    order = KeyOrder.of(table.schema, tuple(key)) if key else None
    check_columns(checked_properties, table.schema, key or ())
    parts = parts_of(footers, joined, partitions)
    if order is not None:
        parts = _keyed(store, footers, parts, table.schema, order)
    names = () if order is None else order.names
    info = TableInfo(
        uuid=uuid.uuid4().hex,
        key=names,
        mode="upsert" if names else "append",
        properties=checked_properties,
        features=(PLACED_FILES,),
    )
    snapshot = log.create(info, table.schema, table.next_id, lambda: parts, notes)
    return Table(store, log, snapshot, storage_options=storage_options)


def check_place(operation: str, location: Location, files: Sequence[FoundFile]) -> None:
    """Refuse files that the table's store cannot read, or that lie in the table's own folders."""
    first = files[0].location
    if (location.scheme, location.authority) != (first.scheme, first.authority):
        raise InvalidInput(
            f"{operation}: the files lie in {first.scheme}://{first.authority}, and the table in "
            f"{location.uri}; both lie on the local disk, or in one bucket"
        )
    for file in files:
        if file.location.path.startswith(f"{location.path.rstrip('/')}/"):
            raise InvalidInput(
                f"{operation}: {file.uri} lies in the folder of the table, {location.uri}, which "
                "holds the table's own files only; move one of them"
            )


def _with_key(joined: JoinedColumns, key: Sequence[str]) -> JoinedColumns:
    """The same columns, those of the key NOT NULL."""
    names = {joined.schema.field(name).name for name in key}
    fields = tuple(
        replace(field, nullable=False) if field.name in names else field for field in joined.schema
    )
    return replace(joined, schema=Schema(joined.schema.id, fields))


def _keyed(
    store: ObjectStore,
    footers: Sequence[Footer],
    parts: PartTable,
    schema: Schema,
    order: KeyOrder,
) -> PartTable:
    """The parts with the bounds of their keys, after the key is proved."""
    by_uri = {footer.uri: footer for footer in footers}
    refs = [ref for ref in parts.files("data") if ref is not None]
    if not refs:
        return parts
    ends = prove_key(store, [PlacedFile(by_uri[ref.path], ref) for ref in refs], schema, order)
    return with_bounds(parts, ends, order)
