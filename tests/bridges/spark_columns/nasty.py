"""Rows of awkward values, in Spark and here: the judge of what a column means."""

from __future__ import annotations

import datetime
import decimal
import math
import struct
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.ir import Column, InList, Predicate, ValueSet
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_type, schema_of
from rowsieve.types.logical import is_nested
from rowsieve.types.schema import Schema

D = decimal.Decimal
UTC = datetime.UTC
NEGATIVE_NAN: float = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]
MOMENTS = [
    datetime.datetime(2024, 3, 31, 1, 59, 59, 999_999),  # around a change of clocks in Europe
    datetime.datetime(2024, 3, 31, 2, 30),
    datetime.datetime(2024, 10, 27, 2, 30, 0, 1),
    datetime.datetime(2024, 2, 29),
    datetime.datetime(1969, 12, 31, 23, 59, 59, 500_000),
    datetime.datetime(1582, 10, 10, 12),  # a day that the Julian calendar lacks
    datetime.datetime(1, 1, 1),
    datetime.datetime(9999, 12, 31, 23, 59, 59),
]
CELLS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "b": (pa.bool_(), [True, False]),
    "i8": (pa.int8(), [0, 1, -1, 127, -128]),
    "i16": (pa.int16(), [0, 2, -2, 32_767, -32_768]),
    "i": (pa.int32(), [0, 1, -7, 12, 2**31 - 1, -(2**31), 2]),
    "k": (pa.int64(), [0, 2**53 + 1, -(2**63), 2**63 - 1, 1, 12, -25]),
    "u8": (pa.uint8(), [0, 1, 200, 255]),
    "u64": (pa.uint64(), [0, 1, 2**63, 2**64 - 1]),
    "small": (pa.int32(), [0, 1, -3, 7, 100]),
    "whole": (pa.float64(), [0.0, -0.0, 1.5, -2.5, 2.5, 7.0, -1e15]),
    "f": (
        pa.float64(),
        [0.0, -0.0, 1.5, math.nan, NEGATIVE_NAN, math.inf, -math.inf, 2.5, -0.5, 1e300, 5e-324],
    ),
    "g": (pa.float32(), [0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 0.1, -2.5]),
    "d": (pa.decimal128(8, 2), [D("0.00"), D("1.50"), D("-999999.99"), D("2.25"), D("-2.25")]),
    "w": (
        pa.decimal128(38, 10),
        [
            *(D(0), D("1.5"), D(f"{10**28 - 1}.9999999999"), D("-1e-10")),
            D("-1234567890123456789012345678.1234567891"),
        ],
    ),
    "s": (
        pa.string(),
        [
            *("", "a", "A", "ab", "AB", "a%", "a_b", "a\\b", " a ", "b\na", "é", "É", "\u0130"),
            *(
                "ß",
                "SS",
                "ss",
                "\ufb01",
                "FI",
                "K",
                "\u017f",
                "ΑΣ",
                "ας",
                "🦀",
                "\ue000",
                "\ud7ff",
                "x",
            ),
            *("i", "I", "i\u0307", "k", "S", "s", "12", "1e3"),
        ],
    ),
    "y": (pa.binary(), [b"", b"a", b"\xff", b"\x00"]),
    "day": (pa.date32(), [at.date() for at in MOMENTS]),
    "n": (pa.timestamp("us"), MOMENTS),
    "ts": (pa.timestamp("us", "UTC"), [at.replace(tzinfo=UTC) for at in MOMENTS]),
    "st": (
        pa.struct([("x", pa.int32()), ("y", pa.string())]),
        [{"x": 1, "y": "a"}, {"x": None, "y": ""}, {"x": -1, "y": None}],
    ),
    "l": (pa.list_(pa.int32()), [[], [1, 2], [None, 3], [7]]),
    "m": (pa.map_(pa.string(), pa.int32()), [[], [("a", 1)], [("b", 2), ("a", None)]]),
}
NOW_US = time.time_ns() // 1000
_MOST = max(len(cells) for _, cells in CELLS.values())
BATCH = pa.record_batch(
    {
        # each column repeats at its own length, with NULL as one more value
        name: pa.array(([*cells, None] * _MOST)[: _MOST + 1], type_)
        for name, (type_, cells) in CELLS.items()
    }
)
SCHEMA: Schema = schema_of(BATCH.schema)[0]

FLAT = [field for field in SCHEMA if not is_nested(field.type)]


def every_other(name: str, least: int, *, null: bool) -> InList:
    """A list of `least` values or more: every other value of a column, again and again."""
    type_ = SCHEMA.field(name).type
    cells = BATCH.column(name)
    found = cells.take(pa.array(range(0, len(cells), 2))).drop_null()
    array = pa.concat_arrays([found] * (least // len(found) + 1))
    array = pa.concat_arrays([array, pa.nulls(1, array.type)]) if null else array
    return InList(Column(name), ValueSet(array.cast(arrow_type(type_)), type_))


def in_spark(spark: Any, batch: pa.RecordBatch = BATCH, schema: Schema = SCHEMA) -> Any:
    """The rows as Spark holds them, computed by compiled code in every query."""
    return in_driver(spark, batch, schema).coalesce(1)


def in_driver(spark: Any, batch: pa.RecordBatch = BATCH, schema: Schema = SCHEMA) -> Any:
    """The same, where the optimizer already computes what is selected: nothing is compiled."""
    from rowsieve.bridges.spark_columns.types import spark_schema
    from rowsieve.providers.spark.row_types import arrow_schema_of, to_spark

    types = spark_schema(schema)  # else a wall clock would become an instant
    held = to_spark(batch, schema, arrow_schema_of(types))
    return spark.createDataFrame(pa.Table.from_batches([held]), types)


def theirs(
    frame: Any, columns: Sequence[Any], batch: pa.RecordBatch = BATCH, functions: Any = None
) -> list[list[int]]:
    """The numbers of the rows on which each column is TRUE in Spark.

    `functions` are those that the columns were made by, where they are not classic ones.
    """
    from pyspark.sql import functions as classic

    f = functions or classic
    chosen = [
        f.coalesce(column, f.lit(col=False)).alias(f"c{n}") for n, column in enumerate(columns)
    ]
    found: pa.Table = frame.select(*chosen).toArrow()
    return [np.flatnonzero(column.to_numpy()).tolist() for column in found.columns]


def ours(
    predicate: Predicate,
    batch: pa.RecordBatch = BATCH,
    schema: Schema = SCHEMA,
    semantics: Semantics = Semantics.SPARK,
) -> list[int] | None:
    """The numbers of the rows that our evaluator keeps; None where it fails."""
    outcome = evaluate(bind(predicate, schema, semantics, now_us=NOW_US), batch)
    if outcome.failed.any():
        return None
    return [int(row) for row in np.flatnonzero(outcome.true)]
