"""The cache of plans: hits only for the same scan (invariants 22 and 30, trap T22)."""

from __future__ import annotations

import dataclasses
import threading
import weakref
from typing import Any

import pytest

import rowsieve
import rowsieve.planner.cache
from rowsieve import Table
from rowsieve.bridges.where import to_predicate
from rowsieve.planner.cache import PLANS, PlanCache
from rowsieve.planner.part_facts import part_facts
from rowsieve.planner.plan import ScanPlan, table_columns
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.semantics import Semantics
from tests.small_tables import keyed, kv, pairs


def table() -> Table:
    return keyed({"k": [1, 2, 3], "v": [10, 20, 30]}, {"k": [100], "v": [1]})


def planned(
    cache: PlanCache, table: Table, where: str | None = None, now_us: int = 0, **options: Any
) -> tuple[ScanPlan, bool]:
    return cache.plan(
        table.handle.pinned,
        table.uri,
        predicate=to_predicate(where, "postgres"),
        now_us=now_us,
        **options,
    )


def test_a_repeated_scan_is_not_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cache, one = PlanCache(), table()
    first, known = planned(cache, one, "v > 10")
    assert not known
    monkeypatch.setattr(rowsieve.planner.cache, "plan_scan", None)
    assert planned(cache, one, "v > 10") == (first, True)


def test_a_version_that_only_its_transaction_reads_is_planned_each_time() -> None:
    """Its transaction is told of every condition, and no plan counts as cached."""
    cache, one, told = PlanCache(), table(), list[Any]()
    pinned = one.handle.pinned
    own = dataclasses.replace(pinned, on_read=lambda *condition: told.append(condition))
    for _ in range(2):
        _, known = cache.plan(own, one.uri, predicate=to_predicate("v > 1", "postgres"), now_us=0)
        assert not known
    assert len(told) == 2


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"where": "v > 20"}, id="predicate"),
        pytest.param({"where": "v > 10.0"}, id="literal of another type"),
        pytest.param({"limit": 1}, id="limit"),
        pytest.param({"ordered": True}, id="order"),
        pytest.param({"pruning": False}, id="pruning"),
        pytest.param({"split_bytes": 1}, id="size of splits"),
        pytest.param({"in_process": False}, id="who reads"),
        pytest.param({"semantics": Semantics.SPARK}, id="semantics"),
        pytest.param(
            {"semantics": dataclasses.replace(Semantics.SQL, time_zone="Asia/Tokyo")}, id="zone"
        ),
    ],
)
def test_another_question_is_planned(options: dict[str, Any]) -> None:
    cache, one = PlanCache(), table()
    planned(cache, one, "v > 10")
    asked = {"where": "v > 10", **options}
    plan, known = planned(cache, one, **asked)
    assert not known
    assert plan == planned(PlanCache(), one, **asked)[0]


def test_another_version_and_another_table_are_planned() -> None:
    cache, one = PlanCache(), table()
    planned(cache, one)
    assert not planned(cache, table())[1]
    one.upsert(kv((7, 7)))
    assert not planned(cache, one)[1]
    assert planned(cache, one)[1]


def test_columns_and_time_are_put_in_at_each_use() -> None:
    cache, one = PlanCache(), table()
    planned(cache, one, "v > 10", now_us=1)
    plan, known = planned(cache, one, "v > 10", now_us=2, columns=table_columns(["v"]))
    assert known
    assert plan == planned(PlanCache(), one, "v > 10", now_us=2, columns=table_columns(["v"]))[0]
    assert planned(cache, one, "v > 10", now_us=3)[0].columns == table_columns(["k", "v"])


@pytest.mark.parametrize("where", ["now() > '2020-01-01'", "current_date > DATE '2020-01-01'"])
def test_a_condition_on_the_time_is_planned_for_each_statement(where: str) -> None:
    cache, one = PlanCache(), table()
    before, after = 1_500_000_000_000_000, 1_600_000_000_000_000  # 2017 and 2020
    old, _ = planned(cache, one, where, now_us=before)
    assert planned(cache, one, where, now_us=before) == (old, True)
    new, known = planned(cache, one, where, now_us=after)
    assert not known
    assert (len(old.splits), len(new.splits)) == (0, 1)  # nothing matched then, all does now


