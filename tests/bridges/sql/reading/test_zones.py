"""Time zones in SQL: what we make of a text is what its engine does, in sessions of many zones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from rowsieve.bridges.sql import parse_expression, to_sql
from rowsieve.bridges.sql.dialects import dialect_named
from rowsieve.bridges.translate import translate
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.evaluate import compute
from rowsieve.predicate.ir import Call, Column, Literal
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Date, Timestamp
from tests.bridges.sql import postgres
from tests.duckdb_sessions import duckdb_session
from tests.zones import EDGES, NAMES

ARROW = pa.schema(
    [("k", pa.int64()), ("tz", pa.timestamp("us", "UTC")), ("ts", pa.timestamp("us"))]
)
SCHEMA = schema_of(ARROW)[0]
IN_SESSION = (  # in every dialect; {tz} is the name of its type of instants
    "CAST(tz AS DATE)",
    "CAST(tz AS {ts})",
    "CAST(ts AS {tz})",
    "CAST(CAST(ts AS DATE) AS {tz})",
    "EXTRACT(HOUR FROM tz)",
    "EXTRACT(MINUTE FROM tz)",
    "EXTRACT(DOY FROM tz)",
    "date_trunc('minute', tz)",
    "date_trunc('hour', tz)",
    "date_trunc('day', tz)",
    "date_trunc('week', tz)",
    "date_trunc('month', tz)",
    "tz + INTERVAL '1' DAY",
    "tz + INTERVAL '1' MONTH",
    "tz - INTERVAL '13' MONTH",
    "tz + INTERVAL '36' HOUR",
)
NAMED = {
    "postgres": (
        "tz AT TIME ZONE '{zone}'",
        "ts AT TIME ZONE '{zone}'",
        "timezone('{zone}', tz)",
        "(tz AT TIME ZONE '{zone}') AT TIME ZONE 'Europe/Berlin'",
        "date_trunc('hour', tz, '{zone}')",
        "date_trunc('day', tz, '{zone}')",
        "date_trunc('year', tz, '{zone}')",
        "TIMESTAMPTZ '2024-11-03 01:30:00 {zone}'",
        "TIMESTAMPTZ '2024-03-10 02:30:00 {zone}'",
    ),
    "duckdb": (
        "tz AT TIME ZONE '{zone}'",
        "ts AT TIME ZONE '{zone}'",
        "timezone('{zone}', ts)",
        "TIMESTAMPTZ '2024-11-03 01:30:00 {zone}'",
    ),
    "spark": (
        "from_utc_timestamp(tz, '{zone}')",
        "to_utc_timestamp(tz, '{zone}')",
        "from_utc_timestamp(tz, '+05:30')",
        "convert_timezone('Europe/Berlin', '{zone}', ts)",
        "convert_timezone('{zone}', 'America/New_York', ts)",
        "convert_timezone('{zone}', ts)",
        "TIMESTAMP '2024-11-03 01:30:00 {zone}'",
    ),
    "datafusion": ("to_local_time(tz AT TIME ZONE '{zone}')",),
}
WORDS = {
    "postgres": {"tz": "TIMESTAMPTZ", "ts": "TIMESTAMP"},
    "duckdb": {"tz": "TIMESTAMPTZ", "ts": "TIMESTAMP"},
    "spark": {"tz": "TIMESTAMP", "ts": "TIMESTAMP_NTZ"},
}
# ICU knows no Ramadan after 2037.
UNKNOWN = {("Africa/Casablanca", "duckdb", decade) for decade in ("205", "215")}
Ask = Callable[[list[str], str], list[list[Any]]]


def batch() -> pa.RecordBatch:
    moments = pa.array(EDGES).cast(pa.timestamp("us"))
    aware = moments.view(pa.int64()).view(pa.timestamp("us", "UTC"))
    return pa.record_batch([pa.array(range(len(EDGES))), aware, moments], schema=ARROW)


def ours(text: str, dialect: str, zone: str) -> tuple[list[Any], Any]:
    """Numbers: whole ones as they are, days and microseconds since 1970."""
    session = replace(dialect_named(dialect).semantics, time_zone=zone)
    bound = bind_operand(parse_expression(text, dialect), SCHEMA, session)
    values, failed = compute(bound, batch())
    assert not failed.any(), text
    if isinstance(bound.type, Date):
        values = values.view(pa.int32())
    if isinstance(bound.type, Timestamp):
        values = values.view(pa.int64())
    return values.to_pylist(), bound.type


def measured(text: str, type_: Any, epochs: str, days: str) -> str:
    """The text as a number."""
    if isinstance(type_, Date):
        return days.format(text)
    return epochs.format(text) if isinstance(type_, Timestamp) else text


def _in_duckdb(texts: list[str], zone: str) -> list[list[Any]]:
    connection = duckdb_session()
    connection.execute(f"SET TimeZone = '{zone}'")
    connection.register("t", pa.table(batch()))
    rows = connection.execute(f"SELECT {', '.join(texts)} FROM t ORDER BY k").fetchall()
    return [list(cells) for cells in zip(*rows, strict=True)]


def _in_postgres(texts: list[str], zone: str) -> list[list[Any]]:
    connection = postgres.connection()
    connection.execute(f"SET TimeZone = '{zone}'")
    values = ", ".join(
        f"({k}, TIMESTAMPTZ '{text}+00', TIMESTAMP '{text}')" for k, text in enumerate(EDGES)
    )
    query = f"SELECT {', '.join(texts)} FROM (VALUES {values}) AS t (k, tz, ts) ORDER BY k"
    rows = connection.execute(query).fetchall()
    return [list(cells) for cells in zip(*rows, strict=True)]


def check(ask: Ask, dialect: str, zone: str, texts: list[str], epochs: str, days: str) -> None:
    wanted = [ours(text, dialect, zone) for text in texts]
    pairs = zip(texts, wanted, strict=True)
    asked = [measured(text, type_, epochs, days) for text, (_, type_) in pairs]
    for text, found, (values, _) in zip(texts, ask(asked, zone), wanted, strict=True):
        wrong = [
            (EDGES[row], int(there), here)
            for row, (there, here) in enumerate(zip(found, values, strict=True))
            if int(there) != here and (zone, dialect, EDGES[row][:3]) not in UNKNOWN
        ]
        assert not wrong, (dialect, zone, text, wrong)


def texts_of(dialect: str, zone: str) -> list[str]:
    shared = [text.format(**WORDS[dialect]) for text in IN_SESSION]
    named = () if (zone, dialect) == ("Africa/Casablanca", "duckdb") else NAMED[dialect]
    return shared + [text.format(zone=zone) for text in named]


@pytest.mark.parametrize("zone", NAMES)
def test_a_session_of_duckdb_has_the_rows_that_we_have(zone: str) -> None:
    texts = texts_of("duckdb", zone)
    check(_in_duckdb, "duckdb", zone, texts, "epoch_us({})", "({} - DATE '1970-01-01')")


@pytest.mark.parametrize("zone", NAMES)
def test_a_session_of_postgres_has_the_rows_that_we_have(zone: str) -> None:
    epochs = "(EXTRACT(EPOCH FROM {}) * 1000000)::bigint"
    check(_in_postgres, "postgres", zone, texts_of("postgres", zone), epochs, "({} - '1970-01-01')")


@pytest.mark.spark
def test_sessions_of_spark_have_the_rows_that_we_have(spark: Any) -> None:
    kept = spark.conf.get("spark.sql.session.timeZone")
    values = ", ".join(
        f"({k}, TIMESTAMP '{text}+00:00', TIMESTAMP_NTZ '{text}')" for k, text in enumerate(EDGES)
    )

    def ask(texts: list[str], zone: str) -> list[list[Any]]:
        spark.conf.set("spark.sql.session.timeZone", zone)
        named = ", ".join(f"{text} AS c{place}" for place, text in enumerate(texts))
        query = f"SELECT {named} FROM VALUES {values} AS t (k, tz, ts) ORDER BY k"
        rows = [tuple(map(_microseconds, row)) for row in spark.sql(query).collect()]
        return [list(cells) for cells in zip(*rows, strict=True)]

    try:
        for zone in NAMES:
            texts = texts_of("spark", zone)
            types = [ours(text, "spark", zone)[1] for text in texts]
            for utc, epochs in ((True, "unix_micros({})"), (False, "CAST({} AS STRING)")):
                some = [
                    text
                    for text, type_ in zip(texts, types, strict=True)
                    if (type_ == Timestamp(utc=False)) is not utc
                ]
                check(ask, "spark", zone, some, epochs, "datediff({}, DATE '1970-01-01')")
    finally:
        spark.conf.set("spark.sql.session.timeZone", kept)


def _microseconds(cell: Any) -> Any:
    """Local times arrive as text."""
    if not isinstance(cell, str):
        return cell
    return pa.array([cell]).cast(pa.timestamp("us")).view(pa.int64())[0].as_py()


@pytest.mark.parametrize("zone", NAMES)
def test_datafusion_has_the_local_times_that_we_have(zone: str) -> None:
    import datafusion

    (text,) = (each.format(zone=zone) for each in NAMED["datafusion"])
    context = datafusion.SessionContext()
    context.register_record_batches("t", [[batch()]])
    found = context.sql(f"SELECT {text} AS c FROM t ORDER BY k").to_arrow_table()["c"]
    cells = found.cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
    assert cells == ours(text, "datafusion", "UTC")[0]  # without rules after 2100


WRITTEN = (
    "tz AT TIME ZONE 'America/New_York' > TIMESTAMP '2024-11-03 01:30:00'",
    "ts AT TIME ZONE 'Australia/Lord_Howe' <= TIMESTAMPTZ '2024-10-05 15:45:00+00'",
    "date_trunc('hour', tz, 'Australia/Lord_Howe') = TIMESTAMPTZ '2024-04-06 14:30:00+00'",
    "date_trunc('month', tz, 'America/Havana') < TIMESTAMPTZ '2024-11-01 04:00:00+00'",
    "CAST(tz AT TIME ZONE 'Pacific/Apia' AS DATE) = DATE '2011-12-31'",
    "EXTRACT(HOUR FROM tz AT TIME ZONE 'America/Sao_Paulo') = 23",
)


@pytest.mark.parametrize("target", ["postgres", "duckdb", "datafusion", "spark"])
@pytest.mark.parametrize("text", WRITTEN)
def test_a_condition_in_a_zone_keeps_its_rows_in_another_dialect(text: str, target: str) -> None:
    found = translate(text, source="postgres", target=target, schema=SCHEMA)
    if found.exactness is not Exactness.EXACT:
        assert target in ("spark", "datafusion") or "'hour'" in text
        return
    wanted, _ = ours(text, "postgres", "UTC")
    assert ours(str(found.expression), target, "UTC")[0] == wanted
    if target in ("postgres", "duckdb"):
        ask = _in_postgres if target == "postgres" else _in_duckdb
        for session in ("UTC", "America/New_York"):  # the zone is in the text
            assert ask([str(found.expression)], session)[0] == wanted


def test_conditions_in_a_zone_are_written_where_the_engine_has_them() -> None:
    exact = {
        target: sum(
            translate(text, source="postgres", target=target, schema=SCHEMA).exactness
            is Exactness.EXACT
            for text in WRITTEN
        )
        for target in ("postgres", "duckdb", "datafusion", "spark")
    }
    assert exact == {"postgres": 6, "duckdb": 5, "datafusion": 2, "spark": 0}


@pytest.mark.parametrize("text", [text.format(zone="America/New_York") for text in NAMED["spark"]])
def test_functions_of_spark_are_written_back_as_they_were_read(text: str) -> None:
    tree = parse_expression(text, "spark")
    again = parse_expression(to_sql(tree, "spark"), "spark")
    assert ours(text, "spark", "Asia/Kathmandu") == ours(
        to_sql(tree, "spark"), "spark", "Asia/Kathmandu"
    )
    assert again == tree


@pytest.mark.parametrize(
    ("text", "dialect", "why"),
    [
        ("tz AT TIME ZONE '+05:30'", "postgres", "west of Greenwich"),
        ("timezone('UTC+3', tz)", "postgres", "west of Greenwich"),
        ("tz AT TIME ZONE 'EST'", "postgres", "abbreviations"),
        ("tz AT TIME ZONE 'Europe/Atlantis'", "duckdb", "Europe/Atlantis"),
        ("tz AT TIME ZONE s", "postgres", "quoted constant"),
        ("tz AT TIME ZONE INTERVAL '1 hour'", "postgres", "INTERVAL|interval|constant"),
        ("tz AT TIME ZONE 'Europe/Berlin'", "datafusion", "to_local_time"),
        ("tz AT TIME ZONE 'Europe/Berlin'", "spark", "convert_timezone"),
        ("timezone('Europe/Berlin', tz)", "spark", "no function timezone"),
        ("date_trunc('day', tz, 'Europe/Berlin')", "duckdb", "postgres only"),
        ("date_trunc('day', tz, 'Europe/Berlin')", "spark", "postgres only"),
        ("date_trunc('day', tz, 'Europe/Berlin')", "datafusion", "postgres only"),
        ("tz AT TIME ZONE 'Africa/Casablanca'", "duckdb", "after 2037"),
        ("to_local_time(tz)", "datafusion", "AT TIME ZONE"),
        ("from_utc_timestamp(tz, s)", "spark", "quoted constant"),
        ("convert_timezone('Europe/Berlin', ts)", "duckdb", "spark only"),
        ("from_utc_timestamp(tz, 'PST')", "spark", "abbreviations"),
    ],
)
def test_a_zone_that_engines_read_in_several_ways_is_refused(
    text: str, dialect: str, why: str
) -> None:
    with pytest.raises(InvalidPredicate, match=why):
        parse_expression(text, dialect)


def test_a_zone_without_rules_after_2100_is_not_written_as_one_that_has_them() -> None:
    text = "to_local_time(tz AT TIME ZONE 'America/New_York') > TIMESTAMP '2024-11-03 01:30:00'"
    found = translate(text, source="datafusion", target="datafusion", schema=SCHEMA)
    assert found.exactness is Exactness.EXACT
    found = translate(text, source="datafusion", target="postgres", schema=SCHEMA)
    assert found.exactness is Exactness.UNSUPPORTED


def test_a_rule_that_a_dialect_lacks_is_not_written() -> None:
    given = (Literal("Europe/Berlin"), Column("ts"), Literal("earlier"), Literal("back"))
    for dialect in ("postgres", "duckdb", "spark", "datafusion", "trino"):
        with pytest.raises(UnsupportedOperation):
            to_sql(Call("instant", given), dialect)
