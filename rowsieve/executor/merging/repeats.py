"""Finds rows of a window that repeat a key: the two kernels of every merge.

A window is a few runs of keys, newest first, each in strictly ascending key order. `rank` sorts the
rows. `repeated_in` is cheaper: it only finds the rows whose key is in an earlier run. Both compare
packed words where keys pack (`rowsieve.types.ordering.key_words`), compare the columns where equal
words may be different keys, and use only the columns where keys do not pack.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Mask, as_mask
from rowsieve.types.ordering.key_words import Words, pack
from rowsieve.types.ordering.keys import KeyColumns, concat_columns

Rows: TypeAlias = npt.NDArray[np.int64]

DENSE: Final = 32  # words per row; up to it, a table of one byte per word is fastest


class Ranking(NamedTuple):
    """The rows of all runs in key order, the newest of equal keys first.

    `order`: (n,) positions among the rows of all runs; `repeats`: (n,) whether the row at that
    position has the same key as the row before it in `order`.
    """

    order: Rows
    repeats: Mask


def rank(runs: Sequence[KeyColumns]) -> Ranking:
    """Sort the rows of a window."""
    packed = pack(runs)
    if packed is not None:
        words = np.concatenate(packed.runs)
        order = np.argsort(words, kind="stable")  # merges sorted runs
        ascending = words[order]
        repeats = np.zeros(len(words), dtype=bool)
        np.equal(ascending[1:], ascending[:-1], out=repeats[1:])
        if packed.exact or _are_repeats(runs, order, repeats):
            return Ranking(order, repeats)
    columns = concat_columns(runs)
    order = columns.sort()
    return Ranking(order, columns.repeats(order))


def repeated_in(runs: Sequence[KeyColumns]) -> list[Rows]:
    """The rows of each run, ascending, whose key is in an earlier run."""
    if len(runs) == 1:
        return [np.empty(0, dtype=np.int64)]
    packed = pack(runs)
    if packed is None:
        return _by_table(_codes(runs))
    if packed.exact:
        lowest = min(int(run[0]) for run in packed.runs)
        highest = max(int(run[-1]) for run in packed.runs)
        if highest - lowest < DENSE * sum(len(run) for run in packed.runs):
            return _by_table([_places(run, lowest) for run in packed.runs])
        return _by_search(packed.runs)
    ranking = rank(runs)
    repeated = np.zeros(len(ranking.order), dtype=bool)
    repeated[ranking.order[ranking.repeats]] = True
    ends = np.cumsum([len(run) for run in runs])[:-1]
    return [np.flatnonzero(part) for part in np.split(repeated, ends)]


def _are_repeats(runs: Sequence[KeyColumns], order: Rows, repeats: Mask) -> bool:
    """Return whether all rows with the same word as the row before them also have the same key."""
    places = np.flatnonzero(repeats)
    columns = concat_columns(runs)
    before, after = pa.array(order[places - 1]), pa.array(order[places])
    return all(
        as_mask(pc.equal(array.take(before), array.take(after))).all() for array in columns.arrays
    )


def _by_table(runs: Sequence[Rows]) -> list[Rows]:
    """`repeated_in` for keys that are small numbers; uses a table of one byte per number."""
    seen = np.zeros(1 + max(int(run.max()) for run in runs), dtype=bool)
    seen[runs[0]] = True
    repeated = [np.empty(0, dtype=np.int64)]
    for number, run in enumerate(runs[1:], start=1):
        repeated.append(np.flatnonzero(seen[run]))
        if number < len(runs) - 1:
            seen[run] = True
    return repeated


def _by_search(runs: Sequence[Words]) -> list[Rows]:
    """`repeated_in` for any words; searches the union of the earlier runs."""
    repeated: list[Rows] = [np.empty(0, dtype=np.int64)]
    earlier = runs[0]
    for number, run in enumerate(runs[1:], start=1):
        small, large = (earlier, run) if len(earlier) < len(run) else (run, earlier)
        places = np.searchsorted(large, small)
        places[places == len(large)] = 0  # above all words, so the comparison below is False
        matches = large[places] == small
        rows = places[matches] if large is run else np.flatnonzero(matches)
        repeated.append(rows)
        if number < len(runs) - 1:
            earlier = np.concatenate((earlier, np.delete(run, rows)))
            earlier.sort(kind="stable")  # merges two sorted runs
    return repeated


def _places(words: Words, lowest: int) -> Rows:
    if words.dtype == np.uint64:
        return (words.astype(np.uint64, copy=False) - np.uint64(lowest)).astype(np.int64)
    return words.astype(np.int64, copy=False) - np.int64(lowest)


def _codes(runs: Sequence[KeyColumns]) -> list[Rows]:
    """A number per distinct key, for the rows of each run."""
    codes: Rows | None = None
    for place in range(len(runs[0].arrays)):
        column = _encode(pa.chunked_array([run.arrays[place] for run in runs]))
        if codes is not None:
            column = _encode(pa.chunked_array([pa.array(codes * len(codes) + column)]))
        codes = column
    assert codes is not None
    return np.split(codes, np.cumsum([len(run) for run in runs])[:-1])


def _encode(column: pa.ChunkedArray) -> Rows:
    chunks = column.dictionary_encode().chunks  # share one dictionary
    return np.concatenate([chunk.indices.to_numpy() for chunk in chunks]).astype(np.int64)
