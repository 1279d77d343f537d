"""Functions in Spark's text give, row by row, what Spark gives, in ANSI mode and without it."""

from __future__ import annotations

import datetime
import random
import zoneinfo
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.session import Session
from rowsieve.bridges.where import to_operand
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.evaluate import compute
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from tests.bridges.sql.test_engine_functions import alike

pytestmark = pytest.mark.spark

_MOMENTS = [
    *(datetime.datetime(2024, 2, 29, 23, 59, 59, 999_999), datetime.datetime(1969, 12, 31, 1, 2)),
    *(datetime.datetime(5, 1, 1), datetime.datetime(9000, 12, 31), None),
    datetime.datetime(1934, 1, 12, 22, 30, 50, 1),
]
_LISTS = pa.list_(pa.int64())
ROWS = pa.table(
    {
        "s": pa.array(["ab12", "a.b\n", "", "xxab", "É\r\nß-7", None]),
        "i": pa.array([0, 1, -1, 400, None, 3], pa.int32()),
        "f": pa.array([0.5, -2.5, 0.49999997, float("nan"), None, 8388609.0], pa.float32()),
        "ts": pa.array(_MOMENTS, pa.timestamp("us")),
        "tz": pa.array(_MOMENTS, pa.timestamp("us", "UTC")),
        "day": pa.array([at and at.date() for at in _MOMENTS], pa.date32()),
        "l": pa.array([[3, 1, 3], [None, 2], [], [2], None, [1, None]], _LISTS),
        "l2": pa.array([[3], [None], [1], [], [1], [2]], _LISTS),
        "ls": pa.array(
            [["a", None, "b"], [None], [], ["é"], None, ["", "x"]], pa.list_(pa.string())
        ),
    }
)
SCHEMA, _ = schema_of(ROWS.schema)
TEXTS = [
    *("regexp_extract(s, '([a-z]+)([0-9]+)')", "regexp_extract(s, '([a-z])(1|.)', 2)"),
    *("regexp_replace(s, '[^a-z]', '<$0>')", "regexp_replace(s, '(a)(b)', '$2\\\\$$1')"),
    *("regexp_count(s, '[ab]')", "regexp_instr(s, 'b')", "regexp_substr(s, '[0-9]+')"),
    *("round(f)", "round(f, 0)", "round(double(f), 0)"),
    *("day + 3", "day - i", "add_months(day, 1)", "add_months(ts, 13)", "date(ts)"),
    *("trunc(day, 'MM')", "trunc(ts, 'year')", "trunc(day, 'WEEK')"),
    *("date_part('month', ts)", "date_part('dow', day)", "isnull(i)", "isnotnull(s)"),
    *("date_format(ts, 'yyyy-MM-dd')", "date_format(tz, 'yyyyMMdd HH:mm:ss')"),
    *("date_format(day, 'yyyy/DDD HH')", "unix_timestamp(ts)", "unix_seconds(tz)"),
    *("overlay(s PLACING 'xy' FROM 2 FOR 1)", "pi()", "sha1(s)", "sha2(s, 512)"),
    *("substring_index(s, 'b', 1)", "substring_index(s, 'x', -1)"),
    *("array_position(l, 3)", "array_position(l, i)", "array_max(l)", "array_min(ls)"),
    *("arrays_overlap(l, l2)", "array_join(ls, '-')", "array_size(l)", "size(l)"),
]


@pytest.fixture(params=[True, False], ids=["ansi", "legacy"])
def session(spark: Any, request: pytest.FixtureRequest) -> Iterator[tuple[Any, Semantics]]:
    kept = {key: spark.conf.get(key) for key in ("spark.sql.ansi.enabled",)}
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.ansi.enabled", str(request.param).lower())
    yield spark, Semantics.of_spark(ansi=request.param, time_zone=zone)
    for key, value in kept.items():
        spark.conf.set(key, value)


def test_a_function_returns_the_values_of_spark(session: tuple[Any, Semantics]) -> None:
    spark, semantics = session
    frame = spark.createDataFrame(ROWS)
    batch = ROWS.combine_chunks().to_batches()[0]
    for text in TEXTS:
        operand = to_operand(text, "spark", SCHEMA, semantics)
        values, failed = compute(bind_operand(operand, SCHEMA, semantics), batch)
        assert not failed.any(), text
        found = [row[0] for row in frame.selectExpr(text).collect()]
        wanted = values.to_pylist()
        assert all(map(alike, found, wanted)), (text, found, wanted)


