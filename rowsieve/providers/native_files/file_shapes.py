"""Describe where an engine's own Parquet reader finds a table's columns in one of our files.

A file is read by the names and types that its columns had when it was written. The provider of the
engine renames the result, casts it to wider types and fills it with defaults.

Soundness: a column that may have other values than our own reader gives has no shape, and neither
has its file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from rowsieve.errors import SchemaMismatch
from rowsieve.types.encodings import FIELD_ID_KEY, arrow_type, logical_type
from rowsieve.types.logical import (
    Field,
    Json,
    List,
    LogicalType,
    Map,
    String,
    Struct,
    is_nested,
)
from rowsieve.types.widening import is_widened


@dataclass(frozen=True, slots=True)
class Stored:
    """A column that the file has, by its name and type there."""

    name: str
    type: LogicalType


@dataclass(frozen=True, slots=True)
class Filled:
    """A column that was added after the file was written; `text` is its value, None for NULL."""

    text: str | None


Shape: TypeAlias = tuple[Stored | Filled, ...]
"""The origin of each of some columns of the table, in the files of one schema."""


def shape_of(
    columns: Sequence[Field],
    stored: Mapping[int, pa.Field],
    schema_id: int,
    has_literal: Callable[[Field], bool],
) -> Shape | None:
    """The shape of a file by its own fields; None if the engine must not read it.

    `schema_id` is that of the schema that the file was written with. `has_literal` says whether the
    engine has a literal for the default of a column.
    """
    shape: list[Stored | Filled] = []
    for column in columns:
        field = stored.get(column.id)
        origin: Stored | Filled | None
        if field is None:
            origin = _filled(column, schema_id, has_literal)
        else:
            origin = _stored(column, field)
        if origin is None:
            return None
        shape.append(origin)
    return tuple(shape)


def _stored(column: Field, field: pa.Field) -> Stored | None:
    if is_nested(column.type):
        same = _is_same(column.type, field.type)
        return Stored(field.name, column.type) if same else None
    try:
        type_ = logical_type(field, allocate=lambda: 0)
    except SchemaMismatch:
        return None
    if isinstance(column.type, Json) and isinstance(type_, String | Json):
        return Stored(field.name, column.type)
    if type_ != column.type and not is_widened(type_, column.type):
        return None
    return Stored(field.name, type_)


def _is_same(type_: LogicalType, stored: pa.DataType) -> bool:
    """Return whether the types are identical: the same members by id, name, type and order."""
    match type_:
        case List(element=element):
            inside = [(element, stored.value_field)] if pa.types.is_list(stored) else []
        case Map(key=key, value=value):
            pairs = [(key, "key_field"), (value, "item_field")] if pa.types.is_map(stored) else []
            inside = [(member, getattr(stored, name)) for member, name in pairs]
        case Struct(fields=fields):
            names = [stored.field(i).name for i in range(stored.num_fields)]
            if names != [member.name for member in fields]:
                return False
            inside = list(zip(fields, stored, strict=True))
        case _:
            return bool(arrow_type(type_) == stored)
    return bool(inside) and all(
        (field.metadata or {}).get(FIELD_ID_KEY) == str(member.id).encode()
        and _is_same(member.type, field.type)
        for member, field in inside
    )


def _filled(column: Field, schema_id: int, has_literal: Callable[[Field], bool]) -> Filled | None:
    if column.added <= schema_id:
        return None  # the file lacks a column of its own schema
    return Filled(column.fill) if column.fill is None or has_literal(column) else None
