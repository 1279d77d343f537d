"""polars over sorted Parquet files: a stable sort by key, and the newest version of each kept."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from benchmarks.peers.parquet_files import ParquetFiles
from benchmarks.peers.protocol import Keys


class Files(ParquetFiles):
    """A lazy scan of all files, oldest first, so that the last of equal keys is the newest."""

    def select(self, keys: Keys) -> pa.Table:
        """Read by the streaming engine."""
        return self._newest(keys).collect(engine="streaming").to_arrow()

    def count(self, keys: Keys) -> int:
        """Count the keys."""
        found = self._newest(keys).select(pl.len()).collect(engine="streaming")
        return int(found.item())

    def _newest(self, keys: Keys) -> pl.LazyFrame:
        frame = pl.scan_parquet([*self.base, *self.changed])
        if not keys.everything:
            frame = frame.filter(pl.col("id").is_between(keys.lower, keys.upper))
        if not self.changed:
            return frame
        return frame.sort("id", maintain_order=True).unique("id", keep="last", maintain_order=True)
