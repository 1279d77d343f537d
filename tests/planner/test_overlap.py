"""Overlap groups: no key in two of them, none larger than it must be."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rowsieve.planner.overlap import Bound, KeyRange, overlap_groups
from tests.profiles import examples

spans = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), max_size=12)


def key_range(start: int, length: int) -> KeyRange:
    return KeyRange(((1, start),), ((1, start + length),))


@examples(300)
@given(spans)
def test_groups_are_the_connected_components(found: list[tuple[int, int]]) -> None:
    ranges = [key_range(*span) for span in found]
    groups = overlap_groups(ranges)
    assert sorted(i for group in groups for i in group) == list(range(len(ranges)))
    where = {i: g for g, group in enumerate(groups) for i in group}
    for i, one in enumerate(ranges):
        for j, other in enumerate(ranges):
            if one.overlaps(other):
                assert where[i] == where[j]
    for before, after in pairwise(groups):
        assert max(ranges[i].upper for i in before) < min(ranges[i].lower for i in after)


def test_ranges_that_share_one_end_overlap() -> None:
    assert overlap_groups([key_range(0, 5), key_range(5, 1), key_range(7, 0)]) == [[0, 1], [2]]


def test_a_missing_bound_is_infinite() -> None:
    below: Bound = ((0, 0), (0, 0))
    above: Bound = ((2, 0), (2, 0))
    unknown = KeyRange(below, above)
    after_cut = KeyRange(((1, "a"), (1, 3)), ((1, "ab"), (2, 0)))
    inside = KeyRange(((1, "ab"), (1, 999)), ((1, "ab"), (1, 999)))
    assert unknown.overlaps(after_cut)
    assert after_cut.overlaps(inside)
