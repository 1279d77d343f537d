"""Columns as Iceberg's schema: field ids are those that the files have.

A column whose type Iceberg lacks is refused by name. Soundness: unsigned 32-bit and 64-bit integers
are refused, because Java readers treat them as signed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rowsieve.errors import UnsupportedOperation
from rowsieve.types import logical
from rowsieve.types.schema import Schema

_FLAT: Final[Mapping[logical.LogicalType, str]] = {
    logical.Bool(): "boolean",
    logical.Int(8): "int",
    logical.Int(16): "int",
    logical.Int(32): "int",
    logical.Int(64): "long",
    logical.Int(8, signed=False): "int",
    logical.Int(16, signed=False): "int",
    logical.Float(32): "float",
    logical.Float(64): "double",
    logical.String(): "string",
    logical.Json(): "string",
    logical.Binary(): "binary",
    logical.Uuid(): "fixed[16]",  # Java's readers find uuid by an annotation that files lack
    logical.Date(): "date",
    logical.Time(): "time",
    logical.Timestamp(utc=True): "timestamptz",
    logical.Timestamp(utc=False): "timestamp",
}


def iceberg_schema(schema: Schema, key: Sequence[str]) -> dict[str, Any]:
    """Return the JSON of the schema; UnsupportedOperation for columns that Iceberg lacks."""
    _check_names(schema)
    keys = [schema.field(name) for name in key]
    identifies = not any(isinstance(field.type, logical.Float) for field in keys)
    return {
        "type": "struct",
        "schema-id": schema.id,
        "identifier-field-ids": [field.id for field in keys] if identifies else [],
        "fields": [_field(field, "", required=not field.nullable) for field in schema],
    }


def flat_type(type_: logical.LogicalType) -> str | None:
    """The name of Iceberg's type without members that this one is; None if there is none."""
    if isinstance(type_, logical.Decimal):
        return f"decimal({type_.precision}, {type_.scale})"
    return "string" if isinstance(type_, logical.Enum) else _FLAT.get(type_)


def members(field: logical.Field) -> Iterator[tuple[str, logical.Field]]:
    """The fields right inside a field, each with its name in Iceberg."""
    match field.type:
        case logical.List(element=element):
            yield "element", element
        case logical.Struct(fields=fields):
            yield from ((each.name, each) for each in fields)
        case logical.Map(key=key, value=value):
            yield "key", key
            yield "value", value


def _field(field: logical.Field, path: str, *, required: bool) -> dict[str, Any]:
    field_json = {
        "id": field.id,
        "name": field.name,
        "required": required,
        "type": _type(field.type, f"{path}{field.name}"),
    }
    return field_json if field.comment is None else {**field_json, "doc": field.comment}


def _type(type_: logical.LogicalType, path: str) -> Any:
    match type_:
        case logical.List(element=element):
            return {
                "type": "list",
                "element-id": element.id,
                "element-required": not element.nullable,
                "element": _type(element.type, f"{path}.element"),
            }
        case logical.Struct(fields=fields):  # a field is NULL wherever its struct is
            inside = [_field(each, f"{path}.", required=False) for each in fields]
            return {"type": "struct", "fields": inside}
        case logical.Map(key=key, value=value):
            return {
                "type": "map",
                "key-id": key.id,
                "key": _type(key.type, f"{path}.key"),
                "value-id": value.id,
                "value-required": not value.nullable,
                "value": _type(value.type, f"{path}.value"),
            }
    if (iceberg_type := flat_type(type_)) is None:
        raise UnsupportedOperation(
            f"publish: column {path!r} has the type {logical.type_name(type_)}, which Iceberg does "
            "not have; widen or drop the column, or publish a table without it"
        )
    return iceberg_type


def _check_names(schema: Schema) -> None:
    """Iceberg finds columns by dotted names, so no two may be equal."""
    names: set[str] = set()
    for name in (name for field in schema for name in _dotted(field, field.name)):
        if name in names:
            raise UnsupportedOperation(
                f"publish: two columns or fields have the name {name!r} in Iceberg, which joins "
                "the names of a struct and its fields by dots; rename one"
            )
        names.add(name)


def _dotted(field: logical.Field, name: str) -> Iterator[str]:
    yield name
    for member_name, member in members(field):
        yield from _dotted(member, f"{name}.{member_name}")
