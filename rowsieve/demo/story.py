"""Runs the demo: loads a year's schedule, applies outcomes and corrections, and queries it.

Each step prints what it did; `Checks` collects all expectations, and the demo fails if one does not
hold. The demo first loads unknown outcomes for a reason: pruning before the merge would return
those outdated NULLs, and `arr_delay IS NULL` would count 336,776 rows instead of 1,175.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.progress import track
from rich.table import Table as RichTable

from rowsieve.bridges.extras import imported
from rowsieve.demo.copy_on_write import merge_with_deltalake
from rowsieve.demo.effort import Effort, measured
from rowsieve.demo.flights import (
    KEY,
    by_month,
    departed_by_week,
    late_corrections,
    load_flights,
    schedule,
)
from rowsieve.demo.late_events import late_events
from rowsieve.demo.rewrite_by_call import rewrite_by_call
from rowsieve.opening import create_table
from rowsieve.table import Table

SCHEDULED, REMAINING, UNKNOWN_ARRIVALS = 336_776, 328_521, 1_175
STORM_SCHEDULED, STORM_LEFT = 930, 458
STORM_DAY = (2, 8)
STORM = "month = 2 AND day = 8"


@dataclass(slots=True)
class Checks:
    """Counts passed checks and collects failed ones."""

    failed: list[str] = field(default_factory=list)
    passed: int = 0

    def equal(self, what: str, actual: object, expected: object) -> None:
        """Check that `actual` equals `expected`."""
        if actual == expected:
            self.passed += 1
        else:
            self.failed.append(f"{what}: expected {expected}, got {actual}")

    def all_equal(self, pairs: Mapping[str, tuple[object, object]]) -> None:
        """Check (actual, expected) pairs by what they are."""
        for what, (actual, expected) in pairs.items():
            self.equal(what, actual, expected)


def tell(folder: Path, console: Console) -> Checks:
    """Run the whole demo with a table in `folder`, which must not contain one yet."""
    checks = Checks()
    flights = load_flights()
    table = create_table(str(folder / "flights"), flights.schema, key=KEY)
    console.print(f"[bold]A year of flights[/bold], {flights.num_rows:,} rows, into {table.uri}")
    planned = load_schedule(table, flights, checks)
    scheduled = table.version
    console.print(f"  scheduled month by month: {planned.rows:,} rows, {planned}")
    changes = apply_what_happened(table, flights, console, checks)
    ask(table, console, checks)
    look_back(table, scheduled, console, checks)
    checks.all_equal(late_events(folder, flights, STORM_DAY, console))
    inspect(table, console, checks)
    compare_effort(folder, flights, changes, console)
    checks.all_equal(rewrite_by_call(folder, table, console))
    return checks


def load_schedule(table: Table, flights: pa.Table, checks: Checks) -> Effort:
    """Load twelve months of flights with unknown outcomes."""
    with measured(table.handle.store.uri) as effort:
        for month in by_month(schedule(flights)):
            effort.rows += table.upsert(month).rows_written
    checks.equal("flights scheduled", table.scan().count(), SCHEDULED)
    return effort


def apply_what_happened(
    table: Table, flights: pa.Table, console: Console, checks: Checks
) -> Effort:
    """Apply departures by week, cancellations, and late corrections."""
    with measured(table.handle.store.uri) as effort:
        for week in track(
            list(departed_by_week(flights)), "  what happened, week by week", console=console
        ):
            effort.rows += table.upsert(week).rows_written
        cancelled = table.delete("dep_time IS NULL").rows_deleted
        effort.rows += cancelled
        for corrections in late_corrections(flights):
            effort.rows += table.upsert(corrections).rows_written
    console.print(f"  cancelled: {cancelled:,} flights deleted; then 4 x 500 late corrections")
    console.print(f"  changed: {effort.rows:,} rows, {effort}")
    checks.equal("cancelled flights", cancelled, SCHEDULED - REMAINING)
    checks.equal("flights that remain", table.scan().count(), REMAINING)
    checks.equal("rows changed", effort.rows, REMAINING + cancelled + 4 * 500)
    return effort


def ask(table: Table, console: Console, checks: Checks) -> None:
    """Query with SQL through DataFusion, and explain why a selective query reads little."""
    context = imported("datafusion", "datafusion").SessionContext()
    context.register_table("flights", table)
    unknown = context.sql("SELECT count(*) AS n FROM flights WHERE arr_delay IS NULL").to_pylist()
    checks.equal("arr_delay IS NULL", unknown[0]["n"], UNKNOWN_ARRIVALS)
    (longest,) = context.sql(
        "SELECT carrier, flight, month, day, dep_delay FROM flights "
        "ORDER BY dep_delay DESC NULLS LAST LIMIT 1"
    ).to_pylist()
    checks.equal(
        "longest departure delay",
        longest,
        {"carrier": "HA", "flight": 51, "month": 1, "day": 9, "dep_delay": 1301},
    )
    console.print("\n[bold]SQL through DataFusion[/bold]")
    console.print(
        f"  arrival unknown: {unknown[0]['n']:,} flights; longest departure delay: "
        f"{longest['carrier']} {longest['flight']} on {longest['day']} January, "
        f"{longest['dep_delay']:,} minutes"
    )
    worst = context.sql(
        "SELECT carrier, count(*) AS flights, round(avg(arr_delay), 1) AS mean_delay "
        "FROM flights WHERE dest = 'SFO' GROUP BY carrier ORDER BY mean_delay DESC"
    ).to_pylist()
    console.print(_as_table("Flights to San Francisco", worst))
    selective = table.scan("time_hour >= TIMESTAMPTZ '2013-12-20T00:00:00Z' AND carrier = 'HA'")
    rows = selective.to_arrow().num_rows
    metrics = selective.metrics
    console.print("[bold]A selective query and why it reads so little[/bold]")
    reasons = str(selective.explain()).splitlines()
    console.print("\n".join(reasons[1:6]), soft_wrap=True, highlight=False, markup=False)
    console.print(
        f"  {rows} rows; read {metrics.parts_read} of {metrics.parts_considered} parts, "
        f"{metrics.bytes_read / 1e6:.1f} MB\n"
    )
    checks.equal("parts skipped", bool(metrics.parts_pruned), expected=True)


def look_back(table: Table, scheduled: int, console: Console, checks: Checks) -> None:
    """Compare the storm of 8 February before and after, by time travel."""
    before = table.scan(STORM, version=scheduled).count()
    after = table.scan(STORM).count()
    console.print(
        f"[bold]Time travel[/bold]: on 8 February {before} flights were scheduled "
        f"(version {scheduled}), {after} left (version {table.version})"
    )
    checks.equal("8 February, scheduled", before, STORM_SCHEDULED)
    checks.equal("8 February, left", after, STORM_LEFT)


def inspect(table: Table, console: Console, checks: Checks) -> None:
    """Print what the table stores on disk."""
    detail = table.detail()
    history = table.history()
    console.print(
        f"[bold]Inspection[/bold]: version {detail['version']}, {detail['parts']} parts, "
        f"{detail['rows_stored']:,} rows and {detail['tombstones']:,} tombstones stored, "
        f"{detail['size_bytes'] / 1e6:.1f} MB; {len(history)} commits"
    )
    checks.equal("commits", len(history), 1 + 12 + 53 + 1 + 4)


def compare_effort(folder: Path, flights: pa.Table, ours: Effort, console: Console) -> None:
    """Compare with a copy-on-write merge of the same changes, if deltalake is installed."""
    rows: list[dict[str, object]] = [{"system": "Rowsieve", **ours.as_row()}]
    if (theirs := merge_with_deltalake(folder / "delta", flights, console)) is not None:
        rows.append({"system": "deltalake merge", **theirs.as_row()})
    console.print(_as_table("What the changes cost", rows))


def _as_table(title: str, rows: list[dict[str, Any]]) -> RichTable:
    table = RichTable(title=title, title_justify="left")
    for name in rows[0]:
        table.add_column(name, justify="left" if isinstance(rows[0][name], str) else "right")
    for row in rows:
        table.add_row(*(f"{v:,}" if isinstance(v, int) else str(v) for v in row.values()))
    return table
