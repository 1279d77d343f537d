"""Conversions between Arrow arrays and numpy masks, and comparison of values.

A mask is (n,) bool, one entry per row. A computed column is an Arrow array and the mask of the rows
on which it failed; the array is NULL there. Values order by type: numbers by value, text and bytes
by unsigned bytes, false before true, NaN by `NanOrder`, -0.0 equal to 0.0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.ir import ComparisonOp
from rowsieve.predicate.semantics import NanOrder

Mask: TypeAlias = npt.NDArray[np.bool_]

MAX_DECIMAL256_DIGITS = 76


@dataclass(frozen=True, slots=True)
class Computed:
    """Values and the mask of failed rows; failed rows are NULL in the values."""

    values: pa.Array
    failed: Mask | None = None


def as_mask(values: pa.Array) -> Mask:
    """Convert a boolean array to a mask of its TRUE rows; NULL counts as false."""
    if isinstance(values, pa.ChunkedArray) or not pa.types.is_boolean(values.type):
        values = pc.fill_null(values, False)  # noqa: FBT003 - the kernel takes it by position
        chunked: Mask = values.to_numpy(zero_copy_only=False)
        return chunked
    mask = _unpacked(values.buffers()[1], values)
    if values.null_count:
        mask &= _unpacked(values.buffers()[0], values)
    return mask


def _unpacked(bits: pa.Buffer | None, values: pa.Array) -> Mask:
    """Unpack a buffer of bits to one byte per row, ten times as fast as Arrow's conversion."""
    if bits is None or not len(values):
        return np.zeros(len(values), dtype=np.bool_)
    stop = values.offset + len(values)
    packed = np.frombuffer(bits, np.uint8)[: (stop + 7) // 8]
    unpacked = np.unpackbits(packed, count=stop, bitorder="little")
    return unpacked[values.offset :].view(np.bool_)


def null_mask(values: pa.Array) -> Mask:
    """Return the mask of NULLs; NaN is not NULL."""
    if values.null_count == 0:
        return np.zeros(len(values), dtype=np.bool_)
    return as_mask(pc.is_null(values))


def any_of(*masks: Mask | None) -> Mask | None:
    """Return the union of masks; None is an empty mask."""
    union: Mask | None = None
    for mask in masks:
        if mask is not None:
            union = mask if union is None else union | mask
    return union


def filled(values: pa.Array) -> npt.NDArray[Any]:
    """Convert numbers, dates and times to numpy integers or floats, with 0 for NULL."""
    plain = plain_numbers(values)
    if plain.null_count:
        plain = pc.fill_null(plain, pa.scalar(0, plain.type))
    result: npt.NDArray[Any] = plain.to_numpy(zero_copy_only=False)
    return result


def plain_numbers(values: pa.Array) -> pa.Array:
    """Return the integers that store dates, times and timestamps; other numbers unchanged."""
    if pa.types.is_date32(values.type):
        return values.view(pa.int32())
    if pa.types.is_time64(values.type) or pa.types.is_timestamp(values.type):
        return values.view(pa.int64())
    return values


def with_nulls(values: npt.NDArray[Any], nulls: Mask, type_: pa.DataType) -> pa.Array:
    """Build an Arrow array from numpy numbers and a NULL mask; dates and times from integers."""
    mask = nulls if nulls.any() else None
    if pa.types.is_date32(type_):
        return pa.array(values.astype(np.int32, copy=False), mask=mask).view(type_)
    if pa.types.is_time64(type_) or pa.types.is_timestamp(type_):
        return pa.array(values.astype(np.int64, copy=False), mask=mask).view(type_)
    return pa.array(values, type=type_, mask=mask)


def without(values: pa.Array, mask: Mask | None) -> pa.Array:
    """Set values to NULL where the mask is true."""
    if mask is None or not mask.any():
        return values
    return pc.if_else(pa.array(mask), pa.scalar(None, values.type), values)


def as_type(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Cast values to a type; the same object if unchanged, because a cast costs a call."""
    if values.type == type_:
        return values
    if pa.types.is_dictionary(values.type) and values.type.value_type == type_:
        return values.dictionary.take(values.indices)  # as the cast, at half of its fixed cost
    return values.cast(type_)


def repeated(scalar: pa.Scalar, row_count: int) -> pa.Array:
    """Repeat a constant as an array."""
    if pa.types.is_nested(scalar.type):  # Arrow concatenates that many arrays, and fails on none
        return pa.repeat(scalar, 1).take(pa.array(np.zeros(row_count, dtype=np.int64)))
    return pa.repeat(scalar, row_count)


_KERNELS: dict[ComparisonOp, Callable[..., Any]] = {
    ComparisonOp.EQ: pc.equal,
    ComparisonOp.NE: pc.not_equal,
    ComparisonOp.LT: pc.less,
    ComparisonOp.LE: pc.less_equal,
    ComparisonOp.GT: pc.greater,
    ComparisonOp.GE: pc.greater_equal,
}


def compare(op: ComparisonOp, left: Any, right: Any, nan: NanOrder) -> pa.Array:
    """Compute `left op right` of two arrays, or an array and a scalar; NULL if a side is NULL.

    Both sides have one type, but decimals may differ in precision and scale; they compare exactly.
    """
    if pa.types.is_decimal(left.type) and left.type != right.type:
        left, right = _aligned(left, right)
    if nan is not NanOrder.IEEE and pa.types.is_floating(left.type):
        left_nan, right_nan = _is_nan(left), _is_nan(right)
        if left_nan is not None or right_nan is not None:
            return _compare_with_nan(op, left, right, signed=nan is NanOrder.SIGNED)
    return _KERNELS[op](left, right)


def _is_nan(values: Any) -> Any:
    """Return the NaN mask of an array, or the flag of a scalar; None without NaN."""
    if isinstance(values, pa.Scalar):
        return True if pc.is_nan(values).as_py() else None
    if isinstance(values, pa.Array) and not values.null_count:  # numpy would turn NULL into NaN
        mask: Mask = np.isnan(values.to_numpy(zero_copy_only=False))
    else:
        mask = as_mask(pc.is_nan(values))
    return mask if mask.any() else None


def _compare_with_nan(op: ComparisonOp, left: Any, right: Any, *, signed: bool) -> pa.Array:
    """Compare with NaN above every number; with `signed`, above or below by its sign bit."""
    row_count = len(left) if isinstance(left, pa.Array) else len(right)
    sides = [
        side if isinstance(side, pa.Array) else repeated(side, row_count) for side in (left, right)
    ]
    nulls = null_mask(sides[0]) | null_mask(sides[1])
    a, b = filled(sides[0]), filled(sides[1])
    a_rank, b_rank = (_nan_rank(side, signed=signed) for side in (a, b))
    equal = (a == b) | ((a_rank == b_rank) & (a_rank != 0))
    less = (a < b) | (a_rank < b_rank)
    result = {
        ComparisonOp.EQ: equal,
        ComparisonOp.NE: ~equal,
        ComparisonOp.LT: less,
        ComparisonOp.LE: less | equal,
        ComparisonOp.GT: ~(less | equal),
        ComparisonOp.GE: ~less,
    }[op]
    return with_nulls(result, nulls, pa.bool_())


def _nan_rank(numbers: npt.NDArray[Any], *, signed: bool) -> npt.NDArray[np.int8]:
    """Return 0 for a number and 1 for NaN; with `signed`, -1 for NaN with its sign bit set."""
    rank: npt.NDArray[np.int8] = np.isnan(numbers).astype(np.int8)
    if signed:
        rank[np.signbit(numbers)] *= -1
    return rank


def _aligned(left: Any, right: Any) -> tuple[Any, Any]:
    """Cast decimals to the larger scale; 38 digits before and 38 after the point fit in 76."""
    scale = max(left.type.scale, right.type.scale)
    common = pa.decimal256(MAX_DECIMAL256_DIGITS, scale)
    return left.cast(common), right.cast(common)
