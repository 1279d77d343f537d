"""A restart costs the same after a month as after ten years: what it needs is 30 days.

`python examples/restart.py`
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

import rowsieve as rs

MONTH = timedelta(days=30)
EVENTS = 2_000  # a month
RECENT = "at > now() - interval '30 days'"


def events(start: datetime) -> pa.Table:
    """A month of events, evenly spread."""
    step = MONTH // EVENTS
    return pa.table(
        {
            "at": pa.array([start + step * i for i in range(EVENTS)], pa.timestamp("us", "UTC")),
            "device": np.arange(EVENTS) % 50,
            "value": np.random.default_rng(7).normal(size=EVENTS),
        }
    )


def load(name: str, months: int, now: datetime) -> None:
    """So many months of history, a commit each; the last one ends now."""
    table = rs.create_table(name, events(now - months * MONTH), key=["at", "device"])
    for month in range(months - 1, 0, -1):
        table.upsert(events(now - month * MONTH))


def main() -> None:
    """Load 1, 12 and 120 months; restart on each."""
    now = datetime.now(UTC)
    print("months parts read bytes stored bytes read rows")
    for months in (1, 12, 120):
        load(f"history-{months}", months, now)
        table = rs.open_table(f"history-{months}")  # here a process starts again
        table.require_pruning(RECENT)  # fails, rather than becoming slow
        scan = table.scan(RECENT)
        rows = scan.to_arrow().num_rows
        read = scan.metrics
        print(
            f"{months:6} {read.parts_considered:5} {read.parts_read:4} "
            f"{read.bytes_considered:12,} {read.bytes_read:10,} {rows:4}"
        )


if __name__ == "__main__":
    main()
