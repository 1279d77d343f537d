"""Bars of the writer: durable upserts of one row through the log, and scans of unflushed rows."""

from __future__ import annotations

import threading
import time
from collections import deque
from pathlib import Path

import pyarrow as pa

import rowsieve as rs
from benchmarks import data
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import Series, sampled
from benchmarks.result import Bar, Case, expect
from rowsieve.writer.acknowledgements import Acknowledgement
from rowsieve.writer.table_writer import Writer

THREADS = 8
IN_FLIGHT = 8
"""Upserts that a thread begins before it waits for the acknowledgement of the first."""

PER_SECOND = 5_000
P99_MS = 20.0
MEMTABLE_ROWS = 10_000
NEVER_S = 3600.0


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Measure both bars in tables of their own."""
    per_second, p99_ms, cpu_us = _upserts(sizes, folder)
    case = _scans(sizes, folder)
    memtable, parts = case.series
    ratio = memtable.cpu_s() / parts.cpu_s()
    return Bar(
        name="writer",
        promise=f"durable upserts of one row through the log by {THREADS} threads, {IN_FLIGHT} in "
        f"flight each: {PER_SECOND:,} a second, 99% within {P99_MS:.0f} ms; a scan with "
        f"{MEMTABLE_ROWS:,} rows in memtables: at most 1.1 times the CPU of the same rows in parts",
        found=f"{per_second:,.0f} a second, 99% within {p99_ms:.1f} ms, {cpu_us:.0f} us of CPU; "
        f"scan {memtable.cpu_s() * 1e3:.0f} ms of CPU, of parts {parts.cpu_s() * 1e3:.0f} ms "
        f"({ratio:.2f})",
        met=per_second >= PER_SECOND and p99_ms <= P99_MS and ratio <= 1.1,
        cases=[case],
        facts={"per_second": per_second, "p99_ms": p99_ms, "cpu_us": cpu_us},
    )


def _upserts(sizes: Sizes, folder: Path) -> tuple[float, float, float]:
    """Upserts per second, the 99th percentile in ms, and CPU in us each."""
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("delay", pa.float64())])
    table = rs.create_table(str(folder / "upserts"), schema, key=["id"])
    each = max(sizes.one_row_upserts, 10)
    latencies: list[float] = []
    with table.writer(wal_dir=folder / "upserts.wal") as writer:
        threads = [
            threading.Thread(target=_write, args=(writer, first, each, latencies))
            for first in range(THREADS)
        ]
        begun_s, cpu_s = time.perf_counter(), time.process_time()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        elapsed_s, used_s = time.perf_counter() - begun_s, time.process_time() - cpu_s
    count = THREADS * each
    expect("rows after all upserts", rs.open_table(table.uri).count(), count)
    latencies.sort()
    p99_ms = latencies[int(len(latencies) * 0.99)] * 1e3
    return count / elapsed_s, p99_ms, used_s / count * 1e6


def _write(writer: Writer, first: int, count: int, latencies: list[float]) -> None:
    waiting: deque[tuple[float, Acknowledgement]] = deque()
    own: list[float] = []

    def finish() -> None:
        begun_s, acknowledged = waiting.popleft()
        acknowledged.result()
        own.append(time.perf_counter() - begun_s)

    for number in range(count):
        row = {"id": number * THREADS + first, "name": f"row {number}", "delay": number / 8}
        waiting.append((time.perf_counter(), writer.upsert(row)))
        if len(waiting) >= IN_FLIGHT:
            finish()
    while waiting:
        finish()
    latencies.extend(own)


def _scans(sizes: Sizes, folder: Path) -> Case:
    rows = data.rows(sizes.rows)
    changed = rows.slice(0, sizes.rows).take(
        pa.array(range(0, sizes.rows, max(1, sizes.rows // MEMTABLE_ROWS)))
    )
    in_parts = rs.create_table(str(folder / "parts"), rows, key=[data.KEY])
    in_parts.upsert(changed)
    in_memory = rs.create_table(str(folder / "memtables"), rows, key=[data.KEY])
    series = {name: Series(name) for name in ("memtables", "parts")}
    with in_memory.writer(
        wal_dir=folder / "memtables.wal", flush_interval_s=NEVER_S, flush_rows=10 * MEMTABLE_ROWS
    ) as writer:
        writer.upsert(changed).result()
        for turn in range(sizes.repeats + 1):
            for name, table in (("memtables", in_memory), ("parts", in_parts)):
                with sampled() as sample:
                    count = table.scan().to_arrow().num_rows
                expect(f"rows of {name}", count, sizes.rows)
                if turn:
                    series[name].samples.append(sample)
    return Case(f"scan with {changed.num_rows:,} new rows", list(series.values()))
