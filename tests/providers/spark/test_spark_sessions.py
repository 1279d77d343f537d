"""Spark's text means in our reads what it means in Spark, whatever the session's settings."""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.where import to_predicate
from rowsieve.errors import (
    EvaluationError,
    InvalidInput,
    InvalidPredicate,
    UnknownColumn,
    UnsupportedOperation,
)
from rowsieve.planner.plan import ScanPlan
from rowsieve.predicate.semantics import OnFailure, Semantics
from rowsieve.providers.spark.job_errors import error_from_worker
from rowsieve.providers.spark.session_settings import plan_in_task
from rowsieve.providers.spark.source import plan_read
from rowsieve.providers.spark.source_options import ReadOptions
from rowsieve.scan import read_split
from rowsieve.types.encodings import schema_of
from tests.profiles import IS_DEEP
from tests.providers.spark.spark_failures import FAILS, Rule
from tests.providers.spark.spark_texts import (
    DDL,
    ROWS_PER_PART,
    SCHEMA,
    Triple,
    table_of,
    triples,
)

pytestmark = pytest.mark.spark

COUNT = 2_000 if IS_DEEP else 24
THROUGH_SPARK = 8 if IS_DEEP else 4  # triples, of these, that go through frames of both kinds
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
def in_driver(spark: Any, rows: list[dict[str, Any]]) -> Any:
    """The same rows as Spark's own; the optimiser computes what is selected, without a job."""
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=SCHEMA), DDL)


@pytest.fixture(scope="module")
def truth(in_driver: Any) -> Any:
    """The same rows as Spark's own, computed by compiled code in tasks."""
    return in_driver.coalesce(1).localCheckpoint()


def by_spark(frame: Any) -> list[int] | str:
    """The keys, or what it fails with."""
    from pyspark.errors import PySparkException

    try:
        return sorted(row.k for row in frame().select("k").collect())
    except PySparkException as error:
        own = error_from_worker(str(error))
        return FAILS if own is None or isinstance(own, EvaluationError) else "refused"


def by_us(table: rs.Table, triple: Triple) -> list[int] | str:
    """The keys that the splits of `to_spark` give, "fails", or "refused"."""
    options = {"where": triple.text, "time_zone": triple.zone, "ansi": str(triple.ansi).lower()}
    try:
        read = ReadOptions.parse({"path": table.uri, **options})
        plan = plan_read(read, table.handle.pinned, table.uri, now_us=0)
        found = [read_split(split).read_all().column("k") for split in plan.splits_to_bytes()]
        return sorted(key for column in found for key in column.to_pylist())
    except (InvalidPredicate, UnsupportedOperation):
        return "refused"
    except EvaluationError:
        return FAILS


def test_text_selects_the_rows_of_spark_in_any_session(
    session: Any, table: rs.Table, truth: Any, in_driver: Any
) -> None:
    """Where one side alone fails, the rule of failures says what our side does."""
    wrong: list[tuple[Triple, Any, Any]] = []
    refused = 0
    for triple in sorted(triples(SEED, COUNT), key=lambda each: (each.zone, each.ansi)):
        configure(session, triple.zone, ansi=triple.ansi)
        ours = by_us(table, triple)
        refused += ours == "refused"
        expected = [] if ours == "refused" else by_spark(lambda each=triple: truth.where(each.text))
        if ours not in ("refused", expected) and FAILS in (ours, expected):
            expected = by_rule(in_driver, triple.text)
        if ours not in ("refused", expected):
            wrong.append((triple, ours, expected))
    assert not wrong
    assert refused <= COUNT // 6


ONE_SIDED = [
    ("2147483648 <=> (2Y + abs(n))", FAILS),  # Spark compares with no int that is so large
    ("CAST(f32 AS TINYINT) >= 128", FAILS),
    ("(tz > day OR 9223372036854775807 <= -(i16))", FAILS),
    ("nullif(128, -(n)) <=> -2147483648", FAILS),
    ("((nullif(i16, i16) - abs(i8)) BETWEEN n AND n OR second('2024-10-26') > 128)", FAILS),
    ("f NOT IN (f32 + 22.0D, coalesce(f, (f32 % w)), f32 / CAST(w AS DECIMAL(5,1)))", FAILS),
    ("(greatest(1, 3L) <=> CAST(d AS TINYINT) AND i8 IS NULL)", None),  # excludes the row later
    ("round(n) IN (i8, w, (1e0 - CAST(f32 AS DECIMAL(5,1))), n)", None),
]


