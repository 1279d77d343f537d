"""Changes of a table's columns: each turns one schema into the next.

Columns are identified by their id. An id is never used again, so a column that is dropped and added
again under its old name is another column, and no old value or statistic belongs to it (trap T19).
A change edits only the schema, never a file: rows of older schemas are read by id, and have the
fill default of the columns that were added since.

Soundness: a change that would alter the meaning of a stored value, or lose a key, is
InvalidSchemaChange with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

import pyarrow as pa

from rowsieve.errors import InvalidSchemaChange
from rowsieve.types.encodings import logical_type
from rowsieve.types.logical import Field, type_name
from rowsieve.types.schema import Schema
from rowsieve.types.stored_defaults import constant_text
from rowsieve.types.widening import is_widened


@dataclass(frozen=True, slots=True)
class AddColumn:
    """Add a column behind `after`, or as the last one; `default` is a Python value or a scalar.

    The default is the value of the column in all rows that exist, and in new rows that lack it.
    """

    field: pa.Field
    default: object = None
    after: str | None = None


@dataclass(frozen=True, slots=True)
class DropColumn:
    """Remove a column; its values stay in the files, and earlier versions still show them."""

    name: str


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """Give a column another name; it keeps its id, its values and its statistics."""

    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class WidenColumn:
    """Give a column a type that holds all values of its present one; `field` has the new type."""

    name: str
    field: pa.Field


@dataclass(frozen=True, slots=True)
class ReorderColumns:
    """Put the columns in this order; those that are not named follow in the order they have."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RelaxNotNull:
    """Allow NULL in a column."""

    name: str


@dataclass(frozen=True, slots=True)
class SetDefault:
    """Change the value of new rows that lack the column; rows that exist keep what they have."""

    name: str
    default: object


SchemaChange: TypeAlias = (
    AddColumn | DropColumn | RenameColumn | WidenColumn | ReorderColumns | RelaxNotNull | SetDefault
)


def evolve(
    schema: Schema, changes: Sequence[SchemaChange], next_field_id: int, key: Sequence[str] = ()
) -> tuple[Schema, int]:
    """Apply changes in order; return the schema with the next id, and the next free field id.

    `key` names the key columns. InvalidSchemaChange if a change is not allowed, UnknownColumn for a
    name that the schema does not have.
    """
    key_ids = frozenset(schema.field(name).id for name in key)
    found = Schema(schema.id + 1, schema.fields)
    for change in changes:
        match change:
            case AddColumn():
                found, next_field_id = _add(found, change, next_field_id)
            case DropColumn(name=name):
                found = _drop(found, name, key_ids)
            case RenameColumn():
                found = _rename(found, change)
            case WidenColumn():
                found = _widen(found, change, key_ids)
            case ReorderColumns(names=names):
                found = _reorder(found, names)
            case RelaxNotNull(name=name):
                found = _relax(found, name, key_ids)
            case SetDefault():
                found = _set_default(found, change)
            case _:
                assert_never(change)
    return found, next_field_id


def why_not_written_before(old: Schema, new: Schema) -> str:
    """Return why rows written with `old` must not become visible under `new`; empty if they may.

    A column that a writer wrote must not have been dropped or changed since (invariant 14).
    """
    kept = {field.id: field for field in new}
    for field in old:
        now = kept.get(field.id)
        if now is None:
            return f"column {field.name!r} was dropped"
        if now.type != field.type:
            return f"the type of column {field.name!r} was changed"
    before = {field.id for field in old}
    for field in new:
        if field.id not in before and field.added <= old.id:
            return f"column {field.name!r} was restored"
    return ""


