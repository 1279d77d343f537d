"""Sketches of different values: estimates, unions, types and damaged bytes."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.stats.distinct import Sketch, hashes_of, joined, kind_of
from tests.profiles import examples

ERROR = 0.065  # four standard errors of 4,096 registers


def sketch(values: pa.Array) -> Sketch:
    kind = kind_of(values.type)
    assert kind is not None
    found = Sketch(kind)
    found.add(values)
    return found


@pytest.mark.parametrize("count", [0, 1, 2, 10, 1_000, 5_000, 40_000, 300_000])
@pytest.mark.parametrize("form", ["ascending", "random", "multiples"])
def test_the_estimate_is_near(count: int, form: str) -> None:
    numbers = {
        "ascending": np.arange(count),
        "random": np.unique(np.random.default_rng(count).integers(0, 1 << 62, count)),
        "multiples": np.arange(count) << 32,
    }[form]
    assert sketch(pa.array(numbers.astype(np.int64))).estimate() == pytest.approx(count, rel=ERROR)


def test_text_is_estimated_like_numbers() -> None:
    texts = pa.array([f"value {i}" for i in range(50_000)] * 2)
    assert sketch(texts).estimate() == pytest.approx(50_000, rel=ERROR)


HALVES = decimal.Decimal("-1.5")
SAME: list[tuple[list[Any], pa.DataType, list[Any], pa.DataType]] = [
    ([1, -1, None], pa.int8(), [1, -1], pa.int64()),
    ([1.5, float("nan"), -0.0], pa.float32(), [0.0, float("-nan"), 1.5], pa.float64()),
    (
        [decimal.Decimal("-1.5")],
        pa.decimal128(3, 1),
        [decimal.Decimal("-1.5")],
        pa.decimal128(38, 1),
    ),
    ([200], pa.uint8(), [200], pa.uint64()),
]


@pytest.mark.parametrize(("ones", "type_", "others", "wider"), SAME)
def test_equal_values_of_widened_types_have_equal_hashes(
    ones: list[Any], type_: pa.DataType, others: list[Any], wider: pa.DataType
) -> None:
    assert kind_of(type_) == kind_of(wider)
    found = [set(hashes_of(pa.array(*each)).tolist()) for each in ((ones, type_), (others, wider))]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("values", "type_", "count"),
    [
        ([True, False, None], pa.bool_(), 2),
        ([dt.date(1, 1, 1), dt.date(9999, 12, 31)] * 2, pa.date32(), 2),
        ([dt.time(1), dt.time(2)], pa.time64("us"), 2),
        ([dt.datetime(2024, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", "UTC"), 1),
        ([decimal.Decimal(i) for i in (1, 2, 2, -(10**37))], pa.decimal128(38, 0), 3),
        ([b"", b"\0", b"\0\0", None], pa.binary(), 3),
        (["", "a", "A", "e\u0301", "\u00e9"], pa.string(), 5),
        ([uuid.UUID(int=i).bytes for i in range(3)], pa.binary(16), 3),
        ([0.0, -0.0, float("nan"), float("inf"), float("-inf")], pa.float64(), 4),
        ([None, None], pa.int64(), 0),
    ],
)
def test_every_type_counts_equal_values_once(
    values: list[Any], type_: pa.DataType, count: int
) -> None:
    chunked = pa.chunked_array([pa.array([None, *values], type_).slice(1), pa.array(values, type_)])
    assert sketch(chunked).estimate() == count


@pytest.mark.parametrize(
    "type_", [pa.list_(pa.int64()), pa.struct([("x", pa.int64())]), pa.decimal256(50), pa.null()]
)
def test_other_types_have_no_sketch(type_: pa.DataType) -> None:
    assert kind_of(type_) is None


def test_hashes_are_the_same_for_ever() -> None:
    found = [hashes_of(pa.array(values))[0] for values in ([7], [0.5], ["text"])]
    assert found == [0x63CBE1E459320DD7, 0xF456984DD1D8CE6D, 0x80A69B9688CCAF52]


@examples(20)
@given(st.lists(st.lists(st.integers(0, 9_000), max_size=300), min_size=1, max_size=4))
def test_a_union_is_the_sketch_of_all_values(lists: list[list[int]]) -> None:
    each = [sketch(pa.array(values, pa.int64())) for values in lists]
    together = sketch(pa.array([v for values in lists for v in values], pa.int64()))
    read = [Sketch.from_bytes(one.to_bytes()) for one in each]
    assert all(one is not None for one in read)
    union = joined([one for one in read if one is not None])
    assert union is not None
    assert union.to_bytes() == together.to_bytes()


@pytest.mark.parametrize("count", [0, 1, 1_365, 1_366, 100_000])
def test_bytes_are_read_back(count: int) -> None:
    made = sketch(pa.array(np.arange(count)))
    read = Sketch.from_bytes(made.to_bytes())
    assert read is not None
    assert (read.kind, read.registers.tolist()) == (made.kind, made.registers.tolist())
    assert len(made.to_bytes()) <= 4_096 + 5


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x03int",
        b"\x03int\x02",
        b"\x03int\x01short",
        b"\x03int\x00\x00\x00",
        b"\x03int\x00\x00\x10\x01",  # register 4,096
        b"\x03int\x00\x00\x00\xff",  # rank 255
        b"\x03int\x01" + b"\x35" * 4_096,  # infinitely many
        b"\x03\xff\xff\xff\x00",
    ],
)
def test_other_bytes_are_unknown(data: bytes) -> None:
    assert Sketch.from_bytes(data) is None


def test_kinds_are_not_joined() -> None:
    assert joined([Sketch("int"), Sketch("float")]) is None
    assert joined([]) is None
