"""Serializable: a change reads the version right before its own. Snapshot: some earlier one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import EvaluationError, InvalidInput, StalePlan
from tests.profiles import IS_DEEP
from tests.small_tables import appended, fresh_uri, keyed, kv, meddled, pairs

Act = Callable[[Table], object]
Rows = list[tuple[int, int | None]]
SNAPSHOT = {"isolation": "snapshot"}


def racing(table: Table, *acts: Act) -> Table:
    """A handle during whose first commits others act."""
    other = rowsieve.open_table(table.uri)

    def meddle(attempt: int) -> None:
        if attempt < len(acts):
            acts[attempt](other)

    return meddled(table, meddle)


def swap(table: Table) -> Rows:
    """Two updates that read each other's rows: `0 -> 1` beside `1 -> 0`."""
    ours = racing(table, lambda other: other.update({"v": "0"}, where="v = 1"))
    ours.update({"v": "1"}, where="v = 0")
    return pairs(table)


@pytest.mark.parametrize("make", [keyed, appended])
def test_updates_that_read_each_others_rows_do_not_both_commit(make: Callable[..., Table]) -> None:
    assert swap(make({"k": [1, 2], "v": [0, 1]})) == [(1, 1), (2, 1)]


@pytest.mark.parametrize("make", [keyed, appended])
def test_under_snapshot_updates_that_read_each_others_rows_swap_them(
    make: Callable[..., Table],
) -> None:
    assert swap(make({"k": [1], "v": [0]}, {"k": [2], "v": [1]}, properties=SNAPSHOT)) == [
        (1, 1),
        (2, 0),
    ]


# (what we do, what another does meanwhile, the rows under serializable, those under snapshot)
PHANTOMS: dict[str, tuple[Act, Act, Rows, Rows]] = {
    "a row inserted that matches a delete": (
        lambda t: t.delete("v = 1"), lambda o: o.upsert(kv((9, 1))),
        [(3, 2)], [(3, 2), (9, 1)]),
    "a row inserted that does not match": (
        lambda t: t.delete("v = 1"), lambda o: o.upsert(kv((9, 2))),
        [(3, 2), (9, 2)], [(3, 2), (9, 2)]),
    "a row changed so that it matches": (
        lambda t: t.update({"v": "v + 10"}, where="v = 1"), lambda o: o.upsert(kv((3, 1))),
        [(1, 11), (2, 11), (3, 11)], [(1, 11), (2, 11), (3, 1)]),
    "a row updated so that it matches": (
        lambda t: t.delete("v = 1"), lambda o: o.update({"v": "1"}, where="k = 3"),
        [], [(3, 1)]),
    "an unconditional update and an insert": (
        lambda t: t.update({"v": "v + 10"}), lambda o: o.upsert(kv((9, None))),
        [(1, 11), (2, 11), (3, 12), (9, None)], [(1, 11), (2, 11), (3, 12), (9, None)]),
    "a matching row that came and went": (
        lambda t: t.delete("v = 1"),
        lambda o: (o.upsert(kv((9, 1))), o.delete(keys=pa.table({"k": [9]}))),
        [(3, 2)], [(3, 2)]),
    "an overwrite of matching rows": (
        lambda t: t.overwrite(kv((7, 1)), where="v = 1"), lambda o: o.upsert(kv((9, 1))),
        [(3, 2), (7, 1)], [(3, 2), (7, 1)]),
    "a rewrite adds no rows": (
        lambda t: t.delete("v = 1"), lambda o: o.compact(), [(3, 2)], [(3, 2)]),
}  # fmt: skip


@pytest.mark.parametrize("name", PHANTOMS, ids=lambda name: name.replace(" ", "_"))
@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_a_row_that_begins_to_match_meanwhile(name: str, isolation: str) -> None:
    ours, theirs, serializable, snapshot = PHANTOMS[name]
    table = keyed({"k": [1, 2], "v": [1, 1]}, {"k": [3], "v": [2]},
                  properties={"isolation": isolation})  # fmt: skip
    ours(racing(table, theirs))
    assert pairs(table) == (serializable if isolation == "serializable" else snapshot)


def test_without_a_key_appended_rows_that_match_are_read() -> None:
    table = appended({"k": [1, 2], "v": [1, 2]})
    racing(table, lambda other: other.append(kv((3, 1)))).update({"v": "v + 10"}, where="v = 1")
    assert pairs(table) == [(1, 11), (2, 2), (3, 11)]


