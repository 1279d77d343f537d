"""Measures the cost of a step: rows changed, rows written to files, bytes written, CPU."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rowsieve.objects import local_folder


@dataclass(slots=True)
class Effort:
    """Counters of a step; `rows_written` is None if each changed row is written once."""

    rows: int = 0
    rows_written: int | None = None
    bytes_written: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0

    def as_row(self) -> dict[str, object]:
        """The counters as a row of a table."""
        return {
            "rows changed": self.rows,
            "rows written": self.rows if self.rows_written is None else self.rows_written,
            "MB written": round(self.bytes_written / 1e6, 1),
            "CPU s": round(self.cpu_s, 1),
        }

    def __str__(self) -> str:
        return f"{self.bytes_written / 1e6:.1f} MB written, {self.wall_s:.1f} s"


@contextmanager
def measured(uri: str) -> Iterator[Effort]:
    """Measure time, CPU and the growth of a table's local folder, which never shrinks."""
    folder = local_folder(uri)
    effort = Effort()
    before = folder_bytes(folder)
    wall, cpu = time.perf_counter(), time.process_time()
    yield effort
    effort.wall_s = time.perf_counter() - wall
    effort.cpu_s = time.process_time() - cpu
    effort.bytes_written = folder_bytes(folder) - before


def folder_bytes(folder: Path) -> int:
    """The total size of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
