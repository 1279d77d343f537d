"""The method of `Table` that opens a writer."""

from __future__ import annotations

import os
from typing import Annotated

from rowsieve.arguments import Example
from rowsieve.changes.method_base import TableMethods
from rowsieve.writer.table_writer import Writer
from rowsieve.writer.wal import Recovery
from rowsieve.writer.writer_settings import Durability, Sync, WriterSettings, local_directory

LocalDirectory = Annotated[str | os.PathLike[str], Example("'/var/lib/app/flights.wal'")]


class WriterMethods(TableMethods):
    """Durable changes of single rows, from many threads."""

    def writer(
        self,
        *,
        durability: Durability = "wal",
        wal_dir: LocalDirectory | None = None,
        sync: Sync = "always",
        sync_interval_s: float = 0.1,
        recovery: Recovery = "trim",
        flush_rows: int = 100_000,
        flush_bytes: int = 64 << 20,
        flush_interval_s: float = 1.0,
        max_buffered: int = 400_000,
        compact: bool = False,
    ) -> Writer:
        """Open a writer, which makes the changes of many threads durable together.

        With `durability="wal"`, a change is acknowledged once it is in the log in `wal_dir`, and a
        thread commits what is there after `flush_rows` rows, `flush_bytes` bytes or
        `flush_interval_s` seconds. A writer that is opened on a log first takes what no commit has.
        With `durability="commit"`, a change is acknowledged after the commit of all changes that
        waited for it. Callers wait while more than `max_buffered` rows are not committed.

        `sync="always"` syncs the log before each acknowledgement; "interval" does every
        `sync_interval_s` seconds, and "off" before a commit only: a power cut then loses what was
        acknowledged since. An incomplete last record, as a crash leaves it, is cut off; with
        `recovery="strict"` it is CorruptData. With `compact`, a thread compacts what is due after
        commits.
        """
        return Writer(
            self.handle,
            WriterSettings(
                durability,
                None if wal_dir is None else local_directory(wal_dir, self.handle.store.uri),
                sync,
                sync_interval_s,
                recovery,
                flush_rows,
                flush_bytes,
                flush_interval_s,
                max_buffered,
                compact,
            ),
        )
