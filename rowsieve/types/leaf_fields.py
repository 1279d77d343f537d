"""Change the leaves of an Arrow field: the fields at any depth that have no fields inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa


def with_leaves(field: pa.Field, change: Callable[[pa.Field], pa.Field]) -> pa.Field:
    """Return the field with its leaves changed, which are visited in the order of Parquet."""
    type_ = field.type
    types = pa.types
    if types.is_struct(type_) and type_.num_fields:
        return field.with_type(pa.struct([with_leaves(each, change) for each in type_]))
    if types.is_map(type_):
        key, value = with_leaves(type_.key_field, change), with_leaves(type_.item_field, change)
        return field.with_type(pa.map_(key, value))
    if types.is_large_list(type_):
        return field.with_type(pa.large_list(with_leaves(type_.value_field, change)))
    if types.is_fixed_size_list(type_):
        item = with_leaves(type_.value_field, change)
        return field.with_type(pa.list_(item, type_.list_size))
    if types.is_list(type_):
        return field.with_type(pa.list_(with_leaves(type_.value_field, change)))
    return change(field)


def leaves_of(field: pa.Field) -> Iterator[pa.Field]:
    """The leaves of a field, in the order of Parquet."""
    found: list[pa.Field] = []

    def note(leaf: pa.Field) -> pa.Field:
        found.append(leaf)
        return leaf

    with_leaves(field, note)
    return iter(found)
