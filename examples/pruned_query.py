"""A month of readings, one correction, and why a query reads so little of them.

`python examples/pruned_query.py`
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
from datafusion import SessionContext

import rowsieve as rs

START = datetime(2013, 1, 1, tzinfo=UTC)


def readings_of(day: int) -> pa.Table:
    """A reading every minute."""
    at = [START + timedelta(days=day, minutes=minute) for minute in range(24 * 60)]
    return pa.table(
        {
            "at": pa.array(at, pa.timestamp("us", "UTC")),
            "sensor": ["north"] * len(at),
            "celsius": [20 + (minute % 300) / 100 for minute in range(len(at))],
        }
    )


def main() -> None:
    """Load, correct, query by SQL, explain, compact."""
    readings = rs.create_table("readings", readings_of(0), key=["at", "sensor"])
    for day in range(1, 31):
        readings.upsert(readings_of(day))
    readings.update({"celsius": "celsius - 1"}, where="at >= TIMESTAMPTZ '2013-01-30T00:00:00Z'")

    context = SessionContext()
    context.register_table("readings", readings)
    context.sql("SELECT count(*) AS n, avg(celsius) AS mean FROM readings").show()

    scan = readings.scan("date_trunc('day', at) = TIMESTAMPTZ '2013-01-12T00:00:00Z'")
    rows = scan.to_arrow().num_rows
    metrics = scan.metrics
    print(f"{rows} rows from {metrics.parts_read} of {metrics.parts_considered} parts")
    print("\n".join(str(scan.explain()).splitlines()[:6]))

    print(f"compacted: {readings.compact().parts_removed} parts became one or few")


if __name__ == "__main__":
    main()
