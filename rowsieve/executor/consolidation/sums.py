"""Sum the differences of equal rows of one window, without a loop over rows.

Most rows have no equal, so rows are first grouped by one column: that is cheap where files are in
its order. If the rows of each group are equal, as for a column that is unique, these are the
groups. Otherwise rows that share its value are sorted by a word that mixes the codes of all
columns. Equal rows have equal words; that rows with equal words are equal is checked with the codes
themselves, and where it is not so, rows are grouped by the codes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from rowsieve.executor.consolidation.equality_codes import Codes, joined_codes

Mask: TypeAlias = npt.NDArray[np.bool_]
Words: TypeAlias = npt.NDArray[np.uint64]

_HALF: Final = np.int64(32)
_LOW: Final = np.int64(0xFFFF_FFFF)
_MIX: Final = np.uint64(0x9E37_79B9_7F4A_7C15)  # odd: multiplication loses no bit


class Sums(NamedTuple):
    """One row of each group, ascending, with the sum of its group.

    `overflows`: (n,) whether the sum does not fit 64 bits; the number is then meaningless.
    """

    rows: Codes
    sums: Codes
    overflows: Mask

    def without_overflows(self) -> Sums:
        """Only the groups whose sum fits."""
        fits = ~self.overflows
        return Sums(self.rows[fits], self.sums[fits], self.overflows[fits])


def sum_differences(columns: Sequence[Codes], differences: Codes) -> Sums:
    """Group rows whose codes are equal; return the groups whose sum is not zero."""
    totals, nonzero = differences.copy(), differences != 0
    overflows = np.zeros(len(differences), dtype=np.bool_)
    members, starts = _repeated(columns, len(differences))
    if len(members):
        firsts = members[starts]
        sums, beyond = _totals(differences[members], starts)
        nonzero[members] = False
        nonzero[firsts] = (sums != 0) | beyond
        totals[firsts], overflows[firsts] = sums, beyond
    rows = np.flatnonzero(nonzero)
    return Sums(rows, totals[rows], overflows[rows])


def _repeated(columns: Sequence[Codes], count: int) -> tuple[Codes, Codes]:
    """Return, group by group, all rows that equal another, and where each group starts.

    Groups of a single row may be among them.
    """
    if not columns:
        return np.arange(count, dtype=np.int64), np.zeros(min(count, 1), dtype=np.int64)
    lead = _lead(columns, count)
    order = np.argsort(columns[lead], kind="stable")
    sorted_lead = columns[lead][order]
    repeats = np.flatnonzero(sorted_lead[1:] == sorted_lead[:-1]) + 1
    if not len(repeats):
        return repeats, repeats
    after, before = order[repeats], order[repeats - 1]
    others = [column for place, column in enumerate(columns) if place != lead]
    are_equal = all(bool((column[after] == column[before]).all()) for column in others)
    begins = np.flatnonzero(np.diff(repeats, prepend=-1) > 1)
    shared = np.zeros(count, dtype=np.bool_)
    shared[repeats] = shared[repeats[begins] - 1] = True
    members, starts = order[shared], begins + np.arange(len(begins))  # a first one for each group
    if are_equal:
        return members, starts
    return _split_groups([column[members] for column in columns], members, starts)


def _split_groups(columns: Sequence[Codes], members: Codes, starts: Codes) -> tuple[Codes, Codes]:
    """Cut groups into those of equal rows; `columns` are those of the members."""
    numbers = np.zeros(len(members), dtype=np.uint64)
    numbers[starts] = 1
    words = _within_groups(np.cumsum(numbers), words_of(columns, len(members)))
    places = np.argsort(words, kind="stable")
    differs = _differs(words[places])
    if not _are_equal(columns, places, np.flatnonzero(~differs)):
        codes = joined_codes(columns, len(members))
        places = np.argsort(codes, kind="stable")
        differs = _differs(codes[places])
    return members[places], np.flatnonzero(differs)


def _lead(columns: Sequence[Codes], count: int) -> int:
    """The column to group by first: the first one with many values, as far as its range says."""
    if not count:
        return 0
    ranges = [int(column.max()) - int(column.min()) for column in columns]
    enough = (i for i, width in enumerate(ranges) if width >= count // 4)
    return next(enough, int(np.argmax(np.array(ranges, dtype=np.float64))))


def _within_groups(numbers: Words, words: Words) -> Words:
    """Words that sort by the number of their group first; the number takes the leading bits."""
    bits = np.uint64(max(int(numbers[-1]).bit_length(), 1))
    return (numbers << (np.uint64(64) - bits)) | (words >> bits)


def _differs(ascending: npt.NDArray[Any]) -> Mask:
    """(n,) whether a value differs from the one before it; True for the first."""
    differs = np.ones(len(ascending), dtype=np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=differs[1:])
    return differs


def words_of(columns: Sequence[Codes], count: int) -> Words:
    """(n,) words that are equal where all columns are, and that nearly always differ elsewhere."""
    words = np.zeros(count, dtype=np.uint64)
    for column in columns:
        words ^= column.view(np.uint64)
        words *= _MIX
        words ^= words >> np.uint64(29)
    return words


def _are_equal(columns: Sequence[Codes], order: Codes, places: Codes) -> bool:
    """Return whether the rows at these places of the order equal the ones before them."""
    after, before = order[places], order[places - 1]
    return all(bool((column[after] == column[before]).all()) for column in columns)


def _totals(differences: Codes, starts: Codes) -> tuple[Codes, Mask]:
    """Sum each group; differences are split into halves where a sum could leave 64 bits."""
    if not len(starts):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_)
    low, high = int(differences.min()), int(differences.max())
    if max(high, -low) * len(differences) < 1 << 63:
        return np.add.reduceat(differences, starts), np.zeros(len(starts), dtype=np.bool_)
    lows = np.add.reduceat(differences & _LOW, starts)
    highs = np.add.reduceat(differences >> _HALF, starts) + (lows >> _HALF)
    overflows = (highs < -(1 << 31)) | (highs >= 1 << 31)
    return (highs << _HALF) | (lows & _LOW), overflows
