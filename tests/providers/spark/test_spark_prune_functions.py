"""Pruning by conditions with functions: Spark's own rows, from fewer parts, with its own errors."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.providers.spark import explain_prune, prune
from tests.profiles import IS_DEEP, examples

pytestmark = pytest.mark.spark

START = datetime(2026, 1, 1, tzinfo=UTC)
PARTS, PER_PART = 4, 50


def rows(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    moments = [START + timedelta(hours=6 * i) for i in ids]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "i": pa.array([None if i % 5 == 0 else i * 2 for i in ids], pa.int32()),
            "s": pa.array([f"p{i // 50}-{i % 3}" for i in ids]),
            "f": pa.array([float(i) if i % 9 else float("nan") for i in ids]),
            "d": pa.array([date(2026, 1, 1) + timedelta(days=3 * i) for i in ids]),
            "at": pa.array(moments, pa.timestamp("us", "UTC")),
            "n": pa.array([each.replace(tzinfo=None) for each in moments], pa.timestamp("us")),
            "m": pa.array([Decimal(i) / 4 for i in ids], pa.decimal128(10, 2)),
            "st": pa.array(
                [None if i % 11 == 0 else {"x": i, "Y": str(i)} for i in ids],
                pa.struct([("x", pa.int64()), ("Y", pa.string())]),
            ),
        }
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> rs.Table:
    uri = str(tmp_path_factory.mktemp("functions") / "t")
    made = rs.create_table(uri, rows(0, PER_PART), key=["id"])
    for start in range(PER_PART, PARTS * PER_PART, PER_PART):
        made.upsert(rows(start, start + PER_PART))
    return made


@pytest.fixture(
    params=[("UTC", "true"), ("America/Sao_Paulo", "false")], ids=["ansi", "legacy"], scope="module"
)
def session(request: pytest.FixtureRequest, spark: Any, table: rs.Table) -> Any:
    """A session of its own with a view `t`."""
    found = spark.newSession()
    found.conf.set("spark.sql.session.timeZone", request.param[0])
    found.conf.set("spark.sql.ansi.enabled", request.param[1])
    table.to_spark(found).createOrReplaceTempView("t")
    return found


# Conditions that leave out a part, in both sessions.
READ = (
    "year(d) = 2027",
    "date_trunc('DAY', at) = timestamp'2026-01-03'",
    "date_trunc('month', n) = timestamp_ntz'2026-01-01'",
    "trunc(d, 'MM') = date'2026-02-01'",
    "CASE WHEN id > 10 THEN id ELSE 1 END = 150",
    "IF(id > 1, id, 2) < 40",
    "coalesce(i, 5) = 302",
    "st.x > 150",
    "st.y = '3'",
    "id + 1 > 180",
    "abs(id) = 3",
    "CAST(at AS DATE) = date'2026-01-03'",
    "at BETWEEN '2026-01-03' AND '2026-01-04'",
    "CAST(id AS STRING) = '5'",
    "i < 10",
    "m * 2 < 5",
    "substring(s, 1, 2) = 'p1'",
    "concat(s, 'x') = 'p1-1x'",
    "s RLIKE '^p1'",
    r"s LIKE 'p\\_1%' OR s LIKE 'p1%'",
    "date_add(d, 3) < date'2026-01-10'",
    "id IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)",
    "s IN ('p1-1', '2', '3', '4', '5', '6', '7', '8', '9', '10', 'ä', '\\n')",
    "m IN (1, 2.25, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1234567.75)",
    "year(d) IN (2027, 2028)",
    "datediff(d, date'2026-01-01') < 3",
    "-id > -3",
    "last_day(d) < date'2026-02-05'",
    "nullif(id, 3) < 2",
    "greatest(id, 3) < 5",
    "id - 9223372036854775807 < -9223372036854775800",
    "NOT (st.x IS NULL OR year(d) > 2026)",
    "d + INTERVAL 1 MONTH > date'2027-06-01'",
    "at + INTERVAL '1 12:00:00.5' DAY TO SECOND < timestamp'2026-01-04'",
    "n - INTERVAL '25' HOUR < timestamp_ntz'2026-01-03'",
    "at - INTERVAL 2 MONTH > timestamp'2026-01-05'",
    "add_months(d, -1) < date'2025-12-20'",
)
# Conditions that are not read, or may fail.
NOT_READ = (
    "lower(s) = 'p1-1'",
    "s ILIKE 'P1%'",
    "d + MAKE_INTERVAL(0, i) > date'2027-06-01'",
    "id IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, NULL)",
    "f IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)",
    "date_format(d, 'y') = '2027'",
    "trunc(d, 'Q') <=> nullif(d, date'2026-05-01')",  # Spark knows no such unit: NULL
    "st IS NOT NULL",
    "i DIV 2 > 3",
    "(id < 7 AND 1 / (id - 151) > -5) OR id < 3",
)


def answers(frame: Any) -> list[tuple[int, int]]:
    found = frame.toArrow()
    return sorted(zip(found["c"].to_pylist(), found["id"].to_pylist(), strict=True))


def explained(frame: Any) -> Any:
    """The report of a frame with one read."""
    (found,) = explain_prune(frame).reads
    return found


def together(conditions: tuple[str, ...]) -> str:
    return " UNION ALL ".join(
        f"SELECT {c} AS c, id FROM t WHERE {text}" for c, text in enumerate(conditions)
    )


def test_functions_leave_out_parts(session: Any) -> None:
    is_ansi = session.conf.get("spark.sql.ansi.enabled") == "true"
    conditions = READ if IS_DEEP else READ[is_ansi::2]
    plain = session.sql(together(conditions))
    reads = explain_prune(plain).reads
    kept = [text for text, each in zip(conditions, reads, strict=True) if each.parts_read == PARTS]
    assert not kept
    assert answers(prune(plain)) == answers(plain)


def test_other_functions_leave_out_nothing(session: Any) -> None:
    report = explain_prune(session.sql(together(NOT_READ)))
    for text, found in zip(NOT_READ, report.reads, strict=True):
        assert found.parts_read == PARTS, text
        assert found.uses[0].reason, text


@pytest.mark.parametrize(
    "condition",
    [
        "id + 9223372036854775700 > 3 AND id < 7",
        "CAST(id + 2147483600 AS INT) > 3 AND id < 7",
        "coalesce(i, 1 / (id - 151)) > -9 AND id < 7",
        "(i IS NULL OR CAST(id + 2147483600 AS INT) > 3) AND id < 7",
    ],
)
def test_a_condition_after_one_that_may_fail_is_not_used(
    spark: Any, table: rs.Table, condition: str
) -> None:
    frame = table.to_spark(spark).filter(condition)
    assert prune(frame) is frame  # Spark may evaluate them in this order


def test_other_rules_than_the_sessions_are_not_read(spark: Any, table: rs.Table) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    session.conf.set("spark.sql.ansi.enabled", "false")
    zoned = table.to_spark(session).filter("date_trunc('day', at) < '2026-01-03'")
    cast = table.to_spark(session).filter("id + 1 < 20")
    expected = sorted(row.id for row in zoned.collect())
    assert explained(zoned).parts_read < PARTS
    assert explained(cast).parts_read == 1
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.ansi.enabled", "true")
    assert "Asia/Tokyo" in explained(zoned).uses[0].reason
    assert "LEGACY" in explained(cast).uses[0].reason
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    session.conf.set("spark.sql.ansi.enabled", "false")
    pruned = prune(zoned)
    session.conf.set("spark.sql.session.timeZone", "UTC")
    assert sorted(row.id for row in pruned.collect()) == expected  # its plan has the zone
    assert sorted(row.id for row in prune(pruned).collect()) == expected


_NUMBERS = st.integers(-10, 230)
_NUMERIC = st.recursive(
    st.sampled_from(["id", "i", "st.x"]),
    lambda inner: st.one_of(
        st.builds("({} + {})".format, inner, _NUMBERS),
        st.builds("({} - {})".format, _NUMBERS, inner),
        st.builds("abs({})".format, inner),
        st.builds("(- {})".format, inner),
        st.builds("coalesce({}, {})".format, inner, inner),
        st.builds("greatest({}, {})".format, inner, _NUMBERS),
        st.builds("IF({} > {}, {}, NULL)".format, inner, _NUMBERS, inner),
        st.builds("CASE WHEN {} IS NULL THEN {} ELSE {} END".format, inner, _NUMBERS, inner),
        st.builds("datediff(d, date_add(date'2026-01-01', CAST({} AS INT)))".format, _NUMBERS),
    ),
    max_leaves=3,
)
_OPERATORS = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"])
_LEAVES = st.one_of(
    st.builds("{} {} {}".format, _NUMERIC, _OPERATORS, _NUMBERS),
    st.builds("year(d) {} {}".format, _OPERATORS, st.integers(2025, 2028)),
    st.builds("month(d) {} {}".format, _OPERATORS, st.integers(1, 12)),
    st.builds("hour(at) {} {}".format, _OPERATORS, st.integers(0, 23)),
    st.builds(
        "date_trunc('{}', {}) {} '2026-0{}-0{} 00:00:00'".format,
        st.sampled_from(["day", "week", "month", "hour"]),
        st.sampled_from(["at", "n"]),
        _OPERATORS,
        st.integers(1, 3),
        st.integers(1, 9),
    ),
    st.builds("CAST(at AS DATE) {} '2026-01-{:02d}'".format, _OPERATORS, st.integers(1, 31)),
    st.builds("CAST(id AS STRING) {} '{}'".format, _OPERATORS, _NUMBERS),
    st.builds("substring(s, {}, 2) {} 'p{}'".format, st.integers(-3, 3), _OPERATORS, _NUMBERS),
    st.builds("concat(s, st.Y) {} 'p{}'".format, _OPERATORS, _NUMBERS),
    st.builds(
        "{} + INTERVAL '{}' {} {} '2026-01-{:02d} 05:00:00'".format,
        st.sampled_from(["at", "n"]),
        st.integers(-50, 50),
        st.sampled_from(["HOUR", "DAY", "MONTH", "SECOND"]),
        _OPERATORS,
        st.integers(1, 31),
    ),
    st.builds("f {} {}D".format, _OPERATORS, _NUMBERS),
    st.builds("m + 1 {} {}.25".format, _OPERATORS, _NUMBERS),
)
_CONDITIONS = st.recursive(
    _LEAVES,
    lambda terms: st.one_of(
        st.builds("({} AND {})".format, terms, terms),
        st.builds("({} OR {})".format, terms, terms),
        st.builds("(NOT {})".format, terms),
    ),
    max_leaves=3,
)


@examples(9)
@given(st.lists(_CONDITIONS, min_size=6, max_size=6))
def test_random_conditions_have_sparks_rows(session: Any, conditions: list[str]) -> None:
    plain = session.sql(together(tuple(conditions)))
    assert answers(prune(plain)) == answers(plain), conditions
