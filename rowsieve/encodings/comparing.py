"""Finds the rows in which two arrays differ, at any depth; NaN equals NaN, and 0.0 is not -0.0.

Arrow compares whole arrays, so the search halves them: equal halves cost one comparison.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.encodings.plain_arrays import Form, to_plain

Rows = npt.NDArray[np.int64]


def differing_rows(left: pa.Array, right: pa.Array) -> Rows:
    """The rows in which two arrays of one type differ, ascending."""
    if pa.types.is_floating(left.type):
        left, right = _in_bits(left), _in_bits(right)
    if not _has_floats(left.type) and left.equals(right):
        return np.zeros(0, np.int64)
    left, right = (_in_bits(to_plain(each, Form.BINARY)) for each in (left, right))
    places: list[int] = []
    pending = [(0, len(left))]
    while pending:
        start, stop = pending.pop()
        if left.slice(start, stop - start).equals(right.slice(start, stop - start)):
            continue
        if stop - start == 1:
            places.append(start)
            continue
        middle = (start + stop) // 2
        pending += [(middle, stop), (start, middle)]
    return np.array(places, np.int64)


def _has_floats(type_: pa.DataType) -> bool:
    if pa.types.is_floating(type_):
        return True
    if pa.types.is_map(type_):
        return _has_floats(type_.key_type) or _has_floats(type_.item_type)
    return any(_has_floats(type_.field(i).type) for i in range(type_.num_fields))


def _in_bits(array: pa.Array) -> pa.Array:
    """A plain array with the bits of floats for floats, and one NaN."""
    type_ = array.type
    if pa.types.is_floating(type_):
        is_nan = pc.is_nan(array)
        if pc.any(is_nan).as_py():
            array = pc.if_else(is_nan, pa.scalar(float("nan"), type_), array)
        return array.view(pa.int64() if type_ == pa.float64() else pa.int32())
    if not _has_floats(type_):
        return array
    if pa.types.is_struct(type_):
        members = [_in_bits(array.field(i)) for i in range(type_.num_fields)]
        names = [type_.field(i).name for i in range(type_.num_fields)]
        return pa.StructArray.from_arrays(members, names=names, mask=array.is_null())
    values = _in_bits(array.flatten())
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    offsets = np.concatenate([[0], np.cumsum(lengths.to_numpy(zero_copy_only=False))])
    absent = np.append(np.asarray(array.is_null()), False)
    return pa.ListArray.from_arrays(
        pa.array(offsets.astype(np.int32), mask=absent if array.null_count else None), values
    )
