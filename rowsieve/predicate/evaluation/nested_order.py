"""Compare lists and structs, item by item and field by field, without a loop over rows.

A list sorts before every longer list that begins with it; structs compare by their fields in order.
Two NULLs inside are equal, and `NestedNulls` orders NULL and values; under `UNKNOWN` NULL makes
equality NULL, as in the SQL standard. NaN equals itself and is greatest unless `NanOrder` differs;
the IEEE order applies under `UNKNOWN` only. Fields of different widths compare by value. A list or
struct that is NULL itself makes the comparison NULL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.predicate.arrays import Mask, as_mask, compare, filled, null_mask, with_nulls
from rowsieve.predicate.ir import ComparisonOp
from rowsieve.predicate.semantics import NanOrder, NestedNulls, Semantics

_Signs: TypeAlias = npt.NDArray[np.int8]


def compare_nested(
    op: ComparisonOp, left: pa.Array, right: pa.Array, semantics: Semantics
) -> pa.Array:
    """Compute `left op right` of two arrays of lists or structs, (n,) bool; NULL if a side is.

    Under `NestedNulls.UNKNOWN` only `=` and `<>` are defined. O(items) of both sides.
    """
    nulls = null_mask(left) | null_mask(right)
    if semantics.nested_nulls is NestedNulls.UNKNOWN:
        differs, unknown = _equality(left, right, semantics.nan)
        truth = differs if op is ComparisonOp.NE else ~differs
        return with_nulls(truth, nulls | (unknown & ~differs), pa.bool_())
    order = _Order.of(semantics, nulls_first=semantics.nested_nulls is NestedNulls.LEAST)
    return with_nulls(op.python(order.signs(left, right), 0), nulls, pa.bool_())


def differ_nested(left: pa.Array, right: pa.Array, semantics: Semantics) -> Mask:
    """Return (n,) bool: `left IS DISTINCT FROM right`; NULLs are equal at every depth."""
    order = _Order.of(semantics, nulls_first=False)
    signs: Mask = order.signs(left, right) != 0
    return signs


@dataclass(frozen=True, slots=True)
class _Order:
    nulls_first: bool
    zeros_differ: bool
    nan: NanOrder

    @classmethod
    def of(cls, semantics: Semantics, *, nulls_first: bool) -> _Order:
        """Return the order inside lists and structs, where NaN is always ordered."""
        nan = NanOrder.GREATEST if semantics.nan is NanOrder.IEEE else semantics.nan
        return cls(nulls_first, semantics.nested_zeros_differ, nan)

    def signs(self, left: pa.Array, right: pa.Array) -> _Signs:
        """Return (n,) -1, 0 or 1 for less, equal or greater; NULL is a value here."""
        absent = null_mask(left), null_mask(right)
        if pa.types.is_struct(left.type):
            signs = self._structs(left, right)
        elif pa.types.is_nested(left.type):
            signs = self._lists(left, right, ~(absent[0] | absent[1]))
        else:
            signs = self._values(left, right)
        nulls = absent[0].astype(np.int8) - absent[1].astype(np.int8)
        beside = -nulls if self.nulls_first else nulls
        whole: _Signs = np.where(absent[0] | absent[1], beside, signs)
        return whole

    def _structs(self, left: pa.Array, right: pa.Array) -> _Signs:
        signs = np.zeros(len(left), dtype=np.int8)
        for place in range(left.type.num_fields):
            member_signs = self.signs(_member(left, place), _member(right, place))
            signs = np.where(signs == 0, member_signs, signs)
        return signs

    def _lists(self, left: pa.Array, right: pa.Array, present: Mask) -> _Signs:
        starts, lengths = zip(_ranges(left), _ranges(right), strict=True)
        counts = np.where(present, np.minimum(*lengths), 0)
        rows, places = _pairs(counts)
        items = self.signs(
            left.values.take(pa.array(starts[0][rows] + places)),
            right.values.take(pa.array(starts[1][rows] + places)),
        )
        signs: _Signs = np.sign(lengths[0] - lengths[1]).astype(np.int8)
        unequal = np.flatnonzero(items)
        first, at = np.unique(rows[unequal], return_index=True)
        signs[first] = items[unequal[at]]
        return signs

    def _values(self, left: pa.Array, right: pa.Array) -> _Signs:
        left, right = _aligned(left, right)
        below, above = (
            as_mask(compare(op, left, right, self.nan)) for op in (ComparisonOp.LT, ComparisonOp.GT)
        )
        signs = above.astype(np.int8) - below.astype(np.int8)
        if self.zeros_differ and pa.types.is_floating(left.type):
            numbers = filled(left), filled(right)
            negative = [np.signbit(each).astype(np.int8) for each in numbers]
            zeros = (numbers[0] == 0) & (numbers[1] == 0)
            signs = np.where(zeros, negative[1] - negative[0], signs)
        ordered: _Signs = signs
        return ordered


def _equality(left: pa.Array, right: pa.Array, nan: NanOrder) -> tuple[Mask, Mask]:
    """Return two masks, (n,) bool: certainly different; unknown because of a NULL inside."""
    absent = null_mask(left) | null_mask(right)
    if pa.types.is_struct(left.type):
        differs, unknown = np.zeros_like(absent), np.zeros_like(absent)
        for place in range(left.type.num_fields):
            inner = _equality(_member(left, place), _member(right, place), nan)
            differs, unknown = differs | inner[0], unknown | inner[1]
    elif pa.types.is_nested(left.type):
        differs, unknown = _equality_of_lists(left, right, ~absent, nan)
    else:
        differs = as_mask(compare(ComparisonOp.NE, *_aligned(left, right), nan))
        unknown = absent
    return differs & ~absent, unknown | absent


def _equality_of_lists(
    left: pa.Array, right: pa.Array, present: Mask, nan: NanOrder
) -> tuple[Mask, Mask]:
    starts, lengths = zip(_ranges(left), _ranges(right), strict=True)
    differs = lengths[0] != lengths[1]
    rows, places = _pairs(np.where(present & ~differs, lengths[0], 0))
    items = _equality(
        left.values.take(pa.array(starts[0][rows] + places)),
        right.values.take(pa.array(starts[1][rows] + places)),
        nan,
    )
    unknown = np.zeros_like(differs)
    differs[rows[items[0]]] = True
    unknown[rows[items[1]]] = True
    return differs, unknown


def _member(values: pa.Array, place: int) -> pa.Array:
    """Return a field of each struct; undefined where the struct is NULL."""
    return values.field(place)


def _ranges(values: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the start of each list in `values.values`, and its length."""
    offsets = values.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    return offsets[:-1], np.diff(offsets)


