"""A scene of the demo: the events of a stormy day arrive in any order, and some of them twice.

Each flight is scheduled, and then it departs or is cancelled. The table keeps the newest event of a
flight by its sequence, so whatever the order of arrival, it ends as the airport's own list did.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from rowsieve.demo.flights import KEY
from rowsieve.opening import create_table

BATCHES, REPEATED = 12, 3


def late_events(
    folder: Path, flights: pa.Table, day: tuple[int, int], console: Console
) -> dict[str, tuple[object, object]]:
    """Apply the events of one day, (month, day); return what to check, actual and expected."""
    month, day_of_month = (flights.column(name) for name in ("month", "day"))
    chosen = pc.and_(pc.equal(month, day[0]), pc.equal(day_of_month, day[1]))
    events = _events(flights.filter(chosen).select([*KEY, "dep_time", "dep_delay"]))
    columns = events.drop_columns(["op"]).schema
    board = create_table(str(folder / "board"), columns, key=KEY, sequence="event")
    arrived = events.take(pa.array(np.random.default_rng(2013).permutation(events.num_rows)))
    size = -(-arrived.num_rows // BATCHES)
    batches = [arrived.slice(start, size) for start in range(0, arrived.num_rows, size)]
    late = sum(
        board.apply_changes(batch, op="op").rows_late for batch in (*batches, *batches[:REPEATED])
    )
    departed = pc.equal(events.column("op"), "u")
    expected = events.filter(departed).select(["event", "dep_delay"]).sort_by("event")
    shown = board.scan(columns=["event", "dep_delay"]).to_arrow().sort_by("event")
    console.print(
        f"[bold]Late events[/bold]: {events.num_rows:,} events of that day came in any order, "
        f"{REPEATED} of {BATCHES} batches twice; {late:,} came too late to count, and "
        f"{shown.num_rows} flights departed"
    )
    return {
        "departures, whatever the order of events": (shown.to_pylist(), expected.to_pylist()),
        "some events were late": (late > 0, True),
    }


def _events(flights: pa.Table) -> pa.Table:
    """The events of flights in the order of their numbers: all are scheduled, then outcomes."""
    unknown = {name: pa.nulls(flights.num_rows, pa.int64()) for name in ("dep_time", "dep_delay")}
    scheduled = pa.table({**{name: flights.column(name) for name in KEY}, **unknown})
    outcomes = pc.if_else(pc.is_valid(flights.column("dep_time")), "u", "d")
    ops = pa.concat_arrays([pa.repeat(pa.scalar("c"), flights.num_rows), *outcomes.chunks])
    events = pa.concat_tables([scheduled, flights.select(scheduled.column_names)])
    numbers = pa.array(np.arange(events.num_rows))
    return events.append_column("event", numbers).append_column("op", ops)