def _add(schema: Schema, change: AddColumn, next_field_id: int) -> tuple[Schema, int]:
    name = change.field.name
    _check_name(schema, name)
    last = next_field_id - 1

    def allocate() -> int:
        nonlocal last
        last += 1
        return last

    field_id = allocate()
    type_ = logical_type(change.field, allocate)
    text = constant_text(change.default, type_, name)
    if text is None and not change.field.nullable:
        raise InvalidSchemaChange(
            f"cannot add column {name!r} as NOT NULL without a default: rows that exist would have "
            "no value; give a default, or make the column nullable"
        )
    field = Field(field_id, name, type_, bool(change.field.nullable), schema.id, text, text)
    place = len(schema)
    if change.after is not None:
        place = schema.fields.index(schema.field(change.after)) + 1
    fields = (*schema.fields[:place], field, *schema.fields[place:])
    return Schema(schema.id, fields), last + 1


def _drop(schema: Schema, name: str, key_ids: frozenset[int]) -> Schema:
    field = schema.field(name)
    if field.id in key_ids:
        raise InvalidSchemaChange(
            f"cannot drop column {field.name!r}: it belongs to the key, which identifies the rows; "
            "create a table with another key"
        )
    if len(schema) == 1:
        raise InvalidSchemaChange(
            f"cannot drop column {field.name!r}: it is the last one; add another column first"
        )
    return Schema(schema.id, tuple(each for each in schema if each.id != field.id))


def _rename(schema: Schema, change: RenameColumn) -> Schema:
    field = schema.field(change.name)
    if field.name == change.new_name:
        raise InvalidSchemaChange(f"column {field.name!r} already has this name")
    others = tuple(each for each in schema if each.id != field.id)
    _check_name(Schema(schema.id, others), change.new_name)
    return _with(schema, replace(field, name=change.new_name))


def _widen(schema: Schema, change: WidenColumn, key_ids: frozenset[int]) -> Schema:
    field = schema.field(change.name)
    new = logical_type(change.field, lambda: 0)
    shown = f"column {field.name!r} from {type_name(field.type)} to {type_name(new)}"
    if field.type == new:
        raise InvalidSchemaChange(f"cannot widen {shown}: it has this type already")
    if field.id in key_ids:
        raise InvalidSchemaChange(
            f"cannot widen {shown}: it belongs to the key, and widening key columns is not "
            "supported yet"
        )
    if not is_widened(field.type, new):
        raise InvalidSchemaChange(
            f"cannot widen {shown}: not every value of the old type is one of the new type in the "
            "same order; add a column of the new type, and update it from the old one"
        )
    return _with(schema, replace(field, type=new))


def _reorder(schema: Schema, names: Sequence[str]) -> Schema:
    first = [schema.field(name) for name in names]
    if len({field.id for field in first}) < len(first):
        raise InvalidSchemaChange(f"the order ({', '.join(names)}) names a column twice")
    rest = [field for field in schema if field not in first]
    if (*first, *rest) == schema.fields:
        raise InvalidSchemaChange(f"the columns have the order ({', '.join(schema.names)}) already")
    return Schema(schema.id, (*first, *rest))


def _relax(schema: Schema, name: str, key_ids: frozenset[int]) -> Schema:
    field = schema.field(name)
    if field.id in key_ids:
        raise InvalidSchemaChange(
            f"cannot allow NULL in column {field.name!r}: it belongs to the key, which identifies "
            "the rows"
        )
    if field.nullable:
        raise InvalidSchemaChange(f"column {field.name!r} may be NULL already")
    return _with(schema, replace(field, nullable=True))


def _set_default(schema: Schema, change: SetDefault) -> Schema:
    field = schema.field(change.name)
    text = constant_text(change.default, field.type, field.name)
    if field.default == text:
        raise InvalidSchemaChange(f"column {field.name!r} has this default already")
    return _with(schema, replace(field, default=text))


def _with(schema: Schema, field: Field) -> Schema:
    """Replace the field of the same id."""
    return Schema(schema.id, tuple(field if each.id == field.id else each for each in schema))


def _check_name(schema: Schema, name: str) -> None:
    if not name:
        raise InvalidSchemaChange("a column has the empty name; give it a name")
    same = [each.name for each in schema if each.name.lower() == name.lower()]
    if same:
        raise InvalidSchemaChange(
            f"there is a column {same[0]!r} already, so no other one can be named {name!r}; drop "
            "or rename it first"
        )
