"""Joins the columns of foreign files into one schema, by name or by field id.

A column that a file lacks is NULL there, and so is a field of a struct. If a column has two types,
the type that holds all values of the other is used; if neither does, the files cannot be read
together. All columns are nullable, even if a file declares NOT NULL. Types in `schema=` take
precedence: a value that would change is an error when it is read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import pyarrow as pa

from rowsieve.errors import InvalidInput, SchemaMismatch
from rowsieve.foreign.declared_types import Declared
from rowsieve.foreign.footers import Footer
from rowsieve.foreign.hive import Partitions
from rowsieve.foreign.names_in_files import names_in_file, refuse_other_case
from rowsieve.foreign.nested_in_files import by_name, columns_in_file
from rowsieve.foreign.nullable_fields import nullable_field
from rowsieve.parquet.foreign_values import check_foreign
from rowsieve.types import logical
from rowsieve.types.encodings import (
    FIELD_ID_KEY,
    is_list,
    logical_type,
    schema_of,
)
from rowsieve.types.schema import Schema
from rowsieve.types.widening import is_widened


@dataclass(frozen=True, slots=True)
class JoinedColumns:
    """The table's schema, and per distinct file schema the file's column by field id.

    `nested`: likewise the columns with fields, as the file has them; those of the table if it is
    not given. `written_with`: likewise the id of the schema that a file counts as written with, by
    default the table's.
    """

    schema: Schema
    next_id: int
    names: Mapping[int, dict[int, str]]
    nested: Mapping[int, Schema] = dataclasses.field(default_factory=dict)
    written_with: Mapping[int, int] = dataclasses.field(default_factory=dict)

    def nested_in(self, footer: Footer) -> Schema:
        """The columns with fields of a file, as the file has them."""
        nested = tuple(each for each in self.schema if logical.is_nested(each.type))
        return self.nested.get(id(footer.schema), Schema(self.schema.id, nested))

    def schema_of(self, footer: Footer) -> int:
        """The id of the schema that a file counts as written with."""
        return self.written_with.get(id(footer.schema), self.schema.id)

    def names_of(self, footer: Footer) -> dict[int, str]:
        """The file's column of each field id."""
        return self.names[id(footer.schema)]


def join_columns(
    footers: Sequence[Footer],
    partitions: Partitions,
    *,
    schema: pa.Schema | None = None,
    by_field_id: bool = False,
    binary_as_string: bool = False,
) -> JoinedColumns:
    """Join the columns of the files and their directories; SchemaMismatch if types contradict.

    Times of which a file shows nanoseconds have nanoseconds in all files, and decimals of which one
    shows more digits than it declares have 38.
    """
    distinct = {id(footer.schema): footer for footer in footers}
    declare = _declared(footers, schema, binary_as_string=binary_as_string)
    columns_by_file = {
        place: _own_columns(footer, declare, schema, by_field_id=by_field_id)
        for place, footer in distinct.items()
    }
    of_files = [(footer.uri, columns_by_file[place]) for place, footer in distinct.items()]
    inside: set[str] = set()
    owners: dict[str, tuple[pa.Field, str]] = {}
    if schema is not None:
        joined, inside = _wanted_fields(of_files, schema, by_id=by_field_id)
    else:
        if not by_field_id:
            refuse_other_case({uri: _paths(columns) for uri, columns in of_files})
        owners = _joined_fields(of_files, by_id=by_field_id)
        joined = {key: field for key, (field, _) in owners.items()}
    labels = {key: field.name for key, field in joined.items()}
    _refuse_twice(partitions, frozenset(labels.values()))
    fields = list(joined.values())
    fields += [pa.field(name, type_) for name, type_ in partitions.types.items()]
    if schema is not None:
        fields = _chosen(schema, {field.name: field for field in fields}, inside)
    table, next_id = _table_schema(fields, owners)
    names = _names_in_files(table, columns_by_file, labels)
    nested = {
        place: _nested_in_file(table, footer, names[place]) for place, footer in distinct.items()
    }
    return JoinedColumns(table, next_id, names, nested)


def _table_schema(
    fields: Sequence[pa.Field], owners: Mapping[str, tuple[pa.Field, str]]
) -> tuple[Schema, int]:
    """The table's schema and its next field id; SchemaMismatch names the file of a column."""
    try:
        return schema_of(pa.schema([nullable_field(field) for field in fields]))
    except SchemaMismatch:
        for field, uri in owners.values():
            _type_of(field, uri)
        raise


def _nested_in_file(table: Schema, footer: Footer, names: Mapping[int, str]) -> Schema:
    """The columns with fields, as the file has them; `names` are those in the file by field id."""
    stored = {
        field.id: footer.schema.field(names[field.id])
        for field in table
        if field.id in names and logical.is_nested(field.type)
    }
    return columns_in_file(table, stored, by_name(footer.uri, lambda field: field.name))


