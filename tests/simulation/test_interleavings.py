"""Schedules of two or three calls with at most two preemptions: none has a wrong row.

`make test` runs the first schedules with one preemption of a few pairs and of the pair of the day,
`make test-deep` all schedules with two of all pairs.
"""

from __future__ import annotations

from itertools import islice

import pytest

from tests.daily import today
from tests.profiles import IS_DEEP
from tests.simulation.interleavings import PAIRS, TRIPLES, Calls, schedules

PREEMPTIONS, MOST = (2, None) if IS_DEEP else (1, 10)
SOME = (
    Calls(("upsert", "remove_orphans"), keyed=True),
    Calls(("update", "update"), keyed=True, variant=1),
    Calls(("update", "delete_where"), keyed=True, variant=3),
    Calls(("expire_versions", "expire_versions"), keyed=True),
    Calls(("upsert", "add_column"), keyed=True),
    Calls(("compact", "upsert"), keyed=True),
)


def test_there_are_252_pairs() -> None:
    assert len(PAIRS) == len(set(PAIRS)) == 252
    known = {(frozenset(each.names), each.keyed) for each in PAIRS}
    assert {(frozenset(each.names), each.keyed) for each in SOME} <= known


@pytest.mark.parametrize("calls", [*PAIRS, *TRIPLES] if IS_DEEP else SOME, ids=str)
def test_no_schedule_has_a_wrong_row(calls: Calls) -> None:
    check(calls)


@pytest.mark.skipif(IS_DEEP, reason="make test-deep runs all pairs")
def test_no_schedule_of_the_pair_of_the_day_has_a_wrong_row() -> None:
    variant, number = divmod(today().toordinal(), len(PAIRS))
    check(PAIRS[number]._replace(variant=variant))


def check(calls: Calls) -> None:
    """Run the schedules of calls and fail with the first that is wrong."""
    count = 0
    for finding in islice(schedules(calls, preemptions=PREEMPTIONS), MOST):
        assert not finding.problems, finding
        count += 1
    assert count >= 2