def _pairs(counts: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the row of each item to be compared, and its position in the list."""
    rows = np.repeat(np.arange(len(counts)), counts)
    before = np.cumsum(counts) - counts
    return rows, np.arange(len(rows)) - before[rows]


def _aligned(left: pa.Array, right: pa.Array) -> tuple[Any, Any]:
    """Cast both sides to one type that holds either: numbers of several kinds and widths."""
    if left.type == right.type or (pa.types.is_decimal(left.type) and _is_decimal(right)):
        return left, right
    sides = left, right
    if any(pa.types.is_floating(side.type) for side in sides):
        return _as_double(left), _as_double(right)
    if any(map(_is_decimal, sides)):
        return _as_decimal(left), _as_decimal(right)
    if any(pa.types.is_uint64(side.type) for side in sides):
        return _as_decimal(left), _as_decimal(right)
    return left.cast(pa.int64()), right.cast(pa.int64())


def _is_decimal(values: pa.Array) -> bool:
    return bool(pa.types.is_decimal(values.type))


def _as_double(values: pa.Array) -> pa.Array:
    text = values.cast(pa.string()) if _is_decimal(values) else values  # rounds correctly
    return text.cast(pa.float64(), safe=False)


def _as_decimal(values: pa.Array) -> pa.Array:
    return values if _is_decimal(values) else values.cast(pa.decimal256(20, 0))


def equal_items(left: pa.Array, right: pa.Array, semantics: Semantics) -> Mask:
    """Return (n,) bool: where neither is NULL and both are equal as values inside a list."""
    absent = null_mask(left) | null_mask(right)
    if semantics.nested_nulls is NestedNulls.UNKNOWN or semantics.nan is NanOrder.IEEE:
        differs, unknown = _equality(left, right, semantics.nan)
        return ~(differs | unknown | absent)
    signs = _Order.of(semantics, nulls_first=False).signs(left, right)
    equal: Mask = (signs == 0) & ~absent
    return equal


def item_rows(values: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Return the items of all non-NULL lists, in order, and the row of each item."""
    starts, lengths = _ranges(values)
    rows, places = _pairs(np.where(null_mask(values), 0, lengths))
    return values.values.take(pa.array(starts[rows] + places)), rows
