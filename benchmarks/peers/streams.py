"""Streams a whole table of ours: with our own scan, or with pyarrow decoding its files only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import data
from benchmarks.peers.part_files import PartFiles, drained, summed


class Rowsieve:
    """The scan by one thread, batch after batch; a second one knows what is visible."""

    threads: int | None = 1

    def __init__(self, folder: Path) -> None:
        self._uri = str(folder / "table")

    def open(self) -> None:
        """Read the log."""
        import rowsieve as rs

        self._table = rs.open_table(self._uri)

    def stream(self, columns: Sequence[str]) -> int:
        """Rows that came."""
        return drained(self._table.scan(columns=list(columns), threads=self.threads).to_batches())

    def digest(self) -> dict[str, int]:
        """Count and sums."""
        return summed(self._table.scan(columns=["id", "quantity"]).to_batches())

    def look_up(self, key: int) -> int:
        """Rows of one key, all columns."""
        return int(self._table.scan(f"{data.KEY} = {key}").to_arrow().num_rows)


class AllCores(Rowsieve):
    """The scan as it is by default, by as many threads as there are cores."""

    threads = None


class Decode(PartFiles):
    """pyarrow decoding every row group of every file, one thread, nothing merged."""

    verified = False

    def stream(self, columns: Sequence[str]) -> int:
        """Rows decoded: every version of every key."""
        return sum(rows.num_rows for rows in self._row_groups(columns))

    def digest(self) -> dict[str, int]:
        """Count and sums of every version."""
        groups = self._row_groups(["id", "quantity"])
        return summed(batch for rows in groups for batch in rows.to_batches())

    def _row_groups(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        for path, _ in self.files:
            with pq.ParquetFile(path, page_checksum_verification=self.verified) as file:
                for group in range(file.num_row_groups):
                    yield file.read_row_group(group, columns=list(columns), use_threads=False)


class VerifiedDecode(Decode):
    """The same, checking the checksum of every page as our scan does."""

    verified = True