NAMES = (
    *("Q", "w", "M", "D", "h", "S", "ms", "us", "y", "ns", "years", "decade", "century", ""),
    *("YYYY", "yy", "Year", "QUARTER", "mon", "MM", "month", "week", "DD", "day", "hour"),
    *("minute", "second", "millisecond", "microsecond"),
)


@pytest.mark.parametrize("call", ["trunc(day, '{}')", "date_trunc('{}', ts)"])
def test_a_unit_is_read_unless_spark_does_not_know_it(spark: Any, call: str) -> None:
    """Of another unit Spark's result is NULL; the grammar knows more abbreviations."""
    frame = spark.createDataFrame(ROWS.slice(3, 1))
    texts = [call.format(name) for name in NAMES]
    for text, found in zip(texts, frame.selectExpr(*texts).collect()[0], strict=True):
        if found is not None:
            to_operand(text, "spark", SCHEMA)
        else:
            with pytest.raises(InvalidPredicate, match="trunc takes one of"):
                to_operand(text, "spark", SCHEMA)


DAYS = ("2011-12-29", "2011-12-30", "2024-03-10", "2024-04-06", "2024-10-05", "2024-11-03")
ZONES = ("America/New_York", "Australia/Lord_Howe", "Pacific/Apia")
MORE_ZONES = ("UTC", "America/Sao_Paulo", "Asia/Kathmandu")
COUNTED = (
    *("unix_timestamp(ts)", "to_unix_timestamp(ts)", "unix_timestamp(ts, 'HH:mm')"),
    *("unix_timestamp(tz)", "unix_timestamp(day)", "unix_seconds(ts)", "unix_micros(ts)"),
    *(
        f"CASE WHEN {later} - {earlier} < INTERVAL '5' HOUR THEN 1 ELSE 0 END"
        for later, earlier in (
            *(("ts", "morning"), ("tz", "morning_tz"), ("ts", "morning_tz"), ("tz", "morning")),
            *(("ts", "day"), ("tz", "day"), ("tz", "TIMESTAMP '2024-03-10 00:00:00'")),
        )
    ),
)


@pytest.mark.parametrize("zone", ["Pacific/Apia", "America/New_York"])
def test_seconds_since_1970_use_the_zone_of_the_session_where_spark_does(
    spark: Any, zone: str
) -> None:
    """Of times without a zone it does not; of two instants it subtracts the local times."""
    ddl = "ts timestamp_ntz, tz timestamp, day date, morning timestamp_ntz, morning_tz timestamp"
    local = [*_MOMENTS, *(datetime.datetime(2024, 3, 10, hour) for hour in (4, 5, 9))]
    own = zoneinfo.ZoneInfo(zone)
    instants = [at and at.replace(tzinfo=own).astimezone(datetime.UTC) for at in local]
    mornings = [at and at.replace(hour=0, minute=0, second=0, microsecond=0) for at in local]
    there = [at and at.replace(tzinfo=own).astimezone(datetime.UTC) for at in mornings]
    naive, aware = pa.timestamp("us"), pa.timestamp("us", "UTC")
    rows = pa.table(
        {
            "ts": pa.array(local, naive),
            "tz": pa.array(instants, aware),
            "day": pa.array([at and at.date() for at in local], pa.date32()),
            "morning": pa.array(mornings, naive),
            "morning_tz": pa.array(there, aware),
        }
    )
    schema = schema_of(rows.schema)[0]
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = spark.createDataFrame(rows, ddl)
        found = [list(cells) for cells in zip(*frame.selectExpr(*COUNTED).collect(), strict=True)]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    semantics = Semantics.of_spark(ansi=True, time_zone=zone)
    for text, wanted in zip(COUNTED, found, strict=True):
        operand = bind_operand(to_operand(text, "spark", schema, semantics), schema, semantics)
        values, failed = compute(operand, rows.combine_chunks().to_batches()[0])
        assert not failed.any()
        assert (text, values.to_pylist()) == (text, wanted)


