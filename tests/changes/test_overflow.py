"""No change stores an integer that wrapped around: in each way, an overflow is an error."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pyarrow as pa
import pytest
from datafusion import col, lit
from sqlglot.dialects.dialect import Dialect

import rowsieve as rs
from rowsieve.errors import EvaluationError, InvalidInput
from rowsieve.providers.datafusion import SessionContext
from rowsieve.providers.datafusion.changes.checked_arithmetic import _operations, _parsed
from tests.small_tables import fresh_uri

GREATEST, LEAST = 2**63 - 1, -(2**63)
Way = Callable[[rs.Table, str], object]
ONE = pa.table({"id": [1]})


def statement(text: str) -> Way:
    """A statement of our session, with `{v}` for the assigned value."""

    def run(table: rs.Table, value: str) -> None:
        session = SessionContext()
        session.register_table("t", table)
        session.register_record_batches("s", [ONE.to_batches()])
        session.sql(text.format(v=value)).collect()

    return run


def in_database(table: rs.Table, value: str) -> None:
    database = rs.Database(fresh_uri())
    database.create_table("t", table.to_arrow(), ["id"])
    with database.transaction() as tx:
        tx.sql(f"UPDATE t SET v = {value}")


WAYS: dict[str, Way] = {
    "update": lambda table, value: table.update({"v": value}),
    "where of DataFusion": lambda t, value: t.update({"v": value}, where=col("id") == lit(1)),
    "where of polars": lambda table, value: table.update({"v": value}, where=pl.col("id") == 1),
    "datafusion text": lambda t, value: t.update(
        {"v": value}, where="id = 1", dialect="datafusion"
    ),
    "spark without ANSI": lambda table, value: table.update(
        {"v": value}, dialect="spark", session=rs.Session(ansi=False)
    ),
    "UPDATE": statement("UPDATE t SET v = {v}"),
    "MERGE": statement("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = {v}"),
    "transaction": in_database,
    "merge": lambda table, value: (
        table.merge(ONE, on="id").when_matched_update({"v": value}).execute()
    ),
    "merge, insert": lambda table, value: (
        table.merge(pa.table({"id": [2], "v": table.to_arrow()["v"]}), on="id")
        .when_not_matched_insert({"id": "source.id", "v": value})
        .execute()
    ),
}
OVERFLOWS = [
    (pa.int64(), GREATEST, "v + 1"),
    (pa.int64(), GREATEST, "v * 2"),
    (pa.int64(), GREATEST, "-(v * -2) - 7"),
    (pa.int64(), LEAST, "-v"),
    (pa.int64(), LEAST, "v - 1"),
    (pa.int64(), GREATEST, "(v + 1) - 1"),
    (pa.int64(), GREATEST, "CASE WHEN v > 0 THEN v + v ELSE v END"),
    (pa.int32(), 2**31 - 1, "v + v"),
    (pa.uint64(), 2**64 - 1, "v + 1"),
    (pa.int8(), 127, "v + 1"),
    (pa.uint8(), 255, "v + 1"),
    (pa.int32(), 2**31 - 1, "v * 1.0 + 1"),
]


def holding(type_: pa.DataType, value: int) -> rs.Table:
    rows = pa.table({"id": [1], "v": pa.array([value], type_)})
    return rs.create_table(fresh_uri(), rows, key=["id"])


def values(table: rs.Table) -> list[int]:
    table.refresh()
    return list(table.to_arrow()["v"].to_pylist())


@pytest.mark.parametrize("way", WAYS)
def test_an_overflow_stores_nothing(way: str) -> None:
    for type_, value, text in OVERFLOWS:
        table = holding(type_, value)
        with pytest.raises(EvaluationError):
            WAYS[way](table, text.replace("v", "source.v") if "insert" in way else text)
        assert values(table) == [value], text


@pytest.mark.parametrize("number", ["128", "-129", "1e30", "-128.0 - 1", "99999999999999999999"])
def test_a_number_beyond_the_column_has_one_error_in_statements(number: str) -> None:
    table = holding(pa.int8(), 5)
    for text in (
        "UPDATE t SET v = {v}",
        "INSERT INTO t VALUES (2, {v})",
        "INSERT INTO t SELECT 2, {v}",
        "INSERT INTO t VALUES (1, {v}) ON CONFLICT (id) DO UPDATE SET v = excluded.v",
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = {v}",
    ):
        with pytest.raises(EvaluationError):
            statement(text)(table, number)
    assert values(table) == [5]


@pytest.mark.parametrize("way", sorted({*WAYS} - {"merge, insert", "transaction"}))
@pytest.mark.parametrize(
    ("value", "text", "expected"),
    [
        (GREATEST - 1, "v + 1", GREATEST),
        (LEAST + 1, "-(-v) - 1", LEAST),
        (GREATEST, "CASE WHEN v < 5 THEN v + 1 ELSE v END", GREATEST),
        (3, "v * -7 + v - -2", -16),
        (6, "CAST(v * 1.5 AS BIGINT)", 9),
        (5, "v % 3 - v", -3),
    ],
)
def test_what_fits_is_stored(way: str, value: int, text: str, expected: int) -> None:
    table = holding(pa.int64(), value)
    WAYS[way](table, text)
    assert values(table) == [expected]


def test_spark_without_ansi_stores_what_fits_and_gets_null_by_its_own_casts() -> None:
    without_ansi = WAYS["spark without ANSI"]
    for type_, text, expected in (
        (pa.uint64(), "v + 1", 6),
        (pa.int8(), "v * 3", 15),
        (pa.int64(), "CAST('a' AS INT) + v", None),
        (pa.float32(), "v / 2", 2.5),
    ):
        table = holding(type_, 5)
        without_ansi(table, text)
        assert values(table) == [expected]


def test_operators_of_other_types_and_errors_of_the_text_are_as_before() -> None:
    rows = pa.table(
        {"id": [1], "d": pa.array([1.5]), "day": pa.array([1], pa.date32()), "s": ["a"]}
    )
    table = rs.create_table(fresh_uri(), rows, key=["id"])
    change = statement(
        "UPDATE t SET d = d * 2 - 1e300 * 1e10, day = day + INTERVAL '1 day', s = s || '+-*{v}'"
    )
    change(table, "")
    table.refresh()
    assert table.to_arrow().select(["d", "s"]).to_pylist() == [{"d": float("-inf"), "s": "a+-*"}]
    for text, message in (
        ("nothing + 1", "nothing"),
        ("id +", "an expression"),
        ("s - [1]", "nothing was changed"),
    ):
        with pytest.raises(InvalidInput, match=message):
            statement("UPDATE t SET d = {v}")(table, text)


def test_the_days_between_two_dates_are_assigned_beside_numbers_that_may_overflow() -> None:
    days = {name: pa.array([day, None], pa.date32()) for name, day in (("a", 9), ("b", 4))}
    rows = pa.table({"id": [1, 2], **days, "v": [1, 2**62]})
    table = rs.create_table(fresh_uri(), rows, key=["id"])
    for value, expected in (
        ("a - b", [5, None]),
        ("(a - b) * 2 + 1", [11, None]),
        ("CASE WHEN a - b > 3 THEN v + 1 ELSE 0 END", [2, 0]),
    ):
        statement("UPDATE t SET v = {v}")(table, value)
        table.refresh()
        assert table.scan(order_by_key=True).to_arrow()["v"].to_pylist() == expected
        table.restore(0)
    with pytest.raises(EvaluationError, match="nothing was changed"):
        statement("UPDATE t SET v = (a - b) + v * 4")(table, "")


# Keywords that name no column: DataFusion reads them as values, or refuses them.
VALUES = {"false", "interval", "not", "null", "select", "true"}


def test_columns_spelled_like_keywords_are_checked() -> None:
    keywords = {word.lower() for word in Dialect.get_or_raise("postgres").tokenizer_class.KEYWORDS}
    for word in sorted({*filter(str.isidentifier, keywords)} - VALUES):
        for text in (f"({word} + 1)", f"(2 * {word})", f"(-{word})"):
            assert len(_operations(_parsed(text, frozenset({word})))) == 1, text


@pytest.mark.parametrize("word", ["any", "limit", "returning", "values"])
def test_an_overflow_of_a_column_spelled_like_a_keyword_stores_nothing(word: str) -> None:
    rows = pa.table({"id": [1], word: [GREATEST]})
    table = rs.create_table(fresh_uri(), rows, key=["id"])
    with pytest.raises(EvaluationError):
        statement(f"UPDATE t SET {word} = {word} + {{v}}")(table, "1")
    statement(f"UPDATE t SET {word} = {word} - {{v}}")(table, "1")
    table.refresh()
    assert table.to_arrow()[word].to_pylist() == [GREATEST - 1]


@pytest.mark.parametrize("type_", ["Float16", "Decimal32(9, 2)", "Decimal64(18, 2)"])
@pytest.mark.parametrize("column", [pa.int8(), pa.int64(), pa.uint16()])
def test_numbers_of_few_bits_are_stored_or_overflow(type_: str, column: pa.DataType) -> None:
    rows = pa.table({"id": [1], "v": pa.array([1], column)})
    table = rs.create_table(fresh_uri(), rows, key=["id"])
    session = SessionContext()
    session.register_table("t", table)
    session.sql(f"UPDATE t SET v = arrow_cast(3, '{type_}')")
    assert table.to_arrow()["v"].to_pylist() == [3]
    if column == pa.int8():
        with pytest.raises(EvaluationError, match="does not hold 300"):
            session.sql(f"UPDATE t SET v = arrow_cast(300, '{type_}')")
