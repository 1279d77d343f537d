"""Schedules of two or three calls with at most two preemptions: none has a wrong row.

`make test` runs the first schedules with one preemption of a few pairs and of the pair of the day,
`make test-deep` all schedules with two of all pairs, with other arguments each day.
"""

from __future__ import annotations

from itertools import islice

import pytest

from rowsieve.storage.log.log_entry import decode_entry, version_of
from tests.daily import today
from tests.profiles import IS_DEEP
from tests.simulation import interleavings
from tests.simulation.interleavings import PAIRS, TRIPLES, Calls, Program, Step, schedules
from tests.simulation.world import World

PREEMPTIONS, MOST = (2, None) if IS_DEEP else (1, 10)
SOME = (
    Calls(("upsert", "remove_orphans"), keyed=True),
    Calls(("update", "update"), keyed=True, variant=1),
    Calls(("update", "delete_where"), keyed=True, variant=3),
    Calls(("expire_versions", "expire_versions"), keyed=True, variant=5),
    Calls(("upsert", "add_column"), keyed=True),
    Calls(("compact", "upsert"), keyed=True),
    Calls(("upsert", "compact"), keyed=True, kind="in_log"),
    Calls(("apply", "truncate"), keyed=True, kind="in_order"),
)


def test_there_are_463_pairs() -> None:
    assert len(PAIRS) == len(set(PAIRS)) == 463
    known = {(frozenset(each.names), each.keyed) for each in PAIRS}
    assert {(frozenset(each.names), each.keyed) for each in SOME} <= known


@pytest.mark.parametrize("calls", [*PAIRS, *TRIPLES] if IS_DEEP else SOME, ids=str)
def test_no_schedule_has_a_wrong_row(calls: Calls) -> None:
    check(calls._replace(variant=today().toordinal()) if IS_DEEP else calls)


def test_a_transaction_whose_vector_is_taken_for_an_orphan_is_told_so() -> None:
    """Found by the pairs: SnapshotExpired, which callers retry, and no error of the store."""
    calls = Calls(("remove_orphans", "transaction"))
    turns = ((0, 1), (1, 12), (0, interleavings.UNLIMITED), (1, interleavings.UNLIMITED))
    assert interleavings.problems_of(calls, Program(turns)) == []


@pytest.mark.parametrize("first", [13, 16])
@pytest.mark.parametrize("kind", ["tag", "branch"])
def test_a_ref_is_made_though_its_folder_is_taken_for_an_orphan(kind: str, first: int) -> None:
    """Found by the pairs: the second attempt has a folder that `remove_orphans` keeps."""
    calls = Calls(("remove_orphans", kind), keyed=True)
    turns = ((0, 1), (1, first), (0, interleavings.UNLIMITED), (1, interleavings.UNLIMITED))
    assert interleavings.problems_of(calls, Program(turns)) == []


@pytest.mark.skipif(IS_DEEP, reason="make test-deep runs all pairs")
def test_no_schedule_of_the_pair_of_the_day_has_a_wrong_row() -> None:
    day = today().toordinal()
    check(PAIRS[day % len(PAIRS)]._replace(variant=day))


@pytest.mark.parametrize(
    ("one", "other", "commute"),
    [
        (("get", "a"), ("list", ""), True),
        (("get", "a"), ("put", "a"), False),
        (("get", "a"), ("put", "b"), True),
        (("put", "log/1"), ("put", "log/1"), False),
        (("delete", "data/1"), ("list", "data"), False),
        (("list", "data"), ("put", "log/1"), True),
        (("sleep", ""), ("get", "a"), False),
        (("start", ""), ("put", "a"), True),
    ],
)
def test_requests_commute_unless_one_changes_what_the_other_sees(
    one: tuple[str, str], other: tuple[str, str], commute: bool
) -> None:
    first, second = Step(0, *one), Step(1, *other)
    assert first.commutes(second) == second.commutes(first) == commute


@pytest.mark.skipif(not IS_DEEP, reason="runs every schedule, 30 s")
@pytest.mark.parametrize("names", [("upsert", "update"), ("delete_where", "remove_orphans")])
def test_no_result_is_left_out_with_equivalent_schedules(
    names: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, few, all_ = Calls(names, keyed=True), set[str](), set[str]()
    monkeypatch.setattr(interleavings, "judged", lambda world, **_: noted(world, few))
    count = sum(not finding.problems for finding in schedules(calls, preemptions=1))
    monkeypatch.setattr(interleavings, "judged", lambda world, **_: noted(world, all_))
    monkeypatch.setattr(interleavings, "equivalents", only_itself)
    assert count < sum(not finding.problems for finding in schedules(calls, preemptions=1))
    assert few == all_


def noted(world: World, results: set[str]) -> list[str]:
    """Note what a schedule has committed, and what its callers were told."""
    entries = sorted(
        (version, decode_entry(data, version, path))
        for path, data in world.bucket.ever.items()
        if (version := version_of(path)) is not None
    )
    log = [(entry.operation, entry.rows_written, entry.rows_deleted) for _, entry in entries]
    told = sorted(world.outcomes.acknowledged.items()), sorted(world.outcomes.refused)
    results.add(f"{log} {told} {len(world.bucket.objects)}")
    return []


def only_itself(program: Program) -> dict[tuple[int, int], tuple[bool, bool]]:
    """Take no schedule for another's equivalent."""
    (_, first), (_, second) = program.turns[:2]
    return {(first, second): (program.was_left[0], program.was_left[1])}


def check(calls: Calls) -> None:
    """Run the schedules of calls and fail with the first that is wrong."""
    count = 0
    for finding in islice(schedules(calls, preemptions=PREEMPTIONS), MOST):
        assert not finding.problems, finding
        count += 1
    assert count >= 2
