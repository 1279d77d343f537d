"""Check whether a column chunk's page index contradicts itself or its chunk, and so is ignored.

No checksum covers the index of another writer, and a wrong index hides rows.
Soundness: a contradiction that is found means "unknown". An index that is wrong but consistent, as
the statistics of a footer may be, is believed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from rowsieve.parquet.foreign_footer.schema_tree import Leaf
from rowsieve.parquet.statistics.foreign_chunks import ChunkStatistics, value_in
from rowsieve.parquet.statistics.stored_bounds import StoredBounds

_NUMBERS: Final = (0, 1, 2, 4, 5)  # physical types: booleans, integers and floats
_BYTES: Final = 6
_ASCENDING, _DESCENDING = 1, 2


def contradicts(pages: StoredBounds, chunk: ChunkStatistics, leaf: Leaf, order: object) -> bool:
    """Return whether the statistics of pages cannot be those of the chunk's rows in this order.

    `order`: the boundary order that the index claims.
    """
    counted = bool((pages.nulls >= 0).all())
    if counted and chunk.nulls is not None and int(pages.nulls.sum()) != chunk.nulls:
        return True
    with_values = pages.nulls != pages.rows
    if not with_values.any() or not pages.bounded[with_values].all():
        return False
    places = np.flatnonzero(with_values).tolist()
    lower = [_in_order(pages.lower[place], leaf) for place in places]
    upper = [_in_order(pages.upper[place], leaf) for place in places]
    if leaf.physical in _NUMBERS:
        return _numbers_contradict(lower, upper, chunk, leaf, order)
    return leaf.physical == _BYTES and _bytes_contradict(lower, upper, chunk)


def _numbers_contradict(
    lower: Sequence[Any], upper: Sequence[Any], chunk: ChunkStatistics, leaf: Leaf, order: object
) -> bool:
    """Numbers are stored whole, so that the bounds of the chunk are those of its pages."""
    if any(map(math.isnan, (*lower, *upper))):
        return True
    if order in (_ASCENDING, _DESCENDING):
        rises = order == _ASCENDING
        for side in (lower, upper):
            if any((one > other) if rises else (one < other) for one, other in pairwise(side)):
                return True
    return any(
        bound is not None and _in_order(value_in(bound, leaf), leaf) != own
        for bound, own in ((chunk.lower, min(lower)), (chunk.upper, max(upper)))
    )


def _bytes_contradict(
    lower: Sequence[bytes], upper: Sequence[bytes], chunk: ChunkStatistics
) -> bool:
    """Each side may be truncated, in pages and chunks at different lengths.

    Of two lower bounds of one value the lesser one is a prefix. Of two upper bounds the greater
    one, whose last byte was raised, is not longer.
    """
    if chunk.lower is not None:
        lesser, greater = sorted((chunk.lower, min(lower)))
        if not greater.startswith(lesser):
            return True
    if chunk.upper is not None:
        lesser, greater = sorted((chunk.upper, max(upper)))
        if lesser != greater and len(greater) > len(lesser):
            return True
    return False


def _in_order(value: Any, leaf: Leaf) -> Any:
    """The value in the order of its type: unsigned integers are stored as signed ones."""
    unsigned = leaf.physical in (1, 2) and not leaf.is_signed
    return value % 2 ** (32 if leaf.physical == 1 else 64) if unsigned else value