@pytest.mark.parametrize(("text", "expected"), ONE_SIDED if IS_DEEP else ONE_SIDED[::3])
def test_a_failure_that_one_side_alone_meets_is_the_one_that_the_rule_names(
    session: Any, table: rs.Table, truth: Any, in_driver: Any, text: str, expected: str | None
) -> None:
    triple = Triple("UTC", ansi=True, text=text)
    configure(session, "UTC", ansi=True)
    ours = by_us(table, triple)
    by_theirs = by_spark(lambda: truth.where(text))
    assert (ours == FAILS) is (expected == FAILS) is (by_theirs != FAILS)
    assert ours == by_rule(in_driver, text)


def by_rule(in_driver: Any, text: str) -> list[int] | str:
    """What the rule of failures says of the condition, by the values that Spark computes.

    Finding the rows on which an operation fails takes a query for each half of them, and so on.
    """
    from pyspark.errors import PySparkException

    def ask(operation: str, keys: frozenset[int]) -> dict[int, Any] | None:
        try:
            asked = in_driver.where(in_driver.k.isin(*keys))
            rows = asked.selectExpr("k", f"({operation}) AS found")
            return {row.k: row.found for row in rows.collect()}
        except PySparkException as error:
            if error.getCondition() is None or str(error.getSqlState())[:2] != "22":
                raise
            return None

    return Rule(ask, frozenset(row.k for row in in_driver.select("k").collect())).rows(text)


ZONED = "hour(tz) = 22"


def expected_hours(rows: list[dict[str, Any]], zone: str) -> list[int]:
    there = zoneinfo.ZoneInfo(zone)
    moments = {row["k"]: row["tz"] for row in rows if row["tz"] is not None}
    return sorted(k for k, at in moments.items() if at.astimezone(there).hour == 22)


def plan_of(table: rs.Table, **options: str) -> ScanPlan:
    read = ReadOptions.parse({"path": table.uri, **options})
    return plan_read(read, table.handle.pinned, table.uri, now_us=0)


def test_a_frame_keeps_the_settings_that_its_session_had(
    session: Any, table: rs.Table, rows: list[dict[str, Any]]
) -> None:
    configure(session, "America/New_York", ansi=True)
    frame = table.to_spark(session, where=ZONED)
    configure(session, "UTC", ansi=True)
    assert by_spark(lambda: frame) == expected_hours(rows, "America/New_York")
    named = {"where": ZONED, "time_zone": "Asia/Kathmandu", "ansi": "true"}
    found = by_spark(lambda: load(session, table, **named))
    assert found == expected_hours(rows, "Asia/Kathmandu")


def test_a_column_has_the_meaning_of_the_session_that_reads(
    session: Any, table: rs.Table, truth: Any, rows: list[dict[str, Any]]
) -> None:
    from pyspark.sql import functions as f

    other = session.newSession()  # with settings of its own; `session` stays the active one
    for zone, ansi in (("America/New_York", False), ("Australia/Lord_Howe", True)):
        configure(session, "UTC", ansi=not ansi)
        configure(other, zone, ansi=ansi)
        zoned = table.to_spark(other, where=f.hour("tz") == 22)
        assert by_spark(lambda frame=zoned: frame) == expected_hours(rows, zone)
        found = by_spark(lambda: table.to_spark(other, where=f.col("n") + 1 < 0))
        below = [row["k"] for row in rows if row["n"] is not None and row["n"] + 1 < 0]
        wrapped = [row["k"] for row in rows if row["n"] == 2**31 - 1]
        assert found == (FAILS if ansi else sorted(below + wrapped))


