"""`add_files`: add foreign Parquet files to a table where they are, or copy their rows.

In place, the files become parts of the table that it never deletes
(`rowsieve.procedures.built_ins.placed_additions`, rule 15). With `copy => TRUE`, which needs a
table without a key, a task writes the rows of some files as parts of the table; the table does not
refer to the files.

Soundness: the same files are added once: their names, sizes and last bytes are the token of the
commit, so a repeated call is a no-op, and a file that was replaced since counts as a new one. A
file that the table already has is refused. Copied rows are checked and converted as in `append`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import msgspec
import pyarrow as pa

from rowsieve.arguments.annotations import StorageOptions
from rowsieve.changes.data.ingest import prepare_appended, read_data
from rowsieve.changes.placed_commits import commit_added
from rowsieve.checksums import checksum
from rowsieve.decoded_types import described
from rowsieve.errors import CorruptData, InvalidInput, NotFound, UnsupportedOperation
from rowsieve.objects import (
    Location,
    ObjectNotFound,
    ObjectStore,
    open_store,
    table_uri_of,
    together,
)
from rowsieve.objects.globs import has_wildcard
from rowsieve.parquet.foreign_rows import ForeignRows
from rowsieve.procedures.built_ins import placed_additions
from rowsieve.procedures.parameters import Parameter, ParameterType
from rowsieve.procedures.procedure import (
    SCHEMA,
    TABLE_NAME,
    CallContext,
    DistributedProcedure,
    Handle,
)
from rowsieve.statements.call_values import Value
from rowsieve.storage.differential import check_mode
from rowsieve.storage.log.commit_request import CommitRequest
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.parts.part_writer import ROW_GROUP_ROWS, PartWriter
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.schema import schema_from_json, schema_to_json

_TASK_BYTES: Final = 128 * 2**20
_LAST_BYTES: Final = 64 * 1024  # of a file that its token covers; usually its whole footer


class CopyTask(msgspec.Struct, frozen=True, tag="copy"):
    """One task: foreign files, and the table to write to."""

    source: str
    files: tuple[str, ...]
    table_uri: str
    schema: dict[str, Any]
    properties: dict[str, str]
    version: int


@dataclass(frozen=True, slots=True)
class _Addition:
    """The decisions of `begin`."""

    base: Snapshot
    source: str
    file_count: int
    token: tuple[str, int]
    started_s: float
    copy: bool


class AddFiles(DistributedProcedure):
    """Adds foreign files in place, or appends their rows; read on workers, in one commit."""

    name = "add_files"
    meaning = "add foreign Parquet files to a table, in place or as a copy of their rows"
    parameters = (
        SCHEMA,
        TABLE_NAME,
        Parameter(
            "source",
            ParameterType.TEXT,
            required=True,
            meaning="a file, a folder or a glob; of a folder all Parquet files below it",
        ),
        Parameter(
            "copy",
            ParameterType.FLAG,
            default=False,
            meaning="write the rows to files of the table, instead of referring to the files",
        ),
        Parameter(
            "match",
            ParameterType.TEXT,
            default="name",
            meaning="what columns in place are found by: name or field_id",
        ),
        Parameter(
            "hive",
            ParameterType.FLAG,
            default=True,
            meaning="whether directories named column=value are constant columns in place",
        ),
    )
    columns = pa.schema(
        [
            ("added_files_count", pa.int64()),
            ("added_rows_count", pa.int64()),
            ("version", pa.int64()),
        ]
    )

    def begin(self, context: CallContext, arguments: Mapping[str, Value]) -> Handle:
        """List the files and cut them into tasks; none if they were added before."""
        started_s = time.perf_counter()
        snapshot = context.table.handle.pinned
        check_mode(self.name, snapshot.table)
        source, match = str(arguments["source"]), arguments["match"]
        if match not in ("name", "field_id"):
            raise InvalidInput(f"add_files: match is 'name' or 'field_id', not {match!r}")
        if arguments["copy"]:
            return self._copied(context, snapshot, source, started_s)
        how = placed_additions.Placing(
            source, hive=bool(arguments["hive"]), by_field_id=match == "field_id"
        )
        files = placed_additions.find(context.table, snapshot, how)
        uris = list(files.constants)
        store = open_store(context.table.uri, context.table.handle.storage_options)
        ends = _sizes_and_checksums(store, _sizes(store, uris))
        token = _token("place", "", ends)
        tasks: list[placed_additions.PlaceTask] = []
        if not {token[0], _token_of_copy(source, files, ends)} & snapshot.tokens.keys():
            placed_additions.check_new(uris, snapshot)
            tasks = placed_additions.tasks_of(context.table, snapshot, files, how)
        return Handle(
            snapshot.version,
            tuple(msgspec.msgpack.encode(task) for task in tasks),
            _Addition(snapshot, source, len(uris) if tasks else 0, token, started_s, copy=False),
        )

    def _copied(
        self, context: CallContext, snapshot: Snapshot, source: str, started_s: float
    ) -> Handle:
        """Cut the files into tasks by bytes."""
        if snapshot.table.key:
            raise UnsupportedOperation(
                f"add_files: {context.table.uri} has a key, and rows are only copied to tables "
                "without one; read the files and call upsert"
            )
        store = open_store(source, context.table.handle.storage_options)
        files = _sizes(store, [path for path in store.list("") if path.endswith(".parquet")])
        if not files:
            raise NotFound(
                f"add_files: there is no .parquet file below {store.uri}; give a folder with "
                ".parquet files"
            )
        token = _token("", store.uri, _sizes_and_checksums(store, files))
        place = Location.parse(table_uri_of(store.uri))
        uris = [replace(place, path=f"{place.path}/{path}").uri for path in files]
        placed_additions.check_new(uris, snapshot)
        groups = [] if token[0] in snapshot.tokens else _cut(files)
        tasks = (
            CopyTask(
                source,
                group,
                context.table.uri,
                schema_to_json(snapshot.schema),
                dict(snapshot.table.settings),
                snapshot.version,
            )
            for group in groups
        )
        return Handle(
            snapshot.version,
            tuple(msgspec.msgpack.encode(task) for task in tasks),
            _Addition(snapshot, store.uri, sum(map(len, groups)), token, started_s, copy=True),
        )

    def work(self, task: bytes, storage_options: StorageOptions) -> Iterator[tuple[int, bytes]]:
        """Turn the files, or their rows, into parts."""
        work = msgspec.msgpack.decode(task, type=described(CopyTask | placed_additions.PlaceTask))
        if isinstance(work, CopyTask):
            yield _copy(work, storage_options)
        else:
            yield placed_additions.place(work, storage_options)

    def finish(
        self, context: CallContext, handle: Handle, fragments: Sequence[Sequence[bytes]]
    ) -> pa.Table:
        """Add the parts in one commit; without tasks commit nothing."""
        addition = handle.details
        assert isinstance(addition, _Addition)
        version, rows = handle.version, 0
        if handle.tasks:
            added_parts = [each for task_parts in fragments for each in task_parts]
            metadata = {"procedure": self.name, "source": addition.source}
            if addition.copy:
                added = PartTable.empty().append(*map(PartTable.from_ipc, added_parts))
                request = CommitRequest(
                    "append",
                    added,
                    metadata=metadata,
                    token=addition.token,
                    rows_written=int(added.data_rows().sum()),
                )
                commit = commit_added(
                    context.table.handle, addition.base, request, addition.started_s
                )
            else:
                added = placed_additions.joined(added_parts, addition.base)
                commit = placed_additions.commit(
                    context.table,
                    addition.base,
                    added,
                    metadata,
                    addition.token,
                    addition.started_s,
                )
            version, rows = commit.version, int(added.data_rows().sum())
        row = (addition.file_count, rows, version)
        return pa.Table.from_pylist(
            [dict(zip(self.columns.names, row, strict=True))], schema=self.columns
        )


def _copy(work: CopyTask, storage_options: StorageOptions) -> tuple[int, bytes]:
    """Write the rows of the files as parts; holds one batch of rows in memory."""
    source = open_store(work.source, storage_options)
    store, schema = open_store(work.table_uri, storage_options), schema_from_json(work.schema)
    writer = PartWriter(store, schema, (), work.properties, work.version)
    types = {field.name: field.type for field in schema}
    row_count = 0
    for path in work.files:
        try:
            with source.open_input(path) as file:
                for batch in ForeignRows(file, types).batches(ROW_GROUP_ROWS):
                    rows = read_data(batch, f"add_files: {path}", schema)
                    writer.write(prepare_appended(rows, schema))
                    row_count += batch.num_rows
        except (pa.ArrowException, OSError) as error:  # OSError: a footer that is not Thrift
            raise CorruptData(
                f"add_files: {path} in {source.uri} is not a readable Parquet file: {error}; "
                "nothing was committed. Write the file again, or leave it out"
            ) from error
    return row_count, writer.finish().to_ipc()


def _sizes(store: ObjectStore, paths: Sequence[str]) -> dict[str, int]:
    try:
        sizes = together(store, [partial(store.size, path) for path in paths])
    except ObjectNotFound as error:  # a symbolic link that leads nowhere
        raise NotFound(f"add_files: {error.path} does not exist; give files that do") from error
    return dict(zip(paths, sizes, strict=True))


def _sizes_and_checksums(store: ObjectStore, sizes: Mapping[str, int]) -> dict[str, str]:
    """The size of each file, and the checksum of its last bytes."""
    reads = [partial(_size_and_checksum, store, path, size) for path, size in sizes.items()]
    return dict(zip(sizes, together(store, reads), strict=True))


def _size_and_checksum(store: ObjectStore, path: str, size: int) -> str:
    last = store.get_range(path, max(0, size - _LAST_BYTES), size) if size else b""
    return f"{size} {checksum(last)}"


def _token(kind: str, source: str, ends: Mapping[str, str]) -> tuple[str, int]:
    """The token of a commit that adds these files."""
    listed = "\n".join([source, *(f"{path} {end}" for path, end in ends.items())])
    return f"add_files:{kind}{checksum(listed.encode())}", 1


def _token_of_copy(source: str, sources: placed_additions.Found, ends: Mapping[str, str]) -> str:
    """The application id of the commit that would have copied the rows of these files."""
    below = {sources.below[uri]: end for uri, end in ends.items()}
    files = {path: end for path, end in below.items() if path.endswith(".parquet")}
    uri = source if has_wildcard(source) else Location.parse(source).uri
    return _token("", uri, files)[0]


def _cut(files: Mapping[str, int]) -> list[tuple[str, ...]]:
    groups: list[list[str]] = []
    size = 0
    for path, size_bytes in files.items():
        if not groups or size + size_bytes > _TASK_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(path)
        size += size_bytes
    return [tuple(group) for group in groups]
