"""Describe nested columns as a file has them: the table's field ids under the file's names.

A file may lack fields that were added later, have fields that were dropped since, and have fields
under earlier names or in another order. The reader matches them by id.

Soundness: a field that a file lacks is NULL there, as a column is. A field that only the file has
gets a negative id, which no field of a table ever has: otherwise it could supply the values of a
field that is added later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

import pyarrow as pa

from rowsieve.errors import UnsupportedOperation
from rowsieve.foreign.names_in_files import matched_names
from rowsieve.foreign.nullable_fields import nullable_field
from rowsieve.types import logical
from rowsieve.types.encodings import FIELD_ID_KEY, is_list, logical_type
from rowsieve.types.schema import Schema

FieldIn = Callable[[logical.Struct, pa.Field], logical.Field | None]
"""Finds the table's field for one in a struct of a file; None for a field that was dropped."""
FieldsIn = Callable[[logical.Struct, Sequence[pa.Field]], Sequence[logical.Field | None]]
"""The same for all fields of the struct."""


def columns_in_file(schema: Schema, stored: Mapping[int, pa.Field], fields_in: FieldsIn) -> Schema:
    """Return the nested columns of a file, with its names and fields.

    `stored`: the file's columns by id.
    """
    ids = count(-1, -1)
    columns = (
        _as_stored(field, stored[field.id], fields_in, ids.__next__)
        for field in schema
        if field.id in stored and logical.is_nested(field.type)
    )
    return Schema(schema.id, tuple(columns))


def _as_stored(
    field: logical.Field, stored: pa.Field, fields_in: FieldsIn, allocate: Callable[[], int]
) -> logical.Field:
    def inside(field: logical.Field, member: pa.Field) -> logical.Field:
        return _as_stored(field, member, fields_in, allocate)

    type_ = stored.type
    match field.type:
        case logical.Struct() as struct if pa.types.is_struct(type_):
            members = []
            for member, known in zip(type_, fields_in(struct, list(type_)), strict=True):
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


def one_by_one(field_in: FieldIn) -> FieldsIn:
    """Return a `FieldsIn` that finds each field by itself, as by its id."""

    def paired(struct: logical.Struct, members: Sequence[pa.Field]) -> list[logical.Field | None]:
        return [field_in(struct, member) for member in members]

    return paired


def by_name(where: str, name_of: Callable[[logical.Field], str]) -> FieldsIn:
    """Return a `FieldsIn` that matches the names of a file with those of the table's fields.

    By the exact name, or else the only one that differs in case, as columns are looked up
    (`names_in_files`); SchemaMismatch if two fit. `where`: the file.
    """

    def paired(struct: logical.Struct, members: Sequence[pa.Field]) -> list[logical.Field | None]:
        wanted = {name_of(field): field for field in struct.fields}
        names = matched_names([*wanted], [str(member.name) for member in members], where)
        fields = {stored: wanted[name] for name, stored in names.items()}
        return [fields.get(str(member.name)) for member in members]

    return paired
