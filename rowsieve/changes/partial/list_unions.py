"""Unions of lists by key: each item once, in the order in which it first occurs.

Items are equal as keys are: NULL to NULL, NaN to NaN, -0.0 to 0.0; structs if all fields are.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.changes.partial.given_values import Mask
from rowsieve.changes.partial.meeting_values import Candidates, Places
from rowsieve.types.logical import (
    Interval,
    List,
    LogicalType,
    Map,
    Numeric,
    Struct,
)
from rowsieve.types.ordering.keys import sort_form


def has_equal_items(type_: LogicalType) -> bool:
    """Return whether items of this type can be compared: scalars with one form, structs of them."""
    if isinstance(type_, Struct):
        return all(has_equal_items(field.type) for field in type_.fields)
    return not isinstance(type_, List | Map | Interval | Numeric)


def union(candidates: Candidates, initial: Places) -> pa.Array:
    """The union of the lists of each key; NULL if all of them are.

    A key to which no change gives a list keeps that of `initial` (count,), -1 where there is none.
    """
    known = candidates.without_nulls()
    type_ = candidates.type
    assert isinstance(type_, List)
    lists = known.values()
    items = pc.list_flatten(lists)
    owners = known.owners[np.asarray(pc.list_parent_indices(lists).to_numpy(), dtype=np.int64)]
    codes = _codes(items, type_.element.type)
    pairs = np.stack([owners, codes], axis=1)
    is_chosen = _is_kept(known, initial)[owners]
    is_chosen[np.unique(pairs, axis=0, return_index=True)[1]] = True  # of equal items the first
    places = np.flatnonzero(is_chosen)
    offsets = np.concatenate(
        [[0], np.cumsum(np.bincount(owners[places], minlength=known.count))]
    ).astype(np.int32)
    is_null = np.bincount(known.owners, minlength=known.count) == 0
    return pa.ListArray.from_arrays(
        pa.array(offsets),
        items.take(pa.array(places)),
        type=candidates.pool.type,
        mask=pa.array(is_null),
    )


def _is_kept(known: Candidates, initial: Places) -> Mask:
    """(count,) whether the only list of each key is the one before the changes."""
    last = np.full(known.count, -1, dtype=np.int64)
    last[known.owners] = known.members
    counts = np.bincount(known.owners, minlength=known.count)
    return np.asarray((counts == 1) & (last == initial), dtype=bool)


def _codes(items: pa.Array, type_: LogicalType) -> Places:
    """(n,) a number of each item, the same for equal ones."""
    if isinstance(type_, Struct):
        is_valid = np.asarray(items.is_valid().to_numpy(zero_copy_only=False), dtype=np.int64)
        members = [
            _codes(each, f.type) for each, f in zip(items.flatten(), type_.fields, strict=True)
        ]
        rows = np.stack([is_valid, *(codes * is_valid for codes in members)], axis=1)
        _, codes = np.unique(rows, axis=0, return_inverse=True)
        return np.asarray(codes, dtype=np.int64).reshape(-1)
    encoded = sort_form(items, type_).dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
