"""Data in whatever Arrow layout an engine hands it over."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidData, InvalidInput, SchemaMismatch
from tests.small_tables import NoStream, fresh_uri, keyed

SCHEMA = pa.schema([pa.field("k", pa.string(), nullable=False), ("v", pa.int64())])


def changes(text: pa.DataType, op: pa.DataType, sequence: pa.Array) -> pa.Table:
    return pa.table(
        {
            "k": pa.array(["b", "a", "a"]).cast(text),
            "v": [1, 2, 3],
            "op": pa.array(["u", "d", "i"]).cast(op),
            "lsn": sequence,
        }
    )


@pytest.mark.parametrize("text", [pa.string_view(), pa.large_string(), pa.string()], ids=str)
@pytest.mark.parametrize(
    "op", [pa.string_view(), pa.dictionary(pa.int8(), pa.string()), pa.string()], ids=str
)
@pytest.mark.parametrize(
    "sequence",
    [
        pa.array([1, 2, 3]),
        pa.array(["a", "b", "c"]).cast(pa.string_view()),
        pa.array(["a", "b", "c"]).dictionary_encode(),
    ],
    ids=lambda array: str(array.type),
)
def test_changes_come_in_any_layout_of_text(
    text: pa.DataType, op: pa.DataType, sequence: pa.Array
) -> None:
    table = rs.create_table(f"memory:///ingest/{text}{op}{sequence.type}", SCHEMA, key=["k"])
    table.apply_changes(changes(text, op, sequence), op="op", sequence="lsn")
    found = table.scan(order_by_key=True).to_arrow().to_pylist()
    assert found == [{"k": "a", "v": 3}, {"k": "b", "v": 1}]


def test_a_null_inside_a_dictionary_is_a_null() -> None:
    table = rs.create_table("memory:///ingest/null", SCHEMA, key=["k"])
    op = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["u", None]))
    data = pa.table({"k": ["a", "b", "c"], "v": [1, 2, 3], "op": op, "lsn": [1, 2, 3]})
    with pytest.raises(InvalidData, match="NULL in 1 rows"):
        table.apply_changes(data, op="op", sequence="lsn")


def test_a_sequence_without_an_order_is_refused() -> None:
    table = rs.create_table("memory:///ingest/order", SCHEMA, key=["k"])
    sequence = pa.array([(1, 2, 3)] * 3, pa.month_day_nano_interval())
    with pytest.raises(SchemaMismatch, match="cannot be sorted"):
        table.apply_changes(changes(pa.string(), pa.string(), sequence), op="op", sequence="lsn")


@pytest.mark.parametrize("kind", [pa.Table, pa.RecordBatch, pl.DataFrame, pd.DataFrame])
def test_a_class_is_rejected_as_data(kind: Any) -> None:
    with pytest.raises(InvalidInput, match=f"not the class {kind.__name__}"):
        keyed().upsert(kind)


def test_data_whose_stream_is_none_is_refused() -> None:
    with pytest.raises(InvalidData, match="upsert: the NoStream could not be read"):
        keyed().upsert(NoStream())


@pytest.mark.parametrize(
    "type_",
    [pl.Object(), pl.Array(pl.Object, 2), pl.Struct({"a": pl.Array(pl.Object, 2)})],
    ids=str,
)
def test_objects_of_polars_are_named(type_: Any) -> None:
    with pytest.raises(InvalidData, match="upsert: column 'v' holds Python objects"):
        keyed().upsert(pl.DataFrame(schema={"k": pl.Int64, "v": type_}))


def test_an_object_of_polars_is_not_stored_as_its_address() -> None:
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), ("b", pa.binary())])
    table = rs.create_table(fresh_uri(), schema, key=["k"])
    frame = pl.DataFrame({"k": [1], "b": pl.Series([object()], dtype=pl.Object)})
    with pytest.raises(InvalidData, match="column 'b' holds Python objects"):
        table.upsert(frame)
    assert len(table) == 0
