"""Sum the differences of equal rows of one window, without a loop over rows.

Rows are sorted by a word that mixes the codes of all their columns. Equal rows have equal words;
that rows with equal words are equal is checked with the codes themselves, and where it is not so,
rows are grouped by the codes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from rowsieve.executor.consolidation.equality_codes import Codes, joined_codes

Mask: TypeAlias = npt.NDArray[np.bool_]

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
    order, starts = _groups(columns, len(differences))
    sums, overflows = _totals(differences[order], starts)
    kept = (sums != 0) | overflows
    rows = order[starts][kept]
    ascending = np.argsort(rows, kind="stable")
    return Sums(rows[ascending], sums[kept][ascending], overflows[kept][ascending])


def _groups(columns: Sequence[Codes], count: int) -> tuple[Codes, Codes]:
    """Return the rows in groups, and the place at which each group starts."""
    words = _words(columns, count)
    order = np.argsort(words, kind="stable")
    sorted_words = words[order]
    differs = np.ones(count, dtype=np.bool_)
    np.not_equal(sorted_words[1:], sorted_words[:-1], out=differs[1:])
    if not _are_equal(columns, order, np.flatnonzero(~differs)):
        codes = joined_codes(columns, count)
        order = np.argsort(codes, kind="stable")
        differs[1:] = codes[order[1:]] != codes[order[:-1]]
    return order, np.flatnonzero(differs)


def _words(columns: Sequence[Codes], count: int) -> npt.NDArray[np.uint64]:
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
