"""Dates and times before the year 1 and after 9999 as text: each engine's own, or an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from rowsieve.bridges.sql.dialects import dialect_named
from rowsieve.bridges.sql.language import to_text
from rowsieve.bridges.translate import translate
from rowsieve.bridges.where import to_operand, to_predicate
from rowsieve.predicate.bind import bind, bind_operand
from rowsieve.predicate.evaluate import compute, matching
from rowsieve.predicate.ir import Column, Comparison, ComparisonOp, Literal
from rowsieve.types.days import DAY_US
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Date
from tests.bridges.sql import postgres
from tests.bridges.sql.engines import JUDGES
from tests.duckdb_sessions import duckdb_session

DAYS = (
    *(2_932_896, 2_932_897, -719_162, -719_163, -719_528, -719_529, -735_000, -1_084_373),
    *(-2_440_588, -2_440_589, 3_652_425, 36_524_250, 95_026_236, 95_026_237, 95_746_129),
    *(-96_465_292, -96_465_293, 106_751_990, 106_762_939, 106_762_940, 2_145_031_948),
    *(2_145_042_905, 2_145_042_906, 2**31 - 1, 2**31 - 2, -(2**31) + 2, -(2**31) + 1, -(2**31)),
)
MOMENTS = (
    *(253_402_300_799_999_999, 253_402_300_800_000_000, -62_135_596_800_000_000),
    *(-62_135_596_800_000_001, -62_167_219_200_000_000, -62_167_219_200_000_001),
    *(-210_866_803_200_000_000, -210_866_803_200_000_001, -99_999_999_999_999_999),
    *(8_210_266_876_799_999_999, 8_210_266_876_800_000_000, -8_334_601_228_800_000_000),
    *(-8_334_601_228_800_000_001, 9_223_371_331_200_500_000, 2**63 - 2, -(2**63) + 2),
    *(2**63 - 1, -(2**63) + 1, -(2**63)),
)
FORMS = ("%Y-%m-%d", "%d.%j.%Y", "%m")
TYPES = {"d": pa.date32(), "ts": pa.timestamp("us"), "tz": pa.timestamp("us", "UTC")}


def column(name: str, values: Sequence[int]) -> pa.Array:
    storage = pa.int32() if name == "d" else pa.int64()
    return pa.array(values, storage).view(TYPES[name])


def one(name: str, value: int) -> pa.RecordBatch:
    return pa.record_batch({name: column(name, [value])})


def ours(text: str, dialect: str, batch: pa.RecordBatch, zone: str = "UTC") -> Any:
    """The text of the one row; None where it fails."""
    session = replace(dialect_named(dialect).semantics, time_zone=zone)
    schema = schema_of(batch.schema)[0]
    values, failed = compute(
        bind_operand(to_operand(text, dialect, schema), schema, session), batch
    )
    if failed.any():
        return None
    found = values[0].as_py()
    assert found is not None
    return found


def asked(word: str, formatted: str, form: Callable[[str], str]) -> list[tuple[str, int, str]]:
    """Columns, values and texts of all questions."""
    found = []
    for name, values in (("d", DAYS), ("ts", MOMENTS), ("tz", MOMENTS)):
        texts = [f"CAST({name} AS {word})"]
        if name != "tz":
            texts += [f"{formatted}({name}, '{form(each)}')" for each in FORMS]
        found += [(name, value, text) for value in values for text in texts]
    return found


def duckdb_writes(text: str, batch: pa.RecordBatch, zone: str = "UTC") -> Any:
    import duckdb

    connection = duckdb_session()
    connection.execute(f"SET TimeZone = '{zone}'").fetchall()
    connection.register("t", pa.table(batch))
    try:
        return connection.execute(f"SELECT {text} FROM t").fetchall()[0][0]
    except duckdb.Error:
        return None


def test_duckdb_writes_the_texts_that_we_write() -> None:
    for name, value, text in asked("VARCHAR", "strftime", str):
        mine = ours(text, "duckdb", batch := one(name, value))
        if name == "tz" and value < -106_751_991 * DAY_US and value != -(2**63) + 1:
            assert mine is None  # DuckDB writes it, of a column that declares a zone only
        else:
            assert mine == duckdb_writes(text, batch), (name, value, text)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
def test_duckdb_writes_the_texts_that_we_write_in_a_zone(zone: str) -> None:
    for value in MOMENTS:
        mine = ours("CAST(tz AS VARCHAR)", "duckdb", batch := one("tz", value), zone)
        if mine is None:  # at the very ends only, where local time or infinity begin
            assert abs(value) > 2**63 - DAY_US
        else:
            assert mine == duckdb_writes("CAST(tz AS VARCHAR)", batch, zone), value


def datafusion_writes(text: str, batch: pa.RecordBatch) -> Any:
    from datafusion import SessionContext

    context = SessionContext()
    context.register_record_batches("t", [[batch]])
    try:
        return context.sql(f"SELECT {text} AS c FROM t").to_arrow_table()["c"][0].as_py()
    except Exception:  # DataFusion has no narrower class
        return None


def test_datafusion_writes_the_texts_that_we_write() -> None:
    for name, value, text in asked("VARCHAR", "to_char", str):
        batch = one(name, value)
        assert ours(text, "datafusion", batch) == datafusion_writes(text, batch), (name, value)
    far = one("ts", MOMENTS[-4])
    assert ours("TRY_CAST(ts AS VARCHAR)", "datafusion", far) is None
    assert datafusion_writes("TRY_CAST(ts AS VARCHAR)", far) is None


def postgres_form(form: str) -> str:
    for ours_, theirs in (("%Y", "YYYY"), ("%m", "MM"), ("%d", "DD"), ("%j", "DDD")):
        form = form.replace(ours_, theirs)
    return form


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_postgres_writes_the_texts_that_we_write(zone: str) -> None:
    import psycopg

    connection = postgres.connection()
    connection.execute(f"SET TimeZone = '{zone}'")
    made = {
        "d": "DATE '1970-01-01' + ({})",
        "ts": "TIMESTAMP '1970-01-01' + INTERVAL '1 day' * ({0}) + INTERVAL '1 us' * {1}",
        "tz": "(TIMESTAMP '1970-01-01' + INTERVAL '1 day' * ({0}) + INTERVAL '1 us' * {1})"
        " AT TIME ZONE 'UTC'",
    }
    written = 0
    for name, value, text in asked("TEXT", "to_char", postgres_form):
        if value in (-2_440_588, 106_762_939) and "to_char" in text:  # by the zone
            assert ours(text, "postgres", one(name, value), zone) is None
            continue
        if name == "tz" and zone != "UTC" and not -2_440_588 * DAY_US <= value < 2**63 - DAY_US:
            continue  # PostgreSQL has no such instant, or we have no such local time
        parts = (value,) if name == "d" else divmod(value, DAY_US)
        query = f"SELECT {text} FROM (SELECT {made[name].format(*parts)} AS {name}) AS t"
        try:
            there = connection.execute(query).fetchall()[0][0]
            written += 1
        except psycopg.errors.DatetimeFieldOverflow:
            there = None
        assert ours(text, "postgres", one(name, value), zone) == there, (name, value, text)
    assert written > len(DAYS) + len(MOMENTS)


def spark_form(form: str) -> str:
    for ours_, theirs in (("%Y", "yyyy"), ("%m", "MM"), ("%d", "dd"), ("%j", "DDD")):
        form = form.replace(ours_, theirs)
    return form


@pytest.mark.spark
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_spark_writes_the_texts_that_we_write(spark: Any, ansi: str) -> None:
    settings = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": ansi}
    before = {name: spark.conf.get(name) for name in settings}
    questions = [
        question
        for question in asked("STRING", "date_format", spark_form)
        if question[0] != "d" or abs(question[1]) < 106_751_990 or "CAST" in question[2]
    ]
    made = {
        "d": "date_from_unix_date(CAST('{}' AS INT))",
        "tz": "timestamp_micros(CAST('{}' AS BIGINT))",
        "ts": "CAST(timestamp_micros(CAST('{}' AS BIGINT)) AS TIMESTAMP_NTZ)",
    }
    try:
        for setting, wanted in settings.items():
            spark.conf.set(setting, wanted)
        texts = [
            text.replace(f"({name}", f"({made[name].format(value)}")
            for name, value, text in questions
        ]
        columns = ", ".join(f"{text} AS c{place}" for place, text in enumerate(texts))
        row = spark.sql(f"SELECT {columns}").collect()[0]
    finally:
        for setting, wanted in before.items():
            spark.conf.set(setting, wanted)
    for there, (name, value, text) in zip(row, questions, strict=True):
        assert ours(text, "spark", one(name, value)) == there, (name, value, text)
    assert ours("date_format(d, 'yyyy')", "spark", one("d", 2_145_031_948)) is None


FAR = pa.record_batch(
    {
        "k": range(5),
        "d": pa.array([2_932_897, -735_160, -735_525, 19_000, None], pa.int32()).view(pa.date32()),
        "ts": pa.array(
            [253_402_338_030_000_000, -63_517_786_770_000_000, 0, None, -63_549_322_770_500_000]
        ).view(pa.timestamp("us")),
        "s": ["10000-01-01", "-0044-03-15", None, "0044-03-15 (BC)", "0045-02-29 BC"],
    }
)
CONDITIONS = {
    "duckdb": [
        *("d = '10000-01-01'::DATE", "d = DATE '-0044-03-15'", "d >= '10000-01-01'"),
        *("d <= CAST('0044-03-15 (BC)' AS DATE)", "d IN (DATE '10000-01-01', DATE '2022-01-08')"),
        *("ts = TIMESTAMP '10000-01-01 10:20:30'", "ts < '0044-03-15 (BC) 10:20:30.5'"),
        "ts = TIMESTAMP '-0044-03-15 10:20:29.5'",
        "k <> 4 AND TRY_CAST(s AS DATE) < DATE '0001-01-01'",
    ],
    "postgres": [
        *("d = '10000-01-01'::DATE", "d = DATE '0044-03-15 BC'", "d > '9999-12-31'"),
        *("d IN (DATE '10000-01-01', DATE '2022-01-08')", "ts >= '10000-01-01 10:20:30'"),
        "ts < '0044-03-15 10:20:30.5 BC'",
    ],
    "datafusion": [
        *("d = DATE '+10000-01-01'", "d = '-0044-03-15'::DATE", "d > '-0044-03-15'"),
        "k < 2 AND TRY_CAST(s AS DATE) < DATE '-0043-01-01'",
    ],
}


def by_engine(dialect: str, text: str) -> list[int]:
    """The rows of the engine; Python has no such days, of which PostgreSQL's are made."""
    if dialect != "postgres":
        found = JUDGES[dialect](text, FAR)
        assert found is not None
        return found
    columns = FAR.select(["k"]), FAR["d"].view(pa.int32()), FAR["ts"].view(pa.int64())
    rows = []
    for k, day, micros in zip(columns[0]["k"], columns[1], columns[2], strict=True):
        whole, clock = divmod(micros.as_py() or 0, DAY_US)
        at = f"DATE '1970-01-01' + {whole} + make_interval(secs => {clock / 1e6})"
        of = "NULL::date" if not day.is_valid else f"DATE '1970-01-01' + {day.as_py()}"
        rows.append(f"({k}, {of}, {at if micros.is_valid else 'NULL::timestamp'})")
    asked = f"SELECT k FROM (VALUES {', '.join(rows)}) AS t (k, d, ts) WHERE {text} ORDER BY k"
    return [k for (k,) in postgres.connection().execute(asked).fetchall()]


