"""The method of `Table` that opens a writer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from rowsieve.arguments import Example
from rowsieve.changes.table_methods import TableMethods
from rowsieve.writer.table_writer import Writer
from rowsieve.writer.wal import Recovery
from rowsieve.writer.writer_settings import Durability, Sync, WriterSettings

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
        maintain: bool = False,
    ) -> Writer:
        """Open a writer, which acknowledges changes of many threads together."""
        return Writer(
            self.handle,
            WriterSettings(
                durability,
                None if wal_dir is None else Path(wal_dir),
                sync,
                sync_interval_s,
                recovery,
                flush_rows,
                flush_bytes,
                flush_interval_s,
                max_buffered,
                maintain,
            ),
        )