def test_the_least_recently_used_plans_go() -> None:
    cache, one = PlanCache(limit_bytes=10_000), table()  # some KB a plan
    planned(cache, one, "k = 1")
    for i in range(2, 30):
        planned(cache, one, f"k = {i}")
        assert planned(cache, one, "k = 1")[1]
    assert not planned(cache, one, "k = 2")[1]
    cache.clear()
    assert not planned(cache, one, "k = 1")[1]


def test_a_plan_beyond_the_limit_is_not_kept() -> None:
    cache, one = PlanCache(limit_bytes=1), table()
    for _ in range(2):
        plan, known = planned(cache, one)
        assert not known
        assert len(plan.splits) == 1


def test_threads_share_a_cache() -> None:
    cache, one = PlanCache(limit_bytes=20_000), table()
    expected = {i: planned(PlanCache(), one, f"k > {i}")[0] for i in range(10)}
    wrong: list[int] = []

    def ask(seed: int) -> None:
        for step in range(100):
            i = (seed * 7 + step * 3) % 10
            if planned(cache, one, f"k > {i}")[0] != expected[i]:
                wrong.append(i)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_scans_show_that_a_plan_was_reused() -> None:
    one = table()
    assert one.scan("v = 10").metrics.plans_reused == 0
    assert one.scan("v = 10").metrics.plans_reused == 1
    assert pairs(one, "v = 10") == [(1, 10)]
    one.upsert(kv((4, 10)))
    assert one.scan("v = 10").metrics.plans_reused == 0
    assert pairs(one, "v = 10") == [(1, 10), (4, 10)]


def test_datafusion_plans_once_per_question(monkeypatch: pytest.MonkeyPatch) -> None:
    datafusion = pytest.importorskip("datafusion")
    asked = []

    def counted(*arguments: Any, **options: Any) -> ScanPlan:
        asked.append(options["predicate"])
        return plan_scan(*arguments, **options)

    monkeypatch.setattr(rowsieve.planner.cache, "plan_scan", counted)
    context = datafusion.SessionContext()
    one = table()
    one.refresh()
    context.register_table("t", one)
    for _ in range(3):
        found = context.sql("SELECT k FROM t WHERE v = 10").to_pylist()
        assert found == [{"k": 1}]
    assert len(asked) == len(set(asked)) > 0
    one.upsert(kv((4, 10)))
    one.refresh()
    assert len(context.sql("SELECT k FROM t WHERE v = 10").to_pylist()) == 2


def test_plans_and_facts_of_replaced_versions_are_forgotten() -> None:
    """A process that changes and reads one table for hours needs no more memory."""
    one, uuids = table(), set()
    facts = weakref.ref(part_facts(one.handle.pinned))
    for number in range(40):
        one.upsert(kv((number, number)))
        assert one.scan(where=f"v = {number}").to_arrow().num_rows
        uuids.add(one.handle.pinned.table.uuid)
    (uuid,) = uuids
    assert len(PLANS._plans._versions[one.uri, uuid]) == 8
    assert facts() is None


def test_facts_are_kept_with_the_manifest_and_freed_with_it() -> None:
    one = table()
    snapshot = one.handle.pinned
    facts = part_facts(snapshot)
    assert part_facts(snapshot) is facts
    other = dataclasses.replace(snapshot, commit_id="another")  # invariant 22
    assert part_facts(other) is not facts
    reopened = rowsieve.open_table(one.uri).handle.pinned
    assert part_facts(reopened) is not facts
    gone = weakref.ref(part_facts(reopened))
    del reopened
    assert gone() is None  # without the garbage collector


@pytest.mark.parametrize("changed", ["uuid", "commit_id"])
def test_another_table_or_commit_at_the_same_place_is_planned(changed: str) -> None:
    """Invariant 22: a table was made again at this place, or its number was taken by another."""
    cache, one, other = PlanCache(), table(), table()
    snapshot, later = one.handle.pinned, other.handle.pinned
    if changed == "uuid":
        later = dataclasses.replace(later, commit_id=snapshot.commit_id)
    else:
        later = dataclasses.replace(later, table=snapshot.table)
    first, known = cache.plan(snapshot, one.uri, now_us=0)
    assert not known
    second, known = cache.plan(later, one.uri, now_us=0)
    assert not known
    assert first.splits != second.splits
