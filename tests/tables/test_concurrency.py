"""Several writers of one table: what is computed again, what conflicts; nothing is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table, clock
from rowsieve.errors import CommitConflict, EvaluationError, InvalidData, InvalidInput
from tests.oracle_table import bag, merge_by_row, to_rows
from tests.processes import start
from tests.profiles import IS_DEEP
from tests.small_tables import appended, apply, files, keyed, kv, meddled, pairs

Act = Callable[[Table], object]


def once(table: Table, act: Act) -> Table:
    """A handle during whose first commit another one acts."""
    return always(table, lambda other, attempt: act(other) if attempt == 0 else None)


def always(table: Table, act: Callable[[Table, int], object]) -> Table:
    """A handle during each of whose commits another one acts."""
    other = rowsieve.open_table(table.uri)

    def meddle(attempt: int) -> None:
        act(other, attempt)

    return meddled(table, meddle)


START = [(1, 1), (2, 1), (3, 2)]

# (what we do, what another does meanwhile, the rows then)
RACES: dict[str, tuple[Act, Act, list[tuple[int, int]]]] = {
    "a deleted row changed so that it stays": (
        lambda t: t.delete("v = 1"), lambda o: o.upsert(kv((1, 5))), [(1, 5), (3, 2)]),
    "a deleted row changed and still goes": (
        lambda t: t.delete("v = 1"), lambda o: o.upsert(kv((1, 1))), [(3, 2)]),
    "a row inserted meanwhile that matches": (
        lambda t: t.delete("v = 1"), lambda o: o.upsert(kv((9, 1))), [(3, 2)]),
    "another row changed": (
        lambda t: t.delete("v = 1"), lambda o: o.upsert(kv((3, 7))), [(3, 7)]),
    "a deleted row deleted and written again": (
        lambda t: t.delete("v = 1"),
        lambda o: (o.delete(keys=pa.table({"k": [1]})), o.upsert(kv((1, 4)))),
        [(1, 4), (3, 2)]),
    "two updates of one row both count": (
        lambda t: t.update({"v": "v + 10"}, where="k = 1"),
        lambda o: o.update({"v": "v + 100"}, where="k = 1"),
        [(1, 111), (2, 1), (3, 2)]),
    "two updates of different rows": (
        lambda t: t.update({"v": "v + 10"}, where="k = 1"),
        lambda o: o.update({"v": "v + 100"}, where="k = 3"),
        [(1, 11), (2, 1), (3, 102)]),
    "update of a row deleted by key": (
        lambda t: t.update({"v": "v + 10"}, where="v = 1"),
        lambda o: o.delete(keys=pa.table({"k": [1]})),
        [(2, 11), (3, 2)]),
    "update of a row deleted by predicate": (
        lambda t: t.update({"v": "v + 10"}), lambda o: o.delete("k < 3"), [(3, 12)]),
    "update after a change stream": (
        lambda t: t.update({"v": "v + 10"}, where="k = 2"),
        lambda o: apply(o, ("u", 2, 50), ("d", 1, None)),
        [(2, 60), (3, 2)]),
    "delete after a restore": (
        lambda t: t.delete("v = 1"), lambda o: o.restore(0), []),
    "delete after an overwrite": (
        lambda t: t.delete("v = 1"), lambda o: o.overwrite(kv((7, 1), (8, 2))), [(8, 2)]),
    "delete after a rewrite": (
        lambda t: t.delete("v = 1"), lambda o: o.compact(), [(3, 2)]),
    "upsert after a delete of its row": (
        lambda t: t.upsert(kv((1, 6))), lambda o: o.delete("k = 1"), [(1, 6), (2, 1), (3, 2)]),
    "upsert after an overwrite": (
        lambda t: t.upsert(kv((1, 6))), lambda o: o.overwrite(kv((7, 1))), [(1, 6), (7, 1)]),
    "upsert after a restore": (
        lambda t: t.upsert(kv((1, 6))), lambda o: o.restore(0), [(1, 6)]),
    "delete by key after an upsert": (
        lambda t: t.delete(keys=pa.table({"k": [1]})), lambda o: o.upsert(kv((1, 6))),
        [(2, 1), (3, 2)]),
    "rewrite after an upsert": (
        lambda t: t.compact(), lambda o: o.upsert(kv((1, 6))), [(1, 6), (2, 1), (3, 2)]),
    "rewrite after a rewrite": (
        lambda t: t.compact(), lambda o: o.compact(), START),
    "rewrite after a restore": (
        lambda t: t.compact(), lambda o: o.restore(1), [(1, 1), (2, 1)]),
    "rewrite after an overwrite": (
        lambda t: t.compact(), lambda o: o.overwrite(kv((7, 7))), [(7, 7)]),
    "overwrite after an upsert": (
        lambda t: t.overwrite(kv((7, 7))), lambda o: o.upsert(kv((1, 6))), [(7, 7)]),
    "overwrite of matching rows after one more": (
        lambda t: t.overwrite(kv((7, 1)), where="v = 1"),
        lambda o: o.upsert(kv((9, 1))),
        [(3, 2), (7, 1)]),
    "restore after an upsert": (
        lambda t: t.restore(1), lambda o: o.upsert(kv((1, 6))), [(1, 1), (2, 1)]),
    "restore after a rewrite": (
        lambda t: t.restore(1), lambda o: o.compact(), [(1, 1), (2, 1)]),
    "restore after a restore": (
        lambda t: t.restore(1), lambda o: o.restore(0), [(1, 1), (2, 1)]),
}  # fmt: skip


@pytest.mark.parametrize("race", RACES.values(), ids=[name.replace(" ", "_") for name in RACES])
def test_a_race_with_a_key(race: tuple[Act, Act, list[tuple[int, int]]]) -> None:
    ours, theirs, expected = race
    table = keyed({"k": [1, 2], "v": [1, 1]}, {"k": [3], "v": [2]})
    ours(once(table, theirs))
    assert pairs(table) == expected
    table.refresh()
    assert sorted((row["k"], row["v"]) for row in merge_by_row(table)) == expected


UNKEYED_RACES: dict[str, tuple[Act, Act, list[tuple[int, int]]]] = {
    "two deletes in one part": (
        lambda t: t.delete("k = 1"), lambda o: o.delete("k = 2"), [(3, 2)]),
    "two deletes of one row": (
        lambda t: t.delete("k = 1"), lambda o: o.delete("k = 1"), [(2, 1), (3, 2)]),
    "two deletes in two parts": (
        lambda t: t.delete("k = 1"), lambda o: o.delete("k = 3"), [(2, 1)]),
    "two updates of one row": (
        lambda t: t.update({"v": "v + 10"}, where="k = 1"),
        lambda o: o.update({"v": "v + 100"}, where="k = 1"),
        [(1, 111), (2, 1), (3, 2)]),
    "a row appended meanwhile": (
        lambda t: t.delete("v = 1"), lambda o: o.append(kv((9, 9))), [(3, 2), (9, 9)]),
    "delete after a rewrite": (
        lambda t: t.delete("k = 1"), lambda o: o.compact(), [(2, 1), (3, 2)]),
    "rewrite after a delete": (
        lambda t: t.compact(), lambda o: o.delete("k = 1"), [(2, 1), (3, 2)]),
    "rewrite after a delete of a whole part": (
        lambda t: t.compact(), lambda o: o.delete("k = 3"), [(1, 1), (2, 1)]),
    "rewrite after an append": (
        lambda t: t.compact(), lambda o: o.append(kv((1, 1))), [(1, 1), *START]),
    "restore after a delete": (
        lambda t: t.restore(2), lambda o: o.delete("k = 1"), START),
    "delete after a restore": (
        lambda t: t.delete("k = 1"), lambda o: o.restore(1), [(2, 1)]),
    "overwrite after a delete": (
        lambda t: t.overwrite(kv((7, 7)), where="v = 7 OR v = 1"),
        lambda o: o.delete("k = 2"),
        [(3, 2), (7, 7)]),
}  # fmt: skip


@pytest.mark.parametrize(
    "race", UNKEYED_RACES.values(), ids=[name.replace(" ", "_") for name in UNKEYED_RACES]
)
def test_a_race_without_a_key(race: tuple[Act, Act, list[tuple[int, int]]]) -> None:
    ours, theirs, expected = race
    table = appended({"k": [1, 2], "v": [1, 1]}, {"k": [3], "v": [2]})
    ours(once(table, theirs))
    assert pairs(table) == sorted(expected)


CHANGES: dict[str, Callable[..., object]] = {
    "delete": lambda t, **options: t.delete("v >= 0", **options),
    "update": lambda t, **options: t.update({"v": "v + 1"}, **options),
    "overwrite where": lambda t, **options: t.overwrite(kv((1, 7)), where="v >= 0", **options),
    "compact": lambda t, **options: t.compact(**options),
    "restore": lambda t, **options: t.restore(0, **options),
    "overwrite": lambda t, **options: t.overwrite(kv((1, 7)), **options),
}


def crowded() -> tuple[Table, Table, list[int]]:
    """A table, a handle during each of whose commits another conflicts with it, and its tries."""
    table = keyed({"k": [1], "v": [0]}, {"k": [1], "v": [0]})
    tries: list[int] = []

    def act(other: Table, attempt: int) -> None:
        tries.append(attempt)
        other.overwrite(kv((1, attempt)))
        other.upsert(kv((1, attempt)))

    return table, always(table, act), tries


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_without_time_to_retry_one_attempt_is_made(change: Callable[..., object]) -> None:
    table, handle, tries = crowded()
    with pytest.raises(CommitConflict, match=r"in each of 1 attempts in \d+\.\d s") as caught:
        change(handle, retry_timeout_s=0)
    assert (tries, caught.value.attempts) == ([0], 1)
    assert caught.value.elapsed_s is not None
    assert pairs(table) == [(1, 0)]
    assert [c.operation for c in table.history(2)] == ["upsert", "overwrite"]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_attempts_end_at_the_deadline(change: Callable[..., object]) -> None:
    now = [0.0]
    table, handle, tries = crowded()
    with (
        clock.running_on(ClockOfSleeps(now)),
        pytest.raises(CommitConflict, match=r"retry_timeout_s=0\.5"),
    ):
        change(handle, retry_timeout_s=0.5)
    assert now[0] >= 0.5
    assert len(tries) > 5
    assert pairs(table) == [(1, tries[-1])]


class ClockOfSleeps(clock.SystemClock):
    """A clock that only sleeping moves."""

    def __init__(self, now: list[float]) -> None:
        self._now = now

    def monotonic_s(self) -> float:
        return self._now[0]

    def sleep(self, seconds: float) -> None:
        self._now[0] += max(seconds, 1e-6)


@pytest.mark.parametrize("timeout_s", [-1, float("nan"), True, "60", None])
def test_an_invalid_deadline_is_rejected(timeout_s: Any) -> None:
    table = keyed({"k": [1], "v": [0]})
    if timeout_s is None:
        table.delete("v = 1", retry_timeout_s=None)  # no deadline
        return
    with pytest.raises(InvalidInput, match="retry_timeout_s"):
        table.delete("v = 1", retry_timeout_s=timeout_s)


def test_upserts_never_conflict_however_many_come_between() -> None:
    table = keyed()
    handle = always(table, lambda o, n: o.upsert(kv((1, n), (n + 2, n))) if n < 12 else None)
    commit = handle.upsert(kv((1, 100)))
    assert commit.version == 13
    assert pairs(table) == [(1, 100), *[(n + 2, n) for n in range(12)]]


def test_an_error_caused_by_a_concurrent_commit_is_raised_and_not_committed() -> None:
    table = keyed({"k": [1], "v": [1]})
    with pytest.raises(EvaluationError):
        once(table, lambda o: o.upsert(kv((1, 0)))).update({"v": "10 / v"})
    with pytest.raises(InvalidData, match="belong"):
        once(table, lambda o: o.upsert(kv((7, 3)))).overwrite(kv((7, 0)), where="v = 0")
    assert [c.operation for c in table.history(2)] == ["upsert", "upsert"]


def test_a_change_without_remaining_rows_commits_nothing() -> None:
    table = keyed({"k": [1], "v": [1]})
    commit = once(table, lambda o: o.upsert(kv((1, 2)))).delete("v = 1")
    assert (commit.version, commit.rows_deleted) == (2, 0)
    assert table.refresh() == 2


def test_a_token_counts_once_whoever_was_first() -> None:
    table = keyed()
    other = rowsieve.open_table(table.uri)
    handle = once(table, lambda o: o.upsert(kv((1, 1)), token=("job", 5)))
    late = handle.upsert(kv((1, 2)), token=("job", 5))
    assert late.version == 1
    assert pairs(table) == [(1, 1)]
    written = files(table)
    assert other.upsert(kv((1, 3)), token=("job", 4)).version == 1
    assert other.delete("v = 1", token=("job", 5)).version == 1
    assert other.overwrite(kv((1, 3)), token=("job", 5)).version == 1
    assert files(table) == written
    assert other.upsert(kv((1, 3)), token=("job", 6)).version == 2
    assert other.upsert(kv((1, 4)), token=("other", 1)).version == 3


def test_readers_of_old_versions_are_not_disturbed() -> None:
    table = keyed({"k": [1, 2], "v": [1, 1]}, {"k": [1], "v": [2]})
    scan = table.scan()
    reader = table.scan().to_reader()
    table.compact()
    table.overwrite(kv((9, 9)))
    assert bag(to_rows(scan.to_arrow(), table.handle.pinned.schema)) == bag(
        [{"k": 1, "v": 2}, {"k": 2, "v": 1}]
    )
    assert reader.read_all().num_rows == 2


WRITERS, COMMITS = (8, 10) if IS_DEEP else (4, 5)


def write(path: str, writer: int) -> None:
    """Commits: a key of its own each, one that all share, and its own counter."""
    table = rowsieve.open_table(path)
    for i in range(COMMITS):
        table.upsert(kv((1000 * writer + i, i), (0, writer)), token=(f"writer-{writer}", i))
        if i % 5 == 4:
            count(table)


def count(table: Table) -> None:
    """All add to one row."""
    table.update({"v": "v + 1"}, where="k = -1")


def run_processes(work: Callable[[str, int], None], path: str) -> None:
    processes = [start(work, path, n) for n in range(1, WRITERS + 1)]
    for process in processes:
        process.join()  # its updates have deadlines, elapsed time here is the machine's
    assert [process.exitcode for process in processes] == [0] * WRITERS


def test_many_processes_lose_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = rowsieve.create_table(
        path, kv((-1, 0)), key=["k"], properties={"checkpoint_interval": "7"}
    )
    run_processes(write, path)
    updates = COMMITS // 5 * WRITERS
    assert table.refresh() == WRITERS * COMMITS + updates
    assert len({commit.commit_id for commit in table.history()}) == table.version + 1
    found = dict(pairs(table))
    assert found.pop(-1) == updates
    assert found.pop(0) in range(1, WRITERS + 1)
    assert found == {1000 * n + i: i for n in range(1, WRITERS + 1) for i in range(COMMITS)}
    assert table.scan("k = 0").count() == 1
    assert bag(merge_by_row(table)) == bag(
        to_rows(table.scan().to_arrow(), table.handle.pinned.schema)
    )


HOT_KEYS, UPDATES = 4, 100 if IS_DEEP else 4


def heat(path: str, writer: int) -> None:
    """Updates of rows that all writers change."""
    table = rowsieve.open_table(path)
    for i in range(UPDATES):
        table.update({"v": "v + 1"}, where=f"k = {(writer + i) % HOT_KEYS}", retry_timeout_s=60.0)


def test_updates_of_few_rows_by_many_processes_all_count(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = rowsieve.create_table(path, kv(*((k, 0) for k in range(HOT_KEYS))), key=["k"])
    run_processes(heat, path)
    assert sum(v for _, v in pairs(table)) == WRITERS * UPDATES
    assert table.refresh() == WRITERS * UPDATES


WRITES = 60 if IS_DEEP else 20


def test_readers_see_a_whole_log_while_their_process_writes(tmp_path: Path) -> None:
    """What another thread has seen meanwhile is no hole in what this one reads."""
    table = rowsieve.create_table(str(tmp_path / "t"), pa.table({"k": [0], "n": [0]}), key=["k"])
    done = threading.Event()
    failures: list[Exception] = []

    def read() -> None:
        while not done.is_set():
            try:
                rowsieve.open_table(str(tmp_path / "t")).history(1)
                table.delete("k < 0")
            except Exception as error:  # whatever it is, it is wrong
                failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for i in range(WRITES):
        table.upsert(pa.table({"k": [i], "n": [i]}))
    done.set()
    for reader in readers:
        reader.join()
    assert failures == []
    assert table.scan().count() == WRITES
