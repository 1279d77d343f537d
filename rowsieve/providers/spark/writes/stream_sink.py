"""Implements `df.writeStream.format("rowsieve")`: every micro-batch is committed exactly once.

A batch's commit has the idempotency token (id of the query, number of the batch). Spark keeps both
in the checkpoint of the query, and repeats a batch with the same rows after a failure. So a batch
that was committed before is not committed again. Numbers of a query never go back (invariant 7).

Spark tells the id of the query to tasks only, and the number of the batch to the commit only: each
task sends the id with its rows. A task with few rows sends them to the commit, which writes the
rows of all such tasks as one part; other tasks write parts, as in a batch write. The rows of a
change stream are always sent, because the last change of a key may be in any task, and so are those
for a table with an event order: a method of the table writes them. Few rows stand in the log entry
(property `inline_bytes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from rowsieve.changes.data.ingest import Changes
from rowsieve.errors import CommitConflict, UnsupportedOperation
from rowsieve.maintenance.steps import fold_in_memory
from rowsieve.objects import open_store
from rowsieve.opening import open_table
from rowsieve.providers.spark.source_options import WriteOptions
from rowsieve.providers.spark.writes.batch_tokens import QUERY_ID
from rowsieve.providers.spark.writes.committing import already_committed, commit_parts
from rowsieve.providers.spark.writes.job import WriteJob
from rowsieve.providers.spark.writes.table_changes import (
    change_table,
    is_by_table,
    received_rows,
    sent_rows,
)
from rowsieve.providers.spark.writes.write_tasks import TaskParts, begin_job
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.inline_parts import is_full
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.parts.part_writer import write_parts

SENT_BYTES: Final = 1024 * 1024  # a task with more rows than this writes parts itself
_APPLICATION: Final = "spark-stream:"


@dataclass(frozen=True, slots=True)
class StreamWritten(WriterCommitMessage):
    """A task's share of a batch: parts as a manifest, or rows in Arrow's stream format."""

    query_id: str
    table_uuid: str
    schema_id: int
    manifest: bytes = b""
    rows: bytes = b""
    rows_written: int = 0
    rows_deleted: int = 0


class RowsieveStreamWriter(DataSourceStreamArrowWriter):
    """The writer of one batch; another object of this class commits it, in another process."""

    def __init__(self, job: WriteJob) -> None:
        self._job = job

    @classmethod
    def begin(
        cls, options: WriteOptions, schema: StructType, *, overwrite: bool = False
    ) -> RowsieveStreamWriter:
        """Check the columns against the newest version; `overwrite`: each batch is the table."""
        return cls(begin_job(options, schema, overwrite=overwrite))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send few rows to the commit; write parts of many."""
        job = self._job
        message = StreamWritten(_query_id(), job.table_uuid, job.schema.id)
        most = None if is_by_table(job) else SENT_BYTES
        rows, rest = _up_to(iterator, most)
        if rest is None:
            return replace(message, rows=sent_rows(rows))
        parts = TaskParts(job)
        for batch in chain(rows, rest):
            parts.add(batch)
        done = parts.finish()
        return replace(
            message,
            manifest=done.manifest,
            rows_written=done.rows_written,
            rows_deleted=done.rows_deleted,
        )

    def commit(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,  # noqa: N803 - Spark's name
    ) -> None:
        """Commit the rows of all tasks once; commits nothing if there are no rows."""
        _check_all_written(messages)
        written = [message for message in messages if isinstance(message, StreamWritten)]
        if not written:
            return
        token = (f"{_APPLICATION}{written[0].query_id}", batchId)
        job = replace(self._job, token=token)
        head = CommitLog(open_store(job.table_uri, job.storage)).latest()
        if already_committed(head, token):
            return
        _check_same_columns(job, written)
        if is_by_table(job):
            change_table(job, [received_rows(message.rows) for message in written if message.rows])
            return
        parts = [PartTable.from_ipc(message.manifest) for message in written if message.manifest]
        sent = _write_sent(job, [message.rows for message in written if message.rows])
        commit_parts(
            job,
            [*parts, *sent.parts],
            rows_written=sent.rows_written + sum(each.rows_written for each in written),
            rows_deleted=sent.rows_deleted + sum(each.rows_deleted for each in written),
            may_empty=True,
        )
        if is_full(head):
            fold_in_memory(open_table(job.table_uri, storage_options=dict(job.storage)).handle)

    def abort(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,  # noqa: N803 - Spark's name
    ) -> None:
        """Do nothing: uncommitted files are not part of the table."""


@dataclass(frozen=True, slots=True)
class _Sent:
    parts: Sequence[PartTable] = ()
    rows_written: int = 0
    rows_deleted: int = 0


def _write_sent(job: WriteJob, encoded: Sequence[bytes]) -> _Sent:
    """Write the rows that tasks have sent."""
    if not encoded:
        return _Sent()
    rows = pa.concat_tables(map(received_rows, encoded))
    prepared = job.prepare(rows)
    changes = Changes(None, prepared) if job.deletes else Changes(prepared, None)
    if changes.is_empty:
        return _Sent()
    order = job.order
    parts = write_parts(
        open_store(job.table_uri, job.storage),
        job.schema,
        () if order is None else order.fields,
        changes.rows,
        changes.deletes,
        base_version=job.base_version,
        in_memory_up_to=job.inline_bytes,
        properties=job.properties,
    )
    counts = [0 if each is None else each.num_rows for each in (changes.rows, changes.deletes)]
    return _Sent([parts], counts[0], counts[1])


def _up_to(
    batches: Iterator[pa.RecordBatch], most_bytes: int | None
) -> tuple[list[pa.RecordBatch], Iterator[pa.RecordBatch] | None]:
    """The first batches up to a size, and the others; None if these are all."""
    taken: list[pa.RecordBatch] = []
    size_bytes = 0
    for batch in batches:
        if batch.num_rows:
            taken.append(batch)
            size_bytes += batch.nbytes
        if most_bytes is not None and size_bytes > most_bytes:
            return taken, batches
    return taken, None


def _query_id() -> str:
    context = TaskContext.get()
    query_id = None if context is None else context.getLocalProperty(QUERY_ID)
    if not query_id:
        raise UnsupportedOperation(
            f"writeStream: Spark does not pass the property {QUERY_ID} to its tasks, so a batch "
            "could be written twice; write with foreachBatch and a token"
        )
    return query_id


def _check_all_written(messages: Sequence[WriterCommitMessage | None]) -> None:
    """Raise UnsupportedOperation if Spark dropped the rows of a task.

    With the continuous trigger Spark 4.3 calls the writer of no task, and commits all the same. It
    logs this error, and does not note the batch as written.
    """
    if None in messages:
        raise UnsupportedOperation(
            "writeStream: Spark did not hand over the rows of a task, and nothing was committed. "
            "It drops all rows with trigger(continuous=...): use trigger(processingTime=...) or "
            "trigger(availableNow=True)"
        )


def _check_same_columns(job: WriteJob, written: Sequence[StreamWritten]) -> None:
    """Raise CommitConflict if the tasks wrote for another table or for other columns."""
    if any(
        (each.table_uuid, each.schema_id) != (job.table_uuid, job.schema.id) for each in written
    ):
        raise CommitConflict(
            f"the table at {job.table_uri} or its columns were changed while a batch was written; "
            "nothing was committed. Start the query again from its checkpoint, which repeats the "
            "batch"
        )
