"""Writes a batch of a stream by a method of the table, in the process that commits it.

For changes whose result depends on all rows of the batch, and on rows of the table: a change
stream, partial rows, and every write into a table with an event order.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rowsieve.errors import CommitConflict, UnsupportedOperation
from rowsieve.opening import open_table
from rowsieve.providers.spark.row_types import from_spark
from rowsieve.providers.spark.writes.job import WriteJob


def is_by_table(job: WriteJob) -> bool:
    """Return whether a method of the table writes the rows of the job."""
    return job.op is not None or job.has_event_order


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
            table.delete("TRUE", token=token, metadata=metadata)
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
