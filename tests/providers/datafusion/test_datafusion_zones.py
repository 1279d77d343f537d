"""A column keeps the time zone that it was declared with, in which DataFusion reads it."""

from __future__ import annotations

import dataclasses
from datetime import UTC, date, datetime
from typing import Any

import datafusion
import pyarrow as pa
import pytest
from datafusion import col, functions, lit

import rowsieve as rs
from rowsieve.bridges.datafusion_exprs import from_datafusion, to_datafusion
from rowsieve.bridges.sql import parse_predicate
from rowsieve.bridges.where import to_predicate
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate.bind import bind
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.schema import schema_from_json, schema_to_json
from tests.bridges.conformance import ours

MOMENTS = [
    datetime(2020, 1, 1, 2, 0, tzinfo=UTC),
    datetime(2020, 6, 1, 2, 0, tzinfo=UTC),
    None,
    datetime(2019, 12, 31, 23, 0, tzinfo=UTC),
    datetime(2020, 1, 1, 4, 59, 59, tzinfo=UTC),
    datetime(2020, 1, 1, 5, 0, tzinfo=UTC),
    datetime(2020, 11, 1, 5, 30, tzinfo=UTC),  # twice 01:30 in New York
    datetime(2020, 11, 1, 6, 30, tzinfo=UTC),
]
OFFSET = pa.timestamp("us", "-05:00")
NAMED = pa.timestamp("us", "America/New_York")
DATA = pa.table(
    {
        "id": list(range(len(MOMENTS))),
        "o": pa.array(MOMENTS, OFFSET),
        "n": pa.array(MOMENTS, NAMED),
        "l": pa.array([[moment] for moment in MOMENTS], pa.list_(OFFSET)),
        "s": pa.array([{"a": moment} for moment in MOMENTS], pa.struct([("a", NAMED)])),
    }
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> rs.Table:
    """Overlapping parts, reopened, so that the zones come from the log."""
    uri = str(tmp_path_factory.mktemp("zones") / "t")
    table = rs.create_table(uri, DATA.slice(0, 5), key=["id"])
    table.upsert(DATA.slice(3))
    return rs.open_table(uri)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT arrow_typeof([o]) a, arrow_typeof([n]) b, arrow_typeof(l) c FROM {}",
        "SELECT arrow_typeof(s) AS d FROM {}",
        "SELECT id, extract(year FROM o) AS y, extract(hour FROM n) AS h FROM {} ORDER BY id",
        "SELECT id FROM {} WHERE extract(year FROM o) = 2019 ORDER BY id",
        "SELECT id FROM {} WHERE extract(year FROM n) = 2019 ORDER BY id",
        "SELECT id FROM {} WHERE o >= '2020-01-01T00:00:00' ORDER BY id",
        "SELECT id FROM {} WHERE o >= timestamp '2020-01-01T00:00:00' ORDER BY id",
        "SELECT id FROM {} WHERE o >= '2020-01-01T00:00:00Z' ORDER BY id",
        "SELECT id FROM {} WHERE CAST(o AS date) = date '2019-12-31' ORDER BY id",
        "SELECT id FROM {} WHERE o IN ('2020-01-01T00:00:00', '2019-12-31T21:00:00') ORDER BY id",
        "SELECT id FROM {} WHERE n > '2020-11-01T01:30:00-05:00' ORDER BY id",
        "SELECT id FROM {} WHERE o = n ORDER BY id",
        "SELECT id FROM {} WHERE o::varchar = '2019-12-31T21:00:00-05:00'",
        "SELECT date_trunc('day', n) AS d, count(*) AS c FROM {} GROUP BY 1 ORDER BY 1",
        "SELECT max(o) AS a, min(n) AS b FROM {}",
        "SELECT id, l, s['a'] AS a FROM {} ORDER BY id",
    ],
)
def test_datafusion_answers_in_the_zone_of_the_column(table: rs.Table, query: str) -> None:
    context = datafusion.SessionContext()
    context.register_table("t", table)
    context.register_record_batches("m", [DATA.to_batches()])

    def answer(name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = context.sql(query.format(name)).to_pylist()
        return found

    assert answer("t") == answer("m")


def test_the_zone_is_in_the_schema_of_the_log() -> None:
    schema, _ = schema_of(DATA.schema)
    fields = schema_to_json(schema)["fields"]
    assert [field.get("zone") for field in fields] == [
        None,
        "-05:00",
        "America/New_York",
        None,
        None,
    ]
    assert fields[3]["type"]["list"]["zone"] == "-05:00"
    again = schema_to_json(schema_from_json(schema_to_json(schema)))
    assert again["fields"] == fields
    utc, _ = schema_of(pa.schema([("t", pa.timestamp("ns", "UTC")), ("w", pa.timestamp("ms"))]))
    assert all("zone" not in field for field in schema_to_json(utc)["fields"])


def test_instants_of_different_zones_are_one_type(table: rs.Table) -> None:
    schema, _ = schema_of(DATA.schema)
    assert schema.field("o").type == schema.field("n").type
    assert table.schema.field("o").type == pa.timestamp("us", "UTC")
    assert table.scan("o = n").count() == len(MOMENTS) - 1


def test_an_expression_that_may_depend_on_the_zone_is_refused(table: rs.Table) -> None:
    schema, _ = schema_of(DATA.schema)
    moment = lit(pa.scalar(MOMENTS[0], pa.timestamp("us", "UTC")))
    for expression in (
        functions.date_trunc("year", col("n")) == moment,
        col("o") > lit(pa.scalar(datetime(2020, 1, 1), pa.timestamp("us"))),
    ):
        with pytest.raises(UnsupportedOperation, match=r"zone|no counterpart|not"):
            from_datafusion(expression, schema, strict=True)
    assert from_datafusion(col("o") >= moment, schema, strict=True).expression is not None
    assert table.scan(col("o") >= moment).count() == 6
    assert table.scan(functions.date_part("year", col("o")) == lit(2019)).count() == 3
    day = lit(pa.scalar(date(2019, 12, 31), pa.date32()))
    assert table.scan(col("o").cast(pa.date32()) == day).count() == 3


def test_a_condition_that_depends_on_the_zone_is_not_written_for_datafusion() -> None:
    schema, _ = schema_of(DATA.schema)
    with pytest.raises(UnsupportedOperation, match="zone"):
        to_datafusion(parse_predicate("extract(hour FROM o) = 3"), schema, strict=True)
    instant = parse_predicate("o >= TIMESTAMPTZ '2020-01-01 00:00:00+00'")
    assert to_datafusion(instant, schema, strict=True).expression is not None


TEXT = "'2020-01-01 02:00:00'"
UTC_TYPE = "'Timestamp(us, \"UTC\")'"


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu", "America/New_York"])
@pytest.mark.parametrize(
    "condition",
    [
        f"tz < {TEXT}",
        f"{TEXT} >= tz",
        f"arrow_cast(tz, {UTC_TYPE}) < {TEXT}",
        f"{TEXT} = arrow_cast(ts, 'Timestamp(Nanosecond, Some(\"UTC\"))')",
        f"tz BETWEEN {TEXT} AND '2020-06-01 02:00:00'",
        f"tz IN ({TEXT}, '2020-11-01 05:30:00')",
        f"tz NOT IN ({TEXT}, '1999-01-01', '1999-01-02', '1999-01-03')",
        f"tz IS DISTINCT FROM {TEXT}",
        f"CASE WHEN id > 1 THEN tz END = {TEXT}",
        f"CASE tz WHEN {TEXT} THEN id END = 0",
        f"CAST(tz AS TIMESTAMP) = {TEXT}",
        f"tz = TIMESTAMP {TEXT}",
        "extract(hour FROM tz) = 2",
        "date_trunc('day', tz) = '2020-01-01 00:00:00'",
        "CAST(tz AS DATE) = DATE '2020-01-01'",
    ],
)
def test_the_zone_of_the_session_changes_no_column_in_utc(condition: str, zone: str) -> None:
    """DataFusion reads text in the zone of the timestamp that it is compared with."""
    columns = {"id": DATA["id"], "tz": pa.array(MOMENTS, pa.timestamp("us", "UTC"))}
    columns["ts"] = columns["tz"].cast(pa.timestamp("us"))
    (batch,) = pa.table(columns).to_batches()
    config = datafusion.SessionConfig().set("datafusion.execution.time_zone", zone)
    context = datafusion.SessionContext(config)
    context.register_record_batches("t", [[batch]])
    wanted = context.sql(f"SELECT id FROM t WHERE {condition} ORDER BY id").to_pydict()["id"]
    schema = schema_of(batch.schema)[0]
    found = to_predicate(condition, "datafusion", schema)
    assert ours(found, schema, batch, Semantics.DATAFUSION) == wanted


def test_text_beside_an_instant_in_a_case_is_refused() -> None:
    """DataFusion makes text of the instant, and compares that."""
    schema = schema_of(pa.schema([("id", pa.int64()), ("tz", pa.timestamp("us", "UTC"))]))[0]
    with pytest.raises(UnsupportedOperation, match="makes text of each value of a CASE"):
        to_predicate(f"CASE WHEN id > 1 THEN {TEXT} ELSE tz END = tz", "datafusion", schema)


@pytest.mark.parametrize("rules", [Semantics.DATAFUSION, Semantics.POLARS, Semantics.PYARROW])
def test_rules_without_a_zone_of_the_session_take_none(rules: Semantics) -> None:
    schema = schema_of(DATA.schema)[0]
    session = dataclasses.replace(rules, time_zone="Asia/Kathmandu")
    with pytest.raises(InvalidPredicate, match="Asia/Kathmandu of a session does not apply"):
        bind(parse_predicate("id = 1"), schema, session)
