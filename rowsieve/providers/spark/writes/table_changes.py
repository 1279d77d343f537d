"""Writes the rows of tasks by a method of the table, in the process that commits them.

For changes whose result depends on all rows of the write, and on rows of the table: a change
stream, partial rows, and every write into a table with an event order. Tasks send their rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rowsieve.changes.computed import emptied
from rowsieve.errors import CommitConflict, UnsupportedOperation
from rowsieve.opening import open_table
from rowsieve.properties import is_by_column
from rowsieve.providers.spark.row_types import from_spark
from rowsieve.providers.spark.writes.job import WriteJob
from rowsieve.storage.snapshot import TableInfo


def is_by_table(job: WriteJob) -> bool:
    """Return whether a method of the table writes the rows of the job."""
    return (job.op is not None and not job.merges) or bool(job.event_order)


def refuse_merge_by_column(info: TableInfo) -> None:
    """Raise UnsupportedOperation for a merge into a table that orders each column."""
    if is_by_column(info.properties):
        raise UnsupportedOperation(
            "merge_spark does not keep the sequence of each value, which the table has by its "
            "property column_order='each'; nothing was written. Use write_spark, apply_events or "
            "table.merge(frame.toArrow())"
        )


def sent_rows(batches: Sequence[pa.RecordBatch]) -> bytes:
    """The rows of a task for its message; none for no batches."""
    if not batches:
        return b""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def received_rows(rows: bytes) -> pa.Table:
    """The rows of a message that has some."""
    return pa.ipc.open_stream(rows).read_all()


def change_table(job: WriteJob, batches: Sequence[pa.Table]) -> None:
    """Write the rows of all tasks in one commit with the token of the job; none commit nothing."""
    table = open_table(job.table_uri, storage_options=dict(job.storage) or None)
    if table.handle.pinned.table.uuid != job.table_uuid:
        raise CommitConflict(
            f"the table at {job.table_uri} was replaced by another one while a batch was written; "
            "nothing was committed"
        )
    token, metadata = job.token, dict(job.metadata)
    if not any(batch.num_rows for batch in batches):
        if job.operation == "overwrite":
            handle = table.handle
            handle.commit_computed("overwrite", emptied, token=token, metadata=metadata)
        return
    rows = from_spark(pa.concat_tables(batches), job.schema.fields)
    match job.operation:
        case "apply":
            assert job.op is not None
            table.apply_changes(
                rows,
                op=job.op,
                sequence=job.sequence,
                missing="keep" if job.keeps_missing else "error",
                token=token,
                metadata=metadata,
            )
        case "upsert":
            table.upsert(rows, token=token, metadata=metadata)
        case "delete_keys":
            table.delete(keys=rows, token=token, metadata=metadata)
        case "overwrite":
            table.overwrite(rows, token=token, metadata=metadata)
        case other:
            raise UnsupportedOperation(f"{other}: a table with an event order has a key")
