"""polars' time zones: the rows that polars keeps are the rows that we keep, at changes of zones."""

from __future__ import annotations

import datetime
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from rowsieve.bridges.polars_exprs import from_polars, to_polars
from rowsieve.bridges.translate import translate
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import EvaluationError
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from tests.bridges.conformance import ours
from tests.bridges.polars_exprs.engine import theirs
from tests.zones import EDGES, NAMES

MOMENTS = pa.array(EDGES).cast(pa.timestamp("us"))
BATCH = pa.record_batch(
    {"tz": MOMENTS.view(pa.int64()).view(pa.timestamp("us", "UTC")), "ts": MOMENTS}
)
SCHEMA = schema_of(BATCH.schema)[0]
TZ, TS = pl.col("tz"), pl.col("ts")
NOON = datetime.datetime(2024, 11, 3, 1, 30)
AWARE = pl.lit(NOON.replace(tzinfo=datetime.UTC))


def instant(zone: str, ambiguous: Any) -> pl.Expr:
    given = TS.dt.replace_time_zone(zone, ambiguous=ambiguous, non_existent="null")
    return given.dt.convert_time_zone("UTC")


def conditions(zone: str) -> list[pl.Expr]:
    local = TZ.dt.convert_time_zone(zone)
    return [
        local.dt.hour() == 1,
        local.dt.minute() >= 30,
        local.dt.date() == datetime.date(2024, 11, 3),
        local.dt.year() < 2019,
        local.dt.ordinal_day() > 300,
        local.dt.replace_time_zone(None) > NOON,
        TS.dt.convert_time_zone(zone).dt.hour() == 23,
        TZ.dt.replace_time_zone(None) > NOON,
        *(instant(zone, which) > AWARE for which in ("earliest", "latest", "null")),
        TS.dt.replace_time_zone(zone, ambiguous="null", non_existent="null")
        .dt.convert_time_zone("UTC")
        .is_null(),
    ]


@pytest.mark.parametrize("zone", NAMES)
def test_a_condition_in_a_zone_keeps_the_rows_that_polars_keeps(zone: str) -> None:
    for condition in conditions(zone):
        read = from_polars(condition, SCHEMA)
        assert read.exactness is Exactness.EXACT, str(condition)
        assert read.expression is not None
        wanted = theirs(condition, BATCH)
        assert ours(read.expression, SCHEMA, BATCH, Semantics.POLARS) == wanted, str(condition)
        bound = bind(read.expression, SCHEMA, Semantics.POLARS)
        written = to_polars(bound.root, SCHEMA, Semantics.POLARS)
        assert written.exactness is Exactness.EXACT, str(condition)
        assert written.expression is not None
        assert theirs(written.expression, BATCH) == wanted, str(condition)


@pytest.mark.parametrize(
    "condition",
    [
        TS.dt.replace_time_zone("America/New_York").dt.convert_time_zone("UTC") > AWARE,
        TS.dt.replace_time_zone(
            "America/New_York", ambiguous="earliest", non_existent="raise"
        ).dt.convert_time_zone("UTC")
        > AWARE,
    ],
)
def test_expressions_that_raise_in_polars_fail_here(condition: pl.Expr) -> None:
    with pytest.raises(pl.exceptions.ComputeError):
        theirs(condition, BATCH)
    read = from_polars(condition, SCHEMA)
    assert read.expression is not None
    with pytest.raises(EvaluationError):
        matching(bind(read.expression, SCHEMA, Semantics.POLARS), BATCH)


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        (TZ.dt.convert_time_zone("Europe/Berlin") > AWARE, "another zone than UTC"),
        (TZ.dt.convert_time_zone("Europe/Berlin").dt.truncate("1d") > AWARE, "another zone"),
        (TS.dt.replace_time_zone("Europe/Berlin") > AWARE, "put convert_time_zone"),
        (TZ.dt.convert_time_zone("EST").dt.hour() == 1, "EST"),
        (
            TS.dt.replace_time_zone(
                "Europe/Berlin", ambiguous="null", non_existent="raise"
            ).dt.convert_time_zone("UTC")
            > AWARE,
            "NULL in one case",
        ),
    ],
    ids=str,
)
def test_expressions_that_keep_a_zone_are_rejected(condition: pl.Expr, why: str) -> None:
    read = from_polars(condition & (TS > NOON), SCHEMA)
    assert read.exactness is Exactness.SUPERSET
    assert any(why in note for note in read.notes), read.notes


def test_zones_with_rules_after_2100_are_not_written() -> None:
    text = "(tz AT TIME ZONE '{}') > TIMESTAMP '2024-11-03 01:30:00'"
    exact = {
        name: translate(
            text.format(name), source="postgres", target="polars", schema=SCHEMA
        ).exactness
        for name in ("Europe/Berlin", "Asia/Kathmandu", "Pacific/Apia")
    }
    assert exact == {
        "Europe/Berlin": Exactness.UNSUPPORTED,
        "Asia/Kathmandu": Exactness.EXACT,
        "Pacific/Apia": Exactness.EXACT,
    }
