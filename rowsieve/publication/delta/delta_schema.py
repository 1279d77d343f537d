"""Columns as Delta's schema, with the metadata of column mapping.

A column whose type Delta lacks is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rowsieve.errors import UnsupportedOperation
from rowsieve.types import logical
from rowsieve.types.schema import Schema

_FLAT: Final[Mapping[logical.LogicalType, str]] = {
    logical.Bool(): "boolean",
    logical.Int(8): "byte",
    logical.Int(16): "short",
    logical.Int(32): "integer",
    logical.Int(64): "long",
    logical.Float(32): "float",
    logical.Float(64): "double",
    logical.String(): "string",
    logical.Json(): "string",
    logical.Binary(): "binary",
    logical.Date(): "date",
    logical.Timestamp(utc=True): "timestamp",
    logical.Timestamp(utc=False): "timestamp_ntz",
}


def delta_schema(schema: Schema, mapping: Mapping[int, str] | None) -> dict[str, Any]:
    """Return the JSON of the schema; UnsupportedOperation for columns that Delta lacks.

    `mapping` are the names of columns and fields in the files, by field id; None for those here.
    """
    return _struct(schema.fields, "", mapping)


def has_local_time(schema: Schema) -> bool:
    """Return whether a column or a field in it is a timestamp without a zone."""
    return any(_has_local_time(field.type) for field in schema)


def _has_local_time(type_: logical.LogicalType) -> bool:
    match type_:
        case logical.List(element=element):
            return _has_local_time(element.type)
        case logical.Struct(fields=fields):
            return any(_has_local_time(field.type) for field in fields)
        case logical.Map(key=key, value=value):
            return _has_local_time(key.type) or _has_local_time(value.type)
        case _:
            return type_ == logical.Timestamp(utc=False)


def _struct(
    fields: tuple[logical.Field, ...], path: str, mapping: Mapping[int, str] | None
) -> dict[str, Any]:
    """The columns, or the fields of a struct, which are NULL wherever the struct is."""
    return {
        "type": "struct",
        "fields": [
            {
                "name": field.name,
                "type": _type(field.type, f"{path}{field.name}", mapping),
                "nullable": field.nullable or bool(path),
                "metadata": _mapping(field, mapping),
            }
            for field in fields
        ],
    }


def _mapping(field: logical.Field, mapping: Mapping[int, str] | None) -> dict[str, Any]:
    """The metadata that tells readers the field's id and its name in the files."""
    if mapping is None:
        return {}
    return {
        "delta.columnMapping.id": field.id,
        "delta.columnMapping.physicalName": mapping[field.id],
    }


def _type(type_: logical.LogicalType, path: str, mapping: Mapping[int, str] | None) -> Any:
    match type_:
        case logical.Decimal(precision=precision, scale=scale):
            return f"decimal({precision},{scale})"
        case logical.List(element=element):
            of = _type(element.type, f"{path}.element", mapping)
            return {"type": "array", "elementType": of, "containsNull": element.nullable}
        case logical.Struct(fields=fields):
            return _struct(fields, f"{path}.", mapping)
        case logical.Map(key=key, value=value):
            return {
                "type": "map",
                "keyType": _type(key.type, f"{path}.key", mapping),
                "valueType": _type(value.type, f"{path}.value", mapping),
                "valueContainsNull": value.nullable,
            }
    if isinstance(type_, logical.Enum):
        return "string"
    if (delta_type := _FLAT.get(type_)) is None:
        raise UnsupportedOperation(
            f"publish: column {path!r} has the type {logical.type_name(type_)}, which Delta does "
            "not have; widen or drop the column, or publish a table without it"
        )
    return delta_type
