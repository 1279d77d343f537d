from __future__ import annotations

import datetime
import decimal
import uuid
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import types as spark_types

from rowsieve.bridges.spark_columns.types import spark_schema
from rowsieve.errors import SchemaMismatch
from rowsieve.providers.spark.row_types import arrow_schema_of, from_spark, to_spark
from rowsieve.types.conform import conform
from rowsieve.types.encodings import arrow_schema, arrow_type, schema_of
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
from rowsieve.types.schema import Schema

pytestmark = pytest.mark.spark

IDS = [uuid.UUID(int=n).bytes for n in (0, 1, 2**64 - 1, 2**128 - 1)]
NESTED = Struct(
    (
        Field(90, "id", Uuid(), nullable=False),
        Field(91, "ids", List(Field(92, "item", Uuid()))),
        Field(
            93,
            "counts",
            Map(Field(94, "key", String(), nullable=False), Field(95, "v", Int(64, signed=False))),
        ),
    )
)
CASES: list[tuple[LogicalType, str, list[Any]]] = [
    (Bool(), "boolean", [True, False, None]),
    (Int(8), "tinyint", [-128, 127, None]),
    (Int(16), "smallint", [-(2**15), 2**15 - 1, None]),
    (Int(32), "int", [-(2**31), 2**31 - 1, None]),
    (Int(64), "bigint", [-(2**63), 2**63 - 1, None]),
    (Int(8, signed=False), "smallint", [0, 255, None]),
    (Int(16, signed=False), "int", [0, 2**16 - 1, None]),
    (Int(32, signed=False), "bigint", [0, 2**32 - 1, None]),
    (Int(64, signed=False), "decimal(20,0)", [0, 2**64 - 1, None]),
    (Float(32), "float", [-0.0, float("inf"), None]),
    (Float(64), "double", [-0.0, 5e-324, None]),
    (Decimal(38, 10), "decimal(38,10)", [decimal.Decimal("1.5"), None]),
    (Decimal(5, 2), "decimal(5,2)", [decimal.Decimal("-999.99"), None]),
    (String(), "string", ["", "é", "\U0010ffff", None]),
    (Json(), "string", ['{"a": 1, "a": 2}', None]),
    (Binary(), "binary", [b"", b"\x00\xff", None]),
    (Date(), "date", [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]),
    (Time(), "time(6)", [datetime.time(0), datetime.time(23, 59, 59, 999999), None]),
    (Timestamp(), "timestamp_ntz", [datetime.datetime(1969, 12, 31, 23, 59, 59, 1), None]),
    (
        Timestamp(utc=True),
        "timestamp",
        [datetime.datetime(2013, 3, 10, 7, 30, tzinfo=datetime.UTC), None],
    ),
    (Uuid(), "string", [*IDS, None]),
    (List(Field(80, "item", Int(16, signed=False))), "array<int>", [[1, None], [], None]),
    (List(Field(80, "item", Uuid())), "array<string>", [[IDS[1], None], [], None, [IDS[3]]]),
    (
        Struct((Field(81, "a", Int(32)), Field(82, "b", Time()))),
        "struct<a:int,b:time(6)>",
        [{"a": 1, "b": datetime.time(1)}, {"a": None, "b": None}, None],
    ),
    (
        Map(Field(83, "key", String(), nullable=False), Field(84, "value", Float(32))),
        "map<string,float>",
        [[("a", 1.5), ("b", None)], [], None],
    ),
    (
        NESTED,
        "struct<id:string,ids:array<string>,counts:map<string,decimal(20,0)>>",
        [
            {"id": IDS[0], "ids": [IDS[1], None], "counts": [("x", 2**64 - 1), ("y", None)]},
            {"id": IDS[2], "ids": None, "counts": None},
            None,
            {"id": IDS[3], "ids": [], "counts": []},
        ],
    ),
]


def named(type_: LogicalType) -> Schema:
    return Schema(0, (Field(1, "x", type_),))


@pytest.mark.parametrize(("type_", "name", "values"), CASES, ids=lambda case: str(case)[:40])
def test_values_survive_the_way_to_spark_and_back(
    type_: LogicalType, name: str, values: list[Any]
) -> None:
    schema = named(type_)
    sent = spark_schema(schema)
    target = arrow_schema_of(sent)
    assert sent.fields[0].dataType.simpleString() == name
    whole = pa.array(values, arrow_type(type_))
    for column in (whole, whole[1:], whole[:0], pa.nulls(2, arrow_type(type_))):
        batch = pa.RecordBatch.from_arrays([column], schema=arrow_schema(schema))
        there = to_spark(batch, schema, target)
        assert there.schema.equals(target, check_metadata=True)
        there.validate(full=True)
        back = conform(from_spark(pa.Table.from_batches([there]), schema.fields), schema)
        assert back.column("x").combine_chunks().to_pylist() == column.to_pylist()
        back.validate(full=True)


def test_a_uuid_is_text_in_the_usual_form() -> None:
    schema = named(Uuid())
    value = uuid.UUID("123e4567-e89b-12d3-a456-426614174000")
    batch = pa.RecordBatch.from_arrays(
        [pa.array([value.bytes], pa.binary(16))], schema=arrow_schema(schema)
    )
    there = to_spark(batch, schema, arrow_schema_of(spark_schema(schema)))
    assert there.column(0).to_pylist() == [str(value)]


def test_capital_digits_are_the_same_uuid() -> None:
    value = uuid.UUID("123e4567-e89b-12d3-a456-42661417abcd")
    rows = from_spark(pa.table({"x": [str(value).upper()]}), named(Uuid()).fields)
    assert rows.column("x").to_pylist() == [value.bytes]


@pytest.mark.parametrize("text", ["", "123e4567", "123e4567e89b12d3a456426614174000", "é" * 18])
def test_invalid_uuid_text_is_rejected(text: str) -> None:
    with pytest.raises(SchemaMismatch, match="'x' is uuid in the table"):
        from_spark(pa.table({"x": [text]}), named(Uuid()).fields)


def test_negative_numbers_are_rejected_in_unsigned_columns() -> None:
    column = pa.array([decimal.Decimal(-1)], pa.decimal128(20, 0))
    with pytest.raises(SchemaMismatch, match="does not fit uint64"):
        from_spark(pa.table({"x": column}), named(Int(64, signed=False)).fields)


def test_not_null_columns_are_not_nullable_in_spark() -> None:
    schema, _ = schema_of(pa.schema([("id", pa.int64()), ("v", pa.string())]), not_null=["id"])
    assert [field.nullable for field in spark_schema(schema)] == [False, True]
    assert isinstance(spark_schema(schema)["v"].dataType, spark_types.StringType)
