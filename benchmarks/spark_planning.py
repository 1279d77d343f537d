"""Spark's planning over our tables compared with plain Parquet files.

    python -m benchmarks.spark_planning --parts 10000 --rows 1000000

One table has many parts: a frame is made of it and a query with a condition is planned, nothing is
read. Plain Parquet is the folder of the same files, which Spark lists at once. A table with hidden
rows is joined with a small one, in both orders: Spark must broadcast the small one, as it does with
plain files. Ratios are of the CPU seconds of this process and of Spark's JVM.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow.parquet as pq

import rowsieve as rs
from benchmarks.measure import take_turns
from benchmarks.process_tree import cpu_s
from benchmarks.result import expect
from benchmarks.spark_reads import data
from rowsieve.providers.spark import prune, read, spark_session
from rowsieve.providers.spark.source_options import WriteOptions
from rowsieve.providers.spark.store_options import STORAGE
from rowsieve.providers.spark.writes.committing import commit_parts
from rowsieve.providers.spark.writes.write_tasks import TaskParts, begin_job
from rowsieve.storage.manifests.manifest import PartTable

MOST_ADDED_S: Final = 1.0
ROWS_PER_PART: Final = 4
_SIDE: Final = re.compile(r"Inner, (BuildLeft|BuildRight)")


def main() -> None:
    """Print the seconds that planning adds, and those of the joins."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    spark = spark_session("spark planning")
    with tempfile.TemporaryDirectory() as folder:
        plan_many(spark, Path(folder) / "many", options)
        join(spark, Path(folder), options)


def table_of_parts(
    spark: Any, uri: str, parts: int, storage_options: Mapping[str, str] | None = None
) -> rs.Table:
    """A table whose parts have a few rows each, of disjoint keys, added by one commit."""
    rows = data(np.arange(parts * ROWS_PER_PART), 1)
    rs.create_table(uri, rows.schema, ["id"], storage_options=storage_options)
    storage = {f"{STORAGE}{name}": value for name, value in (storage_options or {}).items()}
    options = WriteOptions.parse({"path": uri, "mode": "upsert", **storage})
    job = begin_job(options, spark.createDataFrame(rows.slice(0, 1)).schema, overwrite=False)
    written = []
    for batch in rows.to_batches(max_chunksize=ROWS_PER_PART):
        task = TaskParts(job)
        task.add(batch)
        written.append(PartTable.from_ipc(task.finish().manifest))
    commit_parts(job, written, rows_written=rows.num_rows, rows_deleted=0)
    return rs.open_table(uri, storage_options=storage_options)


def plan_many(spark: Any, folder: Path, options: Any) -> None:
    """Compare making a frame of many parts, and planning a query that needs one of them."""
    table = table_of_parts(spark, str(folder), options.parts)
    files = next(folder.rglob("*.parquet")).parent
    schema = read(spark, table.uri).schema

    def plain() -> Any:
        return spark.read.schema(schema).parquet(str(files)).filter("id = 7")

    def ours() -> Any:
        return read(spark, table.uri).filter("id = 7")

    frames: dict[str, Callable[[], Any]] = {
        "parquet": plain,
        "rowsieve": ours,
        "pruned": lambda: prune(ours()),
    }
    for name in ("rowsieve", "pruned"):
        expect(f"rows by {name}", str(frames[name]().count()), "1")
    works = {name: partial(_planned, frame) for name, frame in frames.items()}
    cpu, wall = _least(works, options.repeats)
    print(f"planning {options.parts:,} parts; load {os.getloadavg()[0]:.1f}")
    for name in works:
        print(
            f"  {name:<9}{cpu[name]:.2f} s CPU, {wall[name]:.2f} s: adds "
            f"{cpu[name] - cpu['parquet']:.2f} s CPU, {wall[name] - wall['parquet']:.2f} s "
            f"(bar {MOST_ADDED_S} s)",
            flush=True,
        )


def join(spark: Any, folder: Path, options: Any) -> None:
    """Compare joins of a large and a small table, in both orders."""
    keys = np.arange(options.rows)
    large, small = data(keys, 1), data(keys[:: max(1, options.rows // 1000)], 2)
    table = rs.create_table(str(folder / "large"), large, ["id"])
    table.upsert(data(np.sort(np.random.default_rng(2).permutation(keys)[: len(keys) // 100]), 3))
    views = {"large": table, "small": rs.create_table(str(folder / "small"), small, ["id"])}
    for name, each in views.items():
        read(spark, each.uri).createOrReplaceTempView(f"rowsieve_{name}")
        pq.write_table(each.to_arrow(), folder / f"{name}.parquet", compression="zstd")
        spark.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(
            f"parquet_{name}"
        )
    # Spark compares this with the stored bytes of a table: more than the small one has.
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", str(1 << 20))
    for one, other in (("large", "small"), ("small", "large")):
        works: dict[str, Callable[[], object]] = {}
        sides = {}
        for reader in ("parquet", "rowsieve"):
            query = (
                f"SELECT count(*), sum(a.a), max(b.b) FROM {reader}_{one} a "
                f"JOIN {reader}_{other} b ON a.id = b.id"
            )
            works[reader] = partial(_answer, spark, query)
            plan = spark.sql(query)._jdf.queryExecution().executedPlan()
            sides[reader] = " ".join(_SIDE.findall(str(plan)))
            expect(f"rows by {reader}", str(works[reader]()), str(works["parquet"]()))
        expect("the side that is broadcast", sides["rowsieve"], sides["parquet"])
        expect("a side is broadcast", str(bool(sides["parquet"])), "True")
        cpu, wall = _least(works, options.repeats)
        ratios = (each["rowsieve"] / each["parquet"] for each in (cpu, wall))
        shown = "{:.2f}x CPU, {:.2f}x wall".format(*ratios)
        print(f"join of {one} with {other}: {sides['rowsieve']}, {shown}", flush=True)


def _least(works: Mapping[str, Callable[[], object]], repeats: int) -> tuple[dict[str, float], ...]:
    """The least CPU and wall seconds of each, after a warm-up."""
    series = take_turns(works, repeats, clock=cpu_s)
    return (
        {each.system: min(sample.cpu_s for sample in each.samples) for each in series},
        {each.system: min(sample.wall_s for sample in each.samples) for each in series},
    )


def _planned(frame: Callable[[], Any]) -> None:
    frame()._jdf.queryExecution().executedPlan()


def _answer(spark: Any, query: str) -> object:
    return spark.sql(query).collect()


if __name__ == "__main__":
    main()
