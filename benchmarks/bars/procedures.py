"""Bars: procedures on Spark's executors compared with threads, and calls that find nothing."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from statistics import median

import numpy as np
import psutil

import rowsieve as rs
from benchmarks import data
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import Series, sampled
from benchmarks.result import Bar, Case, expect
from rowsieve.procedures.engine import Engine, LocalEngine
from rowsieve.providers.spark.jvm.java import spark_session
from rowsieve.providers.spark.procedure_engine import SparkEngine

LEAST_RATIO = 1.6
MOST_NOTHING_S = 0.05
MOST_GROWTH = 256 * 2**20
TASKS = 8
WARM_UPS = 3
CALL = """
    CALL system.rewrite_data_files(table => 'db.t', where => '{where}', options => map(
        'rewrite-all', 'true', 'max-file-group-size-bytes', '{most}'))
"""
NOTHING = "CALL system.rewrite_data_files(table => 'db.t', where => 'id < 0')"


def engines(sizes: Sizes, folder: Path) -> Bar:
    """Rewrite a table with one local thread, and on two executors of Spark with a core each.

    Every call rewrites all rows: the work of seconds, beside which the start of tasks is little.
    """
    catalog = _catalog(sizes.engine_rows, folder)
    spark = spark_session(
        "rowsieve bars",
        {"spark.log.level": "OFF", "spark.executor.memory": "1024m"},
        master="local-cluster[2,1,1024]",
    )
    works: dict[str, Engine] = {"one thread": LocalEngine(1), "two executors": SparkEngine(spark)}
    series = {name: Series(name) for name in works}
    for engine in works.values():  # warm-up: workers start and import, Java compiles
        for _ in range(WARM_UPS):
            _rewrite(catalog, engine, f"id < {sizes.engine_rows // 4}")
    for _ in range(sizes.long_repeats):
        for name, engine in works.items():
            with sampled() as sample:
                before = _cpu_by_process()
                _rewrite(catalog, engine)
            sample.cpu_s = _cpu_since(before)
            series[name].samples.append(sample)
            table = catalog.open_table("db.t")
            expect("rows", table.count(), sizes.engine_rows)
            table.vacuum(retain_last=1, grace_s=0)
    spark.stop()
    one, two = (found.wall_s() for found in series.values())
    cpu_one, cpu_two = (found.cpu_s() for found in series.values())
    growth = series["one thread"].growth_bytes()
    shown = "" if growth is None else f"; a task grew memory by {growth / 2**20:.0f} MB"
    return Bar(
        name="procedure engines",
        promise=f"rewriting {sizes.engine_rows:,} rows in {TASKS} tasks: two executors of Spark "
        f"with a core each are at least {LEAST_RATIO} times as fast as one local thread, and a "
        f"task grows memory by less than {MOST_GROWTH // 2**20} MB",
        found=f"{one:.2f} s and {two:.2f} s: {one / two:.2f}x; CPU {cpu_one:.2f} s and "
        f"{cpu_two:.2f} s, Java included{shown}; load average {os.getloadavg()[0]:.1f}",
        met=one / two >= LEAST_RATIO and (growth is None or growth < MOST_GROWTH),
        cases=[Case("rewrite_data_files", list(series.values()))],
    )


def nothing(sizes: Sizes, folder: Path) -> Bar:
    """Call a rewrite whose filter selects no part."""
    catalog = _catalog(sizes.rows, folder)
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


def _catalog(rows: int, folder: Path) -> rs.Catalog:
    """A catalog with a table of parts with neighbouring ranges of keys."""
    catalog = rs.Catalog(folder / "lake")
    schema = data.rows_of(np.arange(1), 1, wide=True).schema
    table = catalog.create_table("db.t", schema, [data.KEY])
    for number, keys in enumerate(np.array_split(np.arange(rows), TASKS * 4)):
        table.upsert(data.rows_of(keys, number, wide=True))
    return catalog


def _rewrite(catalog: rs.Catalog, engine: Engine, where: str = "TRUE") -> None:
    """Rewrite the parts of a condition, all of them in TASKS tasks."""
    table = catalog.open_table("db.t")
    most = sum(table.files().column("size_bytes").to_pylist()) // TASKS + 1
    catalog.call(CALL.format(most=most, where=where), engine=engine)


def _cpu_by_process() -> dict[int, float]:
    """The CPU seconds of this process, and of its children that still live."""
    this, found = psutil.Process(), {}
    for process in (this, *this.children(recursive=True)):
        with suppress(psutil.Error):
            times = process.cpu_times()
            found[process.pid] = times.user + times.system
    return found


def _cpu_since(before: dict[int, float]) -> float:
    return sum(cpu - before.get(pid, 0.0) for pid, cpu in _cpu_by_process().items())