def test_columns_wrap_and_give_null_where_ansi_mode_is_off(
    session: Any, table: rs.Table, truth: Any
) -> None:
    configure(session, "UTC", ansi=False)
    for text in WRAPPING:
        from pyspark.sql import functions as f

        expected = by_spark(lambda each=text: truth.where(each))
        found = by_spark(lambda each=text: table.to_spark(session, where=f.expr(each)))
        assert (text, found) == (text, expected)


WRAPPING = (
    "n + 1 < 0",
    "n * n < 0",
    "i8 - 1S > 0",
    "-n = n",
    "abs(n) < 0",
    "n div 0 IS NULL",
    "i64 div -1 < 0",
    "n % 0 IS NULL",
    "f / 0 IS NULL",
    "CAST(n AS TINYINT) = -1",
    "CAST(f AS INT) = 2147483647",
    "CAST(d AS TINYINT) < 0",
    "CAST(w AS BIGINT) < 0",
    "d * d * d > 0",
)


def test_a_connect_client_reads_by_the_settings_of_its_session(
    client: Any, table: rs.Table, rows: list[dict[str, Any]]
) -> None:
    before = {name: client.conf.get(name) for name in _SETTINGS}
    try:
        configure(client, "America/Sao_Paulo", ansi=False)
        expected = expected_hours(rows, "America/Sao_Paulo")
        assert by_spark(lambda: table.to_spark(client, where=ZONED)) == expected
        assert by_spark(lambda: load(client, table, where=ZONED)) == expected
        kept = table.to_spark(client, where="n + 1 < 0 AND n > 0").count()
        assert kept == sum(row["n"] == 2**31 - 1 for row in rows)
    finally:
        for name, value in before.items():
            client.conf.set(name, value)


FORMATTED = "date_format(tz, 'yyyy') = '2024'"


@pytest.mark.parametrize(
    ("setting", "value", "where"),
    [
        ("timestampType", "TIMESTAMP_NTZ", ZONED),
        ("timestampType", "TIMESTAMP_NTZ", "n = 1"),  # also where zone and mode do not matter
        ("parser.escapedStringLiterals", "true", "n = 1"),
        ("legacy.interval.enabled", "true", ZONED),  # 36 hours are no day and 12 hours then
        ("legacy.sizeOfNull", "false", ZONED),
        ("functionResolution.sessionOrder", "first", ZONED),
        ("icu.caseMappings.enabled", "false", ZONED),
        ("legacy.timeParserPolicy", "LEGACY", FORMATTED),
        ("legacy.timeParserPolicy", "EXCEPTION", FORMATTED),
    ],
)
def test_a_setting_that_changes_the_grammar_is_refused(
    session: Any, table: rs.Table, setting: str, value: str, where: str
) -> None:
    session.conf.set(f"spark.sql.{setting}", value)
    try:
        with pytest.raises(UnsupportedOperation, match=f"{setting} is {value}"):
            table.to_spark(session, where=where)
        assert by_spark(lambda: load(session, table, where=where)) == "refused"
        if where == FORMATTED:
            assert by_spark(lambda: load(session, table, where="n = 1")) != "refused"
            assert by_spark(lambda: table.to_spark(session, where="n = 1")) != "refused"
    finally:
        session.conf.unset(f"spark.sql.{setting}")


