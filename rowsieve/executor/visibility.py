"""Which rows of overlapping parts are visible, from their keys alone.

A row is hidden when a newer part has its key, in its rows or its tombstones (invariant I3). After
that every key lives in one part at most, so any predicate may be asked of any part by itself, and
rows that are hidden are never decoded further. The answer depends on the parts alone: it is cached
by their ids, which name immutable files (invariants 20 and 22).
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future

import numpy as np

from rowsieve.executor.repeats import Rows, repeated_in
from rowsieve.executor.windows import Run, Stream, windows
from rowsieve.locks import ForkSafeLock
from rowsieve.predicate.rowset import RowSet
from rowsieve.types.keys import KeyOrder

CACHE_BYTES = 64 * 1024 * 1024
_FOLD_ROWS = 1_000_000  # 8 MB of row numbers, before they become row sets


class VisibilityCache:
    """Answers by the parts they are about; the least recently used go first.

    Whoever asks first computes; others who ask meanwhile wait for that answer. No lock is held
    while it is computed (invariant 21).
    """

    def __init__(self, limit_bytes: int = CACHE_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._answers: OrderedDict[Hashable, Future[tuple[RowSet, ...]]] = OrderedDict()
        self._sizes: dict[Hashable, int] = {}
        self._size_bytes = 0
        self._lock = ForkSafeLock()
        self._process = os.getpid()

    def get(self, parts: Hashable, compute: Callable[[], tuple[RowSet, ...]]) -> tuple[RowSet, ...]:
        """The remembered answer, or the computed one; a failure is not remembered."""
        with self._lock:
            self._forget_what_stayed_behind()
            answer = self._answers.get(parts)
            if answer is not None:
                self._answers.move_to_end(parts)
            else:
                mine = self._answers[parts] = Future()
        if answer is not None:
            return answer.result()
        try:
            rows = compute()
        except BaseException as error:
            with self._lock:
                del self._answers[parts]
            mine.set_exception(error)
            raise
        mine.set_result(rows)
        self._account(parts, sum(row_set.size_bytes for row_set in rows))
        return rows

    def remembered(self, parts: Hashable) -> tuple[RowSet, ...] | None:
        """The answer, if it is known by now."""
        with self._lock:
            self._forget_what_stayed_behind()
            answer = self._answers.get(parts)
        return answer.result() if answer is not None and answer.done() else None

    def _forget_what_stayed_behind(self) -> None:
        """After a fork: nobody here computes what the parent's threads had begun."""
        if self._process != os.getpid():
            self._process = os.getpid()
            for begun in self._answers.keys() - self._sizes.keys():
                del self._answers[begun]

    def _account(self, parts: Hashable, size_bytes: int) -> None:
        with self._lock:
            self._sizes[parts] = size_bytes
            self._size_bytes += size_bytes
            if self._size_bytes <= self._limit_bytes:
                return
            for oldest in [known for known in self._answers if known in self._sizes]:
                if self._size_bytes <= self._limit_bytes:
                    break
                del self._answers[oldest]
                self._size_bytes -= self._sizes.pop(oldest)


def visible_rows(
    streams: Sequence[Stream], row_counts: Sequence[int], order: KeyOrder
) -> list[RowSet]:
    """The visible rows of each stream, given newest first; those of tombstones mean nothing.

    Reads no further than it must: once one stream alone has keys left, they are all visible.
    Memory is a batch of keys per stream and the hidden rows.
    """
    hidden = HiddenRows(row_counts)
    for window in windows(streams, order, contested=True):
        hidden.note(window)
    return hidden.visible()


class HiddenRows:
    """The hidden rows of some streams, gathered window by window."""

    def __init__(self, row_counts: Sequence[int]) -> None:
        self._sets = [RowSet.empty(count) for count in row_counts]
        self._noted: list[list[Rows]] = [[] for _ in row_counts]
        self._noted_count = 0

    def note(self, window: Sequence[Run]) -> list[Rows]:
        """Decide a window, newest run first; gives the hidden rows of each run, in its batch."""
        found = repeated_in([run.keys for run in window])
        found = [rows + run.start for run, rows in zip(window, found, strict=True)]
        for run, rows in zip(window, found, strict=True):
            if len(rows):
                self._noted[run.stream].append(rows + run.offset)
                self._noted_count += len(rows)
        if self._noted_count > _FOLD_ROWS:
            self._fold()
        return found

    def visible(self) -> list[RowSet]:
        """Of each stream the rows that no window found hidden."""
        self._fold()
        return [rows.complement() for rows in self._sets]

    def _fold(self) -> None:
        for number, noted in enumerate(self._noted):
            if noted:
                known = self._sets[number]
                rows = RowSet.from_ids(np.concatenate(noted), known.row_count)
                self._sets[number] = rows if known.is_empty else known.union(rows)
        self._noted = [[] for _ in self._sets]
        self._noted_count = 0
