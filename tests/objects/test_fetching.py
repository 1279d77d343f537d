"""Spans that are fetched early: the same bytes, within the budget, errors of the read itself."""

from __future__ import annotations

import threading
from concurrent.futures import wait
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from obstore.store import MemoryStore

from rowsieve.errors import StoreError
from rowsieve.objects import FetchingStore, RemoteStore, fetching, together
from tests.faults.stores import EveryStore
from tests.faults.vocabulary import Fault
from tests.objects.background import finish_background
from tests.profiles import examples

DATA = bytes(range(256)) * 4
SPANS = st.tuples(st.integers(0, len(DATA)), st.integers(0, 200)).map(
    lambda pair: (pair[0], min(len(DATA), pair[0] + pair[1]))
)


class Counting(RemoteStore):
    """A store across a network that is none; it notes what is read."""

    def __init__(self) -> None:
        super().__init__(MemoryStore(), "memory:///counting", overlaps=True)
        self.reads: list[tuple[str, int, int]] = []
        for name in "ab":
            self.put_new(name, DATA)

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        self.reads.append((path, start, stop))
        return super().get_range(path, start, stop)


STORE = Counting()
STEPS = st.lists(
    st.tuples(st.sampled_from(["expect", "keep", "read"]), st.sampled_from("ab"), SPANS),
    max_size=30,
)


@examples(40)
@given(steps=STEPS, budget_bytes=st.integers(0, 600))
def test_a_read_gives_the_bytes_whatever_was_expected(
    steps: list[tuple[str, str, tuple[int, int]]], budget_bytes: int
) -> None:
    store = FetchingStore(STORE, budget_bytes)
    for step, path, (start, stop) in steps:
        if step == "read":
            assert store.get_range(path, start, stop) == DATA[start:stop]
            assert (
                store.open_input(path, len(DATA)).read_at(stop - start, start) == DATA[start:stop]
            )
        else:
            store.expect([(path, start, stop)], keep=step == "keep")
        held = [span for spans in store._spans.values() for span in spans if span.data is not None]
        assert sum(span.size for span in held) == store._held_bytes
        assert store._held_bytes <= budget_bytes or len(held) == 1


def test_supplied_bytes_are_read_whatever_waits_for_memory() -> None:
    store = FetchingStore(STORE, budget_bytes=10)
    store.supply("an object of the future", DATA)
    for _ in range(2):
        store.expect([("a", 0, 20), ("b", 0, 20), ("an object of the future", 3, 90)], keep=True)
        assert store.get_range("an object of the future", 3, 90) == DATA[3:90]
        assert store.get_range("b", 0, 20) == DATA[:20]


def test_expected_ranges_are_fetched_once_and_then_read_from_the_cache() -> None:
    inner = Counting()
    store = FetchingStore(inner, 1_000)
    store.expect([("a", 0, 100), ("a", 0, 100), ("a", 10, 20)])
    store.expect([("b", 50, 150)], keep=True)
    assert store.get_range("a", 0, 100) == DATA[:100]
    assert store.get_range("b", 60, 70) == store.get_range("b", 60, 70) == DATA[60:70]
    assert sorted(inner.reads) == [("a", 0, 100), ("b", 50, 150)]
    assert store.get_range("a", 0, 100) == DATA[:100]
    assert len(inner.reads) == 3


def test_an_empty_span_asks_for_nothing_and_takes_no_room() -> None:
    inner = Counting()
    store = FetchingStore(inner, 0)
    store.expect([("a", 0, 0), ("a", 0, 1), ("a", 7, 7)])
    assert store.get_range("a", 0, 1) == DATA[:1]
    assert inner.reads == [("a", 0, 1)]


def test_a_failed_early_fetch_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    faults = EveryStore(monkeypatch, Counting).meet_where(Fault.UNAVAILABLE, "get_range", times=1)
    store = FetchingStore(Counting(), 1_000)
    store.expect([("a", 0, 100)])
    assert store.get_range("a", 0, 100) == DATA[:100]
    faults.meet_where(Fault.UNAVAILABLE, "get_range", times=2)
    store.expect([("a", 0, 100)])
    with pytest.raises(StoreError, match=Fault.UNAVAILABLE.value):
        store.get_range("a", 0, 100)
    assert store.get_range("a", 0, 100) == DATA[:100]


def test_requests_overlap_within_the_window_and_the_first_error_is_raised_at_the_end() -> None:
    store, ended = Counting(), []
    meeting = threading.Barrier(fetching.WINDOW, timeout=60)

    def meet(number: int) -> Any:
        def task() -> int:
            meeting.wait()  # none passes unless all have begun
            ended.append(number)
            if number in (5, 7):
                raise StoreError(f"task {number}")
            return number

        return task

    with pytest.raises(StoreError, match="task 5"):
        together(store, [meet(number) for number in range(fetching.WINDOW)])
    assert sorted(ended) == list(range(fetching.WINDOW))
    assert together(store, [lambda: 1, lambda: 2]) == [1, 2]


def test_few_tasks_go_on_aside_so_that_requests_find_room(monkeypatch: pytest.MonkeyPatch) -> None:
    released, began = threading.Event(), []

    def waiting(*arguments: Any, **options: Any) -> Any:
        released.set()
        return wait(*arguments, **options)

    def task() -> None:
        began.append(released.is_set())
        released.wait()

    monkeypatch.setattr(fetching, "wait", waiting)
    store = Counting()
    for _ in range(fetching.MAX_ASIDE + 2):
        fetching.in_background(store, task)
    assert released.is_set(), "nobody waited"
    finish_background()
    assert began.count(False) <= fetching.MAX_ASIDE
    assert len(began) == fetching.MAX_ASIDE + 2


def test_a_failure_in_the_background_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def task() -> None:
        raise StoreError("no checkpoint today")

    fetching.in_background(Counting(), task)
    finish_background()
    while fetching._background:
        pass  # the log is written before a task is forgotten
    assert "no checkpoint today" in caplog.text
