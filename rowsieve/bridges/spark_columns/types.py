"""Our types as Spark's, and Spark's as it names them in its trees.

| ours | Spark |
|---|---|
| uint8, uint16, uint32, uint64 | smallint, int, bigint, decimal(20,0) |
| uuid, json | string; a UUID in the usual form, in lower case |
| timestamp, timestamptz | timestamp_ntz, timestamp |
| time | time(6) |
| all others | their namesakes |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, assert_never

from rowsieve.errors import UnsupportedOperation
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
    String,
    Struct,
    Time,
    Timestamp,
    Uuid,
)

_NAMED: Final[Mapping[str, LogicalType]] = {
    "boolean": Bool(),
    "byte": Int(8),
    "short": Int(16),
    "integer": Int(32),
    "long": Int(64),
    "float": Float(32),
    "double": Float(64),
    "string": String(),
    "binary": Binary(),
    "date": Date(),
    "timestamp": Timestamp(utc=True),
    "timestamp_ntz": Timestamp(),
    "time(6)": Time(),
}
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
_DDL: Final[Mapping[str, str]] = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
}

_SYNONYMS: Final[Mapping[str, str]] = {
    "real": "float",
    "dec": "decimal(10,0)",
    "decimal": "decimal(10,0)",
    "numeric": "decimal(10,0)",
    "timestamp_ltz": "timestamp",
}


def spark_schema(fields: Iterable[Field]) -> Any:
    """The columns as Spark sees them: a `StructType`."""
    from pyspark.sql import types as spark  # noqa: PLC0415 - an extra, at its first use

    return spark.StructType(
        [spark.StructField(f.name, spark_type(f.type), f.nullable) for f in fields]
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
        case String() | Json() | Uuid():
            return spark.StringType()
        case Binary():
            return spark.BinaryType()
        case Date():
            return spark.DateType()
        case Time():
            return spark.TimeType(6)
        case Timestamp(utc=utc):
            return spark.TimestampType() if utc else spark.TimestampNTZType()
        case List(element=element):
            return spark.ArrayType(spark_type(element.type), element.nullable)
        case Struct():
            return spark_schema(type_.fields)
        case Map(key=key, value=value):
            return spark.MapType(spark_type(key.type), spark_type(value.type), value.nullable)
        case _:
            assert_never(type_)


def held_type(type_: LogicalType) -> LogicalType:
    """The type, of those that Spark has, in which it holds a flat type of ours."""
    match type_:
        case Int(bits=64, signed=False):
            return Decimal(20, 0)
        case Int(bits=bits, signed=False):
            return Int(bits * 2)
        case Uuid() | Json():
            return String()
    return type_


def type_named(spelled: Any) -> LogicalType | None:
    """The flat type that Spark spells so in JSON; None for one that no column here can have."""
    if not isinstance(spelled, str):
        return None
    if (match := _DECIMAL.fullmatch(spelled)) is not None:
        return Decimal(int(match[1]), int(match[2]))
    return _NAMED.get(spelled)


def json_of(type_: LogicalType) -> str:
    """How Spark spells a flat type of its own in JSON."""
    if isinstance(type_, Decimal):
        return f"decimal({type_.precision},{type_.scale})"
    return next(name for name, named in _NAMED.items() if named == type_)


def cast_target(type_: Any) -> LogicalType:
    """The type that a cast names, by Spark's class for it or in DDL."""
    spelled = str(type_ if isinstance(type_, str) else type_.jsonValue()).strip().lower()
    plain = {**{ddl: name for name, ddl in _DDL.items()}, **_SYNONYMS}
    found = type_named(plain.get(spelled, spelled.replace(" ", "")))
    if found is None:
        raise UnsupportedOperation(f"a cast to {spelled} has no type here")
    return found


def ddl_of(type_: LogicalType) -> str:
    """How a cast names the flat type that Spark has for ours."""
    if isinstance(held := held_type(type_), Decimal):
        return f"decimal({held.precision},{held.scale})"
    name = next(name for name, type_ in _NAMED.items() if type_ == held)
    return _DDL.get(name, name)


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
