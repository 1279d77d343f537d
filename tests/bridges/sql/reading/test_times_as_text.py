"""Times cast to text: the text that an engine writes is the one that we write, or is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from rowsieve.bridges.meanings import keep_meaning
from rowsieve.bridges.sql import parse_expression, parse_predicate
from rowsieve.bridges.sql.dialects import dialect_named
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate.bind import bind, bind_operand
from rowsieve.predicate.codec import semantics_from_json, semantics_to_json
from rowsieve.predicate.evaluate import compute, evaluate, matching
from rowsieve.predicate.semantics import Semantics, TimestampText
from rowsieve.types.encodings import schema_of
from tests.bridges.sql import postgres
from tests.duckdb_sessions import duckdb_session
from tests.zones import EDGES

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu")
MOMENTS = (
    *EDGES,
    "0001-01-02 00:00:00",
    "0702-06-15 00:53:20.000001",
    "2024-07-03 06:30:00.5",
    "2024-07-03 06:30:00.050000",
    "2024-07-03 06:30:00.123456",
    "9999-12-30 23:59:59.999",
)
LOCAL = pa.array(MOMENTS).cast(pa.timestamp("us"))
BATCH = pa.record_batch(
    {
        "k": pa.array(range(len(MOMENTS)), pa.int64()),
        "tz": LOCAL.view(pa.int64()).view(pa.timestamp("us", "UTC")),
        "ts": LOCAL,
        "d": LOCAL.cast(pa.date32(), safe=False),
    }
)
TEXTS = ("CAST(tz AS {})", "CAST(ts AS {})", "CAST(d AS {})")


def texts(word: str) -> list[str]:
    return [text.format(word) for text in TEXTS]


def ours(text: str, dialect: str, zone: str = "UTC", batch: pa.RecordBatch = BATCH) -> list[Any]:
    session = replace(dialect_named(dialect).semantics, time_zone=zone)
    bound = bind_operand(parse_expression(text, dialect), schema_of(batch.schema)[0], session)
    values, failed = compute(bound, batch)
    assert not failed.any()
    found: list[Any] = values.to_pylist()
    return found


def check(dialect: str, zone: str, asked: list[str], rows: Sequence[Sequence[Any]]) -> None:
    for place, text in enumerate(asked):
        there = [row[place] for row in rows]
        assert ours(text, dialect, zone) == there, (dialect, zone, text)


@pytest.mark.parametrize("zone", ZONES)
def test_duckdb_writes_the_texts_that_we_write(zone: str) -> None:
    connection = duckdb_session()
    connection.execute(f"SET TimeZone = '{zone}'")
    connection.register("t", pa.table(BATCH))
    asked = texts("VARCHAR")
    rows = connection.execute(f"SELECT {', '.join(asked)} FROM t ORDER BY k").fetchall()
    check("duckdb", zone, asked, rows)


@pytest.mark.parametrize("zone", ZONES)
def test_postgres_writes_the_texts_that_we_write(zone: str) -> None:
    connection = postgres.connection()
    connection.execute(f"SET TimeZone = '{zone}'")
    values = ", ".join(
        f"({k}, TIMESTAMPTZ '{text}+00', TIMESTAMP '{text}', DATE '{text[:10]}')"
        for k, text in enumerate(MOMENTS)
    )
    asked = texts("TEXT")
    query = f"SELECT {', '.join(asked)} FROM (VALUES {values}) AS t (k, tz, ts, d) ORDER BY k"
    check("postgres", zone, asked, connection.execute(query).fetchall())


@pytest.mark.spark
def test_spark_writes_the_texts_that_we_write(spark: Any) -> None:
    setting = "spark.sql.session.timeZone"
    before = spark.conf.get(setting)
    values = ", ".join(
        f"({k}, TIMESTAMP '{text}+00:00', TIMESTAMP_NTZ '{text}', DATE '{text[:10]}')"
        for k, text in enumerate(MOMENTS)
    )
    asked = texts("STRING")
    named = ", ".join(f"{text} AS c{place}" for place, text in enumerate(asked))
    query = f"SELECT {named} FROM VALUES {values} AS t (k, tz, ts, d) ORDER BY k"
    try:
        for zone in (*ZONES, "+05:30"):
            spark.conf.set(setting, zone)
            check("spark", zone, asked, spark.sql(query).collect())
    finally:
        spark.conf.set(setting, before)


def datafusion(batch: pa.RecordBatch, asked: Sequence[str]) -> list[list[Any]]:
    from datafusion import SessionContext

    context = SessionContext()
    context.register_record_batches("t", [[batch]])
    named = ", ".join(f"{text} AS c{place}" for place, text in enumerate(asked))
    found = context.sql(f"SELECT {named} FROM t ORDER BY k").to_arrow_table()
    return [list(row.values()) for row in found.to_pylist()]


def test_datafusion_writes_the_texts_that_we_write() -> None:
    asked = [*texts("VARCHAR"), "CAST(date_trunc('minute', tz) AS VARCHAR)"]
    check("datafusion", "UTC", asked, datafusion(BATCH, asked))


def test_datafusion_writes_a_declared_zone_and_we_refuse_it() -> None:
    declared = BATCH.set_column(1, "tz", BATCH["tz"].cast(pa.timestamp("us", "Europe/Berlin")))
    assert any("+02:00" in text for (text,) in datafusion(declared, ["CAST(tz AS VARCHAR)"]))
    for text in ("CAST(tz AS VARCHAR)", "CAST(date_trunc('day', tz) AS VARCHAR)"):
        with pytest.raises(InvalidPredicate, match="Europe/Berlin"):
            ours(text, "datafusion", batch=declared)
    # A cast to the instant gives DataFusion a time without a zone, and so does now().
    for text in ("CAST(CAST(ts AS TIMESTAMPTZ) AS VARCHAR)", "CAST(now() AS VARCHAR)"):
        with pytest.raises(InvalidPredicate):
            ours(text, "datafusion")


def test_text_of_a_time_selects_the_row_in_the_engines_that_write_it() -> None:
    spelt = {
        "spark": ("STRING", "2024-07-03 06:30:00.5"),
        "datafusion": ("VARCHAR", "2024-07-03T06:30:00.500Z"),
        "duckdb": ("VARCHAR", "2024-07-03 06:30:00.5+00"),
        "postgres": ("TEXT", "2024-07-03 06:30:00.5+00"),
    }
    for dialect, (word, text) in spelt.items():
        root = parse_predicate(f"CAST(tz AS {word}) = '{text}'", dialect)
        for name in spelt:
            bound = bind(root, schema_of(BATCH.schema)[0], dialect_named(name).semantics)
            rows = [MOMENTS[row] for row in matching(bound, BATCH).nonzero()[0]]
            found = ["2024-07-03 06:30:00.5"] if spelt[name][1] == text else []
            assert rows == found, (dialect, name)


def test_times_that_trino_and_arrow_spell_by_their_unit_are_refused() -> None:
    schema = schema_of(BATCH.schema)[0]
    for rules in (Semantics.TRINO, Semantics.PYARROW, Semantics.POLARS):
        for name in ("tz", "ts"):
            with pytest.raises(InvalidPredicate, match=f"{rules.name}, which depend on the unit"):
                bind_operand(parse_expression(f"CAST({name} AS TEXT)"), schema, rules)


def test_a_text_goes_to_no_engine_that_writes_another() -> None:
    schema = schema_of(BATCH.schema)[0]

    def moved(text: str, mine: Semantics, theirs: Semantics) -> Any:
        bound = bind(parse_predicate(text), schema, mine, simplified=False)
        return keep_meaning(bound.root, mine, theirs)

    for mine in (Semantics.POSTGRES, Semantics.DUCKDB):
        moved("CAST(tz AS TEXT) > 'a'", mine, Semantics.POSTGRES)
        moved("CAST(ts AS TEXT) > 'a'", mine, Semantics.SPARK)
        for theirs in (Semantics.SPARK, Semantics.DATAFUSION, Semantics.TRINO):
            with pytest.raises(UnsupportedOperation, match="formats it differently"):
                moved("CAST(tz AS TEXT) > 'a'", mine, theirs)
    for mine, theirs in (
        (Semantics.SPARK, Semantics.DATAFUSION),
        (Semantics.DATAFUSION, Semantics.SPARK),
    ):
        with pytest.raises(UnsupportedOperation, match="formats it differently"):
            moved("CAST(ts AS TEXT) > 'a'", mine, theirs)


def test_a_year_without_text_in_the_engine_is_an_error_and_never_null() -> None:
    """DataFusion's calendar ends in the year 262142: TRY_CAST fails there, too."""
    batch = pa.record_batch(
        {
            "ts": pa.array([2**62 + 2**61 + 2**60 + 2**59]).view(pa.timestamp("us")),
            "d": pa.array([95_026_237], pa.int32()).view(pa.date32()),
        }
    )
    schema = schema_of(batch.schema)[0]
    for name in batch.schema.names:
        for cast in ("CAST", "TRY_CAST"):
            root = parse_predicate(f"{cast}({name} AS VARCHAR) IS NULL", "datafusion")
            found = evaluate(bind(root, schema, Semantics.DATAFUSION), batch)
            assert found.failed.all(), (cast, name)


def test_the_spelling_survives_the_codec() -> None:
    for style in TimestampText:
        rules = replace(Semantics.SQL, timestamp_text=style)
        assert semantics_from_json(semantics_to_json(rules)) == rules
