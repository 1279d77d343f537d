"""Looks for NULL in nested fields that are NOT NULL.

The Arrow types of structs do not say which of their fields are NOT NULL (`member_field`), and Arrow
checks none of the others, so whoever takes arrays of somebody else asks here.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from rowsieve.types.logical import Field, List, Map, Struct


class AbsentValues(NamedTuple):
    """A field that is NOT NULL, by its path, and how many of its values are NULL."""

    path: str
    missing: int


def absent_values(array: pa.Array, field: Field) -> AbsentValues | None:
    """The first field, the column itself or a nested one, that has NULL against its declaration.

    A field of a struct may be NULL where the struct is.
    """
    if array.null_count and not field.nullable:
        return AbsentValues(field.name, array.null_count)
    return _absent_below(array, field, field.name)


def _absent_below(array: pa.Array, field: Field, path: str) -> AbsentValues | None:
    allowed = 0
    match field.type:
        case Struct(fields=members):
            children, allowed = array.flatten(), array.null_count
        case List(element=element):
            members, children = (element,), [array.flatten()]
        case Map(key=key, value=value):
            pairs = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
            members, children = (key, value), pairs.flatten().flatten()
        case _:
            return None
    for member, child in zip(members, children, strict=True):
        name = f"{path}.{member.name}"
        if not member.nullable and child.null_count > allowed:
            return AbsentValues(name, child.null_count - allowed)
        if (below := _absent_below(child, member, name)) is not None:
            return below
    return None
