"""Lists made of lists and maps: a slice, the distinct items, the keys of a map.

A slice has a constant start, from 1, and a constant number of items; positions beyond the list are
omitted. Distinct items keep the order of their first places, one NULL among them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, null_mask, with_nulls
from rowsieve.predicate.evaluation.nested_order import item_rows
from rowsieve.predicate.functions.row import (
    Argument,
    Function,
    NullRule,
    Signature,
    never_fails,
)
from rowsieve.predicate.functions.texts.text_ranges import from_zero
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import (
    Bool,
    Date,
    Decimal,
    Field,
    Int,
    List,
    Map,
    String,
)

_INT32_END = 2**31


def _resolve_slice(arguments: Sequence[Argument]) -> Signature | None:
    list_type = arguments[0].type if len(arguments) == 3 else None
    bounds = [argument.constant for argument in arguments[1:]]
    if not isinstance(list_type, List) or not all(type(bound) is int for bound in bounds):
        return None
    start, count = (int(bound) for bound in bounds if isinstance(bound, int))
    if not (1 <= start < _INT32_END and 0 <= count < _INT32_END):
        return None
    return Signature((list_type, Int(64), Int(64)), list_type, f"{start} {count}")


def _slice(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    start, count = map(int, signature.option.split())
    values = arguments[0]
    items, rows = item_rows(values)
    places = np.arange(len(rows)) - np.searchsorted(rows, rows) + 1
    is_inside = (places >= start) & (places < start + count)
    return Computed(_lists(items.filter(pa.array(is_inside)), rows[is_inside], values, signature))


def _resolve_distinct(arguments: Sequence[Argument]) -> Signature | None:
    """Resolve a list without floats: engines differ on NaN and -0.0."""
    list_type = arguments[0].type if len(arguments) == 1 else None
    kinds = Int | String | Date | Decimal | Bool
    if not isinstance(list_type, List) or not isinstance(list_type.element.type, kinds):
        return None
    return Signature((list_type,), list_type)


def _distinct(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    (values,) = arguments
    items, rows = item_rows(values)
    first = _first_places(items, rows)
    return Computed(_lists(items.take(pa.array(first)), rows[first], values, signature))


def _first_places(items: pa.Array, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the places of the items that no earlier item of the same row equals, rising."""
    codes = pc.fill_null(pc.dictionary_encode(items).indices, -1).to_numpy(zero_copy_only=False)
    places = np.unique(rows * (len(items) + 1) + codes + 1, return_index=True)[1]
    return np.sort(places)


def _resolve_unique(arguments: Sequence[Argument]) -> Signature | None:
    signature = _resolve_distinct(arguments)
    return signature and Signature(signature.arguments, Int(64))


def _unique(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    """Count the distinct items that are not NULL."""
    (values,) = arguments
    items, rows = item_rows(values)
    first = _first_places(items, rows)
    seen = rows[first][~null_mask(items)[first]]
    return Computed(
        with_nulls(np.bincount(seen, minlength=len(values)), null_mask(values), pa.int64())
    )


def _resolve_keys(arguments: Sequence[Argument]) -> Signature | None:
    map_type = arguments[0].type if len(arguments) == 1 else None
    if not isinstance(map_type, Map):
        return None
    return Signature((map_type,), List(Field(0, "item", map_type.key.type)))


def _keys(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    (values,) = arguments
    starts = values.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    lengths = np.where(null_mask(values), 0, np.diff(starts))
    rows = np.repeat(np.arange(len(values)), lengths)
    places = np.arange(len(rows)) - np.searchsorted(rows, rows)
    keys = values.keys.take(pa.array(starts[:-1][rows] + places))
    return Computed(_lists(keys, rows, values, signature))


def _lists(
    items: pa.Array, rows: npt.NDArray[np.int64], values: pa.Array, signature: Signature
) -> pa.Array:
    """Build a list per value of the items of its row; NULL where the value is."""
    ends = np.searchsorted(rows, np.arange(len(values) + 1)).astype(np.int32)
    mask = pa.array(null_mask(values))
    lists = pa.ListArray.from_arrays(pa.array(ends), items, mask=mask)
    return lists.cast(arrow_type(signature.result))


ROWS = (
    Function(
        "slice(list, constant start from 1, constant number of items)",
        _resolve_slice,
        _slice,
        can_fail=never_fails,
        nulls=NullRule.STRICT,
    ),
    Function(
        "list_distinct(list), by first places",
        _resolve_distinct,
        _distinct,
        can_fail=never_fails,
        nulls=NullRule.STRICT,
    ),
    Function(
        "list_unique(list), the number of distinct items but NULL",
        _resolve_unique,
        _unique,
        bounds=from_zero,
        can_fail=never_fails,
        nulls=NullRule.STRICT,
    ),
    Function(
        "map_keys(map)",
        _resolve_keys,
        _keys,
        can_fail=never_fails,
        nulls=NullRule.STRICT,
    ),
)
