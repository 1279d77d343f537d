"""Foreign rows become a table's storage types without loss, or are refused with the reason."""

from __future__ import annotations

import decimal
import math
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.errors import SchemaMismatch
from rowsieve.types.conform import canonical_key, conform
from rowsieve.types.encodings import arrow_schema, arrow_type
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Field,
    Float,
    Int,
    Json,
    List,
    LogicalType,
    Map,
    String,
    Struct,
    Time,
    Timestamp,
    Uuid,
)
from rowsieve.types.schema import Schema
from tests.profiles import examples

SCHEMA = Schema(0, (Field(1, "id", Int(), nullable=False), Field(2, "name", String())))
NESTED = List(
    Field(2, "item", Struct((Field(3, "x", Float()), Field(4, "y", Int(16), nullable=False))))
)
PAIRS = Map(Field(2, "key", String(), nullable=False), Field(3, "value", Int()))


def bring(values: Any, type_: LogicalType, *, nullable: bool = True) -> pa.ChunkedArray:
    schema = Schema(0, (Field(1, "c", type_, nullable),))
    table = conform(pa.table({"c": values}), schema)
    table.validate(full=True)
    assert table.schema.equals(arrow_schema(schema), check_metadata=True)
    return table.column("c")


@pytest.mark.parametrize(
    ("values", "type_", "expected"),
    [
        (pa.array([1, None, -128]), Int(8), [1, None, -128]),
        (pa.array([2**64 - 1], pa.uint64()), Int(64, signed=False), [2**64 - 1]),
        (pa.array([2**53]), Float(), [2.0**53]),
        (pa.array([0.1], pa.float32()), Float(), [float(np.float32(0.1))]),
        (pa.array([0.5, None]), Float(32), [0.5, None]),
        (pa.array(np.array([1.5], np.float16)), Float(), [1.5]),
        (pa.array([7, None]), Decimal(10, 2), [decimal.Decimal("7.00"), None]),
        (pa.array([2**64 - 1], pa.uint64()), Decimal(20, 0), [decimal.Decimal(2**64 - 1)]),
        (pa.array([decimal.Decimal("1.20")]), Decimal(9, 1), [decimal.Decimal("1.2")]),
        (
            pa.array([decimal.Decimal("1.2"), None], pa.decimal256(60, 1)),
            Decimal(9, 3),
            [decimal.Decimal("1.200"), None],
        ),
        (pa.array([], pa.decimal32(5, 2)), Decimal(9, 3), []),
        (pa.array(["a", None], pa.large_string()), String(), ["a", None]),
        (pa.array(["a", None], pa.string_view()), String(), ["a", None]),
        (pa.array(["b", None, "b"]).dictionary_encode(), String(), ["b", None, "b"]),
        (
            pa.DictionaryArray.from_arrays([0, None], pa.array(["v"], pa.string_view())),
            String(),
            ["v", None],
        ),
        (pa.RunEndEncodedArray.from_arrays([2], ["r"]), String(), ["r", "r"]),
        (pa.array(["{}"], pa.json_()), Json(), ["{}"]),
        (pa.array(["{}"]), Json(), ["{}"]),
        (pa.array([b"ab"], pa.binary(2)), Binary(), [b"ab"]),
        (pa.array([b"u" * 16, None], pa.uuid()), Uuid(), [b"u" * 16, None]),
        (pa.array([b"u" * 16, None]), Uuid(), [b"u" * 16, None]),
        (pa.nulls(2), Uuid(), [None, None]),
    ],
)
def test_lossless_values_are_taken(values: Any, type_: LogicalType, expected: list[Any]) -> None:
    assert bring(values, type_).to_pylist() == expected


@pytest.mark.parametrize(
    ("values", "type_", "expected"),
    [
        (pa.array([86_400_000], pa.date64()), Date(), 1),
        (pa.array([61], pa.time32("s")), Time(), 61_000_000),
        (pa.array([5_000], pa.time64("ns")), Time(), 5),
        (pa.array([2], pa.timestamp("s")), Timestamp(), 2_000_000),
        (pa.array([3_000], pa.timestamp("ns")), Timestamp(), 3),
        (pa.array([1], pa.timestamp("ms", "Asia/Tokyo")), Timestamp(utc=True), 1_000),
    ],
)
def test_units_and_zones_change_while_the_moment_stays(
    values: Any, type_: LogicalType, expected: int
) -> None:
    found = bring(values, type_).combine_chunks()
    width = pa.int32() if isinstance(type_, Date) else pa.int64()
    assert found.cast(width).to_pylist() == [expected]


