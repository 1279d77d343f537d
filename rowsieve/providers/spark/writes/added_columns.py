"""Adds the columns that a DataFrame has and the table lacks, before any task runs.

They are a commit of their own, because the tasks write files of one schema. A write that fails then
leaves columns that are NULL in all rows; the rows of the table are never changed by it.
"""

from __future__ import annotations

import pyarrow as pa

from rowsieve.opening import open_table
from rowsieve.providers.spark.source_options import WriteOptions
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.snapshot import Snapshot


def with_new_columns(
    options: WriteOptions, log: CommitLog, head: Snapshot, columns: pa.Schema
) -> Snapshot:
    """The newest version after the columns that only the data has were added, which may be NULL."""
    known = {name.lower() for name in head.schema.names}
    known |= {name.lower() for name in (options.op, options.sequence) if name is not None}
    added = [field for field in columns if field.name.lower() not in known]
    if not added:
        return head
    table = open_table(options.uri, storage_options=dict(options.storage) or None)
    table.evolve(pa.schema([field.with_nullable(nullable=True) for field in added]))
    return log.latest(head)
