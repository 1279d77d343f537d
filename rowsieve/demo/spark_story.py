"""Runs the demo on PySpark, with the same answers.

Python creates the table; every change after that is a Spark write, and every query is Spark SQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.progress import track

from rowsieve.demo.effort import Effort, measured
from rowsieve.demo.flights import (
    KEY,
    by_month,
    departed_by_week,
    late_corrections,
    load_flights,
    schedule,
)
from rowsieve.demo.rewrite_by_call import rewrite_by_call
from rowsieve.demo.story import (
    REMAINING,
    SCHEDULED,
    STORM,
    STORM_LEFT,
    STORM_SCHEDULED,
    UNKNOWN_ARRIVALS,
    Checks,
)
from rowsieve.opening import create_table
from rowsieve.providers.spark.jvm.java import spark_session
from rowsieve.table import Table

WEEKS_AT_ONCE = 4


def tell_on_spark(folder: Path, console: Console) -> Checks:
    """Run the whole demo with a table in `folder`, which must not contain one yet."""
    checks = Checks()
    console.print("[bold]Starting Spark[/bold], which takes some ten seconds")
    spark = spark_session("rowsieve demo")
    flights = load_flights()
    table = create_table(str(folder / "flights"), flights.schema, key=KEY)
    console.print(f"[bold]A year of flights[/bold], {flights.num_rows:,} rows, into {table.uri}")
    planned = load_schedule(spark, table, flights, console)
    scheduled = table.refresh()
    checks.equal("flights scheduled", read(spark, table).count(), SCHEDULED)
    console.print(f"  scheduled month by month: {planned.rows:,} rows, {planned}")
    apply_what_happened(spark, table, flights, console, checks)
    ask(spark, table, console, checks)
    look_back(spark, table, scheduled, console, checks)
    from rowsieve.providers.spark.procedure_engine import (  # noqa: PLC0415 - imports PySpark
        SparkEngine,
    )

    checks.all_equal(rewrite_by_call(folder, table, console, SparkEngine(spark)))
    return checks


def load_schedule(spark: Any, table: Table, flights: pa.Table, console: Console) -> Effort:
    """Load twelve months of flights with unknown outcomes."""
    with measured(table.uri) as effort:
        months = list(by_month(schedule(flights)))
        for month in track(months, "  the schedule, month by month", console=console):
            save(spark.createDataFrame(month), table, "upsert")
            effort.rows += month.num_rows
    return effort


def apply_what_happened(
    spark: Any, table: Table, flights: pa.Table, console: Console, checks: Checks
) -> None:
    """Apply departures by week, cancellations chosen by Spark SQL, and late corrections."""
    with measured(table.uri) as effort:
        for weeks in track(list(_weeks(flights)), "  what happened", console=console):
            save(spark.createDataFrame(weeks), table, "upsert")
            effort.rows += weeks.num_rows
        read(spark, table).createOrReplaceTempView("flights")
        cancelled = spark.table("flights").where("dep_time IS NULL").select(*KEY)
        save(cancelled, table, "delete")
        deleted = table.history(1)[0].rows_deleted
        effort.rows += deleted
        for corrections in late_corrections(flights):
            commit = table.write_spark(spark.createDataFrame(corrections), "upsert")
            effort.rows += commit.rows_written
    console.print(f"  cancelled: {deleted:,} flights deleted; then 4 x 500 late corrections")
    console.print(f"  changed: {effort.rows:,} rows, {effort}")
    checks.equal("cancelled flights", deleted, SCHEDULED - REMAINING)
    checks.equal("rows changed", effort.rows, REMAINING + deleted + 4 * 500)
    checks.equal("flights that remain", read(spark, table).count(), REMAINING)


def ask(spark: Any, table: Table, console: Console, checks: Checks) -> None:
    """Query the table with Spark SQL, and with a read that prunes."""
    read(spark, table).createOrReplaceTempView("flights")
    unknown = spark.sql("SELECT count(*) AS n FROM flights WHERE arr_delay IS NULL").first()
    checks.equal("arr_delay IS NULL", unknown["n"], UNKNOWN_ARRIVALS)
    longest = spark.sql(
        "SELECT carrier, flight, month, day, dep_delay FROM flights "
        "ORDER BY dep_delay DESC NULLS LAST LIMIT 1"
    ).first()
    checks.equal("longest departure delay", tuple(longest), ("HA", 51, 1, 9, 1301))
    console.print("\n[bold]Flights to San Francisco[/bold], by Spark SQL")
    for row in spark.sql(
        "SELECT carrier, count(*) AS flights, round(avg(arr_delay), 1) AS mean_delay "
        "FROM flights WHERE dest = 'SFO' GROUP BY carrier ORDER BY mean_delay DESC"
    ).collect():
        console.print(f"  {row['carrier']}: {row['flights']:,} flights, {row['mean_delay']} min")
    where = "time_hour >= TIMESTAMP '2013-12-20T00:00:00Z' AND carrier = 'HA'"
    pruned = table.to_spark(spark, where=where, columns=["time_hour", "carrier", "dep_delay"])
    whole = read(spark, table).where(where)
    checks.equal("a pruned read and a filtered one", pruned.count(), whole.count())


def look_back(spark: Any, table: Table, scheduled: int, console: Console, checks: Checks) -> None:
    """Compare the storm of 8 February before and after, by time travel."""
    before = read(spark, table, version=scheduled).where(STORM).count()
    after = read(spark, table).where(STORM).count()
    console.print(
        f"[bold]Time travel[/bold]: on 8 February {before} flights were scheduled "
        f"(version {scheduled}), {after} left (version {table.refresh()})"
    )
    checks.equal("8 February, scheduled", before, STORM_SCHEDULED)
    checks.equal("8 February, left", after, STORM_LEFT)


def read(spark: Any, table: Table, **options: object) -> Any:
    """The table as a DataFrame; the newest version unless an option selects another."""
    return spark.read.format("rowsieve").options(**options).load(table.uri)


def save(frame: Any, table: Table, mode: str) -> None:
    """Write a DataFrame in one commit."""
    frame.write.format("rowsieve").mode("append").option("mode", mode).save(table.uri)


def _weeks(flights: pa.Table) -> Iterator[pa.Table]:
    weeks = departed_by_week(flights)
    while some := list(islice(weeks, WEEKS_AT_ONCE)):
        yield pa.concat_tables(some)
