"""Finds the visible rows of overlapping parts by comparing only their keys.

A row is hidden if a newer part has its key, in its rows or its tombstones (invariant I3). So every
key is visible in at most one part: any predicate may be evaluated on each part independently, and
no further column of hidden rows is decoded. The result depends only on the parts: it is cached by
their ids, which name immutable files (invariants 20 and 22).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future

import numpy as np

from rowsieve.byte_cache import ByteCache
from rowsieve.executor.merging.repeats import Rows, repeated_in
from rowsieve.executor.merging.windows import Stream, windows
from rowsieve.locks import ForkSafeLock
from rowsieve.predicate.rowset import RowSet
from rowsieve.types.ordering.keys import KeyOrder

CACHE_BYTES = 64 * 1024 * 1024
_FOLD_ROWS = 1_000_000  # noted row numbers (8 MB) that are then folded into row sets


class VisibilityCache:
    """Visible rows by the ids of their parts; evicts the least recently used.

    The first caller computes; concurrent callers wait for its result. No lock is held during the
    computation (invariant 21).
    """

    def __init__(self, limit_bytes: int = CACHE_BYTES, name: str | None = None) -> None:
        self.answers: ByteCache[Hashable, tuple[RowSet, ...]] = ByteCache(limit_bytes, name)
        """The cached results."""
        self._begun: dict[Hashable, Future[tuple[RowSet, ...]]] = {}
        self._lock = ForkSafeLock()
        self._process = os.getpid()

    def get(self, parts: Hashable, compute: Callable[[], tuple[RowSet, ...]]) -> tuple[RowSet, ...]:
        """The cached result, or the computed one; a failure is not cached."""
        if (known := self.answers.get(parts)) is not None:
            return known
        with self._lock.mutex:
            self._clear_begun_after_fork()
            begun = self._begun.get(parts)
            if begun is None:
                mine = self._begun[parts] = Future()
        if begun is not None:
            return begun.result()
        try:
            rows = self.answers.get(parts)  # another thread may have just finished it
            if rows is None:
                rows = compute()
                self.answers.put(parts, rows, sum(row_set.size_bytes for row_set in rows))
        except BaseException as error:
            self._end(parts)
            mine.set_exception(error)
            raise
        self._end(parts)
        mine.set_result(rows)
        return rows

    def _end(self, parts: Hashable) -> None:
        with self._lock.mutex:
            self._begun.pop(parts, None)

    def _clear_begun_after_fork(self) -> None:
        """Drop computations of the parent's threads, which do not run in a forked child."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._begun.clear()


def visible_rows(
    streams: Sequence[Stream], row_counts: Sequence[int], order: KeyOrder
) -> list[RowSet]:
    """The visible rows of each stream, given newest first; ignore the result for tombstones.

    Stops once only one stream has unread keys: these are all visible. Holds one batch of keys per
    stream, and the hidden rows.
    """
    hidden = [RowSet.empty(count) for count in row_counts]
    noted: list[list[Rows]] = [[] for _ in row_counts]  # not in `hidden` yet
    noted_count = 0
    for window in windows(streams, order, contested=True):
        repeated = repeated_in([run.keys for run in window])
        for run, rows in zip(window, repeated, strict=True):
            if len(rows):
                noted[run.stream].append(rows + (run.start + run.offset))
                noted_count += len(rows)
        if noted_count > _FOLD_ROWS:
            hidden, noted_count = _folded(hidden, noted), 0
    return [rows.complement() for rows in _folded(hidden, noted)]


def _folded(hidden: Sequence[RowSet], noted: Sequence[list[Rows]]) -> list[RowSet]:
    """Add the noted rows of each stream to its hidden rows, and forget them."""
    result = []
    for known, rows in zip(hidden, noted, strict=True):
        more = RowSet.from_ids(np.concatenate(rows), known.row_count) if rows else known
        result.append(known.union(more) if rows and not known.is_empty else more)
        rows.clear()
    return result
