"""The codec `json`: a row is a JSON object of its columns, on one line.

Bytes are hex digits, decimals text, dates and times their stored integers; numbers that JSON lacks
are the texts NaN, Infinity and -Infinity.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.encodings.message_pack import batch_of
from rowsieve.encodings.number_bytes import NotPlain
from rowsieve.encodings.plain_arrays import (
    Form,
    array_of,
    from_plain,
    plain_type,
    to_plain,
    values_of,
)

VERSION: Final = 1

_NEWLINE: Final = 10
_TEXTS: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_encoder: Final = msgspec.json.Encoder()


def encode(batch: pa.RecordBatch) -> pa.Array:
    """Encode each row."""
    if not batch.num_columns:
        return pa.array([b"{}"] * batch.num_rows, pa.binary())
    columns = []
    for column in batch.columns:
        plain = to_plain(column, Form.TEXT)
        values = values_of(plain)
        columns.append(list(map(_as_json, values)) if _has_gaps(plain) else values)
    rows = list(map(_row_of(tuple(batch.schema.names)), *columns))
    lines = _encoder.encode_lines(rows)
    ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == _NEWLINE)
    offsets = np.zeros(len(ends) + 1, np.int64)
    offsets[1:] = ends + 1
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(lines)]
    return pc.binary_slice(
        pa.Array.from_buffers(pa.large_binary(), len(ends), buffers).cast(pa.binary()), 0, -1
    )


def decode(rows: pa.Array, schema: pa.Schema) -> pa.RecordBatch:
    """Decode each row."""
    if pc.any(pc.match_substring(rows, "\n"), min_count=0).as_py():
        raise NotPlain("a row has more than one line")
    joined = b"\n".join(rows.to_pylist())
    row = _row_of(tuple(schema.names))
    try:
        values = msgspec.json.Decoder(row).decode_lines(joined)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise NotPlain(str(error)) from error
    columns = list(zip(*map(msgspec.structs.astuple, values), strict=True))
    if len(values) != len(rows):
        raise NotPlain(f"{len(rows)} rows have {len(values)} objects")
    arrays = [
        from_plain(_array(columns[place] if values else (), field.type), field.type, Form.TEXT)
        for place, field in enumerate(schema)
    ]
    return batch_of(arrays, schema, len(rows))


@lru_cache(64)
def _row_of(names: tuple[str, ...]) -> Any:
    """A class of rows with these fields."""
    fields = [(f"c{place}", Any) for place in range(len(names))]
    renamed = {field: name for (field, _), name in zip(fields, names, strict=True)}
    row = msgspec.defstruct("Row", fields, rename=renamed, forbid_unknown_fields=True, gc=False)
    msgspec.json.Decoder(row)  # describes the class before other threads have it
    return row


def _array(values: Any, type_: pa.DataType) -> pa.Array:
    target = plain_type(type_, Form.TEXT)
    try:
        return array_of(values, target)
    except NotPlain:
        if not _has_floats(target):
            raise
        return array_of([_from_json(value, target) for value in values], target)


def _has_floats(type_: pa.DataType) -> bool:
    if pa.types.is_floating(type_):
        return True
    return any(_has_floats(type_.field(i).type) for i in range(type_.num_fields))


def _has_gaps(array: pa.Array) -> bool:
    """Return whether a plain array has numbers that JSON lacks, at any depth."""
    type_ = array.type
    if pa.types.is_floating(type_):
        return not pc.all(pc.is_finite(array), min_count=0).as_py()
    if pa.types.is_list(type_):
        return _has_gaps(array.flatten())
    return any(_has_gaps(array.field(i)) for i in range(type_.num_fields))


def _as_json(value: Any) -> Any:
    """The value with texts for numbers that JSON lacks."""
    if isinstance(value, float):
        if value - value == 0:
            return value
        return "Infinity" if value > 0 else "-Infinity" if value < 0 else "NaN"
    if isinstance(value, list):
        return list(map(_as_json, value))
    if isinstance(value, dict):
        return {name: _as_json(each) for name, each in value.items()}
    return value


def _from_json(value: Any, type_: pa.DataType) -> Any:
    """The value with numbers for their texts, where the type is a float."""
    if value is None:
        return None
    if pa.types.is_floating(type_):
        if isinstance(value, str):
            if value not in _TEXTS:
                raise NotPlain(f"{value!r} is not a number")
            return _TEXTS[value]
        return value
    if pa.types.is_list(type_) and isinstance(value, list):
        return [_from_json(each, type_.value_type) for each in value]
    if pa.types.is_struct(type_) and isinstance(value, dict):
        return {field.name: _from_json(value.get(field.name), field.type) for field in type_}
    return value
