"""Adds the columns that a DataFrame has and the table lacks, before any task runs.

They are a commit of their own, because the tasks write files of one schema. A write whose columns
are refused adds none. One that fails later leaves columns that are NULL in all rows; the rows of
the table are never changed by it.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rowsieve.opening import open_table
from rowsieve.providers.spark.source_options import WriteOptions
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.snapshot import Snapshot


def new_columns(options: WriteOptions, head: Snapshot, columns: pa.Schema) -> list[pa.Field]:
    """The columns that only the data has, and that the write may add."""
    if not options.adds_columns or options.if_exists == "ignore":
        return []
    known = {name.lower() for name in head.schema.names}
    known |= {name.lower() for name in (options.op, options.sequence) if name is not None}
    return [field for field in columns if field.name.lower() not in known]


def with_new_columns(
    options: WriteOptions, log: CommitLog, head: Snapshot, added: Sequence[pa.Field]
) -> Snapshot:
    """The newest version after these columns were added, which may be NULL."""
    table = open_table(options.uri, storage_options=dict(options.storage) or None)
    table.evolve(pa.schema([field.with_nullable(nullable=True) for field in added]))
    return log.latest(head)
