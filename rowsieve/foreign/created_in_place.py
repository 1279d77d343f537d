"""Creates a table from foreign files, in place, as version 0.

Rows that the files' table hides get deletion vectors of our own. Changes write files of the table's
own; compaction copies the rows into such files. The foreign files are never changed or deleted
(invariants, rule 15).

Soundness: in a table with a key a deletion vector is derived and may be dropped (invariant I3), so
hidden rows would come back; so such files are refused.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from rowsieve.arguments.annotations import Metadata, Progress, Properties, StorageOptions
from rowsieve.changes.property_changes import check_columns
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import InvalidInput, TableExists, UnsupportedOperation
from rowsieve.foreign.footers import Footer
from rowsieve.foreign.hive import Partitions
from rowsieve.foreign.joined_columns import JoinedColumns
from rowsieve.foreign.key_proof import prove_key
from rowsieve.foreign.many_keys import PlacedFile
from rowsieve.foreign.place_files import with_bounds
from rowsieve.foreign.placed_parts import parts_of
from rowsieve.objects import Location, ObjectStore, Uploads, open_store
from rowsieve.predicate.rowset import RowSet
from rowsieve.progress_bars import Steps
from rowsieve.properties import check_properties
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.commit_request import CommitRequest, check_request
from rowsieve.storage.manifests.manifest import DeletionVectorRef, PartTable
from rowsieve.storage.parts.deletion_vectors import write_deletion_vector
from rowsieve.storage.snapshot import PLACED_FILES, TableInfo
from rowsieve.table import Table
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema
from rowsieve.types.stored_names import has_tags


@dataclass(frozen=True, slots=True)
class PlacedFiles:
    """Files with the columns that they have in common.

    `hidden`: the rows that a file's table has deleted, by URI. `instants`: that of `FileMapping`.
    """

    footers: Sequence[Footer]
    joined: JoinedColumns
    partitions: Partitions
    hidden: Mapping[str, RowSet] = field(default_factory=dict)
    instants: bool = False

    def parts(
        self, store: Callable[[RowSet], DeletionVectorRef], *, on_demand: bool = False
    ) -> PartTable:
        """A part per file that has rows; `store` stores a deletion vector.

        `on_demand`: that of `parts_of`.
        """
        vectors = {uri: store(hidden) for uri, hidden in self.hidden.items() if len(hidden)}
        return parts_of(
            self.footers,
            self.joined,
            self.partitions,
            vectors=vectors,
            instants=self.instants,
            on_demand=on_demand,
        )


@dataclass(frozen=True, slots=True)
class TableInPlace:
    """Place, key and properties of a table to create; `operation` names the called function."""

    operation: str
    store: ObjectStore
    key: tuple[str, ...]
    properties: Mapping[str, str]
    metadata: Metadata
    storage_options: StorageOptions | None = field(repr=False)  # may hold secrets

    @classmethod
    def of(
        cls,
        operation: str,
        uri: str | os.PathLike[str],
        key: Sequence[str] | None,
        properties: Properties | None,
        metadata: Metadata | None,
        storage_options: StorageOptions | None,
    ) -> TableInPlace:
        """Check the arguments before anything is read."""
        checked = check_properties(properties or {})
        if has_tags(checked):
            raise InvalidInput(
                f"{operation}: column_names is 'tag', but the files keep their names; use "
                "create_table with this property, and append the rows"
            )
        notes = dict(metadata or {})
        check_request(CommitRequest("create", metadata=notes))
        store = open_store(uri, storage_options)
        return cls(operation, store, tuple(key or ()), checked, notes, storage_options)

    def check(self, files: Sequence[Location]) -> None:
        """Check the place: TableExists for a table; InvalidInput for files that it cannot use."""
        check_place(self.operation, Location.parse(self.store.uri), files)
        if CommitLog(self.store).exists():
            raise TableExists(
                f"{self.operation}: a table already exists at {self.store.uri}; give another uri"
            )

    def steps(self, show: Progress | None, files: int) -> Steps:
        """The steps of this import: a file's footer, and its key if the table has one."""
        return Steps(show, files * (2 if self.key else 1))

    def create(self, files: PlacedFiles, steps: Steps) -> Table:
        """Create the table; KeyViolation if the key does not hold."""
        schema = _with_key(files.joined.schema, self.key)
        order = KeyOrder.of(schema, self.key) if self.key else None
        check_columns(self.properties, schema, self.key)
        write = partial(_stored, self.store, files)
        if order is not None:
            if hidden := [uri for uri, rows in files.hidden.items() if len(rows)]:
                raise UnsupportedOperation(
                    f"{self.operation}: {len(hidden)} files have deleted rows, such as "
                    f"{hidden[0]}, which files of a table with a key cannot have in place; rewrite "
                    "these files, import without key=, or copy the rows with create_table"
                )
            parts = _keyed(
                self.store, files.footers, _stored(self.store, files), schema, order, steps
            )
            write = partial(_keep, parts)
        names = () if order is None else order.names
        info = TableInfo(
            uuid=uuid.uuid4().hex,
            key=names,
            mode="upsert" if names else "append",
            properties=self.properties,
            features=(PLACED_FILES,),
        )
        log = CommitLog(self.store)
        snapshot = log.create(info, schema, files.joined.next_id, write, self.metadata)
        steps.finish()
        return Table(Handle(self.store, log, snapshot, storage_options=self.storage_options))


