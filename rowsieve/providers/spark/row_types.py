"""Converts our types to Spark's, and rows in both directions.

| ours | Spark |
|---|---|
| uint8, uint16, uint32, uint64 | smallint, int, bigint, decimal(20,0) |
| uuid, json | string; a UUID in the usual form, in lower case |
| timestamp, timestamptz | timestamp_ntz, timestamp |
| time | time(6) |
| interval | binary |
| numeric | struct of approx and exact |
| all others | the type of the same name |

Soundness: conversion never changes a value, only its representation; a value from Spark that does
not fit is SchemaMismatch. Spark checks only the first batch of a task, so every batch is cast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_schema

from rowsieve.changes.data.spark_data import refuse_spark_types
from rowsieve.errors import SchemaMismatch, UnsupportedOperation
from rowsieve.types.logical import (
    Field,
    Int,
    List,
    LogicalType,
    Map,
    Nanos,
    Struct,
    Uuid,
    type_name,
)
from rowsieve.types.schema import Schema

_UINT64: Final = Int(64, signed=False)
_HEX: Final = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
UUID_FORM: Final = r"\A[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\z"  # in RE2 and Java
_DIGITS: Final = np.array([i for i in range(36) if i not in (8, 13, 18, 23)])  # the rest: hyphens
_NIBBLES: Final = np.array(
    [int(chr(c), 16) if chr(c) in "0123456789abcdefABCDEF" else 0 for c in range(256)],
    dtype=np.uint8,
)


def arrow_schema_of(schema: spark.StructType) -> pa.Schema:
    """The exact Arrow schema of the batches that Spark passes and accepts.

    SchemaMismatch for a collated column, and for a type that Spark cannot pass.
    """
    refuse_spark_types(schema, "Spark")
    return to_arrow_schema(schema, timezone="UTC")


def to_spark(rows: pa.RecordBatch, schema: Schema, target: pa.Schema) -> pa.RecordBatch:
    """Convert a batch from our storage types, with the columns of `schema`, to Spark's types."""
    columns = [
        _sent(values, field.type, wanted.type)
        for values, field, wanted in zip(rows.columns, schema, target, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=target)


def from_spark(rows: pa.Table, fields: Sequence[Field]) -> pa.Table:
    """Prepare rows from Spark for `conform`: text to UUIDs, decimals to uint64."""
    by_name = {field.name.lower(): field for field in fields}
    for i, name in enumerate(rows.column_names):
        field = by_name.get(name.lower())
        if field is None or not _differs(field.type):
            continue
        column = rows.column(i)
        chunks = [
            _received(chunk, field, field.name)
            for chunk in column.chunks or [pa.array([], column.type)]
        ]
        rows = rows.set_column(i, pa.field(name, chunks[0].type), pa.chunked_array(chunks))
    return rows


def _differs(type_: LogicalType) -> bool:
    """Return whether Arrow's casts cannot convert between our type and Spark's."""
    match type_:
        case List(element=element):
            return _differs(element.type)
        case Struct(fields=fields):
            return any(_differs(field.type) for field in fields)
        case Map(key=key, value=value):
            return _differs(key.type) or _differs(value.type)
        case _:
            return isinstance(type_, Uuid) or type_ == _UINT64


def _sent(values: pa.Array, type_: LogicalType, target: pa.DataType) -> pa.Array:
    """Convert to `target`; Arrow's casts fail if a NULL parent has a non-nullable member."""
    match type_:
        case List(element=element):
            values, mask = _without_offset(values)
            items = _sent(values.values, element.type, target.value_type)
            return pa.ListArray.from_arrays(values.offsets, items, type=target, mask=mask)
        case Struct(fields=fields):
            values, mask = _without_offset(values)
            members = [
                _sent(values.field(i), field.type, target.field(i).type)
                for i, field in enumerate(fields)
            ]
            return pa.StructArray.from_arrays(members, fields=list(target), mask=mask)
        case Map(key=key, value=value):
            values, mask = _without_offset(values)
            keys = _sent(values.keys, key.type, target.key_type)
            items = _sent(values.items, value.type, target.item_type)
            return pa.MapArray.from_arrays(values.offsets, keys, items, type=target, mask=mask)
        case Uuid():
            return _uuid_text(values)
        case Nanos():
            return _microseconds(values, type_, target)
        case _:
            return values if values.type == target else values.cast(target)


def _microseconds(values: pa.Array, type_: Nanos, target: pa.DataType) -> pa.Array:
    """Convert nanoseconds; UnsupportedOperation for a value between two microseconds."""
    try:
        return values.cast(target)
    except pa.ArrowInvalid as error:
        raise UnsupportedOperation(
            f"a column of the type {type_name(type_)} has nanoseconds, and Spark's timestamps have "
            f"microseconds: {error}. Read the other columns, or read it in another engine"
        ) from error


def _received(values: pa.Array, field: Field, path: str) -> pa.Array:
    """Convert leaves that `conform` would refuse; it still refuses invalid ones."""
    type_ = field.type
    kinds = {List: pa.types.is_list, Struct: pa.types.is_struct, Map: pa.types.is_map}
    nested = kinds.get(type(type_))
    if not _differs(type_) or (nested and not nested(values.type)):
        return values
    match type_:
        case List(element=element):
            values, mask = _without_offset(values)
            items = _received(values.values, element, f"{path}.{element.name}")
            return pa.ListArray.from_arrays(values.offsets, items, mask=mask)
        case Struct(fields=fields):
            values, mask = _without_offset(values)
            known = {member.name.lower(): member for member in fields}
            members, arrow_fields = [], []
            for i, old in enumerate(values.type):
                member = values.field(i)
                if (wanted := known.get(old.name.lower())) is not None:
                    member = _received(member, wanted, f"{path}.{old.name}")
                members.append(member)
                arrow_fields.append(pa.field(old.name, member.type, old.nullable))
            return pa.StructArray.from_arrays(members, fields=arrow_fields, mask=mask)
        case Map(key=key, value=value):
            values, mask = _without_offset(values)
            keys = _received(values.keys, key, f"{path}.{key.name}")
            items = _received(values.items, value, f"{path}.{value.name}")
            return pa.MapArray.from_arrays(values.offsets, keys, items, mask=mask)
        case _:
            return _leaf(values, type_, path)


def _without_offset(values: pa.Array) -> tuple[pa.Array, pa.Array | None]:
    """The values without an offset, which members would not share; and the positions of NULLs."""
    if values.offset:
        values = values.take(pa.array(np.arange(len(values))))
    return values, values.is_null() if values.null_count else None


def _leaf(values: pa.Array, type_: LogicalType, path: str) -> pa.Array:
    if isinstance(type_, Uuid) and pa.types.is_string(values.type):
        return _uuid_bytes(values, path)
    if type_ == _UINT64 and pa.types.is_decimal(values.type):
        try:
            return values.cast(pa.uint64())
        except pa.ArrowInvalid as error:
            raise SchemaMismatch(
                f"column {path!r}: a value does not fit uint64 without loss: {error}"
            ) from error
    return values


def _uuid_text(values: pa.Array) -> pa.Array:
    count = len(values)
    raw = np.frombuffer(values.buffers()[1] or b"", dtype=np.uint8)
    raw = raw[values.offset * 16 : (values.offset + count) * 16].reshape(count, 16)
    text = np.full((count, 36), ord("-"), dtype=np.uint8)
    text[:, _DIGITS[0::2]] = _HEX[raw >> 4]
    text[:, _DIGITS[1::2]] = _HEX[raw & 15]
    offsets = np.arange(0, (count + 1) * 36, 36, dtype=np.int32)
    result = pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))
    return pc.if_else(values.is_valid(), result, None) if values.null_count else result


def _uuid_bytes(values: pa.Array, path: str) -> pa.Array:
    good = pc.match_substring_regex(values, UUID_FORM)
    if not pc.all(good, min_count=0).as_py():
        wrong = values.filter(pc.invert(good))[0]
        raise SchemaMismatch(
            f"column {path!r} is uuid in the table, but {wrong.as_py()!r} is not a UUID, such as "
            "123e4567-e89b-12d3-a456-426614174000"
        )
    count = len(values)
    plain = pa.concat_arrays([pc.fill_null(values, "0" * 36), pa.array([], pa.string())])
    text = np.frombuffer(plain.buffers()[2] or b"", dtype=np.uint8)
    start = plain.offset * 36
    digits = _NIBBLES[text[start : start + count * 36].reshape(count, 36)[:, _DIGITS]]
    raw = np.ascontiguousarray((digits[:, 0::2] << 4) | digits[:, 1::2])
    result = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), count, [None, pa.py_buffer(raw)])
    return pc.if_else(values.is_valid(), result, None) if values.null_count else result