def _names_in_files(
    table: Schema, columns_by_file: Mapping[int, Mapping[str, pa.Field]], labels: Mapping[str, str]
) -> dict[int, dict[int, str]]:
    """Per distinct file schema, the names in the file of the table's columns, by field id."""
    ids = {field.name: field.id for field in table}
    return {
        place: {ids[labels[key]]: field.name for key, field in columns.items() if key in labels}
        for place, columns in columns_by_file.items()
    }


def _refuse_twice(partitions: Partitions, names: frozenset[str]) -> None:
    """Raise for a column that is in the files and in the names of their directories."""
    folded = {name.lower(): name for name in names}
    for name in partitions.types:
        if (known := folded.get(name.lower())) is not None:
            raise InvalidInput(
                f"column {known!r} is in the files and in the names of their directories; pass "
                "hive=False to read that of the files"
            )


def _declared(
    footers: Sequence[Footer], schema: pa.Schema | None, *, binary_as_string: bool
) -> Declared:
    """The types that the files do not declare; `schema=` has all types."""
    if schema is not None:
        return Declared(frozenset[str](), frozenset[str](), binary_as_string=False)
    finer = frozenset(path for footer in footers for path in footer.finer_than_micros())
    longer = frozenset(path for footer in footers for path in footer.longer_than_declared())
    return Declared(finer, longer, binary_as_string)


def _own_columns(
    footer: Footer, declare: Declared, schema: pa.Schema | None, *, by_field_id: bool
) -> dict[str, pa.Field]:
    """The columns of a file by the field id or name that matches them; names are of `schema=`."""
    columns = [declare.column(field) for field in footer.schema]
    if not by_field_id:
        by_name = {field.name: field for field in columns}
        if schema is None:
            return by_name
        return {
            name: by_name[file_name]
            for name, file_name in names_in_file(schema.names, footer).items()
        }
    by_id: dict[str, pa.Field] = {}
    for field in columns:
        key = (field.metadata or {}).get(FIELD_ID_KEY, b"").decode()
        if not key or key in by_id:
            what = "no field id" if not key else f"the field id {key}, as another column has,"
            raise SchemaMismatch(
                f"{footer.uri}: column {field.name!r} has {what} in its file; match columns by name"
            )
        by_id[key] = field
    return by_id


def _joined_fields(
    of_files: Iterable[tuple[str, Mapping[str, pa.Field]]], *, by_id: bool
) -> dict[str, tuple[pa.Field, str]]:
    """Join the columns of all files by name or field id, each with the URI of a file that has it.

    Files are given by their URIs.
    """
    joined: dict[str, tuple[pa.Field, str]] = {}
    for uri, columns in of_files:
        for key, field in columns.items():
            joined[key] = _joined(joined.get(key), field, uri, by_id=by_id)
    return joined


def _wanted_fields(
    of_files: Iterable[tuple[str, Mapping[str, pa.Field]]], schema: pa.Schema, *, by_id: bool
) -> tuple[dict[str, pa.Field], set[str]]:
    """The columns of `schema=` as files have them, and the paths of the fields inside these."""
    fields: dict[str, pa.Field] = {}
    inside: set[str] = set()
    for uri, columns in of_files:
        for key, field in columns.items():
            known = field if by_id else field.with_name(key)
            if known.name in schema.names:
                fields.setdefault(key, known)
                _check_fits(schema, known, uri)
                inside.update(_fields_inside(known.type, known.name))
    return fields, inside


def _joined(
    known: tuple[pa.Field, str] | None, field: pa.Field, uri: str, *, by_id: bool
) -> tuple[pa.Field, str]:
    """Join a column with the known one; also return the file of its type. `by_id`: as a whole."""
    if known is None or pa.types.is_null(known[0].type):
        return field, uri
    first, where = known
    if first.type.equals(field.type) or pa.types.is_null(field.type):
        return known
    old, new = _type_of(first, where), _type_of(field, uri)
    if old == new or is_widened(new, old):
        return known
    if is_widened(old, new):
        return field.with_name(first.name), uri
    if not by_id and (type_ := _joined_type(first.type, field.type)) is not None:
        return first.with_type(type_), uri
    raise SchemaMismatch(
        f"column {first.name!r} is {logical.type_name(old)} in {where} and "
        f"{logical.type_name(new)} in {uri}, and neither type holds the other's values; read the "
        "files separately, or give the type in schema="
    )


