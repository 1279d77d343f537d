"""Deleting what a plan returns: exactly those rows, or nothing and `StalePlan`."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve import ScanPlan, Table
from rowsieve.errors import InvalidInput, StalePlan, UnsupportedOperation
from rowsieve.planner.plan_scan import plan_scan
from tests.profiles import examples
from tests.small_tables import appended, files, keyed, kv, meddled, pairs

START = {"k": [1, 2, 3, 4], "v": [1, 1, 2, 2]}
MAKE = [pytest.param(keyed, id="keyed"), pytest.param(appended, id="appended")]


@pytest.mark.parametrize("make", MAKE)
def test_exactly_the_rows_of_the_plan_go(make: Callable[..., Table]) -> None:
    table = make(START, {"k": [9], "v": [1]})
    plan = table.scan("v = 1", columns=["v"]).plan()
    gone = table.scan(plan=plan).count()
    commit = table.delete(plan=ScanPlan.from_bytes(plan.to_bytes()))
    assert (commit.operation, commit.rows_deleted, gone) == ("delete", 3, 3)
    assert pairs(table) == [(3, 2), (4, 2)]


@pytest.mark.parametrize("make", MAKE)
def test_a_plan_that_returns_nothing_commits_nothing(make: Callable[..., Table]) -> None:
    table = make(START)
    before = table.version
    assert table.delete(plan=table.scan("v = 7").plan()).rows_deleted == 0
    assert table.version == before


@pytest.mark.parametrize("make", MAKE)
def test_one_split_of_a_plan_is_a_plan(make: Callable[..., Table]) -> None:
    table = make(START, {"k": [9], "v": [1]})
    plan = plan_scan(table.handle.pinned, table.uri, now_us=0, split_bytes=1)
    assert len(plan.splits) == 2
    rows = sorted(row["k"] for row in table.scan(plan=plan.only(1)).to_arrow().to_pylist())
    table.delete(plan=plan.only(1))
    assert [k for k, _ in pairs(table)] == sorted({1, 2, 3, 4, 9} - set(rows))


def test_hidden_rows_are_not_hidden_twice() -> None:
    table = appended(START)
    table.delete("k = 1")
    assert table.delete(plan=table.scan("v = 1").plan()).rows_deleted == 1
    assert pairs(table) == [(3, 2), (4, 2)]
    assert table.delete(plan=table.scan().plan()).rows_deleted == 2
    assert pairs(table) == []


def test_a_limit_needs_an_order() -> None:
    table = keyed(START)
    with pytest.raises(InvalidInput, match=r"limit=2 and no order .* order_by_key"):
        table.delete(plan=table.scan(limit=2).plan())
    table.delete(plan=table.scan("v > 0", limit=2, order_by_key=True).plan())
    assert pairs(table) == [(3, 2), (4, 2)]


@pytest.mark.parametrize("make", MAKE)
@pytest.mark.parametrize("by_another_handle", [False, True])
def test_a_table_that_moved_on_is_not_changed(
    make: Callable[..., Table], by_another_handle: bool
) -> None:
    table = make(START)
    plan = table.scan("v = 1").plan()
    writer = rs.open_table(table.uri) if by_another_handle else table
    (writer.upsert if table.key else writer.append)(kv((100, 7)))
    stored = files(table)
    with pytest.raises(StalePlan, match="plan is of version 1 and the table is at version 2"):
        table.delete(plan=plan)
    assert files(table) == stored
    assert len(pairs(table)) == 5


def racing(table: Table, act: Callable[[Table], object]) -> Table:
    """A handle during whose first commit another one acts."""
    other = rs.open_table(table.uri)

    def meddle(attempt: int) -> None:
        if attempt == 0:
            act(other)

    return meddled(table, meddle)


# What another does meanwhile, and the rows then under snapshot; None: the plan is stale.
BETWEEN: dict[str, tuple[Callable[[Table], object], list[tuple[int, int]] | None]] = {
    "a row of the plan changed": (lambda o: o.upsert(kv((1, 5))), None),
    "changed to what it was": (lambda o: o.upsert(kv((1, 1))), None),
    "a row of the plan deleted": (lambda o: o.delete("k = 2"), None),
    "all rows replaced": (lambda o: o.overwrite(kv((7, 1))), None),
    "restored": (lambda o: o.restore(0), None),
    "a row inserted that matches": (lambda o: o.upsert(kv((9, 1))), [(3, 2), (4, 2), (9, 1)]),
    "a row changed so that it matches": (lambda o: o.upsert(kv((3, 1))), [(3, 1), (4, 2)]),
    "a row inserted": (lambda o: o.upsert(kv((9, 3))), [(3, 2), (4, 2), (9, 3)]),
    "compacted": (lambda o: o.compact(), [(3, 2), (4, 2)]),
}
PHANTOMS = ("a row inserted that matches", "a row changed so that it matches")


@pytest.mark.parametrize("name", BETWEEN, ids=lambda name: name.replace(" ", "_"))
@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_a_commit_that_comes_between(name: str, isolation: str) -> None:
    act, rows = BETWEEN[name]
    table = keyed(
        {"k": [1, 2, 3], "v": [1, 1, 2]},
        {"k": [4], "v": [2]},
        properties={"isolation": isolation},
    )
    racer = racing(table, act)
    plan = racer.scan("v = 1").plan()
    if rows is None or (isolation == "serializable" and name in PHANTOMS):
        with pytest.raises(StalePlan, match="changed the result of the plan"):
            racer.delete(plan=plan)
        assert rs.open_table(table.uri).version == 3  # theirs alone
    else:
        assert racer.delete(plan=plan).rows_deleted == 2
        assert pairs(rs.open_table(table.uri)) == rows


@pytest.mark.parametrize(
    ("act", "stale"),
    [
        pytest.param(lambda o: o.delete("k = 2"), True, id="the part was replaced"),
        pytest.param(lambda o: o.compact(), True, id="compacted"),
        pytest.param(lambda o: o.append(kv((9, 1))), True, id="rows appended that match"),
        pytest.param(lambda o: o.append(kv((9, 3))), False, id="rows appended"),
    ],
)
def test_a_commit_that_comes_between_without_a_key(
    act: Callable[[Table], object], stale: bool
) -> None:
    table = appended({"k": [1, 2, 3], "v": [1, 1, 2]}, {"k": [4], "v": [2]})
    racer = racing(table, act)
    plan = racer.scan("v = 1").plan()
    if stale:
        with pytest.raises(StalePlan):
            racer.delete(plan=plan)
    else:
        racer.delete(plan=plan)
        assert pairs(rs.open_table(table.uri)) == [(3, 2), (4, 2), (9, 3)]


def test_plans_that_do_not_belong_here_are_refused() -> None:
    table, other = keyed(START), keyed(START)
    plan = table.scan("v = 1").plan()
    with pytest.raises(InvalidInput, match="of another table"):
        other.delete(plan=plan)
    with pytest.raises(StalePlan, match="of version 9 and the table is at version 1"):
        table.delete(plan=msgspec.structs.replace(plan, version=9))
    with pytest.raises(InvalidInput, match="takes exactly one of"):
        table.delete("v = 1", plan=plan)
    with pytest.raises(UnsupportedOperation, match="read-only"):
        rs.open_table(table.uri, version=1).delete(plan=plan)
    assert len(pairs(table)) == 4


def test_a_token_is_committed_once() -> None:
    table = keyed(START)
    plan = table.scan("v = 1").plan()
    first = table.delete(plan=plan, token=("job", 1))
    assert table.delete(plan=plan, token=("job", 1)) == first


changes = st.lists(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=5), max_size=4
)


@examples(60)
@given(changes, st.sampled_from(["v = 1", "v <> 2 AND k > 3", "k < 5", "TRUE"]), st.booleans())
def test_a_planned_delete_leaves_the_rows_outside_the_plan(
    batches: list[list[tuple[int, int]]], where: str, has_key: bool
) -> None:
    if has_key:
        table = keyed(*({"k": [*dict(b)], "v": [*dict(b).values()]} for b in batches))
    else:
        table = appended(*({"k": [k for k, _ in b], "v": [v for _, v in b]} for b in batches))
    plan = table.scan(where).plan()
    returned = [(row["k"], row["v"]) for row in table.scan(plan=plan).to_arrow().to_pylist()]
    left = pairs(table)
    for row in returned:
        left.remove(row)
    table.delete(plan=plan)
    assert pairs(table) == left
