"""Which rows of overlapping parts are visible, from their keys alone.

A row is hidden when a newer part has its key, in its rows or its tombstones (invariant I3). After
that every key lives in one part at most, so any predicate may be asked of any part by itself, and
rows that are hidden are never decoded further. The answer depends on the parts alone: it is cached
by their ids, which name immutable files (invariants 20 and 22).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.executor.windows import Run, Stream, windows
from rowsieve.predicate.rowset import RowSet
from rowsieve.types.keys import KeyColumns, KeyOrder, concat_columns

Rows = npt.NDArray[np.int64]

CACHE_BYTES = 64 * 1024 * 1024


class VisibilityCache:
    """Answers by the parts they are about; the least recently used go first.

    Whoever asks first computes; others who ask meanwhile wait for that answer. No lock is held
    while it is computed (invariant 21).
    """

    def __init__(self, limit_bytes: int = CACHE_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._answers: OrderedDict[Hashable, Future[tuple[RowSet, ...]]] = OrderedDict()
        self._sizes: dict[Hashable, int] = {}
        self._lock = threading.Lock()

    def get(self, parts: Hashable, compute: Callable[[], tuple[RowSet, ...]]) -> tuple[RowSet, ...]:
        """The remembered answer, or the computed one; a failure is not remembered."""
        with self._lock:
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
        self._account(parts, sum(len(row_set.to_bytes()) for row_set in rows))
        return rows

    def remembered(self, parts: Hashable) -> tuple[RowSet, ...] | None:
        """The answer, if it is known by now."""
        with self._lock:
            answer = self._answers.get(parts)
        return answer.result() if answer is not None and answer.done() else None

    def _account(self, parts: Hashable, size_bytes: int) -> None:
        with self._lock:
            self._sizes[parts] = size_bytes
            for oldest in list(self._answers):
                if sum(self._sizes.values()) <= self._limit_bytes:
                    break
                if oldest in self._sizes:
                    del self._answers[oldest], self._sizes[oldest]


def visible_rows(
    streams: Sequence[Stream], row_counts: Sequence[int], order: KeyOrder
) -> list[RowSet]:
    """The visible rows of each stream, given newest first; those of tombstones mean nothing.

    Reads no further than it must: once one stream alone has keys left, they are all visible.
    Memory is a batch of keys per stream and the hidden rows.
    """
    hidden: list[list[Rows]] = [[] for _ in streams]
    for window in windows(streams, order, contested=True):
        for run, rows in zip(window, hidden_in(window), strict=True):
            if len(rows):
                hidden[run.stream].append(rows + run.offset)
    return [
        RowSet.from_ids(np.concatenate(rows) if rows else np.empty(0, np.int64), count).complement()
        for rows, count in zip(hidden, row_counts, strict=True)
    ]


def hidden_in(runs: Sequence[Run]) -> list[Rows]:
    """For each run of a window, newest first, its rows whose key stands in an earlier run."""
    if len(runs) == 1:
        return [np.empty(0, dtype=np.int64)]
    columns = [_single_integer(run.keys) for run in runs]
    plain = [column for column in columns if column is not None]
    if len(plain) == len(columns):
        return _hidden_integers(plain)
    keys = concat_columns([run.keys for run in runs])
    order = keys.sort()  # stable: of equal keys the newest comes first
    repeated = np.zeros(len(keys), dtype=bool)
    repeated[order[keys.repeats(order)]] = True
    ends = np.cumsum([len(run) for run in runs])[:-1]
    return [np.flatnonzero(part) for part in np.split(repeated, ends)]


def _hidden_integers(runs: Sequence[npt.NDArray[np.generic]]) -> list[Rows]:
    """`hidden_in` for sorted integer keys: each run is looked up in the union of newer ones."""
    hidden: list[Rows] = [np.empty(0, dtype=np.int64)]
    newer = runs[0]
    for run in runs[1:]:
        small, large = (newer, run) if len(newer) < len(run) else (run, newer)
        places = np.searchsorted(large, small)
        places[places == len(large)] = 0  # a key above all of them: compared, and found unequal
        found = large[places] == small
        rows = places[found] if large is run else np.flatnonzero(found)
        hidden.append(rows)
        newer = np.sort(np.concatenate((newer, np.delete(run, rows))))
    return hidden


def _single_integer(keys: KeyColumns) -> npt.NDArray[np.generic] | None:
    if len(keys.arrays) != 1 or not pa.types.is_integer(keys.arrays[0].type):
        return None
    values: npt.NDArray[np.generic] = keys.arrays[0].to_numpy(zero_copy_only=False)
    return values
