"""Compute the changes that give a table the columns of another schema, or of data.

Columns, and fields inside them, are matched by name, exactly or else uniquely ignoring case. No
column is dropped, renamed or moved, because names do not show such an intention.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from rowsieve.errors import InvalidSchemaChange
from rowsieve.types.encodings import declared_size, is_list, logical_type
from rowsieve.types.evolution import AddColumn, SchemaChange, WidenColumn
from rowsieve.types.field_paths import ELEMENT, KEY, VALUE, children
from rowsieve.types.logical import Enum, Field, Map, String, Struct, is_nested, type_name
from rowsieve.types.schema import Schema
from rowsieve.types.widening import is_widened


def columns_to_add(schema: Schema, wanted: pa.Schema) -> tuple[SchemaChange, ...]:
    """Return the additions of the columns and fields that only `wanted` has; they may be NULL."""
    additions = _additions([(field.name, field) for field in schema], list(wanted), ())
    return tuple(additions)


def columns_to_widen(schema: Schema, wanted: pa.Schema) -> tuple[SchemaChange, ...]:
    """Return the changes that widen the columns which are narrower than in `wanted`.

    InvalidSchemaChange for a column whose type differs otherwise.
    """
    columns = [(field.name, field) for field in schema]
    return tuple(_wider(columns, _named(list(wanted)), ()))


def changes_towards(schema: Schema, wanted: pa.Schema) -> tuple[SchemaChange, ...]:
    """Return the changes that add the columns of `wanted`, and widen those that are narrower there.

    InvalidSchemaChange for a column whose type differs otherwise, and for one that is NOT NULL in
    `wanted` only: rows that exist may have no value. A column that already holds all values of the
    wanted type stays as it is, and so does one that is NOT NULL in the table only.
    """
    columns = [(field.name, field) for field in schema]
    _refuse_not_null(columns, _named(list(wanted)), ())
    return (*columns_to_add(schema, wanted), *columns_to_widen(schema, wanted))


def _refuse_not_null(
    known: _Fields, wanted: Sequence[tuple[str, pa.Field]], path: tuple[str, ...]
) -> None:
    for step, field in wanted:
        match = _found(known, step)
        here = (*path, step if match is None else match[0])
        shown = ".".join(here)
        if not field.nullable and match is None:
            raise InvalidSchemaChange(
                f"cannot add column {shown!r} as NOT NULL without a default: rows that exist would "
                "have no value; add it with add_column and a default, or make it nullable"
            )
        if not field.nullable and match is not None and match[1].nullable:
            raise InvalidSchemaChange(
                f"column {shown!r} may be NULL in the table, but not in the wanted columns; call "
                "set_not_null, which looks at the rows, or make it nullable there"
            )
        if match is not None:
            _refuse_not_null(list(children(match[1].type)), arrow_children(field.type), here)


def arrow_children(type_: pa.DataType) -> list[tuple[str, pa.Field]]:
    """The fields directly inside an Arrow type, each with its step in a path."""
    if pa.types.is_struct(type_):
        return _named([type_.field(i) for i in range(type_.num_fields)])
    if pa.types.is_map(type_):
        return [(KEY, type_.key_field), (VALUE, type_.item_field)]
    return [(ELEMENT, type_.value_field)] if is_list(type_) else []


_Fields = Sequence[tuple[str, Field]]


def _additions(
    known: _Fields, wanted: Sequence[pa.Field], path: tuple[str, ...]
) -> Iterator[SchemaChange]:
    for field in wanted:
        if (match := _found(known, field.name)) is None:
            new = pa.field(field.name, field.type, metadata=field.metadata)
            yield AddColumn((*path, field.name), new)
            continue
        yield from _inside(match, field.type, path)


def _inside(
    match: tuple[str, Field], wanted: pa.DataType, path: tuple[str, ...]
) -> Iterator[SchemaChange]:
    """The additions inside a column that both sides have."""
    step, column = match
    here = (*path, step)
    inner = list(children(column.type))
    if pa.types.is_struct(wanted) and isinstance(column.type, Struct):
        yield from _additions(inner, [field for _, field in arrow_children(wanted)], here)
        return
    outer = dict(arrow_children(wanted))
    for child in inner:
        is_key = isinstance(column.type, Map) and child[0] == KEY
        if child[0] in outer and not is_key:
            yield from _inside(child, outer[child[0]].type, here)


def _wider(
    known: _Fields, wanted: Sequence[tuple[str, pa.Field]], path: tuple[str, ...]
) -> Iterator[SchemaChange]:
    for step, field in wanted:
        if (match := _found(known, step)) is None:
            continue
        name, column = match
        here = (*path, name)
        new = logical_type(field, lambda: 0)
        if column.size is not None and declared_size(field, new) not in (None, column.size):
            raise InvalidSchemaChange(
                f"column {'.'.join(here)!r} has values of the size {column.size} in the table, and "
                f"{declared_size(field, new)} in the wanted columns; leave the column as it is, or "
                "allow any size with widen_column first"
            )
        if is_nested(column.type) or is_nested(new):
            if type(column.type) is not type(new):
                raise _unrelated(here, column, type_name(new))
            yield from _wider(list(children(column.type)), arrow_children(field.type), here)
            continue
        if is_widened(new, column.type) or (isinstance(new, Enum) and column.type == String()):
            continue
        if not is_widened(column.type, new):
            raise _unrelated(here, column, type_name(new))
        yield WidenColumn(here, field)


def _named(fields: Sequence[pa.Field]) -> list[tuple[str, pa.Field]]:
    return [(field.name, field) for field in fields]


def _found(known: _Fields, name: str) -> tuple[str, Field] | None:
    exact = [each for each in known if each[0] == name]
    matches = exact or [each for each in known if each[0].lower() == name.lower()]
    return matches[0] if matches else None


def _unrelated(path: Sequence[str], column: Field, wanted: str) -> InvalidSchemaChange:
    return InvalidSchemaChange(
        f"column {'.'.join(path)!r} is {type_name(column.type)} in the table and {wanted} in the "
        "wanted columns, which does not hold all its values in the same order; leave the column as "
        "it is, or add one under another name"
    )
