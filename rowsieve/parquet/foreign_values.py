"""Converts decoded columns of foreign files to the types of a table.

Other writers leave out what a type is: times in INT96 have no zone and are in UTC in Impala, Hive
and Spark, and text may be bytes without the annotation UTF8. The table's type says it then. Dates
of a column that was widened since are midnights.

Soundness: only for columns of foreign files. A value is converted as that of a write is: exactly,
or with an error. Bytes become text only if they are valid UTF-8. No decimal has more digits than
its type.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import SchemaMismatch
from rowsieve.parquet.foreign_footer.schema_tree import INT96, Leaf
from rowsieve.parquet.int96 import STORED, is_int96, timestamps_of
from rowsieve.parquet.nested_columns import with_items
from rowsieve.types.conform import conform_values
from rowsieve.types.encodings import arrow_type, is_list
from rowsieve.types.leaf_fields import with_leaves
from rowsieve.types.logical import (
    Decimal,
    Enum,
    Json,
    List,
    LogicalType,
    Map,
    Nanos,
    String,
    Struct,
    Timestamp,
    type_name,
)

INT96_MARK: Final = {b"rowsieve.int96": b"1"}
"""The metadata of a leaf that a file has as INT96; its type is a timestamp without a zone."""


def conform_foreign(
    values: pa.Array, type_: LogicalType, name: str, *, instants: bool = False
) -> pa.Array:
    """Convert values of a foreign file to the type of a column; SchemaMismatch if impossible.

    `instants`: that of `FileMapping`.
    """
    return conform_values(as_declared(values, type_, name, instants=instants), type_, name)


def as_declared(
    values: pa.Array, type_: LogicalType, name: str, *, instants: bool = False
) -> pa.Array:
    """Convert INT96, and bytes to text, as the type says; the same object if there is neither.

    SchemaMismatch for a value that does not fit.
    """
    try:
        return _adapted(values, type_, instants)
    except (pa.ArrowException, ValueError) as error:
        raise SchemaMismatch(
            f"column {name!r}: a value does not fit {type_name(type_)}: {error}; choose another "
            "type in schema=, or leave the column out"
        ) from error


def check_foreign(field: pa.Field, type_: LogicalType, name: str) -> None:
    """Raise SchemaMismatch if a column of a file never fits a type; `field` has `INT96_MARK`s."""
    for leaf, wanted in _leaf_types(field, type_):
        if is_marked(leaf) and not isinstance(wanted, Timestamp | Nanos):
            raise SchemaMismatch(
                f"column {name!r} is {type_name(type_)} in the table, and INT96 in the file, which "
                f"has times only; give it the type {type_name(Timestamp())}"
            )
    decoded = with_leaves(
        field, lambda leaf, _: leaf.with_type(STORED) if is_marked(leaf) else leaf
    )
    conform_foreign(pa.array([], decoded.type), type_, name)


def typed_leaves(schema: pa.Schema, leaves: Sequence[Leaf]) -> pa.Schema:
    """The schema with the types of leaves that a decoder has otherwise.

    These are INT96, the text of enums, and decimals in more bytes than they need.
    """
    if not any(_is_typed(leaf) for leaf in leaves):
        return schema
    rest = iter(leaves)

    def typed(field: pa.Field, _: str) -> pa.Field:
        leaf = next(rest)
        if leaf.physical == INT96:
            return field.with_type(pa.timestamp("ns")).with_metadata(
                {**(field.metadata or {}), **INT96_MARK}
            )
        if leaf.digits is not None:
            return field.with_type(pa.decimal128(*leaf.digits))
        return field.with_type(pa.string()) if leaf.is_enum else field

    return pa.schema([with_leaves(each, typed) for each in schema])


def _is_typed(leaf: Leaf) -> bool:
    return leaf.physical == INT96 or leaf.is_enum or leaf.digits is not None


def is_marked(leaf: pa.Field) -> bool:
    """Return whether a leaf is INT96 in its file."""
    return INT96_MARK.items() <= (leaf.metadata or {}).items()


def _leaf_types(field: pa.Field, type_: LogicalType) -> Iterator[tuple[pa.Field, LogicalType]]:
    """The leaves of a file's column, each with its type in the table; those that both have."""
    stored = field.type
    match type_:
        case Struct(fields=fields) if pa.types.is_struct(stored):
            types = {each.name: each.type for each in fields}
            for member in stored:
                if member.name in types:
                    yield from _leaf_types(member, types[member.name])
        case List(element=element) if is_list(stored):
            yield from _leaf_types(stored.value_field, element.type)
        case Map(key=key, value=value) if pa.types.is_map(stored):
            yield from _leaf_types(stored.key_field, key.type)
            yield from _leaf_types(stored.item_field, value.type)
        case _:
            yield field, type_