def _joined_type(first: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type with the fields of both nested types; None if two of them contradict."""
    types = pa.types
    if types.is_struct(first) and types.is_struct(other):
        members = {member.name: member for member in first}
        for member in other:
            joined = _joined_member(members.get(member.name, member), member)
            if joined is None:
                return None
            members[member.name] = joined
        return pa.struct(list(members.values()))
    if is_list(first) and is_list(other):
        item = _joined_member(first.value_field, other.value_field)
        return None if item is None else pa.list_(item)
    if types.is_map(first) and types.is_map(other) and first.key_type == other.key_type:
        value = _joined_member(first.item_field, other.item_field)
        return None if value is None else pa.map_(first.key_type, value)
    return None


def _joined_member(first: pa.Field, other: pa.Field) -> pa.Field | None:
    """A field of both nested types, in the type that holds the values of both; None without one."""
    if first.type.equals(other.type) or pa.types.is_null(other.type):
        return first
    if pa.types.is_null(first.type):
        return other
    old, new = (logical_type(nullable_field(each), _next_of(count())) for each in (first, other))
    if _fits(old, other):
        return first
    if _fits(new, first):
        return first.with_type(other.type)
    type_ = _joined_type(first.type, other.type)
    return None if type_ is None else first.with_type(type_)


def _fits(type_: logical.LogicalType, field: pa.Field) -> bool:
    """Return whether all values of a field in a file fit the type, and are read as values of it."""
    if logical.is_nested(type_):
        return False
    narrow = logical_type(nullable_field(field), _next_of(count()))
    try:
        check_foreign(field, type_, field.name)
    except SchemaMismatch:
        return False
    return is_widened(narrow, type_)


def _type_of(field: pa.Field, uri: str) -> logical.LogicalType:
    try:
        return logical_type(nullable_field(field), _next_of(count()))
    except SchemaMismatch as error:
        raise SchemaMismatch(f"{uri}: {error}; or name the other columns in schema=") from error


def _chosen(
    schema: pa.Schema, fields: Mapping[str, pa.Field], inside: Collection[str]
) -> list[pa.Field]:
    """The columns of `schema=`; `inside`: the paths of fields inside columns that a file has."""
    if missing := [name for name in schema.names if name not in fields]:
        raise SchemaMismatch(
            f"schema= has the column {missing[0]!r}, which no file and no directory has; remove it "
            "from schema="
        )
    folded = {path.lower() for path in inside}  # looked up as columns are (`names_in_files`)
    for field in schema:
        for path in _fields_inside(field.type, field.name):
            if path.lower() not in folded:
                raise SchemaMismatch(
                    f"schema= has {path!r}, which no file has; remove it from schema="
                )
    return list(schema)


def _check_fits(schema: pa.Schema, field: pa.Field, uri: str) -> None:
    """Raise SchemaMismatch if the type of `schema=` cannot hold values of a file's column.

    Fields that only one of them has are NULL or not read, so they may have any type.
    """
    wanted = schema.field(field.name)
    common = wanted.with_type(_within(wanted.type, field.type))
    if pa.types.is_null(common.type):  # structs without a field that both have
        return
    try:
        stored = field.with_type(_within(field.type, wanted.type))
        check_foreign(stored, logical_type(common, _next_of(count())), field.name)
    except SchemaMismatch as error:
        raise SchemaMismatch(f"schema= does not fit {uri}: {error}") from error


def _within(type_: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type with only those fields of structs that the other type has too; null without any.

    Fields whose names differ in case, and are one field, have the name in lower case.
    """
    types = pa.types
    if types.is_struct(type_) and types.is_struct(other):
        common = [
            pa.field(name, inner, member.nullable, member.metadata)
            for member, name, counterpart in _pairs(type_, other)
            if not types.is_null(inner := _within(member.type, counterpart.type))
        ]
        return pa.struct(common) if common else pa.null()
    if is_list(type_) and is_list(other):
        inner = _within(type_.value_type, other.value_type)
        return inner if types.is_null(inner) else pa.list_(type_.value_field.with_type(inner))
    if types.is_map(type_) and types.is_map(other):
        inner = _within(type_.item_type, other.item_type)
        if types.is_null(inner):
            return inner
        return pa.map_(type_.key_field, type_.item_field.with_type(inner))
    return type_


def _pairs(type_: pa.DataType, other: pa.DataType) -> Iterator[tuple[pa.Field, str, pa.Field]]:
    """The fields of a struct that another one has too, a name for both, and the other's field."""
    names, others = {each.name for each in type_}, {each.name: each for each in other}
    for member in type_:
        if member.name in others:
            yield member, member.name, others[member.name]
            continue
        fold = member.name.lower()
        matches = [name for name in others if name.lower() == fold and name not in names]
        if len(matches) == 1:
            yield member, fold, others[matches[0]]


def _paths(columns: Mapping[str, pa.Field]) -> Iterator[str]:
    """The paths of columns and of the fields of structs inside them."""
    for field in columns.values():
        yield field.name
        yield from _fields_inside(field.type, field.name)


def _fields_inside(type_: pa.DataType, path: str) -> Iterator[str]:
    """The paths of the fields of structs inside a type."""
    if pa.types.is_struct(type_):
        for member in type_:
            yield f"{path}.{member.name}"
            yield from _fields_inside(member.type, f"{path}.{member.name}")
    elif is_list(type_):
        yield from _fields_inside(type_.value_type, path)
    elif pa.types.is_map(type_):
        yield from _fields_inside(type_.item_type, path)


def _next_of(numbers: Any) -> Callable[[], int]:
    return lambda: int(next(numbers))