@pytest.mark.parametrize(
    ("values", "type_", "reason"),
    [
        (pa.array([300]), Int(8), "int64 does not fit int8 without loss: .*300"),
        (pa.array([-1]), Int(64, signed=False), "uint64 without loss: .*-1"),
        (pa.array([2**53 + 1]), Float(), "9007199254740993"),
        (pa.array([0.1]), Float(32), "0.1 would change"),
        (pa.array([1e300]), Float(32), "would change"),
        (pa.array([decimal.Decimal("1.25")]), Decimal(9, 1), "without loss"),
        (pa.array([10**9]), Decimal(10, 2), "precision"),
        # Arrow itself wraps around here: 10^18 scaled by 10^30 has 49 digits.
        (pa.array([10**18]), Decimal(38, 30), "1000000000000000000 would change"),
        (pa.array([1001], pa.timestamp("ns")), Timestamp(), "1001"),
        (pa.array([2**60], pa.timestamp("s")), Timestamp(), "out of bounds"),
        (pa.array([b"short"]), Uuid(), "uuid"),
        (pa.array(["1"]), Int(), "int64 in the table, but string"),
        (pa.array([1.0]), Int(), "int64 in the table, but double"),
        (pa.array([1.5]), Decimal(9, 1), "decimal.9,1. in the table, but double"),
        (pa.array([1]), String(), "string in the table, but int64"),
        (pa.array([1]), Bool(), "bool in the table"),
        (pa.array(["x"]), Binary(), "binary in the table"),
        (pa.array([1], pa.timestamp("us")), Timestamp(utc=True), "assume_timezone"),
        (pa.array([1], pa.timestamp("us", "UTC")), Timestamp(), "local_timestamp"),
        (pa.array([1], pa.timestamp("us")), Date(), "date in the table"),
        (pa.array([[1]]), NESTED, r"'c\.item' is struct<x: float64, y: int16> in the table"),
        (pa.array([1]), PAIRS, "map<string, int64>"),
    ],
)
def test_conversions_that_change_the_meaning_are_rejected(
    values: Any, type_: LogicalType, reason: str
) -> None:
    with pytest.raises(SchemaMismatch, match=reason) as refused:
        bring(values, type_)
    assert "column 'c" in str(refused.value)


def test_invalid_utf8_is_refused() -> None:
    offsets = pa.py_buffer(np.array([0, 1], np.int32).tobytes())
    bad = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff")])
    with pytest.raises(SchemaMismatch, match="UTF8"):
        bring(bad, String())


def test_null_in_a_not_null_column_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match="'c' is NOT NULL, but 1 of 2 values are NULL"):
        bring(pa.array([1, None]), Int(), nullable=False)


@pytest.mark.parametrize(
    "layout",
    [
        pa.list_,
        pa.large_list,
        pa.list_view,
        pa.large_list_view,
        lambda type_: pa.list_(type_, 2),
    ],
)
@pytest.mark.parametrize("skipped", [0, 1])
def test_nested_columns_are_taken_in_every_layout(layout: Any, skipped: int) -> None:
    rows: list[Any] = [
        [{"Y": 1, "x": 1.5}, None],
        None,
        [{"Y": 2, "x": None}, {"Y": 3, "x": 2.5}],
    ]
    source = pa.array(rows, layout(pa.struct([("Y", pa.int64()), ("x", pa.float32())])))
    expected = [row and [item and {"x": item["x"], "y": item["Y"]} for item in row] for row in rows]
    assert bring(source.slice(skipped), NESTED).to_pylist() == expected[skipped:]


def test_null_in_a_not_null_member_is_refused_by_its_path() -> None:
    source = pa.array([[{"x": 1.0, "y": None}]], arrow_type(NESTED))
    with pytest.raises(SchemaMismatch, match=r"'c\.item\.y' is NOT NULL"):
        bring(source, NESTED)


def test_maps_are_taken_from_the_middle_of_an_array() -> None:
    rows = [[("a", 1)], None, [("b", 2), ("c", None)], []]
    source = pa.array(rows, pa.map_(pa.string(), pa.int8()))
    assert bring(source, PAIRS).to_pylist() == rows
    assert bring(source.slice(1, 2), PAIRS).to_pylist() == rows[1:3]


def test_items_behind_a_null_map_or_list_are_dropped() -> None:
    hidden = pa.array([False, True, False])
    items = pa.array([1, 2, 3])
    pairs = pa.MapArray.from_arrays(
        pa.array([0, 1, 2, 3], pa.int32()), pa.array(["a", "b", "c"]), items, mask=hidden
    )
    assert bring(pairs, PAIRS).to_pylist() == [[("a", 1)], None, [("c", 3)]]
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), items, mask=hidden)
    found = bring(lists, List(Field(2, "item", Int())))
    assert found.to_pylist() == [[1], None, [3]]
    assert found.chunk(0).values.to_pylist() == [1, 3]
    assert bring(pairs, PAIRS).chunk(0).items.to_pylist() == [1, 3]


def test_a_column_stands_for_itself_only() -> None:
    both = Schema(0, (Field(1, "id", Int()), Field(2, "Id", Int())))
    with pytest.raises(SchemaMismatch, match="lacks column 'Id'"):
        conform(pa.table({"id": [1]}), both)
    assert conform(pa.table({"Id": [2], "id": [1]}), both).to_pylist() == [{"id": 1, "Id": 2}]


