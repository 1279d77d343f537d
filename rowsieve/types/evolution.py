"""Changes of a table's columns: each turns one schema into the next.

Columns are identified by their id. An id is never used again, so a column that is dropped and added
again under its old name is another column, and no old value or statistic belongs to it (trap T19).
A change edits only the schema, never a file: rows of older schemas are read by id, and have the
fill default of the columns that were added since. The same holds for fields inside structs, lists
and maps, which are named by a path (`rowsieve.types.field_paths`).

Soundness: a change that would alter the meaning of a stored value, or lose a key, is
InvalidSchemaChange with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

import pyarrow as pa

from rowsieve.errors import InvalidSchemaChange, SchemaMismatch, UnknownColumn
from rowsieve.types.aliases import find_alias
from rowsieve.types.encodings import (
    alias_name,
    arrow_field,
    check_nesting,
    declared_size,
    logical_type,
)
from rowsieve.types.enums import extends
from rowsieve.types.field_paths import (
    Chain,
    Path,
    all_fields,
    children,
    is_inside_key,
    parent_of,
    resolve,
    shown,
    shown_path,
    siblings,
    with_field,
)
from rowsieve.types.logical import (
    Date,
    Enum,
    Field,
    Float,
    Int,
    LogicalType,
    Nanos,
    Struct,
    is_nested,
    type_name,
)
from rowsieve.types.schema import Schema
from rowsieve.types.stored_defaults import constant_text, widened_text
from rowsieve.types.widening import is_widened


@dataclass(frozen=True, slots=True)
class AddColumn:
    """Add a column behind `after`, or as the last one; `default` is a Python value or a scalar.

    The default is the value of the column in all rows that exist, and in new rows that lack it.
    `path` names it, or a new field of a struct; the name of `field` is not used. `after` is the
    name of a column, or of another field of that struct. `if_missing`: change nothing if there is
    such a column.
    """

    path: Path
    field: pa.Field
    default: object = None
    after: str | None = None
    comment: str | None = None
    if_missing: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    """Remove a column; its values stay in the files, and earlier versions still show them.

    `if_exists`: change nothing if there is no such column.
    """

    path: Path
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """Give a column or field another name; it keeps its id, its values and its statistics."""

    path: Path
    new_name: str


@dataclass(frozen=True, slots=True)
class WidenColumn:
    """Give a column a type that holds all values of its present one; `field` has the new type."""

    path: Path
    field: pa.Field


@dataclass(frozen=True, slots=True)
class ReorderColumns:
    """Put the columns in this order, or the fields of one struct.

    Those that are not named follow in the order they have.
    """

    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class RelaxNotNull:
    """Allow NULL in a column."""

    path: Path


@dataclass(frozen=True, slots=True)
class SetDefault:
    """Change the value of new rows that lack the column; rows that exist keep what they have."""

    path: Path
    default: object


@dataclass(frozen=True, slots=True)
class SetNotNull:
    """Disallow NULL in a column, or in a field of a struct wherever the struct is not NULL.

    The caller proves that no row has such a NULL.
    """

    path: Path


@dataclass(frozen=True, slots=True)
class SetComment:
    """Describe a column or field in words; None removes the comment."""

    path: Path
    comment: str | None


SchemaChange: TypeAlias = (
    AddColumn
    | DropColumn
    | RenameColumn
    | WidenColumn
    | ReorderColumns
    | RelaxNotNull
    | SetDefault
    | SetNotNull
    | SetComment
)


def evolve(
    schema: Schema, changes: Sequence[SchemaChange], next_field_id: int, key: Sequence[str] = ()
) -> tuple[Schema, int]:
    """Apply changes in order; return the schema with the next id, and the next free field id.

    `key` names the columns that may be neither dropped nor NULL: those of the key and of the event
    order. InvalidSchemaChange if a change is not allowed, UnknownColumn for a
    name that the schema does not have.
    """
    key_ids = frozenset(schema.field(name).id for name in key)
    evolved = Schema(schema.id + 1, schema.fields)
    for change in changes:
        match change:
            case AddColumn(path=path):
                if not (change.if_missing and _exists(evolved, path)):
                    evolved, next_field_id = _add(evolved, change, next_field_id)
            case DropColumn(path=path):
                if not (change.if_exists and not _exists(evolved, path)):
                    evolved = _drop(evolved, resolve(evolved, path), key_ids)
            case RenameColumn():
                evolved = _rename(evolved, resolve(evolved, change.path), change.new_name)
            case WidenColumn():
                evolved = _widen(evolved, resolve(evolved, change.path), change.field)
            case ReorderColumns(paths=paths):
                evolved = _reorder(evolved, [resolve(evolved, path) for path in paths])
            case RelaxNotNull(path=path):
                evolved = _relax(evolved, resolve(evolved, path), key_ids)
            case SetDefault():
                evolved = _set_default(evolved, resolve(evolved, change.path), change.default)
            case SetNotNull(path=path):
                evolved = _set_not_null(evolved, resolve(evolved, path))
            case SetComment(path=path, comment=comment):
                evolved = _set_comment(evolved, resolve(evolved, path), comment)
            case _:
                assert_never(change)
    _check_aliases(schema, evolved)
    return evolved, next_field_id


def changes_fields(old: Schema, new: Schema, key: Sequence[str] = ()) -> bool:
    """Return whether a change is more than adding, dropping or widening whole columns of numbers.

    True if a field inside a column, the type of a key column, or a date was changed.
    """
    new_by_id = {field.id: field for field in new}
    key_ids = {old.field(name).id for name in key}
    return any(
        field.type != new_by_id[field.id].type
        and (is_nested(field.type) or isinstance(field.type, Date) or field.id in key_ids)
        for field in old
        if field.id in new_by_id
    )


def changes_kinds(old: Schema, new: Schema) -> bool:
    """Return whether a number became one of another kind, or a date one with nanoseconds."""
    now = {field.id: field.type for field in all_fields(new.fields)}
    return any(
        field.id in now
        and type(now[field.id]) is not type(field.type)
        and (not isinstance(field.type, Date) or isinstance(now[field.id], Nanos))
        for field in all_fields(old.fields)
    )


def why_not_written_before(old: Schema, new: Schema) -> str:
    """Return why rows written with `old` must not become visible under `new`; empty if they may.

    A field that a writer wrote must not have been dropped or changed since (invariant 14).
    """
    return _why_not(old.fields, new.fields, old.id, "column")


def _why_not(old: Sequence[Field], new: Sequence[Field], written_with: int, what: str) -> str:
    new_by_id = {field.id: field for field in new}
    for field in old:
        now = new_by_id.get(field.id)
        if now is None:
            return f"{what} {field.name!r} was dropped"
        inside = [[child for _, child in children(each.type)] for each in (field, now)]
        if type(now.type) is not type(field.type) or (
            not is_nested(now.type) and now.type != field.type
        ):
            return f"{what} {field.name!r} has another type"
        if field.nullable and not now.nullable:
            return f"{what} {field.name!r} was made NOT NULL"
        if why := _why_not(inside[0], inside[1], written_with, f"in {field.name!r} the field"):
            return why
    before = {field.id for field in old}
    for field in new:
        if field.id not in before and field.added <= written_with:
            return f"{what} {field.name!r} was restored"
    return ""


def why_not_held(old: Sequence[Field], new: Sequence[Field]) -> str:
    """Return why rows of the fields `old` are not whole under the fields `new`; empty if they are.

    A field may have been renamed, moved or widened since.
    """
    new_by_id = {field.id: field for field in new}
    for field in old:
        now = new_by_id.get(field.id)
        if now is None:
            return f"dropped {field.name}"
        if is_nested(field.type) or is_nested(now.type):
            inside = [[child for _, child in children(each.type)] for each in (field, now)]
            if type(now.type) is not type(field.type):
                return f"changed {field.name}"
            if why := why_not_held(*inside):
                return f"{why} in {field.name}"
        elif not is_widened(field.type, now.type):
            return f"changed {field.name}"
        if field.nullable and not now.nullable:
            return f"disallowed NULL in {field.name}"
        if now.size not in (None, field.size):
            return f"fixed the size of {field.name}"
    return ""


def _check_aliases(old: Schema, new: Schema) -> None:
    """Raise InvalidSchemaChange if a column loses the stored form of its alias."""
    before = {field.id: field.type for field in all_fields(old.fields)}
    for field in all_fields(new.fields):
        alias = None if field.alias is None else find_alias(field.alias)
        changed = field.id in before and before[field.id] != field.type
        if changed and alias is not None and not alias.fits(field.type):
            raise InvalidSchemaChange(
                f"cannot change column {field.name!r} to {type_name(field.type)}: it is a "
                f"{field.alias}, which is stored as {alias.form}; add a column of the new type, "
                "and update it from the old one"
            )


def _add(schema: Schema, change: AddColumn, next_field_id: int) -> tuple[Schema, int]:
    parent, name = parent_of(schema, change.path)
    others, shown_name = siblings(schema, parent), shown_path(change.path)
    _check_name(others, name)
    _refuse_in_key(parent, f"add {shown_name!r}")
    last = next_field_id - 1

    def allocate() -> int:
        nonlocal last
        last += 1
        return last

    field_id = allocate()
    type_ = logical_type(change.field.with_name(name), allocate)
    if parent and isinstance(type_, Enum):
        raise InvalidSchemaChange(
            f"cannot add {shown_name!r} as an enum: only a column of its own can be one; add it as "
            "text"
        )
    alias, size = alias_name(change.field), declared_size(change.field, type_)
    text = _default_text(change.default, type_, size, shown_name)
    if text is None and not change.field.nullable:
        raise InvalidSchemaChange(
            f"cannot add column {shown_name!r} as NOT NULL without a default: rows that exist "
            "would have no value; give a default, or make the column nullable"
        )
    nullable, comment = bool(change.field.nullable), change.comment or None
    field = Field(field_id, name, type_, nullable, schema.id, text, text, alias, comment, size)
    place = len(others)
    if change.after is not None:
        place = others.index(_among(others, change.after, schema, parent)) + 1
    fields = (*others[:place], field, *others[place:])
    if not parent:
        return Schema(schema.id, fields), last + 1
    new_schema = with_field(schema, parent, replace(parent[-1], type=Struct(fields)))
    check_nesting(arrow_field(next(each for each in new_schema if each.id == parent[0].id)))
    return new_schema, last + 1


def _default_text(value: object, type_: LogicalType, size: int | None, name: str) -> str | None:
    """Return the text of a default, which has the size of the column's values."""
    text = constant_text(value, type_, name)
    if text is not None and size is not None and len(text) != 2 * size:  # hexadecimal
        raise SchemaMismatch(
            f"the default of column {name!r} has {len(text) // 2} bytes, and its values have "
            f"{size}; give one of that size"
        )
    return text


