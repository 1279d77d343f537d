"""Calls that drop, replace or create a table at one place: killed, called again, or at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

import rowsieve as rs
from rowsieve.errors import CommitConflict, TableExists, TableNotFound, UnsupportedOperation
from rowsieve.objects import RemoteStore, open_store
from rowsieve.retention import dropping
from rowsieve.retention.leases import LEASES
from rowsieve.storage.log import create_only
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.log_head import _seen
from tests.faults.ages import aged
from tests.faults.stores import EveryStore, MortalProcess
from tests.faults.vocabulary import Crash, Fault
from tests.small_tables import fresh_uri, kv, pairs

REQUESTS = ("list", "details", "put_new", "delete")
HEAD_START_S = 0.02


def drop(uri: str) -> None:
    rs.drop_table(uri)


def replace(uri: str, key: int = 7) -> None:
    rs.create_table(uri, kv((key, key)), key=["k"], if_exists="replace")


def with_table() -> str:
    """A table of three versions, with files and a checkpoint."""
    settings = {"inline_bytes": "0", "checkpoint_interval": "2"}
    table = rs.create_table(fresh_uri(), kv((1, 1)), key=["k"], properties=settings)
    table.upsert(kv((2, 2)))
    table.upsert(kv((3, 3)))
    return table.uri


def forget() -> None:
    """As another process, which knows no log."""
    _seen.clear()
    create_only._proven.clear()


@pytest.fixture(autouse=True)
def quick_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dropping, "_RETRY_S", 0.01)


@pytest.fixture
def dead_leases() -> Iterator[set[str]]:
    """Leases of processes that died: they are silent for a day."""
    names: set[str] = set()
    with aged(RemoteStore, names.__contains__):
        yield names


def killed_at(call: Callable[[], object], fault: Fault, number: int) -> bool:
    """Let a process die at one of its changes of a store; whether it came that far."""
    with pytest.MonkeyPatch.context() as patch:
        victim = MortalProcess(patch, fault, number)
        with suppress(Crash):
            call()
    forget()
    return victim.is_dead


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.CRASH_WITHIN])
@pytest.mark.parametrize("call", [drop, replace])
def test_a_call_that_is_killed_at_any_change_is_ended_by_the_same_call(
    call: Callable[[str], None], fault: Fault, dead_leases: set[str]
) -> None:
    for number in range(100):
        uri = with_table()
        is_dead = killed_at(partial(call, uri), fault, number)
        dead_leases.update(open_store(uri).list(LEASES))
        with suppress(TableNotFound):  # it died once the table was gone
            call(uri)
        if call is replace:
            assert pairs(rs.open_table(uri)) == [(7, 7)]
            assert rs.open_table(uri).verify().is_whole
        else:
            assert [path for path in open_store(uri).list("") if path not in dead_leases] == []
        if not is_dead:
            return
    raise AssertionError("it never ended")


def test_a_call_waits_until_one_that_died_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    uri = with_table()
    assert killed_at(partial(drop, uri), Fault.CRASH_BEFORE, 5)  # at the deletion of files
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dropping, "PATIENCE_S", 0.1)
        with pytest.raises(CommitConflict, match="or died less than 10 s ago; nothing was changed"):
            drop(uri)
    with pytest.raises(TableExists, match=r"files of a table that was dropped .* drop_table again"):
        rs.create_table(uri, kv((7, 7)), key=["k"])
    leases = open_store(uri).list(LEASES)
    with aged(RemoteStore, leases.__contains__, seconds=dropping.TURN_LEASE_S):
        drop(uri)
    assert open_store(uri).list("") == []


def test_only_readers_from_before_hold_a_committed_drop(dead_leases: set[str]) -> None:
    uri = with_table()
    with rs.open_table(uri).lease() as pinned:
        store = open_store(uri)
        head = dropping._newest(CommitLog(store), store)
        assert head is not None
        dropping._commit_last_floors(CommitLog(store), head)  # then it died
        with pytest.raises(UnsupportedOperation, match="a lease protects version 2"):
            drop(uri)
        assert pairs(pinned) == [(1, 1), (2, 2), (3, 3)]
    drop(uri)
    assert store.list("") == []


class AtOnce:
    """Two calls: the second starts at a request of the first, and both end."""

    def __init__(self, first: Callable[[], object], second: Callable[[], object]) -> None:
        self._calls = (first, second)
        self.errors: list[Exception] = []

    def _run(self, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as error:  # judged by the caller
            self.errors.append(error)

    def start_at(self, number: int) -> bool:
        """Whether the first came that far."""
        other = threading.Thread(target=self._run, args=(self._calls[1],))

        def start() -> None:
            other.start()
            other.join(HEAD_START_S)  # it ends, or waits for its turn

        with pytest.MonkeyPatch.context() as patch:
            stores = EveryStore(patch, RemoteStore, REQUESTS).overtake(start, after=number)
            self._run(self._calls[0])
            if stores.is_over:
                other.join()
        return stores.is_over


@pytest.mark.parametrize("second", [drop, replace])
@pytest.mark.parametrize("first", [drop, replace])
def test_two_calls_at_once_have_the_result_of_an_order(
    first: Callable[..., None], second: Callable[..., None]
) -> None:
    second_call = partial(second, key=8) if second is replace else second
    for number in range(0, 100, 3):
        uri = with_table()
        calls = AtOnce(partial(first, uri), partial(second_call, uri))
        is_over = calls.start_at(number)
        assert [type(each) for each in calls.errors] in ([], [TableNotFound])
        forget()
        left = rows_at(uri)
        if first is drop and second is drop:
            assert left is None
        assert left in ([(7, 7)], [(8, 8)], None)
        if first is second is replace:
            assert left is not None
        if left is None:
            assert open_store(uri).list("") == []
        else:
            table = rs.open_table(uri)
            assert table.verify().is_whole
            assert table.upsert(kv((9, 9))).version == 1
        if not is_over:
            return
    raise AssertionError("it never ended")


def rows_at(uri: str) -> Any:
    try:
        return pairs(rs.open_table(uri))
    except TableNotFound:
        return None


def test_two_that_create_where_nothing_is_have_one_table() -> None:
    """`if_exists="ignore"` opens the table that another call created meanwhile."""

    def create(uri: str, key: int) -> list[Any]:
        table = rs.create_table(uri, kv((key, key)), key=["k"], if_exists="ignore")
        return pairs(table)

    for number in range(100):
        uri, rows = fresh_uri(), []
        with pytest.MonkeyPatch.context() as patch:
            stores = EveryStore(patch, RemoteStore, REQUESTS)
            stores.overtake(lambda: rows.append(create(uri, 1)), after=number)  # noqa: B023
            rows.append(create(uri, 2))
        if not stores.is_over:
            return
        assert rows in ([[(1, 1)], [(1, 1)]], [[(2, 2)], [(2, 2)]])
    raise AssertionError("it never ended")
