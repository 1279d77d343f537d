"""Describe nested columns as a file has them: the table's field ids under the file's names.

A file may lack fields that were added later, have fields that were dropped since, and have fields
under earlier names or in another order. The reader matches them by id.

Soundness: a field that a file lacks is NULL there, as a column is. A field that only the file has
gets a negative id, which no field of a table ever has: otherwise it could supply the values of a
field that is added later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count

import pyarrow as pa

from rowsieve.errors import UnsupportedOperation
from rowsieve.foreign.nullable_fields import nullable_field
from rowsieve.types import logical
from rowsieve.types.encodings import FIELD_ID_KEY, is_list, logical_type
from rowsieve.types.schema import Schema

FieldIn = Callable[[logical.Struct, pa.Field], logical.Field | None]
"""Finds the table's field for one in a struct of a file; None for a field that was dropped."""


def columns_in_file(schema: Schema, stored: Mapping[int, pa.Field], field_in: FieldIn) -> Schema:
    """Return the nested columns of a file, with its names and fields.

    `stored`: the file's columns by id.
    """
    ids = count(-1, -1)
    found = (
        _as_stored(field, stored[field.id], field_in, ids.__next__)
        for field in schema
        if field.id in stored and logical.is_nested(field.type)
    )
    return Schema(schema.id, tuple(found))


def _as_stored(
    field: logical.Field, stored: pa.Field, field_in: FieldIn, allocate: Callable[[], int]
) -> logical.Field:
    def inside(own: logical.Field, member: pa.Field) -> logical.Field:
        return _as_stored(own, member, field_in, allocate)

    type_ = stored.type
    match field.type:
        case logical.Struct() as struct if pa.types.is_struct(type_):
            members = []
            for member in type_:
                known = field_in(struct, member)
                if known is None:
                    dropped = logical_type(nullable_field(member), allocate)
                    members.append(logical.Field(allocate(), member.name, dropped))
                else:
                    members.append(replace(inside(known, member), name=member.name))
            return replace(field, type=logical.Struct(tuple(members)))
        case logical.List(element=element) if is_list(type_):
            return replace(field, type=logical.List(inside(element, type_.value_field)))
        case logical.Map(key=key, value=value) if pa.types.is_map(type_):
            pair = inside(key, type_.key_field), inside(value, type_.item_field)
            return replace(field, type=logical.Map(*pair))
        case _:
            return field


def refuse_without_ids(columns: Iterable[pa.Field], where: str) -> None:
    """Raise UnsupportedOperation if no column, or no field of a struct, has a Parquet field id.

    One without an id beside others with ids belongs to the file only; without any, all values would
    be lost.
    """
    fields = list(columns)
    if fields and not any(FIELD_ID_KEY in (each.metadata or {}) for each in fields):
        raise UnsupportedOperation(
            f"{where} has no field ids at {', '.join(repr(each.name) for each in fields[:3])}, and "
            "columns are found by them; rewrite the file with its table's engine, or open the "
            "files with open_parquet, which finds columns by name"
        )
    for each in fields:
        for struct in _structs_in(each.type):
            refuse_without_ids(struct, where)


def _structs_in(type_: pa.DataType) -> Iterator[pa.DataType]:
    """The structs of a type that are not inside another one."""
    if pa.types.is_struct(type_):
        yield type_
    elif pa.types.is_map(type_):
        yield from _structs_in(type_.key_type)
        yield from _structs_in(type_.item_type)
    elif type_.num_fields:
        yield from _structs_in(type_.value_type)


def by_key(keys: Mapping[int, str], key_of: Callable[[pa.Field], str]) -> FieldIn:
    """Return a `FieldIn` that compares `keys`, by field id, with `key_of` a file's field."""

    def found(struct: logical.Struct, member: pa.Field) -> logical.Field | None:
        wanted = key_of(member)
        return next((field for field in struct.fields if keys[field.id] == wanted), None)

    return found
