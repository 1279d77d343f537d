"""Convert type names of SQL text to logical types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from rowsieve.bridges.sql.dialects import DATAFUSION_TYPES, Dialect
from rowsieve.errors import SchemaMismatch
from rowsieve.types.enums import enum_of
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    Json,
    LogicalType,
    Nanos,
    String,
    Time,
    Timestamp,
    Uuid,
)

_NAMES: Mapping[str, LogicalType] = {
    "BOOLEAN": Bool(),
    "TINYINT": Int(8),
    "SMALLINT": Int(16),
    "INT": Int(32),
    "BIGINT": Int(64),
    "UTINYINT": Int(8, signed=False),
    "USMALLINT": Int(16, signed=False),
    "UINT": Int(32, signed=False),
    "UINTEGER": Int(32, signed=False),
    "UBIGINT": Int(64, signed=False),
    "FLOAT": Float(32),
    "DOUBLE": Float(64),
    "TEXT": String(),
    "VARCHAR": String(),
    "BINARY": Binary(),
    "VARBINARY": Binary(),
    "DATE": Date(),
    "TIME": Time(),
    "TIMESTAMP": Timestamp(utc=False),
    "TIMESTAMPNTZ": Timestamp(utc=False),
    "TIMESTAMPTZ": Timestamp(utc=True),
    "TIMESTAMPLTZ": Timestamp(utc=True),
    "TIMESTAMP_NS": Nanos(utc=False),
    "UUID": Uuid(),
    "JSON": Json(),
}


_ARROW_DECIMAL = re.compile(r"Decimal128\(([0-9]{1,2}), ?([0-9]{1,2})\)")
_ARROW: Mapping[str, LogicalType] = {
    "Boolean": Bool(),
    **{f"Int{bits}": Int(bits) for bits in (8, 16, 32, 64)},
    **{f"UInt{bits}": Int(bits, signed=False) for bits in (8, 16, 32, 64)},
    **{f"Float{bits}": Float(bits) for bits in (32, 64)},
    **dict.fromkeys(("Utf8", "LargeUtf8", "Utf8View"), String()),
    **dict.fromkeys(("Binary", "LargeBinary", "BinaryView"), Binary()),
    "Date32": Date(),
    **{name: type_ for type_, name in DATAFUSION_TYPES.items()},
}


def arrow_named(name: str) -> LogicalType | None:
    """Return the type with this name in DataFusion's `arrow_cast`; None if its values differ."""
    if match := _ARROW_DECIMAL.fullmatch(name):
        precision, scale = int(match[1]), int(match[2])
        return Decimal(precision, scale) if 1 <= precision <= 38 and scale <= precision else None
    return _ARROW.get(name)


_SHOWN_DECIMAL = re.compile(r"Decimal(?:32|64|128)\((\d+), (\d+)\)")
_SHOWN: Mapping[str, LogicalType] = {
    **{name: type_ for name, type_ in _ARROW.items() if "(" not in name},
    **dict.fromkeys(("Timestamp(ns)", "Timestamp(µs)"), Timestamp(utc=False)),
    **{
        f'Timestamp({unit}, "{name}")': Timestamp(utc=True)
        for unit in ("ns", "µs")
        for name in ("UTC", "+00:00")
    },
}


def arrow_shown(name: str) -> LogicalType | None:
    """Return the type with this name in DataFusion's plans; None if its values differ."""
    if match := _SHOWN_DECIMAL.fullmatch(name):
        return Decimal(int(match[1]), int(match[2]))
    return _SHOWN.get(name)


def column_type(node: Any, dialect: Dialect, column: str) -> LogicalType:
    """Return the type that a column is declared with, `enum('a', 'b')` included; ValueError."""
    if _kind(node) != "ENUM":
        return logical_type(node, dialect)
    if not all(isinstance(item, exp.Literal) and item.is_string for item in node.expressions):
        raise ValueError("write the labels of an enum as quoted texts, as in enum('a', 'b')")
    try:
        return enum_of([str(item.this) for item in node.expressions], column)
    except SchemaMismatch as error:
        raise ValueError(str(error)) from error


def _kind(node: Any) -> str:
    """Return the grammar's name of a type; it keeps `oid` and its like as plain text."""
    return node.this.upper() if isinstance(node.this, str) else str(node.this.name)


def logical_type(node: Any, dialect: Dialect) -> LogicalType:
    """Return the logical type of a type name; ValueError says why there is none."""
    kind = _kind(node)
    if kind == "USERDEFINED":
        kind = str(node.args.get("kind") or "").upper()
    if kind == "TIMESTAMP" and dialect.times.timestamp_is_instant:
        kind = "TIMESTAMPTZ"  # the grammar's type of `to_timestamp(x)` and `timestamp(x)`
    extra = {key for key, value in node.args.items() if value} - {"this", "kind", "expressions"}
    if kind == "JSONB" and dialect.json_operators:
        kind = "JSON"  # whose values compare as those of jsonb
    type_ = _NAMES.get(kind)
    if extra or (type_ is None and kind != "DECIMAL"):
        raise ValueError(f"the type {node.sql()} has no counterpart in Rowsieve")
    parameters = [_whole_number(item) for item in node.expressions]
    if type_ is None:
        return _decimal(parameters, dialect)
    if dialect.listed_only and isinstance(type_, Time | Timestamp) and parameters != [6]:
        raise ValueError(f"give the {kind.lower()} its digits, as in TIMESTAMP(6)")
    if parameters and not (isinstance(type_, Time | Timestamp) and parameters == [6]):
        raise ValueError(f"a {kind.lower()} with a length or precision is not supported")
    return type_


def _decimal(parameters: list[int], dialect: Dialect) -> LogicalType:
    if not parameters:
        if dialect.bare_decimal is None:
            raise ValueError("give a decimal its precision and scale, as in DECIMAL(10, 2)")
        return dialect.bare_decimal
    precision, scale = parameters[0], parameters[1] if len(parameters) > 1 else 0
    if not (1 <= precision <= 38 and 0 <= scale <= precision) or len(parameters) > 2:
        raise ValueError("a decimal has 1 to 38 digits, and its scale is at most that")
    return Decimal(precision, scale)


def _whole_number(node: Any) -> int:
    value = node.this if isinstance(node, exp.DataTypeParam) else node
    if not (isinstance(value, exp.Literal) and not value.is_string and value.name.isdecimal()):
        raise ValueError("a type's parameters are whole numbers")
    return int(value.name)
