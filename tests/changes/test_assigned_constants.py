"""Values of updates: Python and Arrow values are what they are, text is SQL unless it is `lit`."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidData, InvalidInput, RowsieveError, SchemaMismatch
from tests.small_tables import fresh_uri

ID = uuid.UUID("12345678-1234-5678-1234-567812345678")
NOON = dt.datetime(2024, 5, 1, 12, 0, 0, 5, tzinfo=dt.UTC)
TYPES: dict[str, pa.DataType] = {
    "text": pa.string(),
    "whole": pa.int64(),
    "float": pa.float64(),
    "real": pa.float32(),
    "amount": pa.decimal128(9, 2),
    "large": pa.decimal128(38, 2),
    "day": pa.date32(),
    "clock": pa.time64("us"),
    "at": pa.timestamp("us", "UTC"),
    "local": pa.timestamp("us"),
    "raw": pa.binary(),
    "is": pa.bool_(),
    "id": pa.uuid(),
}
VALUES: list[tuple[str, Any, Any]] = [
    ("text", rs.lit("007"), "007"),
    ("text", rs.lit("whole"), "whole"),
    ("text", rs.lit("it's -- $x :y"), "it's -- $x :y"),
    ("text", rs.lit(""), ""),
    ("text", pa.scalar("now()"), "now()"),
    ("text", "'007'", "007"),
    ("text", "7", "7"),
    ("text", None, None),
    ("whole", 2**62, 2**62),
    ("whole", "whole + 1", 2),
    ("whole", pa.scalar(5, pa.int8()), 5),
    ("float", -0.0, -0.0),
    ("float", float("inf"), float("inf")),
    ("float", decimal.Decimal(2**60), 2.0**60),
    ("float", decimal.Decimal("9007199254740992.5"), 9007199254740992.0),
    ("float", 2**70, 2.0**70),
    ("amount", decimal.Decimal("12.50"), decimal.Decimal("12.50")),
    ("day", dt.date(2024, 2, 29), dt.date(2024, 2, 29)),
    ("clock", dt.time(23, 59, 59, 999999), dt.time(23, 59, 59, 999999)),
    ("at", NOON, NOON),
    ("at", NOON.astimezone(dt.timezone(dt.timedelta(hours=5))), NOON),
    ("local", dt.datetime(1900, 1, 1, 1), dt.datetime(1900, 1, 1, 1)),
    ("raw", b"\x00\xff'", b"\x00\xff'"),
    ("is", False, False),
    ("id", ID, ID.bytes),
    ("id", None, None),
    ("id", rs.lit(None), None),
]
ROUNDED: list[tuple[str, Any]] = [
    ("whole", 7.5),
    ("whole", decimal.Decimal("7.5")),
    ("whole", pa.scalar(0.25)),
    ("amount", decimal.Decimal("0.005")),
    ("amount", 0.005),
    ("large", decimal.Decimal("1234567890123456789012345678.005")),
    ("real", 2**24 + 1),
    ("real", decimal.Decimal(2**24 + 1)),
    ("float", decimal.Decimal(2**53 + 1)),
    ("float", decimal.Decimal("-12345678901234567890.5")),
    ("is", 2),
    ("day", dt.datetime(2026, 1, 1, 12)),
    ("day", pa.scalar(1, pa.timestamp("ns"))),
    ("local", pa.scalar(1_001, pa.timestamp("ns"))),
]


@pytest.fixture(scope="module")
def table() -> rs.Table:
    columns = pa.schema([("k", pa.int64()), *TYPES.items()])
    return rs.create_table(fresh_uri(), columns, key=["k"])


@pytest.mark.parametrize(("column", "value", "stored"), VALUES)
def test_a_value_is_stored_as_it_is(table: rs.Table, column: str, value: Any, stored: Any) -> None:
    row = dict.fromkeys(TYPES) | {"k": 1, "whole": 1}
    table.upsert(pa.Table.from_pylist([row], schema=table.schema.remove_metadata()))
    table.update({column: value}, where="k = 1")
    (after,) = table.to_arrow().to_pylist()
    assert after[column] == stored
    assert str(after[column]) == str(stored)
    assert {n: v for n, v in after.items() if n not in (column, "k", "whole")} == {
        name: None for name in TYPES if name not in (column, "whole")
    }


@pytest.mark.parametrize("text", ["007", " 00 ", "1e3", "0x1F", "1_000", "1.50", "-007"])
def test_a_number_that_would_be_another_text_is_never_stored_as_text(
    table: rs.Table, text: str
) -> None:
    row = {**dict.fromkeys(TYPES), "k": 1, "text": "before"}
    table.upsert(pa.Table.from_pylist([row], schema=table.schema.remove_metadata()))
    try:
        table.update({"text": text})
    except rs.errors.RowsieveError:
        assert table.to_arrow()["text"].to_pylist() == ["before"]
    else:
        assert table.to_arrow()["text"].to_pylist() == [text]


@pytest.mark.parametrize(("column", "value"), ROUNDED)
def test_a_number_is_never_rounded(table: rs.Table, column: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=f"column '{column}' .* without loss"):
        table.update({column: value})


@pytest.mark.parametrize(("column", "value"), ROUNDED)
@pytest.mark.parametrize("keyed", [True, False])
def test_no_clause_of_a_merge_rounds_a_number(column: str, value: Any, keyed: bool) -> None:
    rows = pa.table({"k": [1], column: pa.nulls(1, TYPES[column])})
    table = rs.create_table(fresh_uri(), rows, key=["k"] if keyed else None)
    for key, clause in (
        (1, "when_matched_update"),
        (2, "when_not_matched_insert"),
        (2, "when_not_matched_by_source_update"),
    ):
        merging = table.merge(pa.table({"k": [key]}), on="k")
        with pytest.raises((InvalidData, SchemaMismatch), match=f"column '{column}'"):
            getattr(merging, clause)(
                {"k": "1" if clause.endswith("source_update") else str(key), column: value}
            ).execute()
    assert table.to_arrow().to_pylist() == rows.to_pylist()


def test_a_whole_number_of_another_type_is_stored(table: rs.Table) -> None:
    row = {**dict.fromkeys(TYPES), "k": 1}
    table.upsert(pa.Table.from_pylist([row], schema=table.schema.remove_metadata()))
    large = decimal.Decimal("1234567890123456789012345678.01")
    table.update(
        {
            "whole": 7.0,
            "amount": decimal.Decimal("1.500"),
            "large": large,
            "real": 0.1,
            "day": dt.datetime(2026, 1, 1),
            "local": pa.scalar(2_000, pa.timestamp("ns")),
        },
        where="k = 1",
    )
    (after,) = table.to_arrow("k = 1").to_pylist()
    assert (after["whole"], after["amount"]) == (7, decimal.Decimal("1.50"))
    assert (after["large"], after["real"]) == (large, pytest.approx(0.1))
    assert (after["day"], after["local"]) == (
        dt.date(2026, 1, 1),
        dt.datetime(1970, 1, 1, 0, 0, 0, 2),
    )


@pytest.mark.parametrize("number", [2**63, 2**64, 10**37, -(10**40), 10**80])
def test_a_merge_refuses_whole_numbers_that_no_column_holds(table: rs.Table, number: int) -> None:
    row = {**dict.fromkeys(TYPES), "k": 1}
    table.upsert(pa.Table.from_pylist([row], schema=table.schema.remove_metadata()))
    with pytest.raises(RowsieveError):
        table.merge([row], on="k").when_matched_update({"whole": number}).execute()


@pytest.mark.parametrize(("column", "text"), [("text", "hello"), ("day", "2026-01-01")])
def test_an_error_of_sql_text_says_how_to_store_the_text(
    table: rs.Table, column: str, text: str
) -> None:
    with pytest.raises(RowsieveError) as raised:
        table.update({column: text})
    (note,) = raised.value.__notes__
    assert f"rs.lit('{text}')" in note


def test_empty_sql_text_and_booleans_are_named_as_such(table: rs.Table) -> None:
    with pytest.raises(InvalidInput, match=r"the SQL text for column 'text' is empty; .*lit\(''\)"):
        table.update({"text": ""})
    with pytest.raises(InvalidInput, match="'true' is the boolean True in SQL"):
        table.update({"text": "true"})


@pytest.mark.parametrize("value", [object(), {"a": object()}, pa.array([1]), [1, "x"]])
def test_what_is_no_value_is_refused(table: rs.Table, value: Any) -> None:
    with pytest.raises(InvalidInput, match="cannot be given as a constant"):
        table.update({"text": value})
    with pytest.raises(InvalidInput, match="cannot be given as a constant"):
        rs.lit(value)


@pytest.mark.parametrize(
    ("column", "value"), [("li", [1, None]), ("li", []), ("st", {"a": 1}), ("li", pa.scalar([7]))]
)
def test_nested_values_are_refused_by_column(column: str, value: Any) -> None:
    rows = pa.table(
        {"k": [1], "li": [[5]], "st": [{"a": 2}], "other": [[6]]},
    )
    table = rs.create_table(fresh_uri(), rows, key=["k"])
    with pytest.raises(InvalidInput, match=f"column '{column}' is .*upsert the rows"):
        table.update({column: value})
    table.update({"li": None})
    assert table.to_arrow()["li"].to_pylist() == [None]
