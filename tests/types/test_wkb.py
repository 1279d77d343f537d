"""Extents of geometries: against the coordinates that they were built of, and of any bytes."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.types.alias_forms import wkb
from tests.profiles import examples

_NUMBERS = st.floats(-1e6, 1e6) | st.sampled_from([0.0, -0.0, 1.5, 1e300, -1e300, 5e-324])
_FORMS = st.tuples(
    st.booleans(),  # little-endian
    st.sampled_from(["", "z", "m", "zm"]),
    st.booleans(),  # flags of EWKB, not thousands
    st.booleans(),  # a SRID
)
_RUN = st.lists(st.tuples(_NUMBERS, _NUMBERS), max_size=4)
_SIMPLE = st.one_of(
    st.tuples(st.just(1), st.tuples(_NUMBERS, _NUMBERS) | st.just((math.nan, math.nan))),
    st.tuples(st.just(2), _RUN),
    st.tuples(st.just(3), st.lists(_RUN, max_size=3)),
)
_MANY = st.tuples(st.sampled_from([4, 5, 6, 7]), st.lists(_SIMPLE, max_size=4))
GEOMETRIES: st.SearchStrategy[Any] = st.one_of(
    _SIMPLE, _MANY, st.tuples(st.just(7), st.lists(_SIMPLE | _MANY, max_size=3))
)


def encoded(geometry: Any, form: tuple[bool, str, bool, bool]) -> bytes:
    """The WKB of (kind, content): a point is a pair, a line a list of them, and so on."""
    little, more, flagged, srid = form
    kind, content = geometry
    mark = "<" if little else ">"
    code = kind
    if flagged or srid:
        code |= (0x80000000 if "z" in more else 0) | (0x40000000 if "m" in more else 0)
        code |= 0x20000000 if srid else 0
    else:
        code += {"": 0, "z": 1000, "m": 2000, "zm": 3000}[more]
    head = bytes([little]) + struct.pack(f"{mark}I", code) + struct.pack(f"{mark}I", 4326) * srid

    def run(pairs: Sequence[tuple[float, float]]) -> bytes:
        return b"".join(struct.pack(f"{mark}dd", *pair) + b"\xff" * 8 * len(more) for pair in pairs)

    def counted(items: Sequence[bytes]) -> bytes:
        return struct.pack(f"{mark}I", len(items)) + b"".join(items)

    if kind == 1:
        return head + run([content])
    if kind == 2:
        return head + struct.pack(f"{mark}I", len(content)) + run(content)
    if kind == 3:
        return head + counted([struct.pack(f"{mark}I", len(ring)) + run(ring) for ring in content])
    return head + counted([encoded(each, form) for each in content])


def pairs_of(geometry: Any) -> list[tuple[float, float]]:
    kind, content = geometry
    if kind == 1:
        return [content]
    if kind == 2:
        return list(content)
    if kind == 3:
        return [pair for ring in content for pair in ring]
    return [pair for each in content for pair in pairs_of(each)]


def expected(geometry: Any) -> list[float]:
    pairs = [pair for pair in pairs_of(geometry) if not math.isnan(pair[0])]
    if not pairs:
        return [math.nan] * 4
    xs, ys = zip(*pairs, strict=True)
    return [min(xs), min(ys), max(xs), max(ys)]


@examples(400)
@given(st.lists(st.none() | st.tuples(GEOMETRIES, _FORMS), max_size=8), st.integers(0, 3))
def test_extents_are_those_of_the_coordinates(
    made: list[tuple[Any, tuple[bool, str, bool, bool]] | None], skipped: int
) -> None:
    values = [None if each is None else encoded(*each) for each in made]
    array = pa.array([None, b"x", b"", *values], pa.binary()).slice(min(skipped, 3))
    wanted = [[math.nan] * 4] * (3 - min(skipped, 3))
    wanted += [[math.nan] * 4 if each is None else expected(each[0]) for each in made]
    np.testing.assert_array_equal(wkb.extents(array), np.array(wanted).reshape(-1, 4))
    for place, side in enumerate(wkb.SIDES):
        found = wkb.side_of(array, side).to_pylist()
        assert found == [None if math.isnan(row[place]) else row[place] for row in wanted]


@examples(400)
@given(st.data())
def test_damaged_bytes_are_read_alike_in_both_ways(data: st.DataObject) -> None:
    values = []
    for _ in range(4):
        whole = bytearray(encoded(data.draw(GEOMETRIES), data.draw(_FORMS)))
        for _ in range(data.draw(st.integers(0, 3))):
            place = data.draw(st.integers(0, len(whole) - 1))
            whole[place] = data.draw(st.sampled_from([0, 1, 2, 3, 7, 0x20, 0x7F, 0xF0, 0xFF]))
        cut = data.draw(st.integers(-2, 2))
        values.append(bytes(whole[:-cut] if cut > 0 else whole + b"\0" * -cut))
    found = wkb.extents(pa.array(values, pa.binary()))
    for row, value in zip(found, values, strict=True):
        alone = wkb._extent(value)
        np.testing.assert_array_equal(row, [math.nan] * 4 if alone is None else alone)


@pytest.mark.parametrize("count", [wkb._MAX_STEPS - 1, wkb._MAX_STEPS, wkb._MAX_STEPS + 1])
def test_geometries_of_many_parts(count: int) -> None:
    points = [(1, (float(i), -float(i))) for i in range(count)]
    rings = [[(float(i), 0.0)] for i in range(count)]
    form = (True, "", False, False)
    array = pa.array([encoded((4, points), form), encoded((3, rings), form)], pa.binary())
    last = float(count - 1)
    assert wkb.extents(array).tolist() == [[0, -last, last, 0], [0, 0, last, 0]]


@pytest.mark.parametrize("number", [math.inf, -math.inf])
def test_an_infinite_coordinate_has_no_extent(number: float) -> None:
    line = encoded((2, [(0.0, 1.0), (1.0, number)]), (True, "", False, False))
    nested = encoded((7, [(2, [(0.0, 1.0), (number, 1.0)])]), (True, "", False, False))
    half = encoded((1, (math.nan, 1.0)), (True, "", False, False))
    assert np.isnan(wkb.extents(pa.array([line, nested, half], pa.binary()))).all()


def test_a_count_beyond_the_bytes_is_not_allocated() -> None:
    huge = bytes([1]) + struct.pack("<II", 2, 0xFFFFFFFF)
    rings = bytes([1]) + struct.pack("<II", 3, 0xFFFFFFFF)
    parts = bytes([1]) + struct.pack("<II", 7, 0xFFFFFFFF)
    deep = (bytes([1]) + struct.pack("<II", 7, 1)) * 100
    array = pa.array([huge, rings, parts, deep], pa.binary())
    assert np.isnan(wkb.extents(array)).all()
