"""Columns are written for the session that runs them: its time zone and its ANSI mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.session import in_session
from rowsieve.bridges.translation import Exactness
from rowsieve.bridges.where import to_predicate
from rowsieve.errors import InvalidInput
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from tests.bridges.spark_columns.test_zones import BATCH as MOMENTS
from tests.bridges.spark_columns.test_zones import TEXTS
from tests.zones import NAMES

pytestmark = pytest.mark.spark
COUNT = MOMENTS.num_rows
BATCH = MOMENTS.append_column("n", pa.array([2**31 - 1 - row for row in range(COUNT)], pa.int32()))
SCHEMA = schema_of(BATCH.schema)[0]
_ZONE, _ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"
# Functions that name a zone of their own go by way of the session's, which may lose an hour there.
OF_SESSION = [text for text in TEXTS if "_utc_" not in text and "convert_" not in text]


@pytest.fixture
def session(spark: Any) -> Iterator[Any]:
    before = {name: spark.conf.get(name) for name in (_ZONE, _ANSI)}
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    """The rows as Spark's own."""
    rows = spark.createDataFrame(
        pa.Table.from_batches([BATCH]), "k bigint, tz timestamp, ts timestamp_ntz, n int"
    )
    return rows.coalesce(1).localCheckpoint()


def ours(text: str, meant: rs.Session) -> list[int]:
    semantics = in_session(Semantics.SPARK, meant)
    bound = bind(to_predicate(text, "spark", SCHEMA, semantics), SCHEMA, semantics)
    return [int(row) for row in np.flatnonzero(matching(bound, BATCH))]


def kept(frame: Any, column: Any) -> list[int]:
    return sorted(row.k for row in frame.where(column).select("k").collect())


def test_a_condition_of_a_zone_is_written_for_a_session_of_that_zone(
    session: Any, frame: Any
) -> None:
    for zone in (NAMES[0], "Australia/Lord_Howe", "+05:30"):
        session.conf.set(_ZONE, zone)
        meant = rs.Session(time_zone=zone)
        for text in OF_SESSION:
            made = rs.translate(
                text, "spark", target="spark_columns", schema=BATCH.schema, session=meant
            )
            assert made.exactness is Exactness.EXACT, (text, made.notes)
            assert (zone, text, kept(frame, made.expression)) == (zone, text, ours(text, meant))


def test_a_condition_of_another_zone_keeps_its_rows_or_goes_to_the_residual(
    session: Any, frame: Any
) -> None:
    exact = 0
    for zone, there in (("UTC", NAMES[0]), (NAMES[0], "UTC"), (NAMES[1], NAMES[0])):
        session.conf.set(_ZONE, there)
        meant = rs.Session(time_zone=zone)
        for text in TEXTS:
            made = rs.translate(
                text, "spark", target="spark_columns", schema=BATCH.schema, session=meant
            )
            if made.exactness is Exactness.EXACT:
                exact += 1
                assert (zone, text, kept(frame, made.expression)) == (zone, text, ours(text, meant))
            else:
                assert made.residual is not None
    assert exact >= 12


def test_whole_numbers_wrap_where_the_session_has_them_wrap(session: Any, frame: Any) -> None:
    wraps = rs.Session(ansi=False)
    session.conf.set(_ANSI, "false")
    made = rs.translate(
        "n + 1 < 0", "spark", target="spark_columns", schema=BATCH.schema, session=wraps
    )
    assert kept(frame, made.exact()) == ours("n + 1 < 0", wraps) == [0]
    failing = rs.translate("n + 1 < 0", "spark", target="spark_columns", schema=BATCH.schema)
    assert failing.exactness is Exactness.UNSUPPORTED
    session.conf.set(_ANSI, "true")
    made = rs.translate(
        "n + 1 < 0", "spark", target="spark_columns", schema=BATCH.schema, session=wraps
    )
    assert made.exactness is Exactness.UNSUPPORTED


@pytest.mark.parametrize("policy", ["LEGACY", "EXCEPTION"])
def test_no_column_is_written_that_reads_by_a_format_under_another_policy(
    session: Any, policy: str
) -> None:
    columns = pa.schema([("s", pa.string()), ("d", pa.date32())])
    texts = ("to_date(s, 'dd/MM/yyyy') = d", "to_date(s) = d")
    session.conf.set("spark.sql.legacy.timeParserPolicy", policy)
    try:
        formatted, plain = (
            rs.translate(text, "spark", target="spark_columns", schema=columns) for text in texts
        )
    finally:
        session.conf.unset("spark.sql.legacy.timeParserPolicy")
    assert formatted.expression is None
    assert f"timeParserPolicy is {policy}" in str(formatted.notes)
    assert plain.exactness is Exactness.EXACT


def test_the_session_that_runs_a_column_can_be_named(session: Any, frame: Any) -> None:
    meant = there = rs.Session(time_zone="America/Havana")
    made = rs.translate(
        "hour(tz) = 1",
        "spark",
        target="spark_columns",
        schema=BATCH.schema,
        session=meant,
        target_session=there,
    )
    session.conf.set(_ZONE, "America/Havana")
    assert kept(frame, made.exact()) == ours("hour(tz) = 1", meant)


def test_a_classic_column_has_the_settings_of_its_own_session(session: Any) -> None:
    from pyspark.sql import functions as f

    with pytest.raises(InvalidInput, match="its own running session"):
        rs.translate(
            f.expr("hour(tz) = 1"),
            target="postgres",
            schema=BATCH.schema,
            session=rs.Session("Asia/Kathmandu"),
        )
