"""What Debezium and Kafka Connect declare of a column beyond its JSON type.

The schema of an event names a semantic type for each field, such as `io.debezium.time.Date`. A row
of `SEMANTICS` says how its values are written. A name that is not here says nothing that matters:
the value is read as its JSON type and the table's column have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import msgspec
import pyarrow as pa


class WrittenValues(Enum):
    """How the values of a semantic type are written."""

    DAYS = "days"
    TIMESTAMP_MS = "timestamp ms"
    TIMESTAMP_US = "timestamp us"
    TIMESTAMP_NS = "timestamp ns"
    INSTANT_MS = "instant ms"
    TIME_MS = "time ms"
    TIME_US = "time us"
    TIME_NS = "time ns"
    ISO_UTC = "ISO text, Z for local"
    ZONED_TIMESTAMP = "ISO text with offset"
    ZONED_TIME = "ISO time with offset"
    DURATION_US = "microseconds"
    ISO_DURATION = "ISO duration"
    DECIMAL = "base64 of a scaled integer"
    VARIABLE_DECIMAL = "scale and base64"
    BYTES = "base64"
    BITS = "base64, little-endian"
    WKB = "struct with WKB"


SEMANTICS: Final[Mapping[str, WrittenValues]] = {
    "io.debezium.time.Date": WrittenValues.DAYS,
    "io.debezium.time.Timestamp": WrittenValues.TIMESTAMP_MS,
    "io.debezium.time.MicroTimestamp": WrittenValues.TIMESTAMP_US,
    "io.debezium.time.NanoTimestamp": WrittenValues.TIMESTAMP_NS,
    "io.debezium.time.Time": WrittenValues.TIME_MS,
    "io.debezium.time.MicroTime": WrittenValues.TIME_US,
    "io.debezium.time.NanoTime": WrittenValues.TIME_NS,
    "io.debezium.time.IsoDate": WrittenValues.ISO_UTC,
    "io.debezium.time.IsoTime": WrittenValues.ISO_UTC,
    "io.debezium.time.IsoTimestamp": WrittenValues.ISO_UTC,
    "io.debezium.time.ZonedTimestamp": WrittenValues.ZONED_TIMESTAMP,
    "io.debezium.time.ZonedTime": WrittenValues.ZONED_TIME,
    "io.debezium.time.MicroDuration": WrittenValues.DURATION_US,
    "io.debezium.time.Interval": WrittenValues.ISO_DURATION,
    "org.apache.kafka.connect.data.Date": WrittenValues.DAYS,
    "org.apache.kafka.connect.data.Time": WrittenValues.TIME_MS,
    "org.apache.kafka.connect.data.Timestamp": WrittenValues.INSTANT_MS,
    "org.apache.kafka.connect.data.Decimal": WrittenValues.DECIMAL,
    "io.debezium.data.VariableScaleDecimal": WrittenValues.VARIABLE_DECIMAL,
    "io.debezium.data.Bits": WrittenValues.BITS,
    "io.debezium.data.geometry.Point": WrittenValues.WKB,
    "io.debezium.data.geometry.Geometry": WrittenValues.WKB,
    "io.debezium.data.geometry.Geography": WrittenValues.WKB,
}


@dataclass(frozen=True, slots=True)
class Declared:
    """The type that an event's schema declares for a column; `scale` if it declares one."""

    written: WrittenValues
    scale: int | None = None


@dataclass(frozen=True, slots=True)
class DeclaredColumns:
    """The declared types of a table's columns by name; empty for events without a schema."""

    columns: Mapping[str, Declared] = field(default_factory=dict)
    texts: frozenset[str] = frozenset()  # columns declared as text


