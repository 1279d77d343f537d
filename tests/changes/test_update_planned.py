"""Updating what a plan returns: exactly those rows, or nothing and `StalePlan`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rowsieve import ScanPlan, Table
from rowsieve.errors import InvalidInput, StalePlan, UnsupportedOperation
from tests.changes.test_delete_planned import racing
from tests.small_tables import appended, files, keyed, kv, pairs

START = {"k": [1, 2, 3, 4], "v": [1, 1, 2, 2]}
MAKE = [pytest.param(keyed, id="keyed"), pytest.param(appended, id="appended")]


@pytest.mark.parametrize("make", MAKE)
@pytest.mark.parametrize("resolve", [False, True])
def test_exactly_the_rows_of_the_plan_change(make: Callable[..., Table], resolve: bool) -> None:
    table = make(START, {"k": [9], "v": [1]})
    plan = table.scan("v = 1", columns=["k"]).plan(resolve=resolve)
    commit = table.update({"v": "v + k"}, plan=ScanPlan.from_bytes(plan.to_bytes()))
    assert (commit.operation, commit.rows_written) == ("update", 3)
    assert pairs(table) == [(1, 2), (2, 3), (3, 2), (4, 2), (9, 10)]


@pytest.mark.parametrize("resolve", [False, True])
def test_hidden_versions_stay_hidden(resolve: bool) -> None:
    table = keyed(START, {"k": [1], "v": [5]})
    table.delete("k = 2")
    table.update({"v": 7}, plan=table.scan("v = 1 OR v = 5").plan(resolve=resolve))
    assert pairs(table) == [(1, 7), (3, 2), (4, 2)]


@pytest.mark.parametrize("make", MAKE)
def test_one_split_of_a_plan_is_updated_alone(make: Callable[..., Table]) -> None:
    table = make(START, {"k": [9], "v": [1]})
    plan = table.scan("k = 9").plan(resolve=True)
    table.update({"v": None}, plan=plan.only(0))
    assert pairs(table, "v IS NULL") == [(9, None)]


@pytest.mark.parametrize("make", MAKE)
def test_a_plan_that_returns_nothing_commits_nothing(make: Callable[..., Table]) -> None:
    table = make(START)
    before = table.version
    assert table.update({"v": 0}, plan=table.scan("v = 7").plan()).rows_written == 0
    assert table.version == before


@pytest.mark.parametrize("make", MAKE)
def test_a_table_that_moved_on_is_not_changed(make: Callable[..., Table]) -> None:
    table = make(START)
    plan = table.scan("v = 1").plan(resolve=True)
    (table.upsert if table.key else table.append)(kv((100, 7)))
    stored = files(table)
    with pytest.raises(StalePlan, match="update: the plan is of version 1"):
        table.update({"v": 0}, plan=plan)
    assert files(table) == stored


def test_a_limit_needs_an_order() -> None:
    table = keyed(START)
    with pytest.raises(InvalidInput, match=r"update: a plan with limit=2 and no order"):
        table.update({"v": 0}, plan=table.scan(limit=2).plan())
    table.update({"v": 0}, plan=table.scan(limit=2, order_by_key=True).plan(resolve=True))
    assert pairs(table) == [(1, 0), (2, 0), (3, 2), (4, 2)]


def test_a_row_that_another_commit_changes_meanwhile_makes_the_plan_stale() -> None:
    table = keyed(START)
    plan = table.scan("v = 1").plan(resolve=True)
    with pytest.raises(StalePlan, match="update: a concurrent commit changed"):
        racing(table, lambda other: other.upsert(kv((1, 50)))).update({"v": 0}, plan=plan)
    assert pairs(table) == [(1, 50), (2, 1), (3, 2), (4, 2)]


def test_a_plan_takes_the_place_of_a_condition() -> None:
    table = keyed(START)
    plan = table.scan("v = 1").plan()
    with pytest.raises(InvalidInput, match="where= or plan=, not both"):
        table.update({"v": 0}, where="k = 1", plan=plan)
    with pytest.raises(InvalidInput, match=r"ScanPlan\.from_bytes"):
        table.update({"v": 0}, plan=plan.to_bytes())  # type: ignore[arg-type]
    with pytest.raises(UnsupportedOperation, match="key column 'k'"):
        table.update({"k": 0}, plan=plan)
    with pytest.raises(InvalidInput, match="of another table"):
        keyed(START).update({"v": 0}, plan=plan)
