"""Functions of lists and maps: length, element, value. `FieldAccess` reads a struct field.

Elements count from 1. A missing element is NULL, like an element that is NULL.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, filled, null_mask, without
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
from rowsieve.types.logical import Bool, Date, Int, List, Map, String


def _resolve_length(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 1 or not isinstance(arguments[0].type, List | Map):
        return None
    return Signature((arguments[0].type,), Int(32))


def _resolve_element(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 2 or not isinstance(arguments[0].type, List):
        return None
    if not isinstance(arguments[1].type, Int):
        return None
    return Signature((arguments[0].type, Int(64)), arguments[0].type.element.type)


def _resolve_value(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 2 or not isinstance(arguments[0].type, Map):
        return None
    key = arguments[0].type.key.type
    if not isinstance(key, String | Int | Bool | Date) or not arguments[1].is_constant:
        return None
    if arguments[1].type not in (key, None) and not (
        isinstance(key, Int) and isinstance(arguments[1].type, Int)
    ):
        return None
    return Signature((arguments[0].type, key), arguments[0].type.value.type)


def _length(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    (values,) = arguments
    if pa.types.is_map(values.type):
        counts = np.diff(values.offsets.to_numpy(zero_copy_only=False)).astype(np.int32)
        return Computed(pa.array(counts, mask=null_mask(values)))
    return Computed(pc.list_value_length(values).cast(pa.int32()))


def _element(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    values, place = arguments
    index = filled(place)
    lengths = filled(pc.list_value_length(values)).astype(np.int64)
    absent = null_mask(values) | null_mask(place) | (index < 1) | (index > lengths)
    starts = values.offsets.to_numpy(zero_copy_only=False)[:-1].astype(np.int64)
    where = pa.array(np.where(absent, 0, starts + index - 1), mask=absent)
    return Computed(values.values.take(where))


def _has_key(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    values, key = arguments
    if not len(values) or not key[0].is_valid:
        return Computed(pa.nulls(len(values), pa.bool_()))
    presence = pc.is_valid(pc.map_lookup(values, key[0], "all"))
    return Computed(without(presence, null_mask(values)))


def _resolve_key(arguments: Sequence[Argument]) -> Signature | None:
    signature = _resolve_value(arguments)
    return signature and Signature(signature.arguments, Bool())


def _value(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    values, key = arguments
    result = arrow_type(signature.result)
    if not len(values) or not key[0].is_valid:
        return Computed(pa.nulls(len(values), result))
    return Computed(pc.map_lookup(values, key[0], "first").cast(result))


ROWS = (
    Function(
        "list_length(list or map)",
        _resolve_length,
        _length,
        bounds=from_zero,
        can_fail=never_fails,
        nulls=NullRule.STRICT,
    ),
    Function(
        "list_element(list, place from 1)",
        _resolve_element,
        _element,
        can_fail=never_fails,
        nulls=NullRule.PARTIAL,
    ),
    Function(
        "map_has_key(map, constant key)",
        _resolve_key,
        _has_key,
        can_fail=never_fails,
        nulls=NullRule.STRICT,
    ),
    Function(
        "map_value(map, constant key)",
        _resolve_value,
        _value,
        can_fail=never_fails,
        nulls=NullRule.PARTIAL,
    ),
)