FORMAT = "date_format(tz, 'yyyy-MM-dd HH:mm')"
FORMS = (
    *("yyyy-MM-dd HH:mm:ss", "EEEE, dd MMMM yyyy", "DDD/E dd MMM yy hh:mm a"),
    *("yyyyMMddHHmmss", "d.M.y H:m:s.SSS", "EE EEE L LL LLL LLLL D h 'o' 'clock'"),
    *("yyyy-MM-dd[['T'HH:mm]:ss][.SSSSSS]", "'Q'Q q"),
)


@pytest.mark.parametrize("zone", ZONES)
def test_formatted_instants_are_written_for_a_session_of_the_same_zone(
    spark: Any, zone: str
) -> None:
    """In repeated and skipped hours, too."""
    starts = [datetime.datetime.fromisoformat(f"{day}T06:00:00Z") for day in DAYS]
    moments = [at + n * datetime.timedelta(minutes=17) for at in starts for n in range(100)]
    rows = pa.table({"tz": pa.array(moments, pa.timestamp("us", "UTC"))})
    schema = schema_of(rows.schema)[0]
    semantics = Semantics.of_spark(ansi=True, time_zone=zone)
    bound = bind_operand(to_operand(FORMAT, "spark", schema, semantics), schema, semantics)
    ours = compute(bound, rows.combine_chunks().to_batches()[0])[0].to_pylist()
    session = Session(zone, ansi=True)
    written = rs.translate(
        f"{FORMAT} = '{ours[5]}'", "spark", target="spark", schema=rows.schema,
        session=session, target_session=session, strict=True,
    ).expression  # fmt: skip
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        found = spark.createDataFrame(rows).selectExpr(FORMAT, str(written)).toArrow()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert found[0].to_pylist() == ours
    assert found[1].to_pylist() == [text == ours[5] for text in ours]
    other = rs.translate(
        f"{FORMAT} = ''", "spark", target="spark", schema=rows.schema, session=session,
        target_session=Session("Asia/Kathmandu", ansi=True),
    )  # fmt: skip
    assert other.expression is None


@pytest.mark.parametrize("zone", [*ZONES, *MORE_ZONES])
def test_formatted_times_are_those_of_spark_in_any_zone(spark: Any, zone: str) -> None:
    """Of instants, of local times and dates that clocks skip, and of text; names of months, too."""
    chance = random.Random(zone)
    starts = [datetime.datetime.fromisoformat(f"{day}T00:00:00") for day in (*DAYS, "2018-11-04")]
    times = [at + n * datetime.timedelta(minutes=23) for at in starts for n in range(63)]
    first, span = datetime.datetime(1900, 1, 1), 200 * 365 * 86_400
    times += [first + datetime.timedelta(chance.random() * span / 86_400) for _ in range(100)]
    rows = pa.table(
        {
            "tz": pa.array(times, pa.timestamp("us", "UTC")),
            "ts": pa.array(times, pa.timestamp("us")),
            "day": pa.array([at.date() for at in times], pa.date32()),
            "s": pa.array([str(at) for at in times]),
        }
    )
    schema, session = schema_of(rows.schema)[0], Session(zone, ansi=True)
    semantics = Semantics.of_spark(ansi=True, time_zone=zone)
    texts = [f'date_format({name}, "{form}")' for name in rows.column_names for form in FORMS]
    asked, wanted = [], []
    for text in texts:
        bound = bind_operand(to_operand(text, "spark", schema, semantics), schema, semantics)
        values, failed = compute(bound, rows.combine_chunks().to_batches()[0])
        assert not failed.any()
        ours = values.to_pylist()
        written = rs.translate(
            f"{text} = '{ours[7]}'", "spark", target="spark", schema=rows.schema,
            session=session, target_session=session, strict=True,
        ).expression  # fmt: skip
        asked += [text, str(written)]
        wanted += [ours, [each == ours[7] for each in ours]]
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = spark.createDataFrame(rows, "tz timestamp, ts timestamp_ntz, day date, s string")
        found = frame.selectExpr(*asked).toArrow()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    for text, column, expected in zip(asked, found, wanted, strict=True):
        assert column.to_pylist() == expected, text