def _among(others: Sequence[Field], name: str, schema: Schema, parent: Chain) -> Field:
    """Return the column or field named `name` next to a new one."""
    if not parent:
        return schema.field(name)
    return Schema(schema.id, tuple(others)).field(name)


def _drop(schema: Schema, chain: Chain, key_ids: frozenset[int]) -> Schema:
    field, name = chain[-1], shown(chain)
    if field.id in key_ids:
        raise InvalidSchemaChange(
            f"cannot drop column {field.name!r}: it belongs to the key, which identifies the rows, "
            "or to the sequence, which orders their versions; create a table without it"
        )
    _refuse_in_key(chain, f"drop {name!r}")
    if len(siblings(schema, chain[:-1])) == 1:
        raise InvalidSchemaChange(
            f"cannot drop column {name!r}: it is the last one; add another column first"
            if len(chain) == 1
            else f"cannot drop {name!r}: it is the last field of its struct; add another field "
            "first, or drop the whole column"
        )
    return with_field(schema, chain, None)


def _rename(schema: Schema, chain: Chain, new_name: str) -> Schema:
    field, name = chain[-1], shown(chain)
    others = siblings(schema, chain[:-1])
    if field.name == new_name:
        raise InvalidSchemaChange(f"column {name!r} already has this name")
    _check_name([each for each in others if each.id != field.id], new_name)
    return with_field(schema, chain, replace(field, name=new_name))


