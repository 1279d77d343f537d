"""Constructors of lists and structs, and searches in the items of a list.

Items are equal as nested values are (`nested_order`). `equals_any` has SQL's three results: with a
NULL item, a missing value gives NULL. The other functions skip NULL items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, Mask, null_mask, with_nulls, without
from rowsieve.predicate.binding.nested_types import are_comparable
from rowsieve.predicate.evaluation.nested_order import equal_items, item_rows
from rowsieve.predicate.functions.conditional import common_type
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
    Json,
    List,
    LogicalType,
    Map,
    String,
    Struct,
)

_ITEM = "item"


def _resolve_list(arguments: Sequence[Argument]) -> Signature | None:
    common = common_type([argument.type for argument in arguments])
    if common is None or not arguments:
        return None  # the type of an empty list comes from the other side
    return Signature((common,) * len(arguments), List(Field(0, _ITEM, common)))


def _resolve_struct(arguments: Sequence[Argument]) -> Signature | None:
    names, values = arguments[::2], arguments[1::2]
    if not values or len(names) != len(values):
        return None
    if not all(isinstance(name.constant, str) for name in names):
        return None
    types: list[LogicalType] = [value.type or String() for value in values]
    fields = [Field(0, str(name.constant), type_) for name, type_ in zip(names, types, strict=True)]
    wanted = tuple(each for type_ in types for each in (String(), type_))
    return Signature(wanted, Struct(tuple(fields)))


def _resolve_among(arguments: Sequence[Argument]) -> Signature | None:
    """Resolve a list and a value that is comparable with its items."""
    if len(arguments) != 2 or not isinstance(arguments[0].type, List):
        return None
    item = arguments[0].type.element.type
    value = arguments[1].type or item
    if isinstance(value, Json | Map) or not are_comparable(item, value):
        return None
    return Signature((arguments[0].type, value), Bool())


def _resolve_lists(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 2 or not all(isinstance(each.type, List) for each in arguments):
        return None
    left, right = arguments[0].type, arguments[1].type
    assert left is not None
    assert right is not None
    return Signature((left, right), Bool()) if are_comparable(left, right) else None


def _list(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    count, width = len(arguments[0]), len(arguments)
    places = np.arange(count * width).reshape(width, count).T.reshape(-1)
    items = pa.concat_arrays(list(arguments)).take(pa.array(places))
    ends = pa.array(np.arange(count + 1) * width, pa.int32())
    return Computed(pa.ListArray.from_arrays(ends, items, type=arrow_type(signature.result)))


def _struct(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    storage = arrow_type(signature.result)
    return Computed(pa.StructArray.from_arrays(list(arguments[1::2]), fields=list(storage)))


def _found(values: pa.Array, sought: pa.Array, semantics: Semantics) -> Mask:
    """Return (n,) bool: whether the value is among the items of the list."""
    items, rows = item_rows(values)
    matches = np.zeros(len(values), dtype=np.bool_)
    matches[rows[equal_items(items, sought.take(pa.array(rows)), semantics)]] = True
    return matches


def _contains(arguments: Sequence[pa.Array], _: Signature, semantics: Semantics) -> Computed:
    values, sought = arguments
    nulls = null_mask(values) | null_mask(sought)
    return Computed(with_nulls(_found(values, sought, semantics), nulls, pa.bool_()))


def _equals_any(arguments: Sequence[pa.Array], _: Signature, semantics: Semantics) -> Computed:
    values, sought = arguments
    items, rows = item_rows(values)
    matches = _found(values, sought, semantics)
    has_item, has_null = np.zeros_like(matches), np.zeros_like(matches)
    has_item[rows] = True
    has_null[rows[null_mask(items)]] = True
    unknown = has_item & ~matches & (has_null | null_mask(sought))
    return Computed(with_nulls(matches, null_mask(values) | unknown, pa.bool_()))


def _position(arguments: Sequence[pa.Array], _: Signature, semantics: Semantics) -> Computed:
    """Return the first position of the value, from 1; 0 if it is missing."""
    values, sought = arguments
    items, rows = item_rows(values)
    equal = equal_items(items, sought.take(pa.array(rows)), semantics)
    first = np.searchsorted(rows, np.arange(len(values)))
    hits = np.flatnonzero(equal)[::-1]  # the last assignment wins, which is the first position
    positions = np.zeros(len(values), dtype=np.int32)
    positions[rows[hits]] = hits - first[rows[hits]] + 1
    nulls = null_mask(values) | null_mask(sought)
    return Computed(with_nulls(positions, nulls, pa.int32()))


def _share(arguments: Sequence[pa.Array], _: Signature, semantics: Semantics) -> Computed:
    """Whether both lists share an item; NULL if not, but both have items and one is NULL."""
    values, others = arguments
    shared, _missing = _pairs(values, others, semantics)
    sides = [item_rows(side) for side in (values, others)]
    filled_both, has_null = np.ones_like(shared), np.zeros_like(shared)
    for items, rows in sides:
        holds = np.zeros_like(shared)
        holds[rows] = True
        filled_both &= holds
        has_null[rows[null_mask(items)]] = True
    unknown = ~shared & filled_both & has_null
    nulls = null_mask(values) | null_mask(others) | unknown
    return Computed(with_nulls(shared, nulls, pa.bool_()))


def _extreme(name: str) -> Callable[..., Computed]:
    def evaluate(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
        (values,) = arguments
        items, rows = item_rows(values)
        table = pa.table({"row": pa.array(rows), "item": items})
        grouped = table.group_by("row").aggregate([("item", name)])
        places = np.full(len(values), -1)
        places[grouped["row"].to_numpy()] = np.arange(grouped.num_rows)
        extremes = grouped[f"item_{name}"].combine_chunks()
        taken = extremes.take(pa.array(np.maximum(places, 0), mask=places < 0))
        return Computed(taken.cast(arrow_type(signature.result)))

    return evaluate


def _resolve_position(arguments: Sequence[Argument]) -> Signature | None:
    signature = _resolve_among(arguments)
    return signature and Signature(signature.arguments, Int(32))


def _resolve_extreme(arguments: Sequence[Argument]) -> Signature | None:
    """Resolve a list without floats: engines differ on NaN."""
    list_type = arguments[0].type if len(arguments) == 1 else None
    if not isinstance(list_type, List) or not isinstance(
        list_type.element.type, Int | String | Date | Decimal
    ):
        return None
    return Signature((list_type,), list_type.element.type)


def _resolve_joined(arguments: Sequence[Argument]) -> Signature | None:
    list_type = arguments[0].type if len(arguments) == 2 else None
    if not isinstance(list_type, List) or list_type.element.type != String():
        return None
    return (
        Signature((list_type, String()), String())
        if isinstance(arguments[1].constant, str)
        else None
    )


def _joined(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    """Join texts with a separator; NULLs are skipped."""
    values, separators = arguments
    items, rows = item_rows(values)
    is_known = ~null_mask(items)
    counts = np.bincount(rows[is_known], minlength=len(values))
    ends = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    lists = pa.ListArray.from_arrays(ends, items.filter(pa.array(is_known)))
    separator = separators[0].as_py() if len(separators) else ""
    return Computed(without(pc.binary_join(lists, separator), null_mask(values)))


def _pairs(values: pa.Array, others: pa.Array, semantics: Semantics) -> tuple[Mask, Mask]:
    """Return two masks, (n,) bool: some item is in both lists; some item is in `others` only."""
    items, rows = item_rows(others)
    inside = _found(values.take(pa.array(rows)), items, semantics)
    shared, missing = (np.zeros(len(values), dtype=np.bool_) for _ in range(2))
    shared[rows[inside]] = True
    missing[rows[~inside]] = True
    return shared, missing


def _of_lists(*, all_of: bool) -> Callable[..., Computed]:
    def evaluate(arguments: Sequence[pa.Array], _: Signature, semantics: Semantics) -> Computed:
        values, others = arguments
        nulls = null_mask(values) | null_mask(others)
        shared, missing = _pairs(values, others, semantics)
        return Computed(with_nulls(~missing if all_of else shared, nulls, pa.bool_()))

    return evaluate


ROWS = (
    Function(
        "list_position(list, value of its items), 0 if it is not there",
        _resolve_position,
        _position,
        bounds=from_zero,
        can_fail=never_fails,
        nulls=NullRule.STRICT,
    ),
    Function(
        "lists_share(list, list), as Spark's arrays_overlap",
        _resolve_lists,
        _share,
        can_fail=never_fails,
        nulls=NullRule.PARTIAL,
    ),
    *(
        Function(
            f"list_{name}(list), its NULLs passed over",
            _resolve_extreme,
            _extreme(name),
            can_fail=never_fails,
            nulls=NullRule.PARTIAL,
        )
        for name in ("min", "max")
    ),
    Function(
        "list_text(list of text, constant separator)",
        _resolve_joined,
        _joined,
        can_fail=never_fails,
    ),
    Function(
        "make_list(value, …) of one type",
        _resolve_list,
        _list,
        can_fail=never_fails,
        nulls=NullRule.NEVER,
    ),
    Function(
        "make_struct(constant name, value, …)",
        _resolve_struct,
        _struct,
        can_fail=never_fails,
        nulls=NullRule.NEVER,
    ),
    Function(
        "list_contains(list, value of its items)",
        _resolve_among,
        _contains,
        can_fail=never_fails,
        nulls=NullRule.STRICT,
    ),
    Function(
        "equals_any(list, value of its items), as value = ANY(list)",
        _resolve_among,
        _equals_any,
        can_fail=never_fails,
        nulls=NullRule.ANY,
    ),
    Function(
        "list_overlaps(list, list)",
        _resolve_lists,
        _of_lists(all_of=False),
        can_fail=never_fails,
        nulls=NullRule.STRICT,
    ),
    Function(
        "list_contains_all(list, list): every item of the second is in the first",
        _resolve_lists,
        _of_lists(all_of=True),
        can_fail=never_fails,
        nulls=NullRule.STRICT,
    ),
)