@pytest.mark.parametrize(
    ("dialect", "text"), [(name, text) for name, texts in CONDITIONS.items() for text in texts]
)
def test_far_constants_and_texts_keep_the_rows_of_the_engine(dialect: str, text: str) -> None:
    schema, semantics = schema_of(FAR.schema)[0], dialect_named(dialect).semantics
    bound = bind(to_predicate(text, dialect, schema), schema, semantics)
    kept = [row for row, found in enumerate(matching(bound, FAR)) if found]
    assert kept
    assert kept == by_engine(dialect, text)
    if "s AS" not in text:
        made = translate(text, dialect, target=dialect, schema=FAR.schema)
        assert by_engine(dialect, made.exact()) == kept


def test_a_far_day_that_the_engine_does_not_read_is_not_written() -> None:
    day = Literal(2_145_042_906, Date())  # the day after PostgreSQL's last
    predicate = Comparison(ComparisonOp.EQ, Column("d"), day)
    made = to_text(predicate, schema_of(FAR.schema)[0], dialect="postgres")
    assert made.expression is None


YEARS = {-1: "0002-06-30 BC", 0: "0001-12-31 BC", 1: "0001-01-01", 2013: "2013-03-10"}
OF_YEARS = [
    *("= -1", "= 0", "< 0", "> -1", "IN (-1, 0, 1)", "* 2 < -1", "* 1000000000 < 0"),
    *("< 1", "IN (1, 2013)", "BETWEEN -1 AND 1"),
]