def _adapted(values: pa.Array, type_: LogicalType, instants: bool) -> pa.Array:
    """The values in the kind of type that the table declares; the same object if unchanged."""
    stored = values.type
    match type_:
        case Timestamp() | Nanos() if is_int96(stored):
            return timestamps_of(values, arrow_type(type_))
        case Timestamp(utc=False) | Nanos(utc=False) if pa.types.is_date32(stored):
            return values.cast(arrow_type(type_))
        case Timestamp(utc=True) if instants and _is_local(stored):
            return values.cast(pa.timestamp(stored.unit, "UTC"))
        case Decimal() if pa.types.is_decimal(stored):
            _check_digits(values, type_)
            wide = pa.types.is_decimal256(stored) and stored.scale == type_.scale
            return values.cast(arrow_type(type_)) if wide else values
        case String() | Enum() | Json() if pa.types.is_binary(stored):
            return values.cast(pa.string())
        case Struct(fields=fields) if pa.types.is_struct(stored):
            return _struct(values, {each.name: each.type for each in fields}, instants)
        case List(element=element) if pa.types.is_list(stored):
            items = _adapted(values.values, element.type, instants)
            if items.type == stored.value_type:
                return values
            return with_items(values, items, pa.list_(stored.value_field.with_type(items.type)))
        case Map(key=key, value=value) if pa.types.is_map(stored):
            return _map(values, key.type, value.type, instants)
        case _:
            return values


def _check_digits(values: pa.Array, type_: Decimal) -> None:
    """Raise ValueError for a number of more digits than the type has: Arrow decodes any number."""
    most = decimal.Decimal((0, (9,) * type_.precision, -type_.scale))
    ends = pc.min_max(values)
    for end in (ends["min"].as_py(), ends["max"].as_py()):
        if end is not None and end.copy_abs() > most:
            raise ValueError(f"{end} has more digits")


def _is_local(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_)) and type_.tz is None


def _struct(values: pa.Array, types: dict[str, LogicalType], instants: bool) -> pa.Array:
    children = values.flatten()
    members = [
        _adapted(child, types[each.name], instants) if each.name in types else child
        for child, each in zip(children, values.type, strict=True)
    ]
    if all(new.type == old.type for new, old in zip(members, children, strict=True)):
        return values
    fields = [
        each.with_type(member.type) for each, member in zip(values.type, members, strict=True)
    ]
    mask = values.is_null() if values.null_count else None
    return pa.StructArray.from_arrays(members, fields=fields, mask=mask)


def _map(values: pa.Array, key: LogicalType, value: LogicalType, instants: bool) -> pa.Array:
    keys = _adapted(values.keys, key, instants)
    items = _adapted(values.items, value, instants)
    if keys.type == values.type.key_type and items.type == values.type.item_type:
        return values
    members = [
        values.type.key_field.with_type(keys.type),
        values.type.item_field.with_type(items.type),
    ]
    entries = pa.StructArray.from_arrays([keys, items], fields=members)
    return with_items(values, entries, pa.map_(*members))
