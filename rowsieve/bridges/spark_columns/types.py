"""Our types as PySpark's classes, nested ones included; `spark_type_names` has the table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, assert_never

from rowsieve.predicate.functions.unbounded_numbers import NUMERIC_PARTS
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Enum,
    Field,
    Float,
    Int,
    Interval,
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


def spark_schema(fields: Iterable[Field]) -> Any:
    """The columns as Spark sees them: a `StructType`."""
    from pyspark.sql import types as spark  # noqa: PLC0415 - an extra, at its first use

    return spark.StructType(
        [
            spark.StructField(
                f.name,
                spark_type(f.type),
                f.nullable,
                {"comment": f.comment} if f.comment else None,
            )
            for f in fields
        ]
    )


def spark_type(type_: LogicalType) -> Any:
    """The Spark type that holds every value of this type."""
    from pyspark.sql import types as spark  # noqa: PLC0415 - an extra, at its first use

    match type_:
        case Bool():
            return spark.BooleanType()
        case Int():
            return _integer(type_)
        case Float(bits=bits):
            return spark.FloatType() if bits == 32 else spark.DoubleType()
        case Decimal(precision=precision, scale=scale):
            return spark.DecimalType(precision, scale)
        case String() | Json() | Uuid() | Enum():
            return spark.StringType()
        case Binary() | Interval():
            return spark.BinaryType()
        case Date():
            return spark.DateType()
        case Time():
            return spark.TimeType(6)
        case Timestamp(utc=utc) | Nanos(utc=utc):
            return spark.TimestampType() if utc else spark.TimestampNTZType()
        case Numeric():
            return spark_schema(NUMERIC_PARTS.fields)
        case List(element=element):
            return spark.ArrayType(spark_type(element.type), element.nullable)
        case Struct():
            return spark_schema(type_.fields)
        case Map(key=key, value=value):
            return spark.MapType(spark_type(key.type), spark_type(value.type), value.nullable)
        case _:
            assert_never(type_)


def _integer(type_: Int) -> Any:
    from pyspark.sql import types as spark  # noqa: PLC0415 - an extra, at its first use

    if not type_.signed and type_.bits == 64:
        return spark.DecimalType(20, 0)
    return {
        8: spark.ByteType(),
        16: spark.ShortType(),
        32: spark.IntegerType(),
        64: spark.LongType(),
    }[type_.bits if type_.signed else type_.bits * 2]
