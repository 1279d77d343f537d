"""Schedules of two or three calls with at most two preemptions: none has a wrong row.

`make test` runs a few pairs with one preemption, `make test-deep` all of them with two.
"""

from __future__ import annotations

import pytest

from tests.profiles import IS_DEEP
from tests.simulation.interleavings import PAIRS, TRIPLES, Calls, schedules

PREEMPTIONS = 2 if IS_DEEP else 1
SOME = (
    Calls(("upsert", "remove_orphans"), keyed=True),
    Calls(("update", "update"), keyed=True, variant=1),
    Calls(("update", "delete_where"), keyed=True),
    Calls(("delete_where", "compact")),
)


def test_there_are_192_pairs() -> None:
    assert len(PAIRS) == len(set(PAIRS)) == 192
    known = {(frozenset(each.names), each.keyed) for each in PAIRS}
    assert {(frozenset(each.names), each.keyed) for each in SOME} <= known


@pytest.mark.parametrize("calls", [*PAIRS, *TRIPLES] if IS_DEEP else SOME, ids=str)
def test_no_schedule_has_a_wrong_row(calls: Calls) -> None:
    count = 0
    for finding in schedules(calls, preemptions=PREEMPTIONS):
        assert not finding.problems, finding
        count += 1
    assert count >= 2
