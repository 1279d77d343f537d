"""A predicate is read, normalised and bound once per scan; it is JSON only between processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.bars.calls import counted
from rowsieve import ScanPlan
from rowsieve.bridges.where import to_predicate
from rowsieve.errors import InvalidPredicate
from rowsieve.planner.cache import PLANS
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.limits import MAX_DEPTH
from rowsieve.predicate.semantics import Semantics
from tests.small_tables import appended, keyed


def calls_of(work: Callable[[], Any]) -> Counter[str]:
    """How often each function of ours is called, by name."""
    _, calls = counted(work)
    found: Counter[str] = Counter()
    for (_, name), count in calls.items():
        found[name] += count
    return found


def test_a_scan_checks_normalises_and_binds_its_condition_once() -> None:
    table = keyed({"k": [1, 2, 3], "v": [10, 20, 30]}, {"k": [2], "v": [25]})
    PLANS.clear()
    calls = calls_of(lambda: table.scan("v > 10 AND k < 3").to_arrow())
    once = ("check_limits", "normalize", "bind", "simplify")
    assert {name: calls[name] for name in once} == dict.fromkeys(once, 1)


def test_a_repeated_scan_binds_nothing() -> None:
    table = keyed({"k": [1, 2, 3], "v": [10, 20, 30]})
    table.scan("v > 10").to_arrow()
    calls = calls_of(lambda: table.scan("v > 10").to_arrow())
    assert (calls["check_limits"], calls["normalize"], calls["bind"]) == (1, 0, 0)


def test_json_is_made_where_a_plan_leaves_the_process_alone() -> None:
    table = keyed({"k": [1, 2, 3], "v": [10, 20, 30]})
    scan = table.scan("v > 11", columns={"twice": "v * 2"})
    PLANS.clear()
    json = ("predicate_to_json", "predicate_from_json", "schema_to_json", "operand_to_json")
    calls = calls_of(lambda: table.scan("v > 11", columns={"twice": "v * 2"}).to_arrow())
    assert not any(calls[name] for name in (*json, "schema_from_json", "operand_from_json"))
    calls = calls_of(lambda: scan.plan().to_bytes())
    assert calls["predicate_to_json"] == 1


@pytest.mark.parametrize("where", [None, "v > 10", "now() > '2020-01-01' AND v IS NOT NULL"])
def test_the_filter_of_a_plan_is_its_predicate_bound(where: str | None) -> None:
    table = keyed({"k": [1], "v": [11]})
    plan = table.scan(where).plan()
    again = ScanPlan.from_bytes(plan.to_bytes())
    wanted = bind(plan.predicate, plan.schema, plan.semantics, now_us=plan.now_us)
    assert plan.filter == again.filter == (wanted if where else None)


def test_a_reused_plan_asks_by_the_time_of_its_statement() -> None:
    table = keyed({"k": [1], "v": [11]})
    snapshot, early, late = (
        table.handle.pinned,
        1_500_000_000_000_000,
        1_600_000_000_000_000,
    )
    predicate = to_predicate("now() < '2019-01-01'")
    plans = [
        PLANS.plan(snapshot, table.uri, predicate=predicate, now_us=now)[0] for now in (early, late)
    ]
    assert [table.scan(plan=plan).count() for plan in plans] == [1, 0]
    assert plans[0].filter != plans[1].filter


def test_another_predicate_for_the_same_splits_is_bound_anew() -> None:
    table = appended({"k": [1, 2], "v": [1, None]})
    plan = table.scan("v IS NULL").plan()
    asked = plan.with_predicate(to_predicate("k = 1"), Semantics.SPARK)
    assert asked.filter == bind(to_predicate("k = 1"), plan.schema, Semantics.SPARK)
    assert (asked.splits, asked.semantics) == (plan.splits, Semantics.SPARK)


def test_a_plan_too_deep_is_refused_by_each_door() -> None:
    table = keyed({"k": [1], "v": [11]})
    deep: ir.Predicate = ir.Comparison(ir.ComparisonOp.EQ, ir.Column("k"), ir.Literal(1))
    for _ in range(MAX_DEPTH + 1):
        deep = ir.Not(deep)
    for ask in (
        lambda: table.scan(deep),
        lambda: plan_scan(table.handle.pinned, table.uri, predicate=deep, now_us=0),
        lambda: bind(deep, table.handle.pinned.schema),
    ):
        with pytest.raises(InvalidPredicate, match="nests deeper"):
            ask()
