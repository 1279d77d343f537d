"""Rows of every type, and codecs for tests: one that is right, and ones with a fault."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

import rowsieve as rs
from rowsieve import Table
from rowsieve.encodings import message_pack

INNER = pa.struct([("a", pa.int64()), ("f", pa.float64()), ("b", pa.binary())])
SEEN = pa.field("json", pa.string(), metadata={"ARROW:extension:name": "rowsieve.json.1"})
UUID = pa.field("uuid", pa.binary(16), metadata={"ARROW:extension:name": "rowsieve.uuid.1"})
SPAN = pa.field("span", pa.binary(16), metadata={"ARROW:extension:name": "rowsieve.interval.1"})
NUMBER = pa.field("number", pa.string(), metadata={"ARROW:extension:name": "rowsieve.numeric.1"})
NANOS = pa.field(
    "nanos", pa.timestamp("ns"), metadata={"ARROW:extension:name": "rowsieve.timestamp_ns.1"}
)
COLUMNS: dict[pa.Field, list[Any]] = {
    pa.field("id", pa.int64(), nullable=False): [4, 3, 2, 1],
    pa.field("i", pa.int64()): [1, None, -(2**63), 2**63 - 1],
    pa.field("u", pa.uint64()): [0, 2**64 - 1, None, 5],
    pa.field("f", pa.float64()): [float("nan"), -0.0, float("inf"), None],
    pa.field("f32", pa.float32()): [0.1, None, 1e-45, -3.4e38],
    pa.field("s", pa.string()): ['a\n"b', "ü\u2028", None, ""],
    pa.field("y", pa.binary()): [b"\n\x00", None, b"", b"\xff"],
    pa.field("d", pa.date32()): [0, -700_000, None, 1_000_000],
    pa.field("t", pa.timestamp("us", "UTC")): [0, -(10**15), None, 2**62],
    NANOS: [0, -(10**15), None, 2**62],
    pa.field("tm", pa.time64("us")): [0, 1, None, 86_399_999_999],
    pa.field("dec", pa.decimal128(38, 10)): [
        Decimal("0.0000000001"), None, Decimal("-12345678901234567890.5"), Decimal(0),
    ],
    pa.field("bo", pa.bool_()): [True, None, False, True],
    SEEN: ['{"k": [1, null]}', None, "null", '"x"'],
    UUID: [b"0" * 16, None, b"\x00" * 16, b"\xff" * 16],
    SPAN: [b"\x80\x00\x00\x01" * 4, None, b"\x80" + b"\x00" * 15, b"\xff" * 16],
    NUMBER: ["1e400", None, "-0.10", "NaN"],
    pa.field("l", pa.list_(pa.int32())): [[1, None], None, [], [3]],
    pa.field("st", INNER): [
        {"a": 1, "f": float("nan"), "b": b"x"}, None, {"a": None, "f": 1.5, "b": None},
        {"a": 3, "f": float("-inf"), "b": b""},
    ],
    pa.field("m", pa.map_(pa.string(), pa.float64())): [
        [("k", 1.5)], None, [], [("z", None), ("y", float("inf"))],
    ],
    pa.field("ls", pa.list_(INNER)): [
        [{"a": 1, "f": 2.0, "b": b"x"}, None], None, [], [{"a": None, "f": None, "b": b"\x01"}],
    ],
}  # fmt: skip


def every_type() -> pa.Table:
    """Four rows with a column of each type, NULLs and extreme values among them."""
    arrays = [
        pa.array(values, pa.int32()).cast(field.type)
        if pa.types.is_date(field.type)
        else pa.array(values, pa.int64()).cast(field.type)
        if pa.types.is_timestamp(field.type) or pa.types.is_time(field.type)
        else pa.array(values, field.type)
        for field, values in COLUMNS.items()
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(list(COLUMNS)))


def rows_of(table: pa.Table) -> dict[int, str]:
    """The rows by id, as bytes of MessagePack: equal for equal values of every type."""
    if not table.num_rows:
        return {}
    rows = table.combine_chunks().to_batches()[0]
    encoded = message_pack.encode(rows).to_pylist()
    return {each: repr(row) for each, row in zip(rows["id"].to_pylist(), encoded, strict=True)}


def create(folder: Path, rows: pa.Table, key: bool, **properties: str) -> Table:
    """A table of these rows."""
    named = {"row_codec": "msgpack", **properties}
    return rs.create_table(folder, rows, key=["id"] if key else None, properties=named)


def lying_in(places: dict[int, Any], column: str) -> Callable[[pa.RecordBatch], pa.Array]:
    """An encoder that encodes other values of a column in the rows with these values of `n`."""

    def encode(batch: pa.RecordBatch) -> pa.Array:
        if column not in batch.schema.names:
            return message_pack.encode(batch)
        values = [
            places.get(n, value)
            for n, value in zip(batch["n"].to_pylist(), batch[column].to_pylist(), strict=True)
        ]
        index = batch.schema.get_field_index(column)
        field = batch.schema.field(index)
        return message_pack.encode(batch.set_column(index, field, pa.array(values, field.type)))

    return encode
