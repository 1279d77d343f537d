"""Long lists of typed constants: written and read at once as they are one by one."""

from __future__ import annotations

import decimal
import math
from typing import Any

import pyarrow as pa
import pytest

from rowsieve.bridges.languages import bridge_named
from rowsieve.bridges.sql import parse_predicate
from rowsieve.bridges.sql.constructs.render_literals import literal_text
from rowsieve.bridges.sql.dialects import DIALECTS, Dialect
from rowsieve.bridges.sql.reading import lifted_lists as lists_module
from rowsieve.bridges.sql.reading.lifted_lists import lift_lists
from rowsieve.bridges.sql.writing.render_lists import list_texts
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate.bind import bind
from rowsieve.predicate.ir import Column, InList, Literal, ValueSet
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Date, Decimal, Float, Int, LogicalType, String, Timestamp
from tests.strategies import arrow_array

D = decimal.Decimal
YEAR_ONE, LAST_DAY, DAY_US = -719_162, 2_932_896, 86_400_000_000
MOMENTS = [0, 1, 1_000_000, YEAR_ONE * DAY_US, (LAST_DAY + 1) * DAY_US - 1, 1_357_000_000_123_456]
FLOATS = [0.0, -0.0, 1.5, -2.0, 1e300, -1e-7, 1e22, 123456789.125, 5e-324, 1e16, 0.1]
CASES: list[tuple[LogicalType, list[Any]]] = [
    (Int(64), [1, -5, 2**63 - 1]),
    (Float(64), [*FLOATS, math.inf, -math.inf, math.nan]),
    (Float(32), [0.5, -1.25, 2.0**100, math.inf, 2.0**-149]),
    (String(), ["a'b", "\\", "", "it\\'s", "a,b", "NULL"]),
    (Decimal(4, 2), [D("1.50"), D("-0.05"), D("0.00"), D("12.34"), D("-12.34")]),
    (Decimal(2, 2), [D("0.50"), D("-0.05"), D("0.00")]),
    (Decimal(18, 9), [D("0.000000001"), D("1.000000001"), D("123456789.000000000")]),
    (Date(), [0, YEAR_ONE, LAST_DAY, 15_706]),
    (Timestamp(), MOMENTS),
    (Timestamp(utc=True), MOMENTS),
]
NAMED = [pytest.param(*case, id=str(case[0])) for case in CASES]


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(("type_", "values"), NAMED)
def test_texts_at_once_are_those_of_one(
    type_: LogicalType, values: list[Any], dialect: Dialect
) -> None:
    said = None if type_ == String() else type_

    def one(value: Any) -> str:
        return literal_text(Literal(value, None if value is None else said), dialect)[0]

    array = arrow_array([*values, None], type_)
    try:
        single = [one(value) for value in [*values, None]]
    except UnsupportedOperation:
        with pytest.raises(UnsupportedOperation):
            list_texts(array, said, dialect)
        return
    assert list_texts(array, said, dialect) == single
    assert list_texts(array[1:2], said, dialect) == single[1:2]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (Date(), YEAR_ONE - 1),
        (Date(), LAST_DAY + 1),
        (Timestamp(), YEAR_ONE * DAY_US - 1),
        (Timestamp(), (LAST_DAY + 1) * DAY_US),
        (Int(64), -(2**63)),
    ],
)
def test_values_with_another_spelling_are_written_one_by_one(
    type_: LogicalType, value: int
) -> None:
    assert list_texts(arrow_array([0, value], type_), type_, DIALECTS["duckdb"]) is None


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(("type_", "values"), NAMED)
def test_written_lists_are_extracted_and_read_as_equal(
    type_: LogicalType, values: list[Any], dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With NULLs among them; the grammar reads the same list where none is taken out.

    DataFusion has no NULL among them: its lists forget it, so it is written beside the list.
    """
    if dialect.name == "datafusion" and type_ == Timestamp():  # of nanoseconds there
        values = [value for value in values if abs(value) < 2**53]
    null = [] if dialect.name == "datafusion" else [None]
    array = arrow_array([*values * 30, *null], type_)
    schema = schema_of(pa.schema([("a", array.type)]))[0]
    listed = InList(Column("a"), ValueSet(array, type_))
    bridge = bridge_named(dialect.name)
    written = bridge.writes(listed, schema, bridge.semantics)
    if written.expression is None:
        assert dialect.name == "trino"
        assert type_ == Timestamp(utc=True)
        return
    lifted = lift_lists(written.expression, dialect)
    assert len(lifted.lists) == 1
    found = bind(parse_predicate(written.expression, dialect.name), schema, bridge.semantics)
    assert found == bind(listed, schema, bridge.semantics)
    monkeypatch.setattr(lists_module, "SHORT", 1_000_000)
    again = parse_predicate(written.expression, dialect.name)
    assert isinstance(again, InList)
    assert bind(again, schema, bridge.semantics) == found


@pytest.mark.parametrize(
    "member",
    [
        "DATE '0000-13-01'",
        "DATE '2013-02-30'",
        "CAST('1.5.2' AS DOUBLE)",
        "CAST('x' AS DOUBLE)",
        "CAST('123.456' AS DECIMAL(4, 2))",
        "CAST('1.5' AS DECIMAL(40, 2))",
        "TIMESTAMP '2013-01-01 24:00:00'",
        "TIMESTAMP '0000-12-31 00:61:00'",
    ],
)
def test_invalid_members_are_rejected_in_long_lists_too(member: str) -> None:
    with pytest.raises(InvalidPredicate):
        parse_predicate(f"a IN ({', '.join([member] * 100)})", "duckdb")


@pytest.mark.parametrize(
    "body",
    [
        ["CAST('1.5' AS DOUBLE)"] * 99 + ["CAST('1.5' AS REAL)"],
        ["CAST('1.5' AS DOUBLE)"] * 99 + ["7"],
        ["CAST('1.5' AS DOUBLE)"] * 99 + ["'1.5'"],
        ["DATE '2013-01-01'"] * 99 + ["CAST('2013-01-01' AS DATE)"],
        ["DATE '2013-01-01'"] * 99 + ["TIMESTAMP '2013-01-01 00:00:00'"],
    ],
    ids=lambda body: body[-1],
)
def test_lists_of_several_types_are_read_by_the_parser(body: list[str]) -> None:
    assert not lift_lists(f"a IN ({', '.join(body)})", DIALECTS["duckdb"]).lists


def test_timestamp_has_the_meaning_of_the_dialect() -> None:
    """Spark's TIMESTAMP without a zone hangs on the session, as a single one does."""
    text = f"a IN ({', '.join(['TIMESTAMP ' + chr(39) + '2013-01-01 00:00:00' + chr(39)] * 100)})"
    assert lift_lists(text, DIALECTS["duckdb"]).lists
    for dialect in ("spark", "trino"):
        assert not lift_lists(text, DIALECTS[dialect]).lists


def test_a_number_beyond_a_float_is_infinite_in_a_long_list_of_duckdb() -> None:
    members = ", ".join(["CAST('1e400' AS DOUBLE)"] * 100)
    found = parse_predicate(f"a IN ({members})", "duckdb")
    assert isinstance(found, InList)
    assert set(found.values.array.to_pylist()) == {math.inf}  # as DuckDB reads it
