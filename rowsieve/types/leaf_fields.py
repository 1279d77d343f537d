"""Change the leaves of an Arrow field: the fields at any depth that have no fields inside.

A leaf's path has the names of structs' members, and `element`, `key` and `value`.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from rowsieve.types.encodings import EXTENSION_KEY

Change = Callable[[pa.Field, str], pa.Field]
"""Takes a leaf and its path."""


def with_leaves(field: pa.Field, change: Change, *, whole_extensions: bool = False) -> pa.Field:
    """Return the field with its leaves changed, which are visited in the order of Parquet.

    `whole_extensions`: a field with an extension, such as a Variant, is not entered; what is inside
    is not a value of its own.
    """

    def changed(each: pa.Field, path: str) -> pa.Field:
        type_, types = each.type, pa.types
        if whole_extensions and EXTENSION_KEY in (each.metadata or {}):
            return change(each, path)
        if types.is_struct(type_) and type_.num_fields:
            members = [changed(member, f"{path}.{member.name}") for member in type_]
            return each.with_type(pa.struct(members))
        if types.is_map(type_):
            key = changed(type_.key_field, f"{path}.key")
            return each.with_type(pa.map_(key, changed(type_.item_field, f"{path}.value")))
        if type_.num_fields and not types.is_struct(type_):
            return each.with_type(_list_of(type_, changed(type_.value_field, f"{path}.element")))
        return change(each, path)

    return changed(field, field.name)


def leaf_fields(fields: pa.Schema) -> list[tuple[str, pa.Field]]:
    """All leaves, each with its path, in the order of Parquet."""
    leaves: list[tuple[str, pa.Field]] = []

    def note(leaf: pa.Field, path: str) -> pa.Field:
        leaves.append((path, leaf))
        return leaf

    for field in fields:
        with_leaves(field, note)
    return leaves


def _list_of(type_: pa.DataType, item: pa.Field) -> pa.DataType:
    if pa.types.is_large_list(type_):
        return pa.large_list(item)
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(item, type_.list_size)
    return pa.list_(item)
