"""A long-lived process: opens, scans, sessions, statements and commits of one table.

    python -m benchmarks.soak 20000

Prints resident memory, open files, threads and the bytes in our caches after each twentieth. The
last line is the growth since the first tenth, which warms the caches; it is to stay within 20 MB.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import rowsieve as rs
from rowsieve.metrics import caches
from rowsieve.providers.datafusion import SessionContext

ROUNDS = 20_000
COMMIT_EVERY = 20  # rounds
MAINTAIN_EVERY = 500


def main(rounds: int, show: Callable[[str], None] = print) -> float:
    """Run the rounds; return the growth of resident memory after the first tenth, in MB."""
    first_mb = 0.0
    with tempfile.TemporaryDirectory() as folder:
        uri = f"{folder}/t"
        table = rs.create_table(uri, pa.table({"id": range(2_000), "v": range(2_000)}), key=["id"])
        for number in range(1, rounds + 1):
            _round(uri, number)
            if number % COMMIT_EVERY == 0:
                table.upsert(pa.table({"id": [number % 2_000], "v": [number]}))
            if number % MAINTAIN_EVERY == 0:
                table.maintain(retain_last=1)
            if number == rounds // 10:
                first_mb = resident_mb()
            if number % max(1, rounds // 20) == 0:
                show(_state(number))
    grown_mb = resident_mb() - first_mb
    show(f"grown by {grown_mb:.1f} MB since round {rounds // 10:,}")
    return grown_mb


def _round(uri: str, number: int) -> None:
    """Open the table, scan it, and run a statement in a session of its own."""
    table = rs.open_table(uri)
    table.scan(f"v > {number % 7} AND id <> {number}").to_arrow()
    context = SessionContext()
    context.register_table("t", table)
    context.sql(f"SELECT count(*) FROM t WHERE v < {number}").to_arrow_table()


def resident_mb() -> float:
    """The resident memory of this process, after a collection of garbage."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _state(number: int) -> str:
    files = sum(1 for _ in Path("/proc/self/fd").iterdir())
    cached = sum(each.size_bytes for each in caches()) / 2**20
    return (
        f"{number:>6,} rounds: {resident_mb():.1f} MB, {files} files, "
        f"{threading.active_count()} threads, caches {cached:.1f} MB"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
