"""Spark's types for Spark's text, without a Spark: widths, modes, zones, and what is refused."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.where import to_predicate
from rowsieve.errors import EvaluationError, InvalidPredicate, UnsupportedOperation
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.semantics import Semantics

TOP = 2**31 - 1
SCHEMA = pa.schema(
    [
        ("n", pa.int32()),
        ("i64", pa.int64()),
        ("f32", pa.float32()),
        ("s", pa.string()),
        ("tz", pa.timestamp("us", "UTC")),
        ("l", pa.list_(pa.int32())),
    ]
)
LATE = datetime.datetime(2024, 10, 27, 2, 30, tzinfo=datetime.UTC)


def selected(text: str, *, ansi: bool = True, zone: str = "UTC", **row: Any) -> bool:
    """Whether the condition keeps the row, which lies in a part of its own."""
    table = rs.create_table(f"memory:///{uuid.uuid4().hex}", SCHEMA, key=[])
    table.append(pa.Table.from_pylist([row], schema=SCHEMA))
    snapshot = table.handle.pinned
    semantics = Semantics.of_spark(ansi=ansi, time_zone=zone)
    plan = plan_scan(
        snapshot,
        table.uri,
        predicate=to_predicate(text, "spark", snapshot.schema, semantics),
        semantics=semantics,
        now_us=0,
    )
    return table.scan(plan=plan).count() == 1


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("n + 1 < 0", {"n": TOP}),
        ("n * 2 > 0", {"n": -TOP}),
        ("-n = n", {"n": -TOP - 1}),
        ("abs(n) < 0", {"n": -TOP - 1}),
        ("1 / n IS NULL", {"n": 0}),
        ("n % 0 IS NULL", {"n": 1}),
        ("n div 0 IS NULL", {"n": 1}),
        ("CAST(n AS TINYINT) = -1", {"n": 255}),
        ("CAST(f32 AS INT) = 2147483647", {"f32": 3e38}),
        ("2147483647 + 1 = n", {"n": -TOP - 1}),
    ],
)
def test_overflow_fails_in_ansi_mode_and_wraps_or_is_null_without(
    text: str, row: dict[str, Any]
) -> None:
    assert selected(text, ansi=False, **row)
    with pytest.raises(EvaluationError):
        selected(text, ansi=True, **row)


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("n + 1L > 0", {"n": TOP}),
        ("i64 + 1 > 0", {"i64": TOP}),
        ("n + 2147483648 > 0", {"n": TOP}),
        ("n / 2 = 0.5", {"n": 1}),
        ("n div 2 = 3", {"n": 7}),
        ("n IN (1, 2.5)", {"n": 1}),
        ("n = '7'", {"n": 7}),
        ("TRY_CAST(n AS TINYINT) IS NULL", {"n": 255}),
        ("nullif('a', s) IS NULL", {"s": "a"}),
        ("nullif('a', s) = 'a'", {"s": None}),
        ("nullif('7', n) IS NULL", {"n": 7}),
        ("nullif(NULL, s) IS NULL", {"s": "a"}),
    ],
)
def test_types_are_those_of_spark(text: str, row: dict[str, Any]) -> None:
    assert selected(text, ansi=True, **row)
    assert selected(text, ansi=False, **row)


@pytest.mark.parametrize(
    "text",
    [
        "CAST(if(n = 1, '1', '2') AS INT) = 1",
        "CASE WHEN n = 1 THEN '1' ELSE '2' END < 2",
        "CAST(CASE n WHEN 1 THEN '2024-10-26' ELSE '1999-01-01' END AS DATE) > DATE '2024-01-01'",
        "if(n = 1, if(n = 2, NULL, '1'), n) = 1",
        "coalesce(if(n = 2, '2', NULL), '1') = n",
        "CAST(greatest('1', '0') AS INT) = n",
    ],
)
def test_a_choice_of_quoted_texts_is_text(text: str) -> None:
    assert selected(text, n=1)
    assert not selected(text, n=3)


@pytest.mark.parametrize(
    "text",
    [
        *("if(n > 1, NULL, NULL) IS NULL", "if(n = 1, if(n > 1, NULL, NULL), n) IS NULL"),
        *("coalesce(if(n > 1, NULL, NULL), n) = 1", "if(n > 9, coalesce(NULL, NULL), n) < 9"),
        *("n IN (if(n > 1, NULL, NULL), 1)", "greatest(nullif(NULL, 2), n) = 1"),
        "if(n > 1, greatest(NULL, NULL), n) < '9'",  # numbers are compared, not texts
    ],
)
def test_a_choice_of_nulls_has_any_type(text: str) -> None:
    assert selected(text, ansi=True, n=1)
    assert selected(text, ansi=False, n=1)


@pytest.mark.parametrize(
    "text",
    [
        "CAST(tz AS DATE) = DATE '2024-10-26'",
        "tz < TIMESTAMP '2024-10-27 00:00:00'",
        "tz < '2024-10-27'",
        "hour(tz) = 22",
        "extract(day FROM tz) = 26",
        "date_trunc('DAY', tz) = TIMESTAMP '2024-10-26 00:00:00'",
        "to_date(tz) = '2024-10-26'",
    ],
)
def test_times_are_those_of_the_session(text: str) -> None:
    assert selected(text, zone="America/New_York", tz=LATE)
    assert not selected(text, zone="UTC", tz=LATE)


def test_a_date_moved_by_a_multiple_of_days_is_a_timestamp() -> None:
    text = "CAST(CAST(tz AS DATE) + INTERVAL '1' DAY * 2 AS STRING) = '2024-10-28 00:00:00'"
    assert selected(text, zone="America/New_York", tz=LATE)
    plain = text.replace("'1' DAY * 2", "'2' DAY").replace(" 00:00:00", "")
    assert selected(plain, zone="America/New_York", tz=LATE)


@pytest.mark.parametrize(
    ("text", "value", "kept"),
    [
        ("s ILIKE 'i%'", "\u0130stanbul", True),  # its lower case is an i and a dot
        ("s ILIKE '\u0130%'", "i\u0307x", True),
        ("s ILIKE 's%'", "\u017fx", False),  # the long s is lower case already
        ("s ILIKE 'K'", "\u212a", True),  # the sign of the kelvin
        ("s ILIKE 'A!_b' ESCAPE '!'", "a_B", True),
        ("s NOT ILIKE 'a%'", "Abc", False),
    ],
)
def test_ilike_compares_in_lower_case_as_spark_does(text: str, value: str, kept: bool) -> None:
    assert selected(text, s=value) is kept


def test_a_float32_with_an_integer_is_a_double_in_ansi_mode_only() -> None:
    assert selected("f32 = n", ansi=False, f32=16777216.0, n=16777217)
    assert not selected("f32 = n", ansi=True, f32=16777216.0, n=16777217)


@pytest.mark.parametrize(
    "text",
    [
        "to_timestamp(s) = tz",
        "timestamp(s) = tz",
        "to_timestamp_ltz(s) = tz",
        "try_to_timestamp(s) = tz",
        "to_timestamp_ntz(s) = TIMESTAMP_NTZ '2024-10-27 04:30:00'",
        "try_to_date(s) = DATE '2024-10-27'",
    ],
)
def test_functions_that_read_text_are_casts(text: str) -> None:
    assert selected(text, zone="America/New_York", s="2024-10-27T04:30:00+2", tz=LATE)
    with pytest.raises(EvaluationError):
        selected("to_timestamp(s) = tz", s="x", tz=LATE)
    assert not selected("try_to_timestamp(s) = tz", s="x", tz=LATE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CAST(n AS DECIMAL(38,10)) * CAST(n AS DECIMAL(38,10)) > 1", "more than 38 digits"),
        ("greatest(n, s) = 1", "no common type of text"),
        ("s + tz > 1", "no type in spark"),
        ("CAST('2024-02-30' AS DATE) IS NULL", "is not a valid date in spark"),
        ("tz = '10:00'", "one of today"),
        ("CAST(s AS BINARY) = X'31'", "string to binary"),
    ],
)
def test_conditions_without_a_typing_rule_are_rejected(text: str, message: str) -> None:
    with pytest.raises((InvalidPredicate, UnsupportedOperation), match=message):
        selected(text, n=1, s="1", tz=LATE)


@pytest.mark.parametrize(
    ("text", "row", "in_ansi", "otherwise"),
    [
        ("s = n", {"s": " 7\t", "n": 7}, True, True),
        ("s > 5", {"s": "10"}, True, True),
        ("s > 5", {"s": "5.9"}, None, False),
        ("s = 1.5", {"s": "1.5d"}, True, True),
        ("n = '7.9'", {"n": 7}, None, True),
        ("s < TIMESTAMP '2024-10-27 00:00:00'", {"s": "2024-10-26T24"}, None, False),
        ("s = DATE '2024-01-05'", {"s": "2024-1-5 10:00"}, True, True),
        ("s IN (1, 2)", {"s": "02"}, True, False),
        ("s IN (1, 2)", {"s": "x"}, None, False),
        ("n IN (' 7', '8')", {"n": 7}, True, False),
        ("s + 1 > 3", {"s": "2.5"}, None, True),
        ("s BETWEEN 1 AND 3", {"s": "2"}, True, True),
        ("-s = 2", {"s": "-2"}, True, True),
        ("s IS TRUE", {"s": " Yes"}, True, True),
        ("coalesce(s, n) = 7", {"n": 7}, True, True),
        ("length(coalesce(s, n)) = 1", {"n": 7}, None, True),
        ("CAST(s AS INT) = 1", {"s": "1.9"}, None, True),
        ("TRY_CAST(s AS INT) IS NULL", {"s": "1.9"}, True, True),
        ("CAST(s AS DECIMAL(3,1)) = 1.3", {"s": "1.25"}, True, True),
    ],
)
def test_text_is_cast_as_the_mode_has_it(
    text: str, row: dict[str, Any], in_ansi: bool | None, otherwise: bool
) -> None:
    assert selected(text, ansi=False, **row) is otherwise
    if in_ansi is None:
        with pytest.raises((EvaluationError, InvalidPredicate)):
            selected(text, ansi=True, **row)
    else:
        assert selected(text, ansi=True, **row) is in_ansi


def test_decimals_with_an_exponent_have_no_text_without_ansi_mode() -> None:
    text = "CAST(CAST(n AS DECIMAL(20,7)) AS STRING) = '1.0000000'"
    assert selected(text, ansi=True, n=1)
    with pytest.raises(UnsupportedOperation, match="with an exponent"):
        selected(text, ansi=False, n=1)


def test_computed_columns_and_assignments_have_the_types_of_spark() -> None:
    table = rs.create_table(f"memory:///{uuid.uuid4().hex}", SCHEMA, key=[])
    table.append(pa.Table.from_pylist([{"n": 7}], schema=SCHEMA))
    found = table.scan(columns={"x": "n / 2", "y": "n div 2", "z": "n + 1"}, dialect="spark")
    assert found.to_arrow().to_pylist() == [{"x": 3.5, "y": 3, "z": 8}]
    assert found.schema.field("z").type == pa.int32()


@pytest.mark.parametrize(
    ("text", "in_ansi", "otherwise"),
    [
        ("size(l) = -1", False, True),
        ("cardinality(l) < 0", False, True),
        ("size(l) IS NULL", True, False),
        ("array_size(l) IS NULL", True, True),
        ("array_size(l) < 0", False, False),
    ],
)
def test_the_size_of_null_depends_on_the_mode(text: str, in_ansi: bool, otherwise: bool) -> None:
    assert selected(text, ansi=True, l=None) == in_ansi
    assert selected(text, ansi=False, l=None) == otherwise
    for ansi in (True, False):
        assert selected(text, ansi=ansi, l=[]) is False
        assert selected("size(l) = 2 AND array_size(l) = 2", ansi=ansi, l=[1, None])


def test_another_name_that_the_grammar_takes_for_size_is_refused() -> None:
    with pytest.raises(InvalidPredicate, match="spark has no function array_length"):
        selected("array_length(l) = 1", l=[1])


@pytest.mark.parametrize(
    "text", ["epoch_us(tz) > 0", "extract_year(tz) = 2024", "regex_count(s, 'a') = 1"]
)
def test_a_function_of_ours_that_spark_does_not_have_is_refused(text: str) -> None:
    with pytest.raises(InvalidPredicate, match="spark has no function"):
        selected(text, tz=LATE)


@pytest.mark.parametrize("ansi", [True, False])
@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("try_mod(n, ' ') IS NULL", {"n": 7}),
        ("try_mod(n, s) IS NULL", {"n": 7, "s": "x"}),
        ("try_mod(n, s) = 1", {"n": 7, "s": "3"}),
        ("try_mod('x', n) IS NULL", {"n": 7}),
        ("try_mod(n, 0) IS NULL", {"n": 7}),
        ("try_divide(n, 'a') IS NULL", {"n": 7}),
        ("try_divide(n, '2') = 3.5", {"n": 7}),
        ("try_divide(f32, '0.5') = 3", {"f32": 1.5}),
        ("try_divide(n, '0') IS NULL", {"n": 7}),
    ],
)
def test_tried_operators_are_null_for_text_of_no_number(
    text: str, row: dict[str, Any], ansi: bool
) -> None:
    assert selected(text, ansi=ansi, **row)
    assert not selected(f"NOT ({text})", ansi=ansi, **row)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("u & 1 = 1", 'CAST("u" AS BIGINT) & 1 = 1'),
        ("u | i64 = 3", 'CAST("u" AS BIGINT) | "i64" = 3'),
        ("CAST(u AS BIGINT) & CAST(i64 AS BIGINT) = 1", 'CAST("u" AS BIGINT) & "i64" = 1'),
    ],
)
def test_bits_of_unsigned_columns_are_those_of_the_longer_type_in_spark(
    text: str, written: str
) -> None:
    columns = pa.schema([("u", pa.uint32()), ("i64", pa.int64())])
    assert rs.translate(text, "spark", target="duckdb", schema=columns).exact() == written