@pytest.mark.parametrize("field", ["year", "isoyear"])
@pytest.mark.parametrize("condition", OF_YEARS)
def test_years_before_1_are_written_for_postgres_as_it_counts_them(
    field: str, condition: str
) -> None:
    text, schema = f"extract({field} FROM ts) {condition}", pa.schema({"ts": TYPES["ts"]})
    written = translate(text, "duckdb", target="postgres", schema=schema)
    assert written.exactness.name == "EXACT"
    assert in_postgres(written.exact()) == in_duckdb(text)
    again = translate(written.exact(), "postgres", target="duckdb", schema=schema)
    assert in_duckdb(again.exact()) == in_duckdb(text)


@pytest.mark.parametrize("condition", OF_YEARS)
def test_years_of_postgres_are_written_back_as_they_were(condition: str) -> None:
    text, schema = f"extract(year FROM ts) {condition}", pa.schema({"ts": TYPES["ts"]})
    written = translate(text, "postgres", target="postgres", schema=schema)
    assert "CASE" not in written.exact()
    assert in_postgres(written.exact()) == in_postgres(text)


def in_duckdb(condition: str) -> list[int]:
    """The years that DuckDB keeps."""
    rows = ", ".join(f"(make_date({year}, 6, 30)::timestamp)" for year in YEARS)
    found = duckdb_session().sql(f"SELECT year(ts) FROM (VALUES {rows}) AS t(ts) WHERE {condition}")
    return sorted(year for (year,) in found.fetchall())


def in_postgres(condition: str) -> list[int]:
    """The years that PostgreSQL keeps."""
    rows = ", ".join(f"({year}, timestamp '{day}')" for year, day in YEARS.items())
    asked = f"SELECT y FROM (VALUES {rows}) AS t(y, ts) WHERE {condition}"
    return sorted(year for (year,) in postgres.connection().execute(asked).fetchall())
