"""Bars: procedures on Spark's executors compared with threads, and calls that find nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa

import rowsieve as rs
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import Series, sampled
from benchmarks.result import Bar, Case, expect
from rowsieve.procedures.engine import Engine, LocalEngine
from rowsieve.providers.spark.java import spark_session
from rowsieve.providers.spark.procedure_engine import SparkEngine

LEAST_RATIO = 1.6
MOST_NOTHING_S = 0.05
MOST_GROWTH = 256 * 2**20
TASKS = 8
CALL = """
    CALL system.rewrite_data_files(table => 'db.t', options => map(
        'rewrite-all', 'true', 'max-file-group-size-bytes', '{most}'))
"""
NOTHING = "CALL system.rewrite_data_files(table => 'db.t', where => 'id < 0')"


def engines(sizes: Sizes, folder: Path) -> Bar:
    """Rewrite a table with one local thread, and on two executors of Spark with a core each."""
    catalog = _catalog(sizes, folder)
    spark = spark_session(
        "rowsieve bars",
        {"spark.log.level": "OFF", "spark.executor.memory": "1024m"},
        master="local-cluster[2,1,1024]",
    )
    works: dict[str, Engine] = {"one thread": LocalEngine(1), "two executors": SparkEngine(spark)}
    series = {name: Series(name) for name in works}
    for engine in works.values():  # warm-up: workers start and import
        _rewrite(catalog, engine)
    for _ in range(max(sizes.repeats // 2, 2)):
        for name, engine in works.items():
            with sampled() as sample:
                _rewrite(catalog, engine)
            series[name].samples.append(sample)
            expect("rows", catalog.open_table("db.t").count(), sizes.rows)
    spark.stop()
    one, two = (found.wall_s() for found in series.values())
    growth = series["one thread"].growth_bytes()
    shown = "" if growth is None else f"; a task grew memory by {growth / 2**20:.0f} MB"
    return Bar(
        name="procedure engines",
        promise=f"rewriting {sizes.rows:,} rows in {TASKS} tasks: two executors of Spark with a "
        f"core each are at least {LEAST_RATIO} times as fast as one local thread, and a task "
        f"grows memory by less than {MOST_GROWTH // 2**20} MB",
        found=f"{one:.2f} s and {two:.2f} s: {one / two:.2f}x{shown}; load average "
        f"{os.getloadavg()[0]:.1f}",
        met=one / two >= LEAST_RATIO and (growth is None or growth < MOST_GROWTH),
        cases=[Case("rewrite_data_files", list(series.values()))],
    )


def nothing(sizes: Sizes, folder: Path) -> Bar:
    """Call a rewrite whose filter selects no part."""
    catalog = _catalog(sizes, folder)
    version = catalog.open_table("db.t").version
    times = []
    for _ in range(20):
        began = time.perf_counter()
        catalog.call(NOTHING)
        times.append(time.perf_counter() - began)
    expect("version", catalog.open_table("db.t").version, version)
    found = median(times)
    return Bar(
        name="call that finds nothing",
        promise=f"a call that finds nothing takes less than {MOST_NOTHING_S * 1000:.0f} ms and "
        "makes no commit",
        found=f"{found * 1000:.1f} ms, the first {times[0] * 1000:.1f} ms; no commit",
        met=found < MOST_NOTHING_S,
        facts={"seconds": times},
    )


def _catalog(sizes: Sizes, folder: Path) -> rs.Catalog:
    """A catalog with a table of parts with neighbouring ranges of keys."""
    catalog = rs.Catalog(folder / "lake")
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("value", pa.float64())])
    table = catalog.create_table("db.t", schema, ["id"])
    random = np.random.default_rng(1)
    for keys in np.array_split(np.arange(sizes.rows), TASKS * 4):
        names = pa.array(np.char.add("name ", random.integers(0, 10_000, len(keys)).astype(str)))
        table.upsert(pa.table({"id": keys, "name": names, "value": random.random(len(keys))}))
    return catalog


def _rewrite(catalog: rs.Catalog, engine: Engine) -> None:
    """Rewrite all parts, in TASKS tasks."""
    files = catalog.open_table("db.t").files()
    most = sum(files.column("size_bytes").to_pylist()) // TASKS + 1
    catalog.call(CALL.format(most=most), engine=engine)
