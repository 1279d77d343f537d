"""Zones are written by the names of engines, and only where these have the same changes."""

from __future__ import annotations

import re
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import rowsieve as rs
from rowsieve.bridges.session import Session
from rowsieve.bridges.where import to_predicate
from rowsieve.errors import InvalidInput, RowsieveError, SchemaMismatch
from rowsieve.predicate import ir
from rowsieve.types.encodings import schema_of
from rowsieve.types.time_zones import IN_ARROW, UNTIL_2100, name_in, zone
from tests.small_tables import fresh_uri

ZONE = "America/New_York"
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("lt", pa.timestamp("us")),
        ("ny", pa.timestamp("us", ZONE)),
    ]
)
ARROWS = schema_of(SCHEMA)[0]
CONVERTED = pl.col("ts").dt.convert_time_zone(ZONE)
LOCAL = pl.col("lt").dt.replace_time_zone(ZONE).dt.convert_time_zone("UTC")
DAY = pa.scalar(0, pa.timestamp("us"))
SOURCES: list[tuple[str | None, Any]] = [
    (None, CONVERTED.dt.hour() == 5),
    (None, CONVERTED.dt.date() == pl.date(2024, 1, 1)),
    (None, CONVERTED.dt.replace_time_zone(None) > pl.col("lt")),
    (None, pl.col("ts") < LOCAL),
    ("datafusion", "date_part('hour', ny) = 5"),
    ("datafusion", "ny::date = DATE '2024-01-01'"),
    ("datafusion", f"to_local_time(ts AT TIME ZONE '{ZONE}') > lt"),
    (None, pc.hour(pc.field("ny")) == 5),
    (None, pc.local_timestamp(pc.field("ny")) > DAY),
    ("postgres", f"(ts AT TIME ZONE '{ZONE}') > lt"),
    ("postgres", f"extract(hour FROM ts AT TIME ZONE '{ZONE}') = 5"),
    ("spark", f"convert_timezone('UTC', '{ZONE}', lt) > lt"),
]
TARGETS = (
    *("postgres", "spark", "datafusion", "duckdb", "trino", "datafusion_exprs", "spark_filters"),
    *("pyarrow_exprs", "polars", "iceberg", "delta_dnf", "substrait"),
)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("source", "condition"), SOURCES)
def test_an_engine_gets_no_name_of_ours(source: str | None, condition: Any, target: str) -> None:
    sessions: list[Session | None] = [None]
    if target.startswith("spark"):
        sessions = [None, *(Session(time_zone=name) for name in ("UTC", ZONE))]
    for session in sessions:
        made = rs.translate(condition, source, target=target, schema=SCHEMA, target_session=session)
        written = made.expression
        if isinstance(written, pl.Expr):
            written = written.meta.serialize(format="json")
        for told in (str(written), str(made.notes), str(made.residual)):
            assert UNTIL_2100 not in told
            assert IN_ARROW not in told


OWN = (ZONE + UNTIL_2100, ZONE + IN_ARROW, f" {ZONE}{IN_ARROW} ")


@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("postgres", "(ts AT TIME ZONE '{}') > lt"),
        ("postgres", "(lt AT TIME ZONE '{}') > ts"),
        ("duckdb", "timezone('{}', ts) > lt"),
        ("datafusion", "to_local_time(ts AT TIME ZONE '{}') > lt"),
        ("spark", "from_utc_timestamp(ts, '{}') > ts"),
        ("spark", "convert_timezone('{}', lt) > lt"),
        ("trino", "with_timezone(lt, '{}') > ts"),
    ],
)
def test_a_text_cannot_give_a_name_of_ours(dialect: str, text: str, own: str) -> None:
    with pytest.raises(RowsieveError, match=re.escape(repr(own))):
        to_predicate(text.format(own), dialect, ARROWS)


@pytest.mark.parametrize("own", OWN)
def test_sessions_schemas_and_expressions_cannot_give_a_name_of_ours(own: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(repr(own))):
        Session(time_zone=own)
    given = pa.schema([("ts", pa.timestamp("us", own))])
    with pytest.raises(SchemaMismatch, match=r"column 'ts' has the type .* no database has"):
        schema_of(given)
    cast = pc.field("lt").cast(pa.timestamp("us", "UTC")).cast(given.field(0).type)
    with pytest.raises(RowsieveError, match=re.escape(own.strip())):
        to_predicate(cast > pc.scalar(DAY.cast(pa.timestamp("us", "UTC"))), schema=ARROWS)


def test_a_name_is_written_where_the_database_has_the_same_changes() -> None:
    assert name_in(ZONE) == name_in(ZONE + UNTIL_2100, UNTIL_2100) == ZONE
    assert name_in(ZONE + UNTIL_2100) is name_in(ZONE, UNTIL_2100) is None
    assert name_in("Asia/Tokyo", UNTIL_2100) == name_in("Asia/Tokyo") == "Asia/Tokyo"
    ours = zone(ZONE + IN_ARROW).name
    assert name_in(ours, IN_ARROW) == ZONE
    assert name_in(ours) == (ZONE if ours == ZONE else None)


@pytest.mark.parametrize(("dialect", "source"), SOURCES, ids=range(len(SOURCES)))
def test_no_text_of_a_condition_shows_an_internal_name(dialect: str | None, source: Any) -> None:
    table = rs.create_table(fresh_uri(), SCHEMA.empty_table())
    scan = table.scan(source) if dialect is None else table.scan(source, dialect=dialect)
    predicate = to_predicate(source, dialect or "postgres", ARROWS)
    for text in (repr(predicate), str(predicate), repr(scan), str(scan.explain())):
        assert UNTIL_2100 not in text
        assert IN_ARROW not in text


@pytest.mark.parametrize(("source", "condition"), SOURCES)
def test_no_repr_of_an_operand_shows_an_internal_name(source: str | None, condition: Any) -> None:
    tree = to_predicate(condition, source or "postgres", ARROWS)
    calls = [node for node in ir.walk(tree) if isinstance(node, ir.Call)]
    assert calls
    assert not any(UNTIL_2100 in repr(call) or IN_ARROW in repr(call) for call in calls)
