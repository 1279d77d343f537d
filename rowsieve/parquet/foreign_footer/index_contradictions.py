"""Column chunks whose statistics contradict their page index: which of the two lies is unknown.

Soundness (invariant 45): all claims of such a chunk count as unknown. An index that is malformed,
or whose writer is known to make it wrongly, is no evidence and is ignored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

from rowsieve.parquet.foreign_footer.checked_footer import CheckedFooter
from rowsieve.parquet.foreign_footer.footer_fields import (
    COLUMN_INDEX,
    COLUMN_INDEX_BYTES,
    MAX,
    MIN,
    NULLS,
)
from rowsieve.parquet.foreign_footer.schema_tree import Leaf
from rowsieve.parquet.foreign_footer.struct_lanes import Bytes, Numbers, Windows
from rowsieve.parquet.statistics.known_faults import Claim
from rowsieve.parquet.thrift import MalformedThrift, Wanted, read_fields
from rowsieve.predicate.arrays import Mask

INDEX: Final[Wanted] = dict.fromkeys((1, 2, 3, 4, 5))
"""The fields of a column index: pages of NULLs, lower and upper bounds, order, counts of NULLs."""
_FORMS: Final[Mapping[int, str]] = {0: "?", 1: "<i4", 2: "<i8", 4: "<f4", 5: "<f8"}
_UNSIGNED: Final[Mapping[int, str]] = {1: "<u4", 2: "<u8"}
_BYTES: Final = 6
_ASCENDING, _DESCENDING = 1, 2
_ONE_PAGE: Final = (25, (17, 18), (0, 2))
"""Bytes of the field of the pages of NULLs, for one page with values; some writers differ."""
_ONE_TEXT: Final = (25, 24)  # the next field, a list of one text
_ORDER: Final = (21,)  # the next field, a number
_ONE_NUMBER: Final = (25, 22)  # the next field, a list of one number
_LONGEST_BOUND: Final = 127  # bytes; the length then takes one byte
_LONGEST_VARINT: Final = 10
_WORD: Final = 8  # bytes that are compared at once
_FIRST_BYTES: Final = np.array([2 ** (8 * n) - 1 for n in range(_WORD + 1)], np.uint64)
"""The bits of the first bytes of a word, by their number."""
_NOTHING: Final = b"\xff"  # a byte that ends nothing: no literal, length or last byte of a varint
_DOUBTS: Final = Claim.PAGE_BOUNDS | Claim.BOUNDS | Claim.NULLS


def checked_by_index(footer: CheckedFooter, data: bytes, start: int) -> CheckedFooter:
    """Return the footer in which contradicted chunks are suspicious.

    `data`: the bytes of the file from `start` on, which end after the page index.
    """
    if not footer.ordered:
        return footer
    step = len(footer.leaves)
    is_doubtful = {each: bool(each & _DOUBTS) for each in {leaf.doubts for leaf in footer.leaves}}
    compared = [
        leaf.has_order and not leaf.repetitions and not is_doubtful[leaf.doubts]
        for leaf in footer.leaves
    ]
    stops, values = footer.chunks.stops, footer.chunks.values
    first = np.where(stops[COLUMN_INDEX] < 0, -1, values[COLUMN_INDEX]) - start
    length = np.where(stops[COLUMN_INDEX_BYTES] < 0, 0, values[COLUMN_INDEX_BYTES])
    there = np.tile(np.array(compared, np.bool_), len(footer.rows))
    there &= (first >= 0) & (length > 0) & (first <= len(data) - length)
    there[there] = ~_repeats_chunk(footer, data, first[there], np.flatnonzero(there))
    wrong = np.zeros(len(footer.chunks), np.bool_)
    for place in np.flatnonzero(there).tolist():
        index = data[first[place] : first[place] + length[place]]
        wrong[place] = _is_contradicted(footer, place, footer.leaves[place % step], index)
    if not wrong.any():
        return footer
    return replace(footer, suspicious=footer.suspicious | wrong, unfit=footer.unfit | wrong)


def numbers_contradict(
    lower: Sequence[Any], upper: Sequence[Any], order: object, chunk: tuple[Any, Any]
) -> bool:
    """Return whether the bounds of pages cannot be those of a chunk of numbers in this order.

    Numbers are stored whole, so that the bounds of the chunk, None if unknown, are those of its
    pages. `order`: the boundary order that the index claims.
    """
    if any(map(math.isnan, (*lower, *upper))):
        return True
    if order in (_ASCENDING, _DESCENDING):
        rises = order == _ASCENDING
        for side in (lower, upper):
            if any((one > other) if rises else (one < other) for one, other in pairwise(side)):
                return True
    ends = zip(chunk, (min(lower), max(upper)), strict=True)
    return any(bound is not None and bound != end for bound, end in ends)


def bytes_contradict(
    lower: Sequence[bytes], upper: Sequence[bytes], chunk: tuple[bytes | None, bytes | None]
) -> bool:
    """The same of texts: each side may be truncated, in pages and chunks at different lengths.

    Of two lower bounds of one value the lesser one is a prefix. Of two upper bounds the greater
    one, whose last byte was raised, is not longer.
    """
    if chunk[0] is not None:
        lesser, greater = sorted((chunk[0], min(lower)))
        if not greater.startswith(lesser):
            return True
    if chunk[1] is not None:
        lesser, greater = sorted((chunk[1], max(upper)))
        if lesser != greater and len(greater) > len(lesser):
            return True
    return False


def _is_contradicted(footer: CheckedFooter, place: int, leaf: Leaf, index: bytes) -> bool:
    """Return whether a chunk contradicts its encoded index."""
    stops, values = footer.chunks.stops, footer.chunks.values
    edges = [(int(values[path][place]), int(stops[path][place])) for path in (MIN, MAX)]
    lower, upper = (None if stop < 0 else footer.data[start:stop] for start, stop in edges)
    nulls = -1 if stops[NULLS][place] < 0 else int(values[NULLS][place])
    try:
        return _contradicts(read_fields(index, 0, INDEX), leaf, nulls, (lower, upper))
    except (MalformedThrift, KeyError, IndexError, TypeError, ValueError, OverflowError):
        return False


def _repeats_chunk(footer: CheckedFooter, data: bytes, first: Numbers, places: Numbers) -> Mask:
    """(n,) whether the index at `first` has one page with the bounds and NULLs of its chunk.

    Most indexes are of this form. Their encodings are compared byte by byte, all at once, which
    takes a tenth of a microsecond each; decoding one takes ten.
    """
    stops, values = footer.chunks.stops, footer.chunks.values
    footer_bytes = Windows(footer.data)
    walk = _Encodings(data, first)
    walk.expect(*_ONE_PAGE)
    for path in (MIN, MAX):
        walk.expect(*_ONE_TEXT)
        walk.expect_text(footer_bytes, values[path][places], stops[path][places])
    walk.expect(*_ORDER)
    walk.at += 1
    nulls = np.where(stops[NULLS][places] < 0, -1, values[NULLS][places])
    walk.expect_count(nulls)
    return walk.equal


class _Encodings:
    """Compares the encodings that begin at several places with what is expected there.

    `equal`, shape (n,): those that have had it until now.
    """

    def __init__(self, data: bytes, first: Numbers) -> None:
        self._data = np.frombuffer(data + _NOTHING, np.uint8)
        self._windows = Windows(data)
        self.at = first.copy()
        self.equal = np.ones(len(first), np.bool_)

    def expect(self, *literals: int | tuple[int, ...], among: Mask | None = None) -> None:
        """Expect these bytes, each of which may be one of several; all read on.

        `among`: the encodings that must have them, by default all.
        """
        for literal in literals:
            byte = self._byte()
            either = literal if isinstance(literal, tuple) else (literal,)
            right = np.logical_or.reduce([byte == each for each in either])
            self.equal &= right if among is None else right | ~among
            self.at += 1

    def expect_text(self, data: Windows, starts: Numbers, stops: Numbers) -> None:
        """Expect a length of one byte and a text, which `data` has at [start, stop)."""
        sizes = np.where(stops < 0, 0, stops - starts)
        self.equal &= (stops >= 0) & (sizes <= _LONGEST_BOUND)
        self.equal &= self._byte() == sizes
        self.at += 1
        self.equal &= self.at + sizes <= self._windows.size
        sizes = np.where(self.equal, sizes, 0)
        starts = np.where(self.equal, starts, 0)
        for first in range(0, int(sizes.max(initial=0)), _WORD):
            word = self._windows.word_at(self.at + first) ^ data.word_at(starts + first)
            self.equal &= word & _FIRST_BYTES[np.clip(sizes - first, 0, _WORD)] == 0
        self.at += sizes

    def expect_count(self, counts: Numbers) -> None:
        """Expect a list of one number; nothing where the count is negative."""
        known = counts >= 0
        self.expect(*_ONE_NUMBER, among=known)
        rest = np.where(known, counts, 0).astype(np.uint64) << np.uint64(1)
        pending = known
        for _ in range(_LONGEST_VARINT):
            more = rest > np.uint64(127)
            low = (rest & np.uint64(127)) | np.where(more, np.uint64(128), np.uint64(0))
            self.equal &= ~pending | (self._byte() == low)
            self.at += 1
            rest, pending = rest >> np.uint64(7), pending & more
            if not pending.any():
                return

    def _byte(self) -> Bytes:
        """(n,) the next byte of each; that of `_NOTHING` after the end."""
        return self._data[np.minimum(self.at, len(self._data) - 1)]


def _contradicts(
    index: Mapping[int, Any], leaf: Leaf, nulls: int, chunk: tuple[bytes | None, bytes | None]
) -> bool:
    if nulls >= 0 and 5 in index and sum(index[5]) != nulls:
        return True
    places = [place for place, is_null in enumerate(index[1]) if not is_null]
    if not places:
        return chunk != (None, None)
    lower, upper = ([index[side][place] for place in places] for side in (2, 3))
    if len(places) == 1 and (lower[0], upper[0]) == chunk:
        return False
    if leaf.physical == _BYTES:
        return bytes_contradict(lower, upper, chunk)
    form = _FORMS.get(leaf.physical) if leaf.is_signed else _UNSIGNED.get(leaf.physical)
    if form is None:
        return False
    values = [np.frombuffer(b"".join(side), form).tolist() for side in (lower, upper)]
    if any(len(side) != len(places) for side in values):
        return False
    ends = [None if end is None else np.frombuffer(end, form)[0].item() for end in chunk]
    return numbers_contradict(values[0], values[1], index.get(4), (ends[0], ends[1]))
