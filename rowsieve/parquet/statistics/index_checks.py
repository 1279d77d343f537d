"""Check whether a column chunk's page index contradicts itself or its chunk, and so is ignored.

No checksum covers the index of another writer, and a wrong index hides rows.
Soundness: a contradiction means "unknown". An index that is wrong but consistent, as
the statistics of a footer may be, is believed.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rowsieve.parquet.foreign_footer.index_contradictions import (
    bytes_contradict,
    numbers_contradict,
)
from rowsieve.parquet.foreign_footer.schema_tree import Leaf
from rowsieve.parquet.statistics.foreign_chunks import ChunkStatistics, value_in
from rowsieve.parquet.statistics.stored_bounds import StoredBounds

_NUMBERS: Final = (0, 1, 2, 4, 5)  # physical types: booleans, integers and floats
_BYTES: Final = 6


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
        ends = [
            None if bound is None else _in_order(value_in(bound, leaf), leaf)
            for bound in (chunk.lower, chunk.upper)
        ]
        return numbers_contradict(lower, upper, order, (ends[0], ends[1]))
    return leaf.physical == _BYTES and bytes_contradict(lower, upper, (chunk.lower, chunk.upper))


def _in_order(value: Any, leaf: Leaf) -> Any:
    """The value in the order of its type: unsigned integers are stored as signed ones."""
    unsigned = leaf.physical in (1, 2) and not leaf.is_signed
    return value % 2 ** (32 if leaf.physical == 1 else 64) if unsigned else value
