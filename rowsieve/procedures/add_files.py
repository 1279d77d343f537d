"""`add_files`: append the rows of foreign Parquet files to a table without a key.

A task reads some files and writes their rows as parts of the table; the commit appends all parts.
The foreign files stay where they are and are not part of the table (rule 15).

Soundness: the same files are added once: their names and sizes are the token of the commit, so a
repeated call is a no-op. Rows are checked and converted as `append` does it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.arguments.annotations import StorageOptions
from rowsieve.changes.ingest import prepare_appended, read_data
from rowsieve.checksums import checksum
from rowsieve.errors import CorruptData, NotFound, UnsupportedOperation
from rowsieve.objects import open_store
from rowsieve.procedures.parameters import Parameter, ParameterType, Value
from rowsieve.procedures.procedure import (
    SCHEMA,
    TABLE_NAME,
    CallContext,
    DistributedProcedure,
    Handle,
)
from rowsieve.storage.commit_request import CommitRequest
from rowsieve.storage.manifest import PartTable
from rowsieve.storage.part_writer import ROW_GROUP_ROWS, PartWriter
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.schema import schema_from_json, schema_to_json

_TASK_BYTES: Final = 128 * 2**20


class AddTask(msgspec.Struct, frozen=True):
    """One task: foreign files, and the table to write to."""

    source: str
    files: tuple[str, ...]
    table_uri: str
    schema: dict[str, Any]
    properties: dict[str, str]
    version: int


@dataclass(frozen=True, slots=True)
class _Addition:
    """What `begin` decided."""

    base: Snapshot
    source: str
    file_count: int
    token: tuple[str, int]
    started_s: float


class AddFiles(DistributedProcedure):
    """Appends the rows of foreign files, read on workers, in one commit."""

    name = "add_files"
    meaning = "append the rows of foreign Parquet files to a table without a key"
    parameters = (
        SCHEMA,
        TABLE_NAME,
        Parameter(
            "source",
            ParameterType.TEXT,
            required=True,
            meaning="the folder or URI of the files; all .parquet files below it",
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
        """List the files and cut them into tasks by bytes; none if they were added before."""
        started_s = time.perf_counter()
        snapshot = context.table.snapshot_for_engines()
        if snapshot.table.key:
            raise UnsupportedOperation(
                f"add_files: {context.table.uri} has a key, and the files could hold keys that "
                "exist already; read them and call upsert"
            )
        source = str(arguments["source"])
        store = open_store(source, context.table.storage_options)
        paths = [path for path in store.list("") if path.endswith(".parquet")]
        files = {path: store.size(path) for path in paths}
        if not files:
            raise NotFound(f"add_files: there is no .parquet file below {store.uri}")
        listed = "\n".join([store.uri, *(f"{path} {size}" for path, size in files.items())])
        token = (f"add_files:{checksum(listed.encode())}", 1)
        groups: list[tuple[str, ...]] = []
        if token[0] not in snapshot.tokens:
            groups = _cut(files)
        tasks = (
            AddTask(
                source,
                group,
                context.table.uri,
                schema_to_json(snapshot.schema),
                dict(snapshot.table.properties),
                snapshot.version,
            )
            for group in groups
        )
        count = sum(map(len, groups))
        return Handle(
            snapshot.version,
            tuple(msgspec.msgpack.encode(task) for task in tasks),
            _Addition(snapshot, store.uri, count, token, started_s),
        )

    def work(self, task: bytes, storage_options: StorageOptions) -> Iterator[tuple[int, bytes]]:
        """Write the rows of the files as parts; a batch of rows is in memory."""
        work = msgspec.msgpack.decode(task, type=AddTask)
        source = open_store(work.source, storage_options)
        store, schema = open_store(work.table_uri, storage_options), schema_from_json(work.schema)
        writer = PartWriter(store, schema, (), work.properties, work.version)
        row_count = 0
        for path in work.files:
            try:
                with source.open_input(path) as file:
                    for batch in pq.ParquetFile(file).iter_batches(ROW_GROUP_ROWS):
                        rows = read_data(batch, f"add_files: {path}", schema)
                        writer.write(prepare_appended(rows, schema))
                        row_count += batch.num_rows
            except pa.ArrowException as error:
                raise CorruptData(
                    f"add_files: {path} in {source.uri} is not a readable Parquet file: {error}; "
                    "nothing was committed"
                ) from error
        yield row_count, writer.finish().to_ipc()

    def finish(
        self, context: CallContext, handle: Handle, fragments: Sequence[Sequence[bytes]]
    ) -> pa.Table:
        """Append the parts in one commit; without tasks commit nothing."""
        addition = handle.details
        assert isinstance(addition, _Addition)
        version, rows = handle.version, 0
        if handle.tasks:
            parts = [PartTable.from_ipc(each) for found in fragments for each in found]
            added = PartTable.empty().append(*parts)
            rows = int(added.numbers("data.rows").sum())
            request = CommitRequest(
                "append",
                added,
                metadata={"procedure": self.name, "source": addition.source},
                token=addition.token,
                rows_written=rows,
            )
            commit = context.table.commit_added(addition.base, request, addition.started_s)
            version = commit.version
        row = (addition.file_count, rows, version)
        return pa.Table.from_pylist(
            [dict(zip(self.columns.names, row, strict=True))], schema=self.columns
        )


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
