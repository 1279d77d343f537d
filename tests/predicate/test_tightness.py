"""Little is kept that a sound analysis of the same statistics could skip, and nothing else is."""

from __future__ import annotations

import pytest

from benchmarks.bars.tight_predicates import KINDS
from benchmarks.bars.tightness import LEAST_SHARE, Count, counted
from tests.profiles import DEEP_FACTOR, IS_DEEP

EACH = 40 * (DEEP_FACTOR if IS_DEEP else 1)
LEAST_OF_A_KIND = 0.85


@pytest.fixture(scope="module")
def counts() -> dict[str, Count]:
    """Counting refuses to skip a part that holds a row (`WrongAnswer`)."""
    return counted(EACH)


def test_nearly_all_parts_are_skipped_that_could_be(counts: dict[str, Count]) -> None:
    could = sum(count.could for count in counts.values())
    assert could > 100_000
    assert sum(count.are for count in counts.values()) >= LEAST_SHARE * could


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_of_predicate_falls_behind(kind: str, counts: dict[str, Count]) -> None:
    assert counts[kind].could
    assert counts[kind].share >= LEAST_OF_A_KIND