def check_place(operation: str, table: Location, files: Sequence[Location]) -> None:
    """Refuse files that the table's store cannot read, or that lie in the table's own folders."""
    for file in files:
        if (table.scheme, table.authority) != (file.scheme, file.authority):
            raise InvalidInput(
                f"{operation}: the files lie in {file.scheme}://{file.authority}, and the table in "
                f"{table.uri}; both lie on the local disk, or in one bucket"
            )
        if file.path.startswith(f"{table.path.rstrip('/')}/"):
            raise InvalidInput(
                f"{operation}: {file.uri} lies in the folder of the table, {table.uri}, which "
                "holds the table's own files only; move one of them"
            )


def check_outside(operation: str, table: Location, other: Location) -> None:
    """Refuse a table inside the folder of another format's table, whose vacuum would delete it."""
    same = (table.scheme, table.authority) == (other.scheme, other.authority)
    if same and f"{table.path}/".startswith(f"{other.path.rstrip('/')}/"):
        raise InvalidInput(
            f"{operation}: {table.uri} lies in the folder of the table that is imported, "
            f"{other.uri}, whose vacuum would delete its files; give another place"
        )


def _with_key(schema: Schema, key: Sequence[str]) -> Schema:
    """The same columns, those of the key NOT NULL."""
    names = {schema.field(name).name for name in key}
    fields = (
        replace(each, nullable=False) if each.name in names else each for each in schema.fields
    )
    return Schema(schema.id, tuple(fields))


def _stored(store: ObjectStore, files: PlacedFiles) -> PartTable:
    """The parts, after their deletion vectors are stored."""
    uploads = Uploads(store)
    parts = files.parts(lambda hidden: write_deletion_vector(uploads, hidden, 0))
    uploads.wait()
    return parts


def _keep(parts: PartTable) -> PartTable:
    return parts


def _keyed(
    store: ObjectStore,
    footers: Sequence[Footer],
    parts: PartTable,
    schema: Schema,
    order: KeyOrder,
    steps: Steps,
) -> PartTable:
    """The parts with the bounds of their keys, after the key is proved."""
    by_uri = {footer.uri: footer for footer in footers}
    refs = [ref for ref in parts.files("data") if ref is not None]
    if not refs:
        return parts
    placed = [PlacedFile(by_uri[ref.path], ref) for ref in refs]
    ends = prove_key(store, placed, schema, order, steps)
    return with_bounds(parts, ends, order)