def _widen(schema: Schema, chain: Chain, wanted: pa.Field) -> Schema:
    field = chain[-1]
    new = logical_type(wanted, lambda: 0)
    if field.size is not None and type_name(field.type) == type_name(new):
        if declared_size(wanted, new) is None:
            return with_field(schema, chain, replace(field, size=None))
        raise InvalidSchemaChange(
            f"cannot change the size of the values of column {shown(chain)!r}, {field.size}: rows "
            "have it; allow any size by a type without one"
        )
    shown_change = f"column {shown(chain)!r} from {type_name(field.type)} to {type_name(new)}"
    if is_nested(field.type) or is_nested(new):
        raise InvalidSchemaChange(
            f"cannot widen {shown_change}: lists, structs and maps stay what they are; widen, add "
            "or drop the fields inside by their paths, as in 'address.city' or 'tags.element'"
        )
    if field.type == new:
        raise InvalidSchemaChange(f"cannot widen {shown_change}: it has this type already")
    if isinstance(field.type, Enum) and isinstance(new, Enum) and not extends(field.type, new):
        raise InvalidSchemaChange(
            f"cannot change the labels of {shown_change}: labels may only be added behind the last "
            f"one, {field.type.labels[-1]!r}; rows may have the others, and compare by their order"
        )
    if not is_widened(field.type, new):
        raise InvalidSchemaChange(
            f"cannot widen {shown_change}: not every value of the old type is one of the new type "
            "in the same order; add a column of the new type, and update it from the old one"
        )
    fill, default = (
        widened_text(text, field.type, new, shown(chain)) for text in (field.fill, field.default)
    )
    becomes_float = isinstance(field.type, Int) and isinstance(new, Float)
    since = schema.id if becomes_float else field.float_since
    wide = replace(field, type=new, fill=fill, default=default, float_since=since)
    return with_field(schema, chain, wide)


