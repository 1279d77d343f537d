"""Reads the splits of one plan from a network store with one window of prefetched bytes.

DataFusion reads as many splits at a time as it has threads. So the units of all splits are found
and announced in one order, by whichever split needs a further unit, and each split decodes its own.

Soundness: a unit is of one split, and only the first reading of that split gets it. A split that is
read again, as in each round of a recursive query, is read alone. An error of the search for units
is raised in every split, so that none ends early without it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from rowsieve.executor.execute import Execution
from rowsieve.executor.read_ahead import ReadAhead
from rowsieve.metrics import ScanMetrics
from rowsieve.objects import ObjectStore
from rowsieve.planner.plan import ScanPlan

Task: TypeAlias = Callable[[], Any]
"""Reads or counts rows of one split; any thread may run it."""


class SharedSplits:
    """The units of the splits of one plan, each for the first reading of its split. Thread-safe.

    The units of a plan without columns count their rows; others read them.
    """

    def __init__(self, plan: ScanPlan, store: ObjectStore, *, views: bool) -> None:
        self.metrics = ScanMetrics()
        execution = Execution(plan, store, self.metrics, views=views)
        self._lock = threading.Lock()
        self._begun: set[int] = set()
        self._found: dict[int, deque[Task]] = {}
        self._complete = 0  # splits all of whose units were found
        self._error: BaseException | None = None
        self._units = execution.tasks_by_split(ReadAhead(1, 0), counts=not execution.schema.names)

    def of(self, split: int) -> Iterator[Task] | None:
        """The units of a split at its first reading, then None."""
        with self._lock:
            if split in self._begun:
                return None
            self._begun.add(split)
        return self._of(split)

    def _of(self, split: int) -> Iterator[Task]:
        while (unit := self._next(split)) is not None:
            yield unit

    def _next(self, split: int) -> Task | None:
        # Others that need units wait here, also while this thread waits for the store: their units
        # come after those that it draws.
        with self._lock:
            queue = self._found.setdefault(split, deque())
            while not queue and self._complete <= split:
                self._draw()
            return queue.popleft() if queue else None

    def _draw(self) -> None:
        if self._error is not None:
            raise self._error
        try:
            number, unit = next(self._units)
        except BaseException as error:
            self._error = error
            raise
        if unit is None:
            self._complete = number + 1
        else:
            self._found.setdefault(number, deque()).append(unit)
