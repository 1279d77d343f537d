"""Processes of a simulation: their memory, and the parts of Python that a simulation replaces."""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final, Self

import pytest

from rowsieve import clock, scan
from rowsieve.byte_cache import ByteCache
from rowsieve.executor import live_rows, read_ahead
from rowsieve.executor.merging import visibility
from rowsieve.executor.merging.visibility import VisibilityCache
from rowsieve.objects import ObjectStore, fetching, store_opening
from rowsieve.objects.location import Location
from rowsieve.objects.shared import (
    group_commit,
    joint,
    shared_log,
    shared_reader,
    shared_tables,
)
from rowsieve.parquet import bloom_reader, footer
from rowsieve.parquet.statistics import row_groups
from rowsieve.planner.cache import PlanCache
from rowsieve.procedures import engine
from rowsieve.retention import leases
from rowsieve.storage.log import create_only, log_head
from tests.simulation.bucket import SimulatedStore
from tests.simulation.scheduler import (
    Scheduler,
    SimulatedClock,
    SimulatedCondition,
    SimulatedEvent,
    SimulatedFuture,
    SimulatedPool,
    SimulatedThread,
    current_task,
)

CACHE_BYTES: Final = 1 << 20
# What a process remembers of tables: module, attribute, and how it is when the process starts.
MEMORY: Final[tuple[tuple[Any, str, Callable[[], object]], ...]] = (
    (live_rows, "_VISIBLE", VisibilityCache),
    (footer, "_CACHE", lambda: ByteCache[Any, Any](CACHE_BYTES)),
    (bloom_reader, "_CACHE", lambda: ByteCache[Any, Any](CACHE_BYTES)),
    (row_groups, "_JOINED", lambda: ByteCache[Any, Any](CACHE_BYTES)),
    (scan, "PLANS", PlanCache),
    (log_head, "_seen", lambda: ByteCache[Any, Any](CACHE_BYTES, keeps_unused=True)),
    (create_only, "_proven", lambda: ByteCache[Any, Any](CACHE_BYTES)),
    (shared_log, "_seen", lambda: ByteCache[Any, Any](CACHE_BYTES, keeps_unused=True)),
    (shared_reader, "_entries", lambda: ByteCache[Any, Any](CACHE_BYTES)),
    (shared_reader, "_pages", lambda: ByteCache[Any, Any](CACHE_BYTES)),
    (shared_tables, "_open", dict),
    (fetching, "_background", set),
)


class SimulatedProcess:
    """A process with memory of its own and one store."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = False
        self.store: SimulatedStore | None = None
        self._memory = [make() for _, _, make in MEMORY]

    def install(self) -> None:
        """Make the process's memory that of the interpreter."""
        for (module, attribute, _), memory in zip(MEMORY, self._memory, strict=True):
            setattr(module, attribute, memory)


@contextmanager
def replaced_world(
    scheduler: Scheduler, seed: str, judge: Callable[[], SimulatedProcess]
) -> Iterator[None]:
    """Replace clocks, threads, ids and stores in memory until the end of the block.

    `judge` returns the process of code that runs outside the tasks.
    """
    ids, pool = random.Random(f"{seed} ids"), SimulatedPool(scheduler)

    def open_memory(location: Location) -> ObjectStore:
        task = current_task()
        process = judge() if task is None else task.process
        assert isinstance(process, SimulatedProcess)
        assert process.store is not None
        return process.store.inside(location.uri)

    def thread(*, target: Callable[[], object], **_: object) -> SimulatedThread:
        return SimulatedThread(scheduler, target)

    with pytest.MonkeyPatch.context() as patch:
        for module, attribute, make in MEMORY:
            patch.setattr(module, attribute, make())
        patch.setattr(read_ahead, "CORES", 1)
        patch.setattr(read_ahead, "NETWORK_THREADS", 1)
        patch.setattr(read_ahead, "DECODING_THREADS", 1)
        patch.setattr(visibility, "Future", lambda: SimulatedFuture[Any](scheduler))
        patch.setattr(fetching, "MAX_ASIDE", 1 << 20)
        patch.setattr(fetching, "_pools", _AnyProcess(pool))
        patch.setattr(fetching, "Threads", lambda *_, **__: pool)
        patch.setattr(engine, "_thread_pool", lambda _: _InTurn())
        waits = SimpleNamespace(
            Event=lambda: SimulatedEvent(scheduler),
            Condition=lambda: SimulatedCondition(scheduler),
        )
        for module in (group_commit, joint):
            patch.setattr(module, "threading", waits)
        patch.setattr(leases, "threading", SimpleNamespace(Thread=thread, Event=threading.Event))
        patch.setattr(store_opening, "_open_memory", open_memory)
        patch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=ids.getrandbits(128), version=4))
        with clock.running_on(SimulatedClock(scheduler, random.Random(f"{seed} jitter"))):
            yield


class _AnyProcess(dict[int, SimulatedPool]):
    def __init__(self, pool: SimulatedPool) -> None:
        self._pool = pool

    def get(self, _: int, __: object = None) -> Any:
        return self._pool


class _InTurn:
    """A pool of threads for procedures that runs each task when it is submitted."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, call: Callable[..., object], *args: object) -> Future[Any]:
        future = Future[Any]()
        try:
            future.set_result(call(*args))
        except Exception as error:
            future.set_exception(error)
        return future
