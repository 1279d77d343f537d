"""Bounds of keys hold for their rows, and separate neighbouring parts where the keys allow it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.stats.bounds import LIMIT_BYTES
from rowsieve.storage.manifests.key_bounds import MAX_BYTES, longest_bound, separated_bounds
from rowsieve.types.encodings import schema_of
from tests.profiles import examples

LONG = st.sampled_from(["", "x" * 90, "x" * 99, "x" * 300, "\U0010ffff" * 40, "é" * 60])
TEXTS = st.builds(lambda a, b: a + b, LONG, st.text("axé\U0010ffff", max_size=6))


def rows_of(names: tuple[str, ...], keys: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(names, zip(*keys, strict=True), strict=True)
    return pa.table({name: pa.array(values) for name, values in columns})


def bounds_of(keys: list[tuple[Any, ...]]) -> list[list[tuple[Any, ...]]]:
    """The bounds of parts from one key to the next, two by two."""
    names = tuple("abc"[: len(keys[0])])
    table = rows_of(names, keys)
    fields = schema_of(table.schema)[0].fields
    ends = [(table.slice(i, 1), table.slice(i + 1, 1)) for i in range(0, len(keys) - 1, 2)]
    return [
        [tuple(None if x is None else x.as_py() for x in bound) for bound in both]
        for both in separated_bounds(fields, ends)
    ]


def is_above(bound: tuple[Any, ...], key: tuple[Any, ...], *, or_equal: bool) -> bool:
    """Whether an upper bound is above a key; None is above everything."""
    for one, other in zip(bound, key, strict=True):
        if one is None:
            return True
        if one != other:
            return bool(one > other)
    return or_equal


def is_apart(upper: tuple[Any, ...], lower: tuple[Any, ...]) -> bool:
    """Whether every key up to the one is below every key from the other on."""
    for one, other in zip(upper, lower, strict=True):
        if one is None or other is None:
            return False
        if one != other:
            return bool(one < other)
    return False


@examples(150)
@given(st.lists(st.tuples(TEXTS, st.integers(0, 3)), min_size=4, max_size=8, unique=True))
def test_bounds_hold_and_neighbours_do_not_overlap(found: list[tuple[str, int]]) -> None:
    keys = sorted(found)
    keys = keys[: len(keys) // 2 * 2]
    bounds = bounds_of(keys)
    for number, (lower, upper) in enumerate(bounds):
        first, last = keys[2 * number], keys[2 * number + 1]
        assert is_above(upper, last, or_equal=True)
        known = tuple(x for x in lower if x is not None)
        assert is_above(first[: len(known)], known, or_equal=True)
        if number:
            assert is_apart(bounds[number - 1][1], lower)


@pytest.mark.parametrize("key", ["x" * 200, "\U0010ffff" * 50])
def test_bounds_are_as_long_as_it_takes(key: str) -> None:
    short = bounds_of([("a" * 200,), ("b" * 200,), ("c" * 200,), ("d" * 200,)])
    assert all(len(x[0]) <= LIMIT_BYTES for both in short for x in both)
    (_, upper), (lower, _) = bounds_of([("",), (key + "a",), (key + "b",), (key + "c",)])
    assert upper[0] == key + "a"
    assert lower[0] == key + "b"


def test_bounds_end_at_the_greatest_length() -> None:
    key = "x" * (2 * MAX_BYTES)
    bounds = bounds_of([(key + "a",), (key + "b",), (key + "c",), (key + "d",)])
    assert all(len(x[0]) <= LIMIT_BYTES for both in bounds for x in both)
    columns = [pa.chunked_array([["a", None, "abc"]]), pa.chunked_array([[b"ab"]])]
    assert longest_bound([*columns, pa.chunked_array([[1]])]) == 3
    assert longest_bound([]) == 0
