"""Compares rows, or columns, value by value.

Two values are the same if no function can distinguish them: NULL is the same as NULL, NaN as a NaN
of the same bits, and 0.0 is not -0.0.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import as_mask
from rowsieve.types.encodings import is_list

Mask = npt.NDArray[np.bool_]


def same_rows(left: pa.RecordBatch, right: pa.RecordBatch) -> Mask:
    """Return, shape (n,), whether row i is the same on both sides; the schemas are equal."""
    same = np.ones(left.num_rows, dtype=np.bool_)
    for ours, theirs in zip(left.columns, right.columns, strict=True):
        same &= same_values(ours, theirs)
    return same


def same_values(left: pa.Array, right: pa.Array) -> Mask:
    """Return, shape (n,), whether value i is the same on both sides; the types are equal."""
    if not left.null_count and not right.null_count:
        return _same_present(left, right)
    nulls, others = as_mask(left.is_null()), as_mask(right.is_null())
    same: Mask = nulls == others
    both = np.flatnonzero(~nulls & ~others)
    if len(both):
        rows = pa.array(both)
        same[both] = _same_present(left.take(rows), right.take(rows))
    return same


def _same_present(left: pa.Array, right: pa.Array) -> Mask:
    """Compare arrays without NULLs at the top."""
    type_ = left.type
    if isinstance(type_, pa.BaseExtensionType):
        return _same_present(left.storage, right.storage)
    if pa.types.is_struct(type_):
        same = np.ones(len(left), dtype=np.bool_)
        for ours, theirs in zip(left.flatten(), right.flatten(), strict=True):
            same &= same_values(ours, theirs)
        return same
    if pa.types.is_map(type_):
        return _same_present(_entries(left), _entries(right))
    if is_list(type_):
        return _same_lists(left, right)
    if pa.types.is_floating(type_):
        bits = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[type_.bit_width]
        left, right = left.view(bits), right.view(bits)
    if pa.types.is_interval(type_):  # Arrow does not compare intervals: their 16 bytes do
        left, right = left.view(pa.binary(16)), right.view(pa.binary(16))
    return as_mask(pc.equal(left, right))


def _entries(maps: pa.MapArray) -> pa.ListArray:
    """The maps as lists of structs; none of them is NULL."""
    maps = pa.concat_arrays([maps])  # offsets from 0
    items = pa.StructArray.from_arrays([maps.keys, maps.items], ["key", "value"])
    return pa.ListArray.from_arrays(maps.offsets, items)


def _same_lists(left: pa.Array, right: pa.Array) -> Mask:
    lengths = np.asarray(pc.list_value_length(left))
    same: Mask = lengths == np.asarray(pc.list_value_length(right))
    rows = np.flatnonzero(same & (lengths > 0))
    if len(rows):
        chosen = pa.array(rows)
        items = same_values(left.take(chosen).flatten(), right.take(chosen).flatten())
        starts = np.cumsum(lengths[rows]) - lengths[rows]
        same[rows] = np.logical_and.reduceat(items, starts)
    return same
