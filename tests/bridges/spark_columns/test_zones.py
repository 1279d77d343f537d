"""Columns in sessions of many zones: the rows that Spark keeps are the rows that we keep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rowsieve.bridges.session import Session
from rowsieve.bridges.spark_columns import from_spark_column, rules_of
from rowsieve.bridges.translate import translate
from rowsieve.bridges.translation import Exactness
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import matching
from rowsieve.types.encodings import schema_of
from tests.zones import EDGES, NAMES

pytestmark = pytest.mark.spark
MOMENTS = pa.array(EDGES).cast(pa.timestamp("us"))
BATCH = pa.record_batch(
    {
        "k": pa.array(range(len(EDGES)), pa.int64()),
        "tz": MOMENTS.view(pa.int64()).view(pa.timestamp("us", "UTC")),
        "ts": MOMENTS,
    }
)
SCHEMA = schema_of(BATCH.schema)[0]
TEXTS = (
    "CAST(tz AS DATE) = DATE '2024-11-03'",
    "CAST(tz AS TIMESTAMP_NTZ) > TIMESTAMP_NTZ '2024-11-03 02:30:00'",
    "CAST(ts AS TIMESTAMP) <= TIMESTAMP '2024-03-10 07:30:00+00:00'",
    "CAST(CAST(ts AS DATE) AS TIMESTAMP) < TIMESTAMP '2018-11-04 03:00:00+00:00'",
    "ts = tz",
    "tz > DATE '2018-11-04'",
    "hour(tz) = 1",
    "minute(tz) = 30",
    "second(tz) > 0",
    "dayofweek(tz) = 1",
    "year(tz) < 2012",
    "date_trunc('hour', tz) = TIMESTAMP '2024-11-03 05:00:00+00:00'",
    "date_trunc('day', tz) >= TIMESTAMP '2019-02-17 03:00:00+00:00'",
    "date_trunc('month', tz) < TIMESTAMP '2024-11-01 04:00:00+00:00'",
    "tz + INTERVAL '1' MONTH > TIMESTAMP '2024-11-03 05:30:00+00:00'",
    "tz + INTERVAL '36' HOUR > TIMESTAMP '2024-11-04 16:30:00+00:00'",
    "from_utc_timestamp(tz, 'Australia/Lord_Howe') < TIMESTAMP '2024-04-07 01:45:00+00:00'",
    "to_utc_timestamp(tz, 'America/Sao_Paulo') < TIMESTAMP '2018-11-04 03:30:00+00:00'",
    "convert_timezone('Europe/Berlin', 'Pacific/Apia', ts) < TIMESTAMP_NTZ '2011-12-31 00:00:00'",
)


def kept(column: Any) -> list[int]:
    found = from_spark_column(column, SCHEMA)
    assert found.exactness is Exactness.EXACT, (column, found.notes)
    bound = bind(found.exact(), SCHEMA, rules_of(column))
    return [int(row) for row in np.flatnonzero(matching(bound, BATCH))]


def test_a_column_has_the_meaning_of_its_session(spark: Any) -> None:
    from pyspark.sql import functions as f

    values = ", ".join(
        f"({k}, TIMESTAMP '{text}+00:00', TIMESTAMP_NTZ '{text}')" for k, text in enumerate(EDGES)
    )
    setting = "spark.sql.session.timeZone"
    before = spark.conf.get(setting)
    try:
        for zone in (*NAMES, "+05:30"):
            spark.conf.set(setting, zone)
            named = ", ".join(f"({text}) AS c{place}" for place, text in enumerate(TEXTS))
            rows = spark.sql(f"SELECT k, {named} FROM VALUES {values} AS t (k, tz, ts)").collect()
            for place, text in enumerate(TEXTS):
                wanted = sorted(row["k"] for row in rows if row[f"c{place}"])
                assert kept(f.expr(text)) == wanted, (zone, text)
    finally:
        spark.conf.set(setting, before)


def test_a_local_time_that_occurs_twice_is_refused(spark: Any) -> None:
    """Spark's optimiser compares instants: it finds one of the two hours."""
    from pyspark.sql import functions as f

    setting = "spark.sql.session.timeZone"
    before = spark.conf.get(setting)
    rows = spark.createDataFrame(
        pa.Table.from_batches([BATCH]), "k bigint, tz timestamp, ts timestamp_ntz"
    ).localCheckpoint()
    session = Session("America/New_York")
    try:
        spark.conf.set(setting, session.time_zone)
        for hour, times in (("01:30", 2), ("03:30", 1)):
            moment = f"TIMESTAMP_NTZ '2024-11-03 {hour}:00'"
            local = "CAST(tz AS TIMESTAMP_NTZ)"
            for text in (f"{local} > {moment}", f"{moment} = {local}", f"{local} IN ({moment})"):
                found = from_spark_column(f.expr(text), SCHEMA)
                read = translate(text, "spark", target="rowsieve", schema=SCHEMA, session=session)
                assert (found.exactness is Exactness.EXACT) is (times == 1)
                assert (read.exactness is Exactness.EXACT) is (times == 1)
        # What the refusal is for; without it, ours has both.
        twice = rows.where("CAST(tz AS TIMESTAMP_NTZ) = TIMESTAMP_NTZ '2024-11-03 01:30:00'")
        assert twice.count() == 1
    finally:
        spark.conf.set(setting, before)


def test_a_zone_that_engines_read_differently_is_refused(spark: Any) -> None:
    from pyspark.sql import functions as f

    column = f.expr("from_utc_timestamp(tz, 'EST') > tz AND hour(ts) = 1")
    assert "EST" in from_spark_column(column, SCHEMA).notes[0]