def test_a_part_that_only_lost_rows_adds_none() -> None:
    """The other hides a row of the second part, whose rows match ours but were not touched."""
    table = appended({"k": [1, 2], "v": [1, 1]}, {"k": [3, 4], "v": [2, 2]})
    tries: list[int] = []
    other = rowsieve.open_table(table.uri)

    def meddle(attempt: int) -> None:
        tries.append(attempt)
        if attempt == 0:
            other.delete("k = 4")

    meddled(table, meddle).delete("v = 1")
    assert pairs(table) == [(3, 2)]
    assert tries == [0, 1]  # the second try put the same bytes: nothing was computed again
    assert table.history(1)[0].rows_deleted == 2


def test_a_row_whose_condition_fails_is_an_error_as_if_it_had_been_there_before() -> None:
    table = keyed({"k": [1], "v": [5]})
    with pytest.raises(EvaluationError):
        racing(table, lambda other: other.upsert(kv((9, 0)))).delete("10 / v = 2")
    assert pairs(table) == [(1, 5), (9, 0)]
    gone = racing(
        table,
        lambda other: (other.delete(keys=pa.table({"k": [9]})), other.upsert(kv((8, 2)))),
    )
    gone.delete("v > 0 AND 10 / v = 2")
    assert pairs(table) == [(8, 2)]


def test_statistics_refute_parts_before_their_rows_are_read(tmp_path: Path) -> None:
    table = rowsieve.create_table(str(tmp_path / "t"), kv((1, 1), (2, 1)), key=["k"])
    other = rowsieve.open_table(table.uri)

    def meddle(attempt: int) -> None:
        if attempt == 0:
            before = {path.name for path in (tmp_path / "t" / "data").iterdir()}
            other.upsert(kv((9, 500)))
            (new,) = {p for p in (tmp_path / "t" / "data").iterdir() if p.name not in before}
            new.write_bytes(b"unreadable")

    commit = meddled(table, meddle).delete("v = 1")
    assert commit.rows_deleted == 2


def test_a_delete_by_plan_whose_answer_changed_is_stale() -> None:
    table = keyed({"k": [1, 2], "v": [1, 1]}, properties={"isolation": "serializable"})
    plan = table.scan("v = 1").plan()
    with pytest.raises(StalePlan, match="Plan the scan again"):
        racing(table, lambda other: other.upsert(kv((9, 1)))).delete(plan=plan)
    assert pairs(table) == [(1, 1), (2, 1), (9, 1)]
    loose = keyed({"k": [1, 2], "v": [1, 1]}, properties=SNAPSHOT)
    plan = loose.scan("v = 1").plan()
    racing(loose, lambda other: other.upsert(kv((9, 1)))).delete(plan=plan)
    assert pairs(loose) == [(9, 1)]


def test_every_commit_since_the_snapshot_is_asked_not_only_the_last() -> None:
    table = keyed({"k": [1, 2], "v": [1, 2]})
    ours = racing(
        table,
        lambda other: (
            other.upsert(kv((5, 5))),
            other.upsert(kv((9, 1))),
            other.upsert(kv((6, 5))),
        ),
    )
    assert ours.delete("v = 1").rows_deleted == 2
    assert pairs(table) == [(2, 2), (5, 5), (6, 5)]


@pytest.mark.parametrize("level", ["SNAPSHOT", "read committed", "", "snapshot "])
def test_an_isolation_level_that_does_not_exist_is_refused(level: str) -> None:
    with pytest.raises(InvalidInput, match="serializable or snapshot"):
        rowsieve.create_table(fresh_uri(), kv((1, 1)), key=["k"], properties={"isolation": level})


ROUNDS = 200 if IS_DEEP else 8


def update_all(uri: str, where: str, value: str, barrier: threading.Barrier) -> None:
    handle = rowsieve.open_table(uri)
    barrier.wait()
    handle.update({"v": value}, where=where)


def test_threads_never_swap_rows(tmp_path: Path) -> None:
    swapped = 0
    for number in range(ROUNDS):
        uri = str(tmp_path / str(number))
        table = rowsieve.create_table(uri, kv((1, 0), (2, 1)), key=["k"])
        barrier = threading.Barrier(2)
        threads = [
            threading.Thread(target=update_all, args=(uri, "v = 0", "1", barrier)),
            threading.Thread(target=update_all, args=(uri, "v = 1", "0", barrier)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert table.refresh() in (1, 2)  # the second may find nothing that is left to do
        swapped += pairs(table) == [(1, 1), (2, 0)]
    assert swapped == 0
