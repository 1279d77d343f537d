"""Tasks and commit of `add_files` for foreign files that are added in place.

A task reads the footers of some files, and the columns that must be proved; its fragment has the
parts, and the first and last key of each. The commit checks that keys of different tasks are
disjoint, and that the table has none of the files yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.arguments.annotations import StorageOptions
from rowsieve.changes.constraint_changes import check_all
from rowsieve.changes.placed_commits import commit_placed
from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.foreign.created_in_place import check_place
from rowsieve.foreign.hive import no_partitions, partitions_of
from rowsieve.foreign.key_proof import Ends, check_disjoint
from rowsieve.foreign.paths import find_files
from rowsieve.foreign.place_files import PlacingTarget, place_files
from rowsieve.objects import Location, open_store, table_uri_of
from rowsieve.storage.log.commit_log import check_writable
from rowsieve.storage.log.commit_request import CommitRequest
from rowsieve.storage.log.floors import is_given_up
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.manifests.manifest_layout import COLUMNS
from rowsieve.storage.snapshot import PLACED_FILES, Snapshot
from rowsieve.table import Table
from rowsieve.types.encodings import arrow_type
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import schema_from_json, schema_to_json
from rowsieve.types.stored_names import has_tags

_TASK_FILES: Final = 2_000
_FIRST, _LAST = b"rowsieve.first_keys", b"rowsieve.last_keys"


@dataclass(frozen=True, slots=True)
class Found:
    """The files of a call: by URI, the constants from the file's directories.

    `below`: the path of each file relative to the given folder, glob or file.
    """

    constants: Mapping[str, Mapping[str, str | None]]
    below: Mapping[str, str]


class PlaceTask(msgspec.Struct, frozen=True, tag="place"):
    """One task: foreign files, with the constants of each, and the table that gets them."""

    files: dict[str, dict[str, str | None]]
    table_uri: str
    schema: dict[str, Any]
    key: tuple[str, ...]
    version: int
    by_field_id: bool


@dataclass(frozen=True, slots=True)
class Placing:
    """The arguments of the call that find and match files."""

    source: str
    hive: bool
    by_field_id: bool


def find(table: Table, snapshot: Snapshot, how: Placing) -> Found:
    """Find the files, and check their places."""
    if has_tags(snapshot.table.properties):
        raise UnsupportedOperation(
            f"add_files: the files of {table.uri} have tags for names, and files in place keep "
            "theirs; copy the rows with copy => TRUE"
        )
    files = find_files(how.source, table.handle.storage_options)
    check_place(
        "add_files", Location.parse(table_uri_of(table.uri)), [file.location for file in files]
    )
    types = {field.name: arrow_type(field.type) for field in snapshot.schema}
    partitions = partitions_of(files, None, types) if how.hive else no_partitions(len(files))
    rows = zip(files, partitions.values, strict=True)
    return Found(
        {file.uri: dict(row) for file, row in rows}, {file.uri: file.below for file in files}
    )


def tasks_of(table: Table, snapshot: Snapshot, files: Found, how: Placing) -> list[PlaceTask]:
    """Cut the files into tasks."""
    uris = list(files.constants)
    return [
        PlaceTask(
            {uri: dict(files.constants[uri]) for uri in uris[start : start + _TASK_FILES]},
            table.uri,
            schema_to_json(snapshot.schema),
            snapshot.table.key,
            snapshot.version,
            how.by_field_id,
        )
        for start in range(0, len(uris), _TASK_FILES)
    ]


def place(task: PlaceTask, storage_options: StorageOptions) -> tuple[int, bytes]:
    """Run a task; return the rows of its files, and the fragment with their parts."""
    store = open_store(task.table_uri, storage_options)
    target = PlacingTarget(schema_from_json(task.schema), task.key, task.version, task.by_field_id)
    parts, ends = place_files(store, task.files, target)
    both = {} if ends is None else {_FIRST: _to_ipc(ends.first), _LAST: _to_ipc(ends.last)}
    return int(parts.data_rows().sum()), parts.to_ipc(both)


def joined(fragments: Sequence[bytes], base: Snapshot) -> PartTable:
    """The parts of all tasks; KeyViolation if keys of different tasks overlap."""
    read = [PartTable.from_ipc_with_metadata(each) for each in fragments]
    parts = PartTable.empty().append(*(each for each, _ in read))
    with_keys = [(each, notes) for each, notes in read if _FIRST in notes]
    if base.table.key and len(with_keys) > 1:
        first, last = (
            pa.Table.from_batches([_from_ipc(notes[side]) for _, notes in with_keys])
            .combine_chunks()
            .to_batches()[0]
            for side in (_FIRST, _LAST)
        )
        paths = [path for each, _ in with_keys for path in each.column("data.path").to_pylist()]
        check_disjoint(paths, Ends(first, last), KeyOrder.of(base.schema, base.table.key))
    return parts


def check_new(uris: Sequence[str], head: Snapshot) -> None:
    """Raise InvalidInput if the table has one of the files already."""
    if head.parts.schema.get_field_index(COLUMNS) < 0:
        return
    known = pc.is_in(pa.array(uris, pa.string()), value_set=head.parts.column("data.path"))
    if twice := [uri for uri, there in zip(uris, known.to_pylist(), strict=True) if there]:
        raise InvalidInput(
            f"add_files: version {head.version} has {len(twice)} of the {len(uris)} files already, "
            f"such as {twice[0]}, whose rows would count twice; give only files that it lacks"
        )


def commit(
    table: Table,
    base: Snapshot,
    parts: PartTable,
    metadata: Mapping[str, Any],
    token: tuple[str, int],
    started_s: float,
) -> Commit:
    """Commit the parts as an append, or as an upsert to a table with a key."""
    uris = parts.column("data.path").to_pylist()

    def request_for(head: Snapshot) -> CommitRequest:
        operation = "upsert" if head.table.key else "append"
        check_writable(operation, head)
        check_new(uris, head)
        check_all(table.handle.store, head, parts, "add_files")
        added = parts
        if is_given_up(added, (), head):  # safe: none of the files is ours to delete
            added = added.with_base_version(head.version)
        info = None
        if PLACED_FILES not in head.table.features:
            info = replace(head.table, features=(*head.table.features, PLACED_FILES))
        return CommitRequest(
            operation,
            added,
            metadata=metadata,
            token=token,
            rows_written=int(parts.data_rows().sum()),
            info=info,
        )

    return commit_placed(table.handle, base, request_for, started_s)


def _to_ipc(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _from_ipc(data: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_next_batch()
