"""Compare sequences: the values by which the versions of a key are ordered, column by column.

They are compared in sort form, as keys are (`rowsieve.types.ordering.keys`). Text and bytes are
compared as bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.types.ordering.keys import KeyColumns, KeyOrder

Mask = npt.NDArray[np.bool_]


def is_above(ours: KeyColumns, theirs: KeyColumns) -> Mask:
    """(n,) whether each of our sequences is above theirs in the same row; NULL is above all.

    `theirs` may have one row, which each of ours is compared with. A NULL ends the comparison.
    """
    above = np.zeros(len(ours), dtype=bool)
    undecided = ~above
    for left, right in zip(ours.arrays, theirs.arrays, strict=True):
        other = right[0] if len(right) == 1 else right
        above |= undecided & _mask(pc.greater(left, other), missing=True)
        undecided &= _mask(pc.equal(left, other), missing=False)
    return above


def greatest(rows: Any, order: KeyOrder) -> pa.Table:
    """The greatest sequence of a table or batch with rows, as a table of one row."""
    return _extreme(rows, order, "max")


def least(rows: Any, order: KeyOrder) -> pa.Table:
    """The least sequence of a table or batch with rows, as a table of one row."""
    return _extreme(rows, order, "min")


def _extreme(rows: Any, order: KeyOrder, side: str) -> pa.Table:
    columns = order.columns(rows)
    places = np.arange(len(columns), dtype=np.int64)
    for array in columns.arrays:
        taken = array if len(places) == len(columns) else array.take(pa.array(places))
        ends = pc.min_max(taken)
        places = places[_mask(pc.equal(taken, ends[side]), missing=False)]
        if len(places) == 1:
            break
    names = list(order.names)
    row = rows.select(names).take(pa.array(places[:1]))
    return pa.Table.from_batches([row]) if isinstance(row, pa.RecordBatch) else row


def _mask(values: Any, *, missing: bool) -> Mask:
    filled = pc.fill_null(values, pa.scalar(missing)) if values.null_count else values
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=bool)
