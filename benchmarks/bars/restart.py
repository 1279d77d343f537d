"""Bar: a restart that needs 30 days reads the same amount from 1, 12 and 120 months of history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import rowsieve as rs
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import Work, take_turns
from benchmarks.result import Bar, Case, expect
from rowsieve.metrics import ScanMetrics

MONTH = timedelta(days=30)
RECENT = "at > now() - interval '30 days'"
MOST_TIMES = 1.5


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Scan the last 30 days; each month is a commit and a part. Also measures opening."""
    now = datetime.now(UTC)
    seen: dict[str, ScanMetrics] = {}
    opening: dict[str, Work] = {}
    scanning: dict[str, Work] = {}
    for months in sizes.months:
        name, uri = f"{months} months", str(folder / f"{months}")
        _load(uri, months, sizes.monthly, now)
        opening[name] = partial(rs.open_table, uri)
        scanning[name] = _scan(rs.open_table(uri), sizes.monthly, name, seen)
    scans = Case("restart: scan", take_turns(scanning, sizes.repeats))
    opens = Case("restart: open", take_turns(opening, sizes.repeats))
    shortest, *longer = scanning
    times = max(scans.of(name).cpu_s() / scans.of(shortest).cpu_s() for name in longer)
    costs = {(seen[name].bytes_read, seen[name].parts_read) for name in scanning}
    found = [
        f"{name}: {seen[name].bytes_read:,} of {seen[name].bytes_considered:,} bytes, "
        f"{seen[name].parts_read} of {seen[name].parts_considered} parts, "
        f"{scans.of(name).cpu_s() * 1e3:.1f} ms CPU, opened in {opens.of(name).cpu_s() * 1e3:.1f}"
        for name in scanning
    ]
    return Bar(
        name="restart",
        promise=f"a scan of the last 30 days of {', '.join(scanning)} of {sizes.monthly:,} rows: "
        f"the same bytes and parts read, at most {MOST_TIMES} times the CPU",
        found="; ".join(found),
        met=len(costs) == 1 and times <= MOST_TIMES,
        cases=[scans, opens],
    )


def _load(uri: str, months: int, count: int, now: datetime) -> None:
    table: rs.Table | None = None
    for month in range(months, 0, -1):
        rows = _events(now - month * MONTH, count)
        if table is None:
            table = rs.create_table(uri, rows, key=["at", "device"])
        else:
            table.upsert(rows)


def _events(start: datetime, count: int) -> pa.Table:
    """A month of evenly spread events; every month has the same values."""
    first, step = int(start.timestamp() * 1e6), MONTH // timedelta(microseconds=count)
    at = first + np.arange(count, dtype=np.int64) * step
    return pa.table(
        {
            "at": pa.array(at, pa.timestamp("us", "UTC")),
            "device": np.arange(count) % 500,
            "value": np.random.default_rng(7).normal(size=count),
        }
    )


def _scan(table: rs.Table, count: int, name: str, seen: dict[str, ScanMetrics]) -> Work:
    def scan_recent() -> int:
        scan = table.scan(RECENT)
        rows: int = scan.to_arrow().num_rows
        seen[name] = scan.metrics
        expect(f"all but the first rows of 30 days in {name}", rows // (0.98 * count), 1)
        return rows

    return scan_recent
