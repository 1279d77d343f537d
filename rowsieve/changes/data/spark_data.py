"""Read Spark DataFrames, and reject types of Spark whose meaning a table cannot keep.

Soundness: text of a table is compared by its bytes. Arrow has no collations, so a collated column
would lose its own, and conditions and keys would then match other rows. Does not import pyspark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from rowsieve.errors import SchemaMismatch

_BY_BYTES: Final = "UTF8_BINARY"
_LIMIT: Final = (
    "cast it to string; in CREATE TABLE write STRING, and CHECK (length(v) <= 3) limits it"
)
_NOT_KEPT: Final[Mapping[str, str]] = {
    "YearMonthIntervalType": "cast it to string, or make it a number of months",
    "CalendarIntervalType": "cast it to string",
    "CharType": _LIMIT,
    "VarcharType": _LIMIT,
}
"""Classes of types without a counterpart in a table, and what to do instead.

Spark pads and limits the text of CHAR(n) and VARCHAR(n); a table would do neither.
"""


def is_spark_schema(columns: object) -> bool:
    """Return whether this is the schema of a Spark DataFrame."""
    kind = type(columns)
    return kind.__module__ == "pyspark.sql.types" and kind.__name__ == "StructType"


def is_spark(data: object) -> bool:
    """Return whether this is a Spark DataFrame, classic or Connect."""
    return type(data).__module__.partition(".")[0] == "pyspark" and hasattr(data, "toArrow")


def from_spark_frame(frame: Any, operation: str) -> pa.Table:
    """Collect the rows; SchemaMismatch, before any job, for a type that cannot be kept."""
    refuse_spark_types(frame.schema, operation)
    return frame.toArrow()  # its stream fails over timestamps (4.1 to 4.3)


def refuse_spark_types(columns: Any, what: str) -> None:
    """Raise SchemaMismatch for a collation other than UTF8_BINARY, or a type without a counterpart.

    `columns` is a StructType; the message names the column, or the field inside it.
    """
    for path, type_ in _leaves(columns, ""):
        name = type(type_).__name__
        collation = getattr(type_, "collation", _BY_BYTES)
        if collation != _BY_BYTES:
            raise SchemaMismatch(
                f"{what}: column {path!r} has Spark's collation {collation}, and text of a table "
                "is compared by its bytes, so conditions and keys would match other rows; nothing "
                f"was written. Cast it to STRING COLLATE {_BY_BYTES}, or write lower(…) of it"
            )
        if (remedy := _NOT_KEPT.get(name)) is not None:
            raise SchemaMismatch(
                f"{what}: column {path!r} has Spark's type {type_.simpleString()}, which no type "
                f"of a table corresponds to; nothing was written. In the DataFrame, {remedy}"
            )


def _leaves(type_: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The types without members of a type, each with its path."""
    match type(type_).__name__:
        case "StructType":
            inner = [(field.name, field.dataType) for field in type_]
        case "ArrayType":
            inner = [("element", type_.elementType)]
        case "MapType":
            inner = [("key", type_.keyType), ("value", type_.valueType)]
        case _ if hasattr(type_, "sqlType"):  # a type of the user, stored as another one
            yield from _leaves(type_.sqlType(), path)
            return
        case _:
            yield path, type_
            return
    for name, member in inner:
        yield from _leaves(member, f"{path}.{name}" if path else name)
