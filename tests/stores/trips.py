"""Dependent round trips of a block, counted by cause: what each request had to wait for.

Every thread carries a clock, the number of answers that it has waited for, one after another. A
request takes it one further. A task that is submitted begins at its submitter's clock, and whoever
takes a future's result is as late as the thread that set it. So the count says how often the
program waited across the network, and a busy machine adds nothing to it.

A lock that is held during a request is a wait that these clocks do not see. So `replayed` runs the
block again in front of a proxy that answers the requests of a round trip only once all of them have
arrived: threads that wait for each other would never get there.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import obstore

from tests.stores.proxy import Proxy

_ONE_ANSWER = ("get", "head", "put", "delete", "list_with_delimiter")


class Trips:
    """What was counted: `count` dependent round trips, and the requests of each of them."""

    def __init__(self) -> None:
        self._clock = threading.local()
        self._lock = threading.Lock()
        self._requests: Counter[int] = Counter()
        self.count = 0
        self.begun: list[Future[Any]] = []

    @property
    def requests(self) -> list[int]:
        """How many requests each round trip has, the first one first."""
        with self._lock:
            return [self._requests[trip] for trip in sorted(self._requests)]

    @property
    def now(self) -> int:
        """The clock of this thread."""
        return int(getattr(self._clock, "now", 0))

    def advance(self, now: int) -> None:
        """Note that this thread knows what was known after so many answers."""
        self._clock.now = max(self.now, now)

    def begin(self, now: int) -> None:
        """Set the clock of a thread that begins a task."""
        self._clock.now = now

    def note_request(self) -> None:
        """Note that this thread asks a server and waits for the answer."""
        self._clock.now = self.now + 1
        with self._lock:
            self._requests[self._clock.now] += 1


@contextmanager
def counted(proxy: Proxy) -> Iterator[Trips]:
    """Count the round trips of a block, all of whose requests go through the proxy."""
    trips = Trips()
    before = len(proxy.requests)
    with patch.multiple(obstore, **_requests(trips)), _clocks(trips):
        yield trips
        trips.count = trips.now
        wait(trips.begun)  # some may go on whose results nobody needed
    sent = len(proxy.requests) - before
    assert sum(trips.requests) == sent, "requests were made that no clock saw, or tried again"


def replayed(proxy: Proxy, act: Callable[[], object], requests: list[int]) -> None:
    """Run `act` where a round trip is answered only when all its requests have arrived."""
    with proxy.in_lockstep(requests) as steps:
        act()
    assert steps.stalled is None, steps.stalled
    assert not steps.is_held


def _requests(trips: Trips) -> dict[str, Any]:
    """The functions of obstore that ask a server, with a clock."""

    def one(function: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*args: Any, **kwargs: Any) -> Any:
            trips.note_request()
            return function(*args, **kwargs)

        return asked

    def listed(*args: Any, **kwargs: Any) -> Iterator[Any]:
        trips.note_request()
        for number, page in enumerate(original(*args, **kwargs)):
            if number:
                trips.note_request()
            yield page

    original = obstore.list
    return {**{name: one(getattr(obstore, name)) for name in _ONE_ANSWER}, "list": listed}


@contextmanager
def _clocks(trips: Trips) -> Iterator[None]:
    """Tasks and futures that hand clocks from thread to thread."""
    submit = ThreadPoolExecutor.submit
    times: dict[int, tuple[Future[Any], int]] = {}  # the future is held, so that its id is its own

    def submitting(pool: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        begun = trips.now

        def task() -> Any:
            trips.begin(begun)
            return function(*args, **kwargs)

        future = submit(pool, task)
        trips.begun.append(future)
        return future

    def setting(name: str) -> Callable[[Any, Any], None]:
        original = getattr(Future, name)

        def method(future: Any, value: Any) -> None:
            times[id(future)] = future, trips.now
            original(future, value)

        return method

    def waiting(name: str) -> Callable[..., Any]:
        original = getattr(Future, name)

        def method(future: Any, timeout: float | None = None) -> Any:
            try:
                return original(future, timeout)
            finally:
                if id(future) in times:
                    trips.advance(times[id(future)][1])

        return method

    setters: dict[str, Any] = {name: setting(name) for name in ("set_result", "set_exception")}
    waiters: dict[str, Any] = {name: waiting(name) for name in ("result", "exception")}
    with (
        patch.object(ThreadPoolExecutor, "submit", submitting),
        patch.multiple(Future, **setters, **waiters),
    ):
        yield