def test_columns_are_matched_by_name_in_any_order_and_case() -> None:
    table = conform(pa.table({"NAME": ["x"], "id": [1]}), SCHEMA)
    assert table.to_pylist() == [{"id": 1, "name": "x"}]
    batch = conform(pa.record_batch({"NAME": ["x"], "id": [1]}), SCHEMA)
    assert isinstance(batch, pa.RecordBatch)
    assert batch.to_pylist() == [{"id": 1, "name": "x"}]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"id": [1], "nmae": ["x"]}, "column 'nmae' .*did you mean 'name'"),
        ({"id": [1]}, "lacks column 'name'"),
        ({"id": [1], "Id": [2], "name": ["x"]}, "column 'Id' that the table does not have"),
        ({"id": [1], "name": ["x"], "since": [1]}, "'since'.*; schema_mode=\"merge\" of .* adds"),
        ({"ID": [1], "Id": [2], "name": ["x"]}, "2 columns for 'id': 'ID', 'Id'"),
        ({}, "lacks columns 'id', 'name'"),
    ],
)
def test_columns_that_do_not_pair_up_are_named(columns: dict[str, Any], reason: str) -> None:
    with pytest.raises(SchemaMismatch, match=reason):
        conform(pa.table(columns), SCHEMA)


def _float64(bits: int) -> float:
    return float(struct.unpack("<d", bits.to_bytes(8, "little"))[0])


@given(st.lists(st.integers(0, 2**64 - 1) | st.sampled_from([0, 1 << 63, 0x7FF << 52]), min_size=1))
@examples(200)
def test_canonical_keys_are_equal_exactly_where_their_bits_are(patterns: list[int]) -> None:
    array = pa.array(np.array(patterns, np.uint64).view(np.float64))
    found = canonical_key(array).to_numpy().view(np.uint64).tolist()
    for pattern, bits in zip(patterns, found, strict=True):
        value = _float64(pattern)
        if math.isnan(value):
            assert bits == 0x7FF8000000000000
        elif value == 0:
            assert bits == 0
        else:
            assert bits == pattern


def test_every_nan_is_one_nan_and_the_zeros_stay_apart() -> None:
    payload = np.array([0x7FF8000000000001, 0xFFF8000000000000, 1 << 63], np.uint64)
    values = pa.array(payload.view(np.float64), mask=np.array([False, False, False]))
    found = bring(values, Float()).to_numpy().view(np.uint64).tolist()
    assert found == [0x7FF8000000000000, 0x7FF8000000000000, 1 << 63]
    nested = pa.array([[{"x": None, "y": 1}]], arrow_type(NESTED))
    assert bring(nested, NESTED).to_pylist() == [[{"x": None, "y": 1}]]
    narrow = pa.array(np.array([0x7FC00001], np.uint32).view(np.float32))
    assert bring(narrow, Float(32)).to_numpy().view(np.uint32).tolist() == [0x7FC00000]


def test_null_floats_stay_null() -> None:
    values = pa.array([float("nan"), None, -0.0])
    assert str(bring(values, Float()).to_pylist()) == "[nan, None, -0.0]"
    assert str(canonical_key(values).to_pylist()) == "[nan, None, 0.0]"


def test_canonical_key_returns_the_same_object_if_nothing_changes() -> None:
    for values in (pa.array([1.0, None, float("nan")]), pa.array([1]), pa.chunked_array([[1.5]])):
        assert canonical_key(values) is values


@given(st.lists(st.none() | st.integers(-(2**70), 2**70)), st.integers(1, 38), st.integers(0, 38))
@examples(150)
def test_a_decimal_rescales_exactly_or_not_at_all(
    values: list[int | None], precision: int, scale: int
) -> None:
    scale = min(scale, precision)
    source = pa.array(
        [None if v is None else decimal.Decimal(v) for v in values], pa.decimal128(38, 0)
    )
    try:
        found = bring(source, Decimal(precision, scale)).to_pylist()
    except SchemaMismatch:
        assert any(v is not None and abs(v) >= 10 ** (precision - scale) for v in values)
    else:
        assert [None if v is None else int(v) for v in found] == values
        assert all(v is None or v == int(v) for v in found)


@pytest.mark.parametrize(
    ("values", "type_", "said"),
    [
        pytest.param([1, 2, 300], Int(8), "300 not in range.*row 2,", id="a number"),
        pytest.param([0.5, 1e300], Float(32), "1e\\+300 would change.*row 1,", id="a float"),
        pytest.param([[1], [2, 300]], List(Field(2, "element", Int(8))), "row 1,", id="an item"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_row(
    values: list[Any], type_: LogicalType, said: str
) -> None:
    schema = Schema(0, (Field(1, "v", type_),))
    whole = pa.chunked_array([pa.array(values[:1]), pa.array(values[1:])])
    with pytest.raises(SchemaMismatch, match=said):
        conform(pa.table({"v": whole}), schema)


def test_a_type_that_never_fits_is_named_without_a_row() -> None:
    with pytest.raises(SchemaMismatch) as found:
        conform(pa.table({"v": ["a"]}), Schema(0, (Field(1, "v", Int(8)),)))
    assert "row" not in str(found.value)
