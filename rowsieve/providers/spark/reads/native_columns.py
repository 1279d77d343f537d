"""Describes how Spark's own Parquet reader gets a table's columns from one of our files.

A file is read by the names that its columns had when it was written, and the result is renamed,
cast to wider types and filled with defaults. Spark can also find columns by field id, but it then
pushes filters by name, and skips row groups by another column that has this name in the file: rows
are lost where two columns have exchanged their names (seen in 4.3.0).

Soundness: a column that Spark reads as another value than our source, or is not known to read as
the same value, has no shape; its file is read through our source.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import functions as sql
from pyspark.sql import types as spark

from rowsieve.bridges.spark_columns.types import spark_type
from rowsieve.providers.native_files.file_shapes import Filled, Shape, Stored, shape_of
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Field,
    Float,
    Int,
    Json,
    List,
    LogicalType,
    Map,
    Nanos,
    Numeric,
    String,
    Struct,
    Time,
    Timestamp,
    Uuid,
)
from rowsieve.types.stored_defaults import constant

_UUID_CUTS: Final = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))  # position and length of digits
_YEARS: Final = range(1, 10_000)  # of times without a zone that Spark's literals spell


def is_native(type_: LogicalType) -> bool:
    """Return whether Spark's Parquet reader reads our values; 4.3 reads no times of day or ns."""
    match type_:
        case List(element=element):
            return _is_native_inside(element)
        case Struct(fields=fields):
            return all(map(_is_native_inside, fields))
        case Map(key=key, value=value):
            return _is_native_inside(key) and _is_native_inside(value)
        case Time() | Nanos() | Numeric():
            return False
        case _:
            return True


def spark_shape(
    columns: Sequence[Field], stored: Mapping[int, pa.Field], schema_id: int
) -> Shape | None:
    """The shape of a file by its own fields; None if Spark must not read it."""
    return shape_of(columns, stored, schema_id, _has_literal)


def read_schema(shape: Shape) -> spark.StructType:
    """The columns to read of the file, as Spark reads them."""
    stored = dict.fromkeys(each for each in shape if isinstance(each, Stored))
    return spark.StructType(
        [spark.StructField(each.name, _stored_type(each.type)) for each in stored]
    )


def output_columns(
    columns: Sequence[Field], shape: Shape, shown: Callable[[str, Any], Any]
) -> list[Any]:
    """Spark columns of the table's columns, over a frame with `read_schema`.

    `shown` gets a name and a Spark column, and returns the one to show by that name.
    """
    return [
        shown(column.name, _output(column, origin)).alias(column.name, **_comment(column))
        for column, origin in zip(columns, shape, strict=True)
    ]


def quoted(name: str) -> str:
    """The name as an identifier of Spark."""
    return f"`{name.replace('`', '``')}`"


def _is_native_inside(member: Field) -> bool:
    """A UUID is bytes in the file; inside a nested column it cannot be converted to text."""
    return not isinstance(member.type, Uuid) and is_native(member.type)


def _stored_type(type_: LogicalType) -> Any:
    return spark.BinaryType() if isinstance(type_, Uuid) else spark_type(type_)


def _output(column: Field, origin: Stored | Filled) -> Any:
    wanted = spark_type(column.type)
    if isinstance(origin, Filled):
        if origin.text is None:
            return sql.lit(None).cast(wanted)
        return _literal(column).cast(wanted)
    values = sql.col(quoted(origin.name))
    if isinstance(column.type, Uuid):
        digits = sql.lower(sql.hex(values))
        text = sql.concat_ws("-", *(sql.substring(digits, *cut) for cut in _UUID_CUTS))
        return sql.when(values.isNotNull(), text)
    return values if origin.type == column.type else values.cast(wanted)


def _has_literal(column: Field) -> bool:
    match column.type:
        case Timestamp(utc=False):
            try:
                return constant(column.fill, column.type).as_py().year in _YEARS
            except (OverflowError, ValueError):
                return False
        case Bool() | Int() | Float() | Decimal() | String() | Json() | Binary() | Date():
            return True
        case _:
            return isinstance(column.type, Timestamp)


def _literal(column: Field) -> Any:
    """The fill of a column that `_has_literal` as an expression of Spark's."""
    scalar = constant(column.fill, column.type)
    match column.type:
        case Date():
            return sql.date_from_unix_date(sql.lit(int(scalar.value)))
        case Timestamp(utc=True):
            return sql.timestamp_micros(sql.lit(int(scalar.value)))
        case Timestamp():
            return sql.expr(f"TIMESTAMP_NTZ '{scalar.as_py().isoformat(sep=' ')}'")
        case Int():
            return sql.lit(decimal.Decimal(scalar.as_py()))
        case _:
            return sql.lit(scalar.as_py())


def _comment(column: Field) -> dict[str, Any]:
    return {"metadata": {"comment": column.comment}} if column.comment else {}
