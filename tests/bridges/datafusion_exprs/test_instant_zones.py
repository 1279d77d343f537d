"""Fields and dates in named zones, by a column's type or AT TIME ZONE, as DataFusion takes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from tests.bridges.conformance import ours
from tests.bridges.datafusion_exprs.engine import frame, theirs

# A moment near which each zone changes its clock, besides moments of all years.
EDGES = {
    "Europe/Berlin": ["2024-03-31 01:00", "2024-10-27 01:00", "1916-04-30 22:00"],
    "America/New_York": ["2024-03-10 07:00", "2024-11-03 06:00", "1883-11-18 17:00"],
    "Australia/Lord_Howe": ["2024-04-06 15:00", "2024-10-05 15:30", "2050-04-02 15:00"],
    "Asia/Kathmandu": ["1985-12-31 18:30", "2024-01-01 18:15", "1999-12-31 00:00"],
    "Pacific/Apia": ["2011-12-30 10:00", "2012-03-31 14:00", "1892-07-05 11:00"],
    "America/Sao_Paulo": ["2018-11-04 03:00", "2019-02-17 02:00", "1963-12-09 03:00"],
    "Africa/Casablanca": ["2024-03-10 02:00", "2024-04-14 02:00", "2086-04-14 02:00"],
    "-05:00": ["2020-01-01 05:00", "2020-06-01 00:00", "1999-12-31 00:00"],
}
STEPS = [timedelta(seconds=second) for second in (-3600, -1800, -1, 0, 1, 1799, 3600, 12_345)]
PARTS = ("hour", "minute", "day", "dow", "isodow", "doy", "week", "month", "quarter", "year")


def rows(name: str) -> pa.RecordBatch:
    edges = [datetime.fromisoformat(f"{edge}+00:00") for edge in EDGES[name]]
    moments = [edge + step for edge in edges for step in STEPS]
    moments += [datetime(year, 1, 1, 4, 30, tzinfo=UTC) for year in (1700, 1900, 2060, 2099)]
    cells = [*moments, None]
    return pa.record_batch(
        {
            "own": pa.array(cells, pa.timestamp("us", name)),
            "tz": pa.array(cells, pa.timestamp("us", "UTC")),
        }
    )


def conditions(name: str) -> list[str]:
    named = "" if name.startswith("-") else f"tz AT TIME ZONE '{name}'"
    found = []
    for instant in filter(None, ("own", named)):
        middle = {"year": 2012, "minute": 30, "hour": 12, "doy": 90, "day": 15}
        found += [f"extract({part} FROM {instant}) <= {middle.get(part, 3)}" for part in PARTS]
        found += [f"CAST({instant} AS DATE) {op} DATE '2011-12-30'" for op in ("=", ">", "<=")]
        found.append(f"NOT date_part('day', {instant}) IN (1, 10, 30, 31)")
    if named:
        found.append(f"date_trunc('day', to_local_time({named})) = to_local_time({named})")
    return found


@pytest.mark.parametrize("name", EDGES)
def test_rows_are_those_of_the_engine(name: str) -> None:
    batch = rows(name)
    schema = schema_of(batch.schema)[0]
    conformed = pa.record_batch(dict.fromkeys(batch.schema.names, batch["tz"]))
    parser = frame(batch)
    for text in conditions(name):
        expression = parser.parse_sql_expr(text)
        wanted = theirs(expression, batch)
        assert wanted is not None
        for source, kind in ((text, "datafusion"), (expression, None)):
            read = rs.translate(source, kind, target="rowsieve", schema=batch.schema)
            assert ours(read.exact(), schema, conformed, Semantics.DATAFUSION) == wanted, text
            if "own" not in text and not name.startswith("-"):
                for target in ("datafusion", "datafusion_exprs"):
                    again = rs.translate(
                        read.exact(),
                        target=target,
                        schema=batch.schema,
                        semantics=Semantics.DATAFUSION,
                    ).exact()
                    judged = parser.parse_sql_expr(again) if isinstance(again, str) else again
                    assert theirs(judged, batch) == wanted, text


@pytest.mark.parametrize(
    "text",
    [
        "date_trunc('day', own) = own",
        "own > TIMESTAMP '2020-01-01 00:00:00'",
        "own = '2020-01-01 00:00:00'",
        "CAST(own AS TIMESTAMP) = TIMESTAMP '2020-01-01 00:00:00'",
        "extract(hour FROM own + INTERVAL '1 day') = 1",
    ],
)
def test_other_uses_of_a_declared_zone_are_residual(text: str) -> None:
    batch = rows("Europe/Berlin")
    for source, kind in ((text, "datafusion"), (frame(batch).parse_sql_expr(text), None)):
        read = rs.translate(source, kind, target="rowsieve", schema=batch.schema)
        assert read.expression is None
        assert "zone" in read.notes[0]


def test_a_translation_of_at_time_zone_reaches_all_years() -> None:
    """DataFusion's own AT TIME ZONE fails on a year that nanoseconds do not reach."""
    moments = [datetime(1, 1, 1, 20), datetime(1600, 1, 1), datetime(2013, 3, 10, 16, 30)]
    moments += [datetime(9999, 12, 31, 20)]
    batch = pa.record_batch({"tz": pa.array([*moments, None], pa.timestamp("us", "UTC"))})
    parser = frame(batch)
    for limit, wanted in (("0001-01-03 00:00:00", [1, 2, 3]), ("2013-03-11 01:00:00", [2, 3])):
        text = f"tz AT TIME ZONE 'Asia/Tokyo' >= TIMESTAMP '{limit}'"
        for target in ("datafusion", "datafusion_exprs"):
            made = rs.translate(text, "postgres", target=target, schema=batch.schema).exact()
            judged = parser.parse_sql_expr(made) if isinstance(made, str) else made
            assert theirs(judged, batch) == wanted, made
            again = rs.translate(made, "datafusion", target="rowsieve", schema=batch.schema)
            schema = schema_of(batch.schema)[0]
            assert ours(again.exact(), schema, batch, Semantics.DATAFUSION) == wanted, made
