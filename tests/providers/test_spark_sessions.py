"""Spark's text means in our reads what it means in Spark, whatever the session's settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import (
    EvaluationError,
    InvalidPredicate,
    UnsupportedOperation,
)
from rowsieve.providers.spark.frames import own_error
from rowsieve.providers.spark.options import ReadOptions
from rowsieve.providers.spark.source import plan_read
from rowsieve.scan import read_split
from tests.profiles import IS_DEEP
from tests.providers.spark_texts import (
    DDL,
    ROWS_PER_PART,
    SCHEMA,
    Triple,
    table_of,
    triples,
)

pytestmark = pytest.mark.spark

COUNT = 2_000 if IS_DEEP else 110
THROUGH_SPARK = 8  # triples, of these, that go through frames of both kinds
SEED = 11
_SETTINGS = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled")


@pytest.fixture
def session(spark: Any) -> Iterator[Any]:
    """The shared session; its settings come back as they were."""
    before = {name: spark.conf.get(name) for name in _SETTINGS}
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


def configure(session: Any, zone: str, *, ansi: bool) -> None:
    session.conf.set(_SETTINGS[0], zone)
    session.conf.set(_SETTINGS[1], str(ansi).lower())


def load(session: Any, table: rs.Table, **options: str) -> Any:
    return session.read.format("rowsieve").options(**options).load(table.uri)


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return table_of(1)


@pytest.fixture(scope="module")
def table(rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> rs.Table:
    """The rows in small parts with narrow statistics."""
    made = rs.create_table(str(tmp_path_factory.mktemp("sessions") / "t"), SCHEMA, key=["k"])
    for start in range(0, len(rows), ROWS_PER_PART):
        part = rows[start : start + ROWS_PER_PART]
        made.upsert(pa.Table.from_pylist(part, schema=SCHEMA))
    return made


@pytest.fixture(scope="module")
def truth(spark: Any, rows: list[dict[str, Any]]) -> Any:
    """The same rows as Spark's own."""
    frame = spark.createDataFrame(pa.Table.from_pylist(rows, schema=SCHEMA), DDL)
    return frame.coalesce(1).localCheckpoint()


def by_spark(frame: Any) -> list[int] | str:
    """The keys, or what it fails with."""
    from pyspark.errors import PySparkException

    try:
        return sorted(row.k for row in frame().select("k").collect())
    except PySparkException as error:
        own = own_error(str(error))
        return "fails" if own is None or isinstance(own, EvaluationError) else "refused"


def by_us(table: rs.Table, triple: Triple) -> list[int] | str:
    """The keys that the splits of `to_spark` give, "fails", or "refused"."""
    options = {"where": triple.text, "time_zone": triple.zone, "ansi": str(triple.ansi).lower()}
    try:
        read = ReadOptions.parse({"path": table.uri, **options})
        plan = plan_read(read, table.snapshot_for_engines(), table.uri, now_us=0)
        found = [read_split(split).read_all().column("k") for split in plan.splits_to_bytes()]
        return sorted(key for column in found for key in column.to_pylist())
    except (InvalidPredicate, UnsupportedOperation):
        return "refused"
    except EvaluationError:
        return "fails"


def test_text_selects_what_spark_selects_in_any_session(
    session: Any, table: rs.Table, truth: Any
) -> None:
    wrong: list[Triple] = []
    apart: list[Triple] = []
    refused = 0
    for triple in sorted(triples(SEED, COUNT), key=lambda each: (each.zone, each.ansi)):
        configure(session, triple.zone, ansi=triple.ansi)
        ours = by_us(table, triple)
        refused += ours == "refused"
        expected = [] if ours == "refused" else by_spark(lambda each=triple: truth.where(each.text))
        if ours not in ("refused", expected):
            (apart if "fails" in (ours, expected) else wrong).append(triple)
    assert not wrong
    assert len(apart) <= COUNT // 25, apart  # a row that another condition excludes, invariant 27
    assert refused <= COUNT // 6


def test_frames_select_what_spark_selects_in_any_session(
    session: Any, table: rs.Table, truth: Any
) -> None:
    chosen = [each for each in triples(SEED + 1, 60) if by_us(table, each) not in ("refused", [])]
    for triple in sorted(chosen[:THROUGH_SPARK], key=lambda each: (each.zone, each.ansi)):
        configure(session, triple.zone, ansi=triple.ansi)
        expected = by_spark(lambda each=triple: truth.where(each.text))
        passed = by_spark(lambda each=triple: table.to_spark(session, where=each.text))
        if "fails" in (expected, passed):
            continue
        assert (triple, passed) == (triple, expected)
        loaded = by_spark(lambda each=triple: load(session, table, where=each.text))
        assert (triple, loaded) == (triple, expected)
