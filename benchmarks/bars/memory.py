"""Bar: a process that changes, reads and maintains one table for hours needs no more memory."""

from __future__ import annotations

import gc
import statistics
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa

import rowsieve as rs
from benchmarks.bars.sizes import Sizes
from benchmarks.result import Bar, expect

KEYS = 5_000
ROWS_PER_CHANGE = 20
MOST_GROWTH_BYTES = 10 * 2**20
SAMPLES = 40  # over all steps


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Take mixed steps on one table; compare resident memory after the warm-up and at the end."""
    steps = _Steps(str(folder / "table"))
    every = max(1, sizes.mixed_steps // SAMPLES)
    found: list[int] = []
    for step in range(1, sizes.mixed_steps + 1):
        steps.take(step)
        if step % every == 0:
            gc.collect()
            found.append(psutil.Process().memory_info().rss)
    steps.check()
    fifth = max(1, len(found) // 5)
    before = statistics.median(found[fifth : 2 * fifth])  # the first fifth is the warm-up
    after = statistics.median(found[-fifth:])
    growth = after - before
    return Bar(
        name="memory",
        promise=f"{sizes.mixed_steps:,} mixed steps on one table: resident memory grows by at most "
        f"{MOST_GROWTH_BYTES // 2**20} MB after the first fifth of them",
        found=f"{before / 2**20:.0f} MB -> {after / 2**20:.0f} MB",
        met=growth <= MOST_GROWTH_BYTES,
        facts={
            "rss_bytes": found,
            "growth_bytes": growth,
            "arrow_bytes": pa.total_allocated_bytes(),
        },
    )


class _Steps:
    """Changes, reads and maintenance of a table whose rows are known."""

    def __init__(self, uri: str) -> None:
        self.known = np.zeros(KEYS, dtype=np.int64)  # the value of each key
        self.random = np.random.default_rng(1)
        self.table = rs.create_table(uri, _rows(np.arange(KEYS), 0), key=["id"])

    def take(self, step: int) -> None:
        """Take one step: of 20, 10 upserts, an update, a delete, 7 reads and one new handle."""
        kind = step % 20
        if kind < 10:
            self._upsert(self.random.choice(KEYS, ROWS_PER_CHANGE, replace=False), step)
        elif kind == 10:
            first = int(self.random.integers(KEYS - 10))
            self.table.update({"value": step}, where=f"id BETWEEN {first} AND {first + 9}")
            self.known[first : first + 10] = step
        elif kind == 11:
            first = int(self.random.integers(KEYS - 5))
            self.table.delete(f"id BETWEEN {first} AND {first + 4}")
            self._upsert(np.arange(first, first + 5), step)
        elif kind < 19:
            self._read(kind)
        else:
            self.table = rs.open_table(self.table.uri)
        if step % 50 == 0:
            self.table.compact()
        if step % 100 == 0:
            self.table.vacuum(retain_last=5, grace_s=0)

    def check(self) -> None:
        """Compare all rows with those that were written."""
        found = self.table.scan(order_by_key=True).to_arrow()
        expect("values", found.column("value").to_pylist(), self.known.tolist())

    def _upsert(self, keys: np.typing.NDArray[np.int64], value: int) -> None:
        self.table.upsert(_rows(keys, value))
        self.known[keys] = value

    def _read(self, kind: int) -> None:
        key = int(self.random.integers(KEYS))
        if kind < 15:
            rows = self.table.scan(where=f"id = {key}").to_arrow()
            expect("value", rows.column("value").to_pylist(), [int(self.known[key])])
        elif kind < 17:
            value = int(self.known[key])
            expect("count", self.table.count(f"value = {value}"), int((self.known == value).sum()))
        else:
            expect("rows", self.table.scan().to_arrow().num_rows, KEYS)


def _rows(keys: np.typing.NDArray[np.int64], value: int) -> pa.Table:
    names = [f"name {key}" for key in keys.tolist()]
    return pa.table({"id": keys, "name": names, "value": np.full(len(keys), value)})
