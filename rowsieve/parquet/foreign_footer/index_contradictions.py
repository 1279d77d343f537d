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
import numpy.typing as npt

from rowsieve.parquet.foreign_footer.checked_footer import CheckedFooter
from rowsieve.parquet.foreign_footer.footer_fields import (
    COLUMN_INDEX,
    COLUMN_INDEX_BYTES,
    MAX,
    MIN,
    NULLS,
)
from rowsieve.parquet.foreign_footer.many_structs import Path
from rowsieve.parquet.foreign_footer.schema_tree import Leaf
from rowsieve.parquet.statistics.known_faults import Claim
from rowsieve.parquet.thrift import MalformedThrift, Wanted, read_fields
from rowsieve.varints import encode_varint

INDEX: Final[Wanted] = dict.fromkeys((1, 2, 3, 4, 5))
"""The fields of a column index: pages of NULLs, lower and upper bounds, order, counts of NULLs."""
_FORMS: Final[Mapping[int, str]] = {0: "?", 1: "<i4", 2: "<i8", 4: "<f4", 5: "<f8"}
_UNSIGNED: Final[Mapping[int, str]] = {1: "<u4", 2: "<u8"}
_BYTES: Final = 6
_ASCENDING, _DESCENDING = 1, 2
_ONE_PAGE: Final = (b"\x19\x11\x02", b"\x19\x12\x02", b"\x19\x11\x00", b"\x19\x12\x00")
"""Encodings of the field of the pages of NULLs, for one page with values."""
_ONE_TEXT: Final = b"\x19\x18"  # the next field, a list of one text
_ORDER: Final = b"\x15"  # the next field, a number
_ONE_NUMBER: Final = b"\x19\x16"  # the next field, a list of one number
_DOUBTS: Final = Claim.PAGE_BOUNDS | Claim.BOUNDS | Claim.NULLS


def checked_by_index(footer: CheckedFooter, data: bytes, start: int) -> CheckedFooter:
    """Return the footer in which contradicted chunks are suspicious.

    `data`: the bytes of the file from `start` on, which end after the page index.
    """
    wrong = np.zeros(len(footer.chunks), np.bool_)
    for number, leaf in enumerate(footer.leaves):
        if footer.ordered and leaf.has_order and not leaf.repetitions and not leaf.doubts & _DOUBTS:
            wrong[number :: len(footer.leaves)] = _of_leaf(footer, number, data, start)
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
    return any(bound is not None and bound != own for bound, own in ends)


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


def _of_leaf(footer: CheckedFooter, number: int, data: bytes, start: int) -> npt.NDArray[np.bool_]:
    """(groups,) whether the chunk of a leaf contradicts its index."""
    leaf, groups = footer.leaves[number], len(footer.rows)
    firsts = footer.numbers(COLUMN_INDEX, number) - start
    lengths, nulls = footer.numbers(COLUMN_INDEX_BYTES, number), footer.numbers(NULLS, number)
    bounds = [_bounds(footer, number, path) for path in (MIN, MAX)]
    wrong = np.zeros(groups, np.bool_)
    for group, (first, length) in enumerate(zip(firsts.tolist(), lengths.tolist(), strict=True)):
        if first < 0 or length <= 0 or first + length > len(data):
            continue
        chunk, count = (bounds[0][group], bounds[1][group]), int(nulls[group])
        if _repeats_chunk(data, first, count, chunk):
            continue
        try:
            index = read_fields(data[first : first + length], 0, INDEX)
            wrong[group] = _contradicts(index, leaf, count, chunk)
        except (MalformedThrift, KeyError, IndexError, TypeError, ValueError, OverflowError):
            continue
    return wrong


def _repeats_chunk(
    data: bytes, first: int, nulls: int, chunk: tuple[bytes | None, bytes | None]
) -> bool:
    """Whether the index at `first` has one page with the bounds and NULLs of its chunk.

    Most indexes are of this form. Its encoding is compared as a whole, which takes a microsecond;
    decoding it takes ten.
    """
    lower, upper = chunk
    if lower is None or upper is None or data[first : first + 3] not in _ONE_PAGE:
        return False
    bounds = b"".join(
        (_ONE_TEXT, encode_varint(len(lower)), lower, _ONE_TEXT, encode_varint(len(upper)), upper)
    )
    if not data.startswith(bounds, first + 3):
        return False
    rest = first + 3 + len(bounds)
    if data[rest : rest + 1] != _ORDER:
        return False
    if nulls < 0:
        return True
    return data.startswith(_ONE_NUMBER + encode_varint(nulls << 1), rest + 2)


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


def _bounds(footer: CheckedFooter, number: int, path: Path) -> list[bytes | None]:
    """(groups,) the bounds of the chunks of a leaf, as the file stores them."""
    step = len(footer.leaves)
    starts, stops = footer.chunks.values[path], footer.chunks.stops[path]
    places = zip(starts[number::step].tolist(), stops[number::step].tolist(), strict=True)
    return [None if stop < 0 else footer.data[start:stop] for start, stop in places]
