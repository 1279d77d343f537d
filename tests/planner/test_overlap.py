"""Overlap groups: no key in two of them, none larger than it must be."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.planner.overlap import Bound, Groups, KeyRange, key_ranges, overlap_groups
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Field, Int, LogicalType, String
from rowsieve.types.ordering.keys import KeyOrder, sort_form
from tests.profiles import examples
from tests.table_strategies import KEY_TYPES, POOLS

INTEGER = KeyOrder((Field(1, "k", Int(64)),))
TEXT_AND_INTEGER = KeyOrder((Field(1, "s", String()), Field(2, "k", Int(64))))


def manifest(order: KeyOrder, lowers: Sequence[Any], uppers: Sequence[Any]) -> pa.Table:
    """Key bounds as a manifest has them; a bound is a tuple of values."""
    return pa.table(
        {
            f"key.{field.id}.{side}": pa.array([b[i] for b in bounds], arrow_type(field.type))
            for i, field in enumerate(order.fields)
            for side, bounds in (("lower", lowers), ("upper", uppers))
        }
    )


def obvious_groups(ranges: Sequence[KeyRange]) -> list[set[int]]:
    """Join whatever overlaps, until nothing does."""
    groups: list[set[int]] = []
    for i, one in enumerate(ranges):
        met = [g for g in groups if any(one.overlaps(ranges[j]) for j in g)]
        groups = [g for g in groups if g not in met] + [{i}.union(*met)]
    return groups


@st.composite
def key_bounds(draw: st.DrawFn) -> tuple[KeyOrder, pa.Table]:
    """Bounds of up to 8 parts over a random key; some unknown, some cut after a column."""
    types: list[LogicalType] = draw(st.lists(st.sampled_from(KEY_TYPES), min_size=1, max_size=3))
    order = KeyOrder(tuple(Field(i + 1, f"k{i}", type_) for i, type_ in enumerate(types)))
    value = [st.none() | st.sampled_from(POOLS[type_]) for type_ in types]
    found = draw(st.lists(st.tuples(st.tuples(*value), st.tuples(*value)), max_size=8))
    lowers, uppers = [], []
    for one, other in found:
        as_range = key_ranges(manifest(order, [one, other], [one, other]), order)
        ascends = as_range[0].lower <= as_range[1].upper
        lowers.append(one if ascends else other)
        uppers.append(other if ascends else one)
    return order, manifest(order, lowers, uppers)


@examples(400)
@given(key_bounds())
def test_groups_equal_comparing_every_pair_of_ranges(
    found: tuple[KeyOrder, pa.Table],
) -> None:
    order, parts = found
    ranges = key_ranges(parts, order)
    groups = list(overlap_groups(parts, order))
    assert sorted(map(sorted, groups)) == sorted(map(sorted, obvious_groups(ranges)))
    for before, after in pairwise(groups):
        assert max(ranges[i].upper for i in before) < min(ranges[i].lower for i in after)


@examples(300)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), max_size=12))
def test_integer_keys_group_without_ranks(spans: list[tuple[int, int]]) -> None:
    lowers, uppers = [(start,) for start, _ in spans], [(start + n,) for start, n in spans]
    parts = manifest(INTEGER, lowers, uppers)
    expected = obvious_groups(key_ranges(parts, INTEGER))
    groups = sorted(sorted(group) for group in overlap_groups(parts, INTEGER))
    assert groups == sorted(map(sorted, expected))


def test_ranges_that_share_one_end_overlap() -> None:
    parts = manifest(INTEGER, [(0,), (5,), (7,)], [(5,), (6,), (7,)])
    assert list(overlap_groups(parts, INTEGER)) == [[0, 1], [2]]


def test_a_missing_bound_is_infinite() -> None:
    below: Bound = ((0, 0), (0, 0))
    above: Bound = ((2, 0), (2, 0))
    unknown = KeyRange(below, above)
    after_cut = KeyRange(((1, "a"), (1, 3)), ((1, "ab"), (2, 0)))
    inside = KeyRange(((1, "ab"), (1, 999)), ((1, "ab"), (1, 999)))
    assert unknown.overlaps(after_cut)
    assert after_cut.overlaps(inside)


def test_after_a_cut_key_column_the_later_ones_are_infinite() -> None:  # invariant 24
    parts = manifest(
        TEXT_AND_INTEGER,
        [("a", 3), ("ab", 999), ("ac", None), ("b", 0)],
        [("ab", None), ("ab", 999), ("ac", 7), ("b", 0)],
    )
    assert list(overlap_groups(parts, TEXT_AND_INTEGER)) == [[0, 1], [2], [3]]
    cut = manifest(TEXT_AND_INTEGER, [("a", 5), ("a", 9)], [(None, 4), ("a", 9)])
    assert list(overlap_groups(cut, TEXT_AND_INTEGER)) == [[0, 1]]


@pytest.mark.parametrize(
    ("order", "lowers", "uppers"),
    [
        (INTEGER, [(0,), (9,), (20,)], [(1,), (8,), (21,)]),
        (TEXT_AND_INTEGER, [("a", 0), ("b", 9), ("c", 0)], [("a", 9), ("b", 8), ("c", 9)]),
    ],
    ids=["integers", "ranks"],
)
def test_a_part_with_inverted_bounds_may_hold_any_key(
    order: KeyOrder, lowers: list[Any], uppers: list[Any]
) -> None:
    parts = manifest(order, lowers, uppers)
    (group,) = overlap_groups(parts, order)
    assert sorted(group) == [0, 1, 2]
    first, inverted, last = key_ranges(parts, order)
    assert inverted.overlaps(first)
    assert inverted.overlaps(last)
    assert not first.overlaps(last)


@pytest.mark.parametrize("order", [INTEGER, TEXT_AND_INTEGER], ids=["integers", "ranks"])
def test_bounds_that_the_manifest_lacks_are_infinite(order: KeyOrder) -> None:
    parts = pa.table({"part_id": ["a", "b"]})
    assert list(overlap_groups(parts, order)) == [[0, 1]]
    other_type = parts.append_column("key.1.lower", pa.array([1.5, 2.5]))
    assert list(overlap_groups(other_type, order)) == [[0, 1]]


@pytest.mark.parametrize("order", [INTEGER, TEXT_AND_INTEGER], ids=["integers", "ranks"])
def test_bounds_in_several_chunks_are_those_in_one(order: KeyOrder) -> None:
    bounds = [(1,) if order is INTEGER else ("a", 1)] * 2
    parts = manifest(order, bounds, bounds)
    chunked = pa.concat_tables([parts.slice(0, 1), parts.slice(1)])
    assert chunked.column(0).num_chunks == 2
    assert list(overlap_groups(chunked, order)) == list(overlap_groups(parts, order)) == [[0, 1]]
    assert key_ranges(chunked, order) == key_ranges(parts, order)


def test_groups_know_their_number_and_that_of_each_member() -> None:
    parts = manifest(INTEGER, [(0,), (5,), (7,)], [(5,), (6,), (7,)])
    groups = overlap_groups(parts, INTEGER)
    assert len(groups) == len(list(groups)) == 2
    assert groups.of_members().tolist() == [0, 0, 1]
    assert [len(each) for each in (Groups.singles(0), Groups.singles(3))] == [0, 3]
    assert list(groups.only(np.array([True, False, True]))) == [[0], [2]]
    assert list(groups.only(np.array([False, False, True]))) == [[2]]


def test_the_ends_of_a_type_are_keys_like_others() -> None:
    least, greatest = -(2**63), 2**63 - 1
    parts = manifest(INTEGER, [(least,), (0,), (greatest,)], [(-1,), (1,), (greatest,)])
    assert list(overlap_groups(parts, INTEGER)) == [[0], [1], [2]]
    assert list(overlap_groups(parts.slice(0, 0), INTEGER)) == []


def test_sort_forms_have_one_type_whatever_is_missing() -> None:
    for type_ in KEY_TYPES:
        empty = sort_form(pa.nulls(1, arrow_type(type_)), type_)
        assert empty.null_count == 1
        assert empty.type == sort_form(pa.array([POOLS[type_][0]], arrow_type(type_)), type_).type
