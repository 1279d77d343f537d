"""Rank lists, structs and other values for which Arrow has no sort kernel.

Structs compare by their fields in order; lists item by item, and a list sorts before every longer
one that begins with it; inside, NULL is above every value, and NaN above every number. Intervals
compare by their length, unbounded numbers by their bytes. Equal values have equal ranks. All rows
are ranked together, field by field and item by item, never one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.types import logical
from rowsieve.types.interval_bytes import total_us
from rowsieve.types.numeric_bytes import exact_of
from rowsieve.types.ordering.curves import Words, ranks_of_values
from rowsieve.types.ordering.keys import sort_form


def has_ranks(type_: logical.LogicalType) -> bool:
    """Return whether values of the type have an order, as whole values."""
    match type_:
        case logical.Struct(fields=fields):
            return all(has_ranks(field.type) for field in fields)
        case logical.List(element=element):
            return has_ranks(element.type)
        case logical.Interval() | logical.Numeric():
            return True
        case _:
            return logical.is_ordered(type_)


def order_form(values: pa.Array, type_: logical.LogicalType) -> pa.Array:
    """Return an array that sorts like the values of one array, with the same NULLs."""
    if logical.is_ordered(type_):
        return sort_form(values, type_)
    return pa.array(_ranks(values, type_), mask=_nulls(values))


def _ranks(values: pa.Array, type_: logical.LogicalType) -> Words:
    """Return, shape (n,), how many rows are below each; NULL is above every value."""
    match type_:
        case logical.Struct(fields=fields):
            members = zip(map(values.field, range(len(fields))), fields, strict=True)
            ranks = _joined([_ranks(member, field.type) for member, field in members])
        case logical.List(element=element):
            ranks = _of_lists(values, element.type)
        case logical.Interval():
            return ranks_of_values(total_us(values))
        case logical.Numeric():
            return ranks_of_values(exact_of(values))
        case _:
            return ranks_of_values(sort_form(values, type_))
    nulls = _nulls(values)
    return np.where(nulls, np.int64(len(values)), ranks) if nulls is not None else ranks


def _joined(ranks: Sequence[Words]) -> Words:
    """The ranks of rows that compare by several ranks, the first one first."""
    order = np.lexsort(ranks[::-1])
    differs = np.zeros(len(order), dtype=np.bool_)
    for each in ranks:
        differs[1:] |= each[order[1:]] != each[order[:-1]]
    return _at_starts(order, differs)


def _at_starts(order: npt.NDArray[Any], differs: npt.NDArray[np.bool_]) -> Words:
    """(n,) the first place in `order` of rows equal to each; `differs`: from the row before."""
    starts = np.maximum.accumulate(np.where(differs, np.arange(len(order), dtype=np.int64), 0))
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = starts
    return ranks


def _of_lists(values: pa.Array, type_: logical.LogicalType) -> Words:
    """Refine the ranks by the first items, then by the second ones of rows that are still equal."""
    offsets = np.asarray(values.offsets.to_numpy(), dtype=np.int64)
    first, lengths = offsets[:-1], np.diff(offsets)
    if (nulls := _nulls(values)) is not None:
        lengths = np.where(nulls, 0, lengths)
    items = _ranks(values.values, type_) + 1  # 0 is the end of a list
    ranks = np.zeros(len(values), dtype=np.int64)
    rows, place = np.arange(len(values), dtype=np.int64), 0
    while len(rows) > 1:
        has = lengths[rows] > place
        codes = np.zeros(len(rows), dtype=np.int64)
        codes[has] = items[first[rows[has]] + place]
        order = np.lexsort((codes, ranks[rows]))
        rows, codes, before = rows[order], codes[order], ranks[rows[order]]
        same_before = before[1:] == before[:-1]
        same = same_before & (codes[1:] == codes[:-1])
        number = np.arange(len(rows), dtype=np.int64)
        groups = np.maximum.accumulate(np.where(np.append(False, same_before), 0, number))
        list_number = np.maximum.accumulate(np.where(np.append(False, same), 0, number))
        ranks[rows] = before + list_number - groups
        again = np.append(same, False) | np.append(False, same)
        rows, place = rows[again & (codes > 0)], place + 1
    return ranks


def _nulls(values: pa.Array) -> npt.NDArray[np.bool_] | None:
    if not values.null_count:
        return None
    return np.asarray(values.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
