"""Reading ahead: the same results and errors in the same order, and no thread stays alive."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from rowsieve.executor import read_ahead
from rowsieve.executor.merging.windows import Numbered
from rowsieve.executor.read_ahead import ReadAhead


def numbered(count: int, touched: list[int] | None = None) -> Iterator[Numbered]:
    for i in range(count):
        if touched is not None:
            touched.append(i)
        yield i, pa.record_batch({"k": [i] * 100})


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_the_order_of_the_tasks(threads: int) -> None:
    def slow_first(i: int) -> int:
        time.sleep(0.01 if i % 3 == 0 else 0)
        return i

    with ReadAhead(threads, 10) as ahead:
        assert list(ahead.results(partial(slow_first, i) for i in range(20))) == list(range(20))


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_comes_after_the_results_before_it(threads: int) -> None:
    def task(i: int) -> int:
        if i == 5:
            raise OSError("gone")
        return i

    with ReadAhead(threads, 0) as ahead:
        results = ahead.results(partial(task, i) for i in range(9))
        assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
        with pytest.raises(OSError, match="gone"):
            next(results)


def test_no_more_is_begun_than_threads_can_do_soon() -> None:
    begun: list[int] = []
    with ReadAhead(2, 10) as ahead:
        results = ahead.results(partial(begun.append, i) for i in range(1_000))
        next(results)
        assert len(begun) <= 5
        results.close()  # type: ignore[attr-defined]
    assert len(begun) <= 5


@pytest.mark.parametrize(("reserve_bytes", "most"), [(0, 1), (250, 2), (500, 5), (10**9, 8)])
def test_no_more_is_begun_than_the_reserve_holds(reserve_bytes: int, most: int) -> None:
    begun: list[int] = []

    def task(i: int) -> int:
        begun.append(i)
        return i

    with ReadAhead(4, reserve_bytes) as ahead:
        results = ahead.results((partial(task, i) for i in range(40)), lambda _: 100)
        for done, result in enumerate(results):
            assert result == done
            assert len(begun) - done <= max(most, 2 if done == 0 else 1)
    assert len(begun) == 40


@pytest.mark.parametrize("count", [1, 4, 5])
def test_few_tasks_are_done_without_threads(count: int) -> None:
    with ReadAhead(4, 10**9) as ahead:
        found = set(ahead.results(threading.get_ident for _ in range(count)))
    assert (found == {threading.get_ident()}) == (count < 5)


@pytest.mark.parametrize("reserve_bytes", [0, 1_000, 10**9])
def test_a_source_gives_the_same_batches_whatever_the_reserve(reserve_bytes: int) -> None:
    with ReadAhead(2, reserve_bytes) as ahead:
        sources = [ahead.of(numbered(7)) for _ in range(3)]
        for i in range(7):
            assert [next(source)[0] for source in sources] == [i] * 3
        assert [list(source) for source in sources] == [[], [], []]


def test_without_reserve_nothing_is_fetched_early_and_with_it_one_batch() -> None:
    early: list[int] = []
    with ReadAhead(2, 0) as ahead:
        next(ahead.of(numbered(5, early)))
    assert early == [0]
    early.clear()
    with ReadAhead(2, 10**6) as ahead:
        next(ahead.of(numbered(5, early)))
    assert early == [0, 1]


def test_all_threads_end_when_the_consumer_stops() -> None:
    before = threading.active_count()
    with ReadAhead(4, 10**6) as ahead:
        next(ahead.results(partial(int, i) for i in range(100)))
        next(ahead.of(numbered(100)))
    assert threading.active_count() == before


@pytest.mark.parametrize("is_announced", [False, True])
def test_few_threads_decode_where_all_requests_are_announced(is_announced: bool) -> None:
    store: Any = SimpleNamespace(overlaps=True)
    schedule = read_ahead.Schedule(store, 1 << 20, is_announced=is_announced)
    expected = read_ahead.DECODING_THREADS if is_announced else read_ahead.NETWORK_THREADS
    assert schedule.ahead()._threads == expected
    assert read_ahead.Schedule(store, 1 << 20, 3, is_announced=is_announced).ahead()._threads == 3