# Text whose meaning in Spark depends on a setting that is not compared, by this setting.
_NEVER_READ = {
    "function.concatBinaryAsString": ("concat(b, b) = 'aa'", "b || b = X'6161'"),
    "legacy.castComplexTypesToString.enabled": (
        "CAST(xs AS STRING) = '[1]'",
        "CAST(st AS STRING) = '{1}'",
        "CAST(m AS STRING) = '{a -> 1}'",
        "concat('a', CAST(xs AS STRING)) = 'a[1]'",
    ),
    "mapKeyDedupPolicy": (
        "map('a', 1, 'a', 2)['a'] = 2",
        "map_from_arrays(array('a', 'a'), array(1, 2))['a'] = 2",
        "str_to_map(s)['a'] = 'b'",
        "map_concat(m, m)['a'] = 1",
    ),
    "legacy.decimal.retainFractionDigitsOnTruncate": ("d * d > 1.5", "d / 3 = 1", "d + d > 1"),
    "legacy.followThreeValuedLogicInArrayExists": (
        "exists(xs, x -> x > 1)",
        "any_match(xs, x -> x > 1)",
    ),
    "legacy.consecutiveStringLiterals.enabled": ("s = 'a' 'b'", "s = 'a''b'", 's = "a" "b"'),
    "legacy.allowNegativeScaleOfDecimal": ("CAST(id AS DECIMAL(5, -2)) = 100",),
    "legacy.lpadRpadAlwaysReturnString": ("lpad(b, 3) = X'202061'",),
    "parser.quotedRegexColumnNames": ("`i.*` = 1",),
}


@pytest.mark.parametrize("setting", _NEVER_READ)
def test_text_that_depends_on_other_settings_is_never_read(setting: str) -> None:
    columns = {
        "id": pa.int64(),
        "b": pa.binary(),
        "s": pa.string(),
        "xs": pa.list_(pa.int64()),
        "st": pa.struct([("x", pa.int64())]),
        "m": pa.map_(pa.string(), pa.int64()),
        "d": pa.decimal128(38, 10),
    }
    schema = schema_of(pa.schema(columns))[0]
    for text in _NEVER_READ[setting]:
        for ansi in (True, False):
            with pytest.raises((InvalidPredicate, UnsupportedOperation, UnknownColumn)):
                to_predicate(text, "spark", schema, Semantics.of_spark(ansi=ansi, time_zone="UTC"))


def test_a_job_that_does_not_tell_its_settings_is_refused_where_they_matter(
    table: rs.Table,
) -> None:
    split = plan_of(table, where=ZONED)
    with pytest.raises(UnsupportedOperation, match="give the options time_zone and ansi"):
        plan_in_task(split, ZONED, lambda _: None, ansi=True)
    in_sql = {"spark.sql.execution.id": "1"}
    with pytest.raises(UnsupportedOperation, match="depends on the time zone"):
        plan_in_task(split, ZONED, in_sql.get, ansi=True)
    found = plan_in_task(split, "n + 1 < 0", in_sql.get, ansi=False)
    assert found.semantics.integer_overflow is OnFailure.WRAP


def test_conditions_that_no_setting_touches_prune_where_settings_are_unknown(
    table: rs.Table,
) -> None:
    narrow = plan_of(table, where=f"k < 4 AND {ZONED}")
    assert narrow.predicate == plan_of(table, where="k < 4").predicate
    assert sum(group.parts for group in narrow.pruned) > 10
    assert plan_of(table, where=ZONED).pruned == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"where": "n = 1", "time_zone": "UTC"}, "give all three"),
        ({"time_zone": "UTC", "ansi": "true"}, "give all three"),
        ({"where": "n = 1", "time_zone": "UTC", "ansi": "yes"}, "true or false"),
        ({"where": "n = 1", "predicate": "[]"}, "what to_spark passes on"),
        ({"predicate": "{}"}, "not what to_spark passes on"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(
    options: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        ReadOptions.parse({"path": "t", **options})


def test_frames_select_the_rows_of_spark_in_any_session(
    session: Any, table: rs.Table, truth: Any, in_driver: Any
) -> None:
    chosen = [each for each in triples(SEED + 1, 60) if by_us(table, each) not in ("refused", [])]
    for triple in sorted(chosen[:THROUGH_SPARK], key=lambda each: (each.zone, each.ansi)):
        configure(session, triple.zone, ansi=triple.ansi)
        expected = by_spark(lambda each=triple: truth.where(each.text))
        passed = by_spark(lambda each=triple: table.to_spark(session, where=each.text))
        if FAILS in (expected, passed):
            assert passed in (expected, by_rule(in_driver, triple.text))
            continue
        assert (triple, passed) == (triple, expected)
        loaded = by_spark(lambda each=triple: load(session, table, where=each.text))
        assert (triple, loaded) == (triple, expected)
