"""Bar: a table of many parts in an object store behind a delay, and what it asks the store.

The server is on loopback. Each read is cold: what the process knows of files is forgotten.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import rowsieve as rs
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import Series, sampled
from benchmarks.result import Bar, Case, expect
from benchmarks.slow_store import BUCKET, SlowStore, Traffic, slow_store, traffic
from rowsieve.byte_cache import PROCESS
from rowsieve.planner.cache import PLANS
from rowsieve.providers.datafusion import SessionContext

DELAY_S = 0.020
ROWS = 200  # of a part
LONGEST_S = 2.0  # a scan of all parts, and a sum in our session
MOST_RATIO = 1.2  # of our session to a scan of the same column
MOST_COUNT_REQUESTS, MOST_COMMIT_TRIPS = 1, 3
_SETTLED_S = 0.3  # background work ends


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Write the parts without delay; then read, count and change the table behind one."""
    del folder
    parts = max(sizes.log_length, 8)
    with slow_store() as store:
        table = _table(store, parts)
        session = SessionContext()
        session.register_table("t", table)
        store.set_delay(DELAY_S)
        works: dict[str, tuple[Callable[[], int], int]] = {
            "count": (lambda: table.scan().count(), parts * ROWS),
            "scan": (lambda: table.scan().to_arrow().num_rows, parts * ROWS),
            "scan of one column": (
                lambda: sum(table.scan(columns=["v"]).to_arrow()["v"].to_pylist()),
                sum(i % 7 for i in range(parts * ROWS)),
            ),
            "sum in our session": (
                lambda: int(session.sql("SELECT sum(v) AS s FROM t").to_pylist()[0]["s"]),
                sum(i % 7 for i in range(parts * ROWS)),
            ),
            "upsert": (lambda: table.upsert(_rows(0)).rows_written, ROWS),
        }
        runs = {name: _cold(store, name, *work) for name, work in works.items()}
    wall_s = {name: series.wall_s() for name, (series, _) in runs.items()}
    ratio = wall_s["sum in our session"] / wall_s["scan of one column"]
    return Bar(
        name="stores",
        promise=f"{parts:,} parts behind {DELAY_S * 1e3:.0f} ms, cold: a scan and a sum in our "
        f"session in {LONGEST_S:.0f} s, the session at most {MOST_RATIO}x the scan of its column, "
        f"a count in {MOST_COUNT_REQUESTS} request, an upsert in {MOST_COMMIT_TRIPS} trips",
        found="; ".join(
            f"{name} {series.wall_s() * 1e3:.0f} ms, {asked.requests} requests, {asked.trips} "
            f"trips, {asked.sent_bytes / 1e6:.2f} MB"
            for name, (series, asked) in runs.items()
        ),
        met=max(wall_s["scan"], wall_s["sum in our session"]) <= LONGEST_S
        and ratio <= MOST_RATIO
        and runs["count"][1].requests <= MOST_COUNT_REQUESTS
        and runs["upsert"][1].trips <= MOST_COMMIT_TRIPS,
        cases=[Case(name, [series]) for name, (series, _) in runs.items()],
        facts={"ratio": ratio},
    )


def _table(store: SlowStore, parts: int) -> rs.Table:
    uri = f"s3://{BUCKET}/t"
    files = {"inline_bytes": "0"}  # else these rows stand in the log, and few files are left
    table = rs.create_table(
        uri, _rows(0), key=["id"], properties=files, storage_options=store.options
    )
    for number in range(1, parts):
        table.upsert(_rows(number))
    time.sleep(_SETTLED_S)
    return rs.open_table(uri, storage_options=store.options)


def _rows(number: int) -> pa.Table:
    ids = range(number * ROWS, (number + 1) * ROWS)
    return pa.table({"id": ids, "v": [i % 7 for i in ids], "s": [f"text {i}" for i in ids]})


def _cold(
    store: SlowStore, name: str, work: Callable[[], int], answer: int
) -> tuple[Series, Traffic]:
    for cache in PROCESS.caches:
        if not cache.name.startswith("versions"):
            cache.clear()
    PLANS.clear()
    store.take()
    series = Series(name)
    with sampled() as sample:
        result = work()
    series.samples.append(sample)
    asked = traffic(store.take())
    expect(name, result, answer)
    time.sleep(_SETTLED_S)
    return series, asked