def declared_columns(schema: Any) -> DeclaredColumns:
    """Read the schema of an event; of an envelope, that of its row after the change.

    Anything that is not a schema of Kafka Connect declares nothing.
    """
    columns: dict[str, Declared] = {}
    texts: set[str] = set()
    for each in _row_fields(schema):
        name = each.get("field")
        if not isinstance(name, str):
            continue
        written = SEMANTICS.get(str(each.get("name")))
        if written is None and each.get("type") == "bytes":
            written = WrittenValues.BYTES
        if written is not None:
            columns[name] = Declared(written, _scale(each))
        elif each.get("type") == "string":
            texts.add(name)
    return DeclaredColumns(columns, frozenset(texts))


_PLAIN: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "float32": pa.float32(),
    "double": pa.float64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_LOCAL, _INSTANT = pa.timestamp("us"), pa.timestamp("us", "UTC")
_WRITTEN: Final[Mapping[WrittenValues, pa.DataType]] = {
    WrittenValues.DAYS: pa.date32(),
    WrittenValues.TIMESTAMP_MS: _LOCAL,
    WrittenValues.TIMESTAMP_US: _LOCAL,
    WrittenValues.TIMESTAMP_NS: pa.timestamp("ns"),
    WrittenValues.INSTANT_MS: _LOCAL,
    WrittenValues.TIME_MS: pa.time64("us"),
    WrittenValues.TIME_US: pa.time64("us"),
    WrittenValues.TIME_NS: pa.time64("us"),
    WrittenValues.ZONED_TIMESTAMP: _INSTANT,
    WrittenValues.BITS: pa.binary(),
}
_WIDEST: Final = 38  # digits
LARGEST_SCALE: Final = 100_000
"""Digits behind the point, or zeros before it, of decimals that events may have."""


def column_types(schema: Any) -> dict[str, pa.DataType]:
    """The types of new columns, as the schema of an event declares them; others are left out."""
    declared = declared_columns(schema)
    types: dict[str, pa.DataType] = {}
    for each in _row_fields(schema):
        name, semantic = str(each.get("field")), each.get("name")
        known = declared.columns.get(name)
        if known is None:
            type_ = _PLAIN.get(str(each.get("type")))
            if semantic == "io.debezium.data.Json":
                type_ = pa.json_()
        elif known.written is WrittenValues.DECIMAL and known.scale is not None:
            type_ = pa.decimal128(_precision(each), known.scale)
        else:
            type_ = (
                pa.binary() if known.written is WrittenValues.BYTES else _WRITTEN.get(known.written)
            )
        if type_ is not None:
            types[name] = type_
    return types


def _precision(declared: Mapping[str, Any]) -> int:
    parameters = declared.get("parameters")
    stated = parameters.get("connect.decimal.precision") if isinstance(parameters, Mapping) else 0
    digits = str(stated)
    count = int(digits) if digits.isascii() and digits.isdigit() else 0
    return count if 0 < count <= _WIDEST else _WIDEST


def parse_schema(text: bytes) -> DeclaredColumns:
    """Read the text of a schema; a truncated one was refused with its message."""
    return declared_columns(msgspec.json.decode(text)) if text else DeclaredColumns()


def _row_fields(schema: Any) -> Iterator[Mapping[str, Any]]:
    fields = _fields(schema)
    rows = [
        each for each in fields if each.get("field") == "after" and each.get("type") == "struct"
    ]
    yield from _fields(rows[0]) if rows else fields


def _fields(schema: Any) -> list[Mapping[str, Any]]:
    fields = schema.get("fields") if isinstance(schema, Mapping) else None
    return [each for each in fields if isinstance(each, Mapping)] if type(fields) is list else []


def _scale(declared: Mapping[str, Any]) -> int | None:
    parameters = declared.get("parameters")
    digits = str(parameters.get("scale") if isinstance(parameters, Mapping) else None)
    unsigned = digits.removeprefix("-")
    if not (unsigned.isascii() and unsigned.isdigit() and len(unsigned) <= len(str(LARGEST_SCALE))):
        return None
    return int(digits) if int(unsigned) <= LARGEST_SCALE else None
