"""Spark's names of flat types, in JSON and in DDL, and Spark's type for each of ours.

| ours | Spark |
|---|---|
| uint8, uint16, uint32, uint64 | smallint, int, bigint, decimal(20,0) |
| uuid, json | string; a UUID in the usual form, in lower case |
| timestamp, timestamptz | timestamp_ntz, timestamp |
| time | time(6) |
| interval | binary |
| numeric | struct of approx and exact |
| all others | their namesakes |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.functions.casting.unbounded_numbers import NUMERIC_PARTS
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Enum,
    Float,
    Int,
    Interval,
    Json,
    LogicalType,
    Numeric,
    String,
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


def held_type(type_: LogicalType) -> LogicalType:
    """Return Spark's type, as one of ours, for values of a flat type."""
    match type_:
        case Int(bits=64, signed=False):
            return Decimal(20, 0)
        case Int(bits=bits, signed=False):
            return Int(bits * 2)
        case Uuid() | Json() | Enum():
            return String()
        case Interval():
            return Binary()
        case Numeric():
            return NUMERIC_PARTS
    return type_


def type_named(spelled: Any) -> LogicalType | None:
    """Return the flat type with this name in JSON; None for types that no column can have."""
    if not isinstance(spelled, str):
        return None
    if (match := _DECIMAL.fullmatch(spelled)) is not None:
        return Decimal(int(match[1]), int(match[2]))
    return _NAMED.get(spelled)


def json_of(type_: LogicalType) -> str:
    """Return Spark's name of a flat type in JSON."""
    if isinstance(type_, Decimal):
        return f"decimal({type_.precision},{type_.scale})"
    return next(name for name, named in _NAMED.items() if named == type_)


def cast_target(type_: Any) -> LogicalType:
    """Return the type of a cast, given as Spark's class or in DDL."""
    spelled = str(type_ if isinstance(type_, str) else type_.jsonValue()).strip().lower()
    plain = {**{ddl: name for name, ddl in _DDL.items()}, **_SYNONYMS}
    target = type_named(plain.get(spelled, spelled.replace(" ", "")))
    if target is None:
        raise UnsupportedOperation(f"a cast to {spelled} has no type in Rowsieve")
    return target


def ddl_of(type_: LogicalType) -> str:
    """Return the name in DDL of Spark's type for a flat type."""
    if isinstance(storage := held_type(type_), Decimal):
        return f"decimal({storage.precision},{storage.scale})"
    name = next(name for name, type_ in _NAMED.items() if type_ == storage)
    return _DDL.get(name, name)
