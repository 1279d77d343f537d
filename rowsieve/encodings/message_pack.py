"""The codec `msgpack`: a row is a MessagePack array of its values, in the order of the columns."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pyarrow as pa

from rowsieve.encodings.plain_arrays import (
    NotPlain,
    array_of,
    from_plain,
    plain_type,
    to_plain,
    values_of,
)

VERSION: Final = 1

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(tuple[Any, ...])


def encode(batch: pa.RecordBatch) -> pa.Array:
    """Encode each row."""
    columns = [values_of(to_plain(column, text=False)) for column in batch.columns]
    rows = zip(*columns, strict=True) if columns else ((),) * batch.num_rows
    return pa.array(list(map(_encoder.encode, rows)), pa.binary())


def decode(rows: pa.Array, schema: pa.Schema) -> pa.RecordBatch:
    """Decode each row."""
    try:
        values = list(map(_decoder.decode, rows.to_numpy(zero_copy_only=False)))
        columns = list(zip(*values, strict=True))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise NotPlain(str(error)) from error
    except ValueError as error:
        raise NotPlain(f"rows differ in their number of values: {error}") from error
    if len(columns) != len(schema) and len(rows):
        raise NotPlain(f"a row has {len(columns)} values for {len(schema)} columns")
    arrays = [
        from_plain(
            array_of(columns[place] if columns else [], plain_type(field.type, text=False)),
            field.type,
            text=False,
        )
        for place, field in enumerate(schema)
    ]
    return batch_of(arrays, schema, len(rows))


def batch_of(arrays: list[pa.Array], schema: pa.Schema, row_count: int) -> pa.RecordBatch:
    """One batch, which has `row_count` rows even without columns."""
    if arrays:
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    return pa.RecordBatch.from_arrays([pa.nulls(row_count)], ["row"]).select([])