def _reorder(schema: Schema, chains: Sequence[Chain]) -> Schema:
    names = [shown(chain) for chain in chains]
    parents = {tuple(field.id for field in chain[:-1]) for chain in chains}
    if len(parents) > 1:
        raise InvalidSchemaChange(
            f"the order ({', '.join(names)}) names fields of different columns; give those of one "
            "struct at a time"
        )
    parent = chains[0][:-1] if chains else ()
    others, first = siblings(schema, parent), [chain[-1] for chain in chains]
    if len({field.id for field in first}) < len(first):
        raise InvalidSchemaChange(f"the order ({', '.join(names)}) names a column twice")
    fields = (*first, *(field for field in others if field not in first))
    if fields == others:
        shown_order = ", ".join(field.name for field in others)
        raise InvalidSchemaChange(f"the columns have the order ({shown_order}) already")
    if not parent:
        return Schema(schema.id, fields)
    return with_field(schema, parent, replace(parent[-1], type=Struct(fields)))


def _relax(schema: Schema, chain: Chain, key_ids: frozenset[int]) -> Schema:
    field, name = chain[-1], shown(chain)
    if field.id in key_ids:
        raise InvalidSchemaChange(
            f"cannot allow NULL in column {field.name!r}: it belongs to the key, which identifies "
            "the rows, or to the sequence, which orders their versions"
        )
    if field.nullable:
        raise InvalidSchemaChange(f"column {name!r} may be NULL already")
    _refuse_in_key(chain, f"allow NULL in {name!r}")
    return with_field(schema, chain, replace(field, nullable=True))


def _set_default(schema: Schema, chain: Chain, default: object) -> Schema:
    field, name = chain[-1], shown(chain)
    text = _default_text(default, field.type, field.size, name)
    if field.default == text:
        raise InvalidSchemaChange(f"column {name!r} has this default already")
    siblings(schema, chain[:-1])  # items of lists and maps have no default
    return with_field(schema, chain, replace(field, default=text))


def _set_not_null(schema: Schema, chain: Chain) -> Schema:
    field, name = chain[-1], shown(chain)
    if not all(isinstance(parent.type, Struct) for parent in chain[:-1]):
        raise InvalidSchemaChange(
            f"cannot disallow NULL in {name!r}: it is inside a list or a map, where only fields of "
            "structs at the top can be NOT NULL later; check the items before you write"
        )
    if not field.nullable:
        raise InvalidSchemaChange(f"column {name!r} is NOT NULL already")
    added_now = [each.added == schema.id for each in chain]
    if added_now[-1] and not any(added_now[:-1]) and field.fill is None:
        raise InvalidSchemaChange(
            f"cannot disallow NULL in {name!r}, which the same changes add without a default: rows "
            "that exist would have NULL; add it with a default"
        )
    return with_field(schema, chain, replace(field, nullable=False))


def _set_comment(schema: Schema, chain: Chain, comment: str | None) -> Schema:
    field = chain[-1]
    if field.comment == (comment or None):
        raise InvalidSchemaChange(f"column {shown(chain)!r} has this comment already")
    return with_field(schema, chain, replace(field, comment=comment or None))


def _exists(schema: Schema, path: Path) -> bool:
    try:
        resolve(schema, path)
    except UnknownColumn:
        return False
    return True


def _refuse_in_key(chain: Chain, what: str) -> None:
    """Refuse a change inside the keys of a map: keys that differ could become equal."""
    if is_inside_key(chain):
        raise InvalidSchemaChange(
            f"cannot {what}: it is inside the key of a map, and keys that differ now could become "
            "equal; add another column, and update it from this one"
        )


def _check_name(others: Sequence[Field], name: str) -> None:
    if not name:
        raise InvalidSchemaChange("a column has the empty name; give it a name")
    if "\0" in name:
        raise InvalidSchemaChange(
            f"the name {name!r} has a zero byte, where engines cut names off; give another name"
        )
    same = [each.name for each in others if each.name.lower() == name.lower()]
    if same:
        raise InvalidSchemaChange(
            f"there is a column {same[0]!r} already, so no other one can be named {name!r}; drop "
            "or rename it first"
        )
