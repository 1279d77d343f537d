"""Our types as PySpark's, nested ones included; `spark_type_names` has the table of flat types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rowsieve.bridges.sql.spark.type_names import held_type, json_of
from rowsieve.types.logical import Field, List, LogicalType, Map, Nanos, Struct, Timestamp


def spark_schema(fields: Iterable[Field]) -> Any:
    """Return the columns as Spark's `StructType`."""
    from pyspark.sql import types as spark  # noqa: PLC0415 - an extra, at its first use

    return spark.StructType.fromJson(dict(_struct(fields)))


def spark_type(type_: LogicalType) -> Any:
    """Return the Spark type that holds every value of a type."""
    return spark_schema([Field(0, "value", type_)])["value"].dataType


def _struct(fields: Iterable[Field]) -> Mapping[str, Any]:
    return {
        "type": "struct",
        "fields": [
            {
                "name": field.name,
                "type": _json(field.type),
                "nullable": field.nullable,
                "metadata": {"comment": field.comment} if field.comment else {},
            }
            for field in fields
        ],
    }


def _json(type_: LogicalType) -> str | Mapping[str, Any]:
    """Return the type in Spark's JSON."""
    match storage := held_type(type_):
        case List(element=element):
            items = {"elementType": _json(element.type), "containsNull": element.nullable}
            return {"type": "array", **items}
        case Map(key=key, value=value):
            kinds = {"keyType": _json(key.type), "valueType": _json(value.type)}
            return {"type": "map", **kinds, "valueContainsNull": value.nullable}
        case Struct(fields=fields):
            return _struct(fields)
        case Nanos(utc=utc):
            return json_of(Timestamp(utc))
        case _:
            return json_of(storage)
