"""Writes by Spark into our tables compared with a native Parquet write of the same rows.

    python -m benchmarks.spark_writes --rows 2000000

The input is a Parquet file, in the order of the key and in random order. Each write is checked
before it is timed; the writers take turns in one session. deltalake's merge runs embedded, without
Spark, on the same rows as Arrow data. Ratios are of the CPU seconds of this process, Spark's JVM
and its workers, and of wall seconds, which say little on a machine with other work: its load is
printed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import rowsieve as rs
from benchmarks.process_tree import cpu_s, watched
from benchmarks.result import expect
from benchmarks.spark_reads import data
from rowsieve.providers.spark import spark_session

MOST_OF_NATIVE: Final = 1.5
LEAST_OF_DELTA: Final = 3.0
Write = Callable[[], object]


def inputs(folder: Path, rows: int) -> dict[str, tuple[Path, pa.Table]]:
    """Rows whose keys are to one half in the table, in two orders, as Parquet files."""
    keys = np.arange(rows // 2, rows // 2 + rows)
    found = {}
    for name, order in (
        ("sorted", keys),
        ("shuffled", np.random.default_rng(4).permutation(keys)),
    ):
        path = folder / f"{name}.parquet"
        pq.write_table(data(order, 5), path, compression="zstd", row_group_size=rows // 8)
        found[name] = (path, pq.read_table(path))
    return found


def main() -> None:
    """Print the seconds of each write, and their ratio to the native one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", action="store_true", help="measure the steps of a write, too")
    parser.add_argument("--delta", action="store_true", help="measure deltalake's merge, too")
    options = parser.parse_args()
    spark = spark_session("spark writes")
    with tempfile.TemporaryDirectory() as name, watched():
        folder = Path(name)
        base = data(np.arange(options.rows), 1)
        for order, (path, rows) in inputs(folder, options.rows).items():
            print(f"{order}, {options.rows:,} rows x 8 columns; load {os.getloadavg()[0]:.1f}")
            writers = Writers(spark, folder / f"{order} targets", base, path, rows)
            compare(writers.all(steps=options.steps, delta=options.delta), options.repeats)


class Writers:
    """The same rows written in several ways, each time into a fresh copy of the target."""

    def __init__(
        self, spark: Any, folder: Path, base: pa.Table, path: Path, rows: pa.Table
    ) -> None:
        self._spark = spark
        self._folder = folder
        self._base = base
        self._input = path
        self._rows = rows
        self._count = 0

    def all(self, *, steps: bool, delta: bool) -> dict[str, Callable[[], Write]]:
        """By name: a function that prepares a write and returns it."""
        found = {
            "parquet": self.parquet,
            "rowsieve": self.table,
            "shuffled": self.shuffled,
            "format": self.plain,
        }
        if steps:
            found |= {"noop": self.noop, "range noop": self.ranged, "embedded": self.embedded}
        return {**found, "deltalake": self.delta} if delta else found

    def parquet(self) -> Write:
        """Spark's own write of a folder of Parquet files."""
        target = str(self._new())
        return lambda: self._frame().write.option("compression", "zstd").parquet(target)

    def table(self) -> Write:
        """An upsert by `write_spark`."""
        return self._upsert(presorted=None)

    def shuffled(self) -> Write:
        """An upsert by `write_spark`, which is told that the rows are not in order."""
        return self._upsert(presorted=False)

    def _upsert(self, *, presorted: bool | None) -> Write:
        table = self._target()

        def write() -> None:
            commit = table.write_spark(self._frame(), "upsert", presorted=presorted)
            expect("rows written", str(commit.rows_written), str(self._rows.num_rows))

        return write

    def plain(self) -> Write:
        """An upsert by `df.write`, which keeps the partitions of the input."""
        table = self._target()
        writer = self._frame().write.format("rowsieve").mode("append").option("mode", "upsert")
        return lambda: writer.save(table.uri)

    def noop(self) -> Write:
        """Reading the input alone."""
        return lambda: self._frame().write.format("noop").mode("overwrite").save()

    def ranged(self) -> Write:
        """Reading, range partitioning and sorting."""
        frame = self._frame().repartitionByRange("id").sortWithinPartitions("id")
        return lambda: frame.write.format("noop").mode("overwrite").save()

    def embedded(self) -> Write:
        """The upsert without Spark, of rows in memory."""
        table = self._target()
        return lambda: table.upsert(self._rows)

    def delta(self) -> Write:
        """The merge of deltalake, embedded, of rows in memory."""
        from deltalake import DeltaTable, write_deltalake

        target = str(self._new())
        write_deltalake(target, self._base)

        def write() -> object:
            merge = DeltaTable(target).merge(
                self._rows, "t.id = s.id", source_alias="s", target_alias="t"
            )
            return merge.when_matched_update_all().when_not_matched_insert_all().execute()

        return write

    def _frame(self) -> Any:
        return self._spark.read.parquet(str(self._input))

    def _target(self) -> rs.Table:
        return rs.create_table(str(self._new()), self._base, key=["id"])

    def _new(self) -> Path:
        shutil.rmtree(self._folder / f"target {self._count}", ignore_errors=True)
        self._count += 1
        return self._folder / f"target {self._count}"


def compare(writers: dict[str, Callable[[], Write]], repeats: int) -> None:
    """Time every write; the first turn warms up."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in writers}
    for turn in range(repeats + 1):
        for name, prepare in writers.items():
            write = prepare()
            os.sync()
            start, cpu = time.perf_counter(), cpu_s()
            write()
            used = cpu_s() - cpu, time.perf_counter() - start
            if turn:
                taken[name].append(used)
    least = {name: [min(each) for each in zip(*runs, strict=True)] for name, runs in taken.items()}
    for name, (cpu, wall) in least.items():
        ratios = _ratios([cpu, wall], least["parquet"])
        print(f"  {name:<11}{ratios}: {cpu:.2f} s CPU, {wall:.2f} s", flush=True)
    ratios = _ratios(least["rowsieve"], least["parquet"])
    print(f"  bar: at most {MOST_OF_NATIVE}x of parquet: {ratios}")
    if "deltalake" in least:
        ratios = _ratios(least["deltalake"], least["rowsieve"])
        print(f"  bar: at least {LEAST_OF_DELTA}x faster than deltalake's merge: {ratios}")


def _ratios(one: list[float], other: list[float]) -> str:
    cpu, wall = (a / b for a, b in zip(one, other, strict=True))
    return f"{cpu:.2f}x CPU, {wall:.2f}x wall"


if __name__ == "__main__":
    main()
