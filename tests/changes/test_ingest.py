"""Data in whatever Arrow layout an engine hands it over."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidData, InvalidInput, KeyViolation, SchemaMismatch
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
        pa.array(["1", "2", "10"]).cast(pa.string_view()),
        pa.array(["1", "2", "10"]).dictionary_encode(),
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


ORDERS = [
    pytest.param(["10", "9"], id="digits"),
    pytest.param(["010", "9"], id="zeros before digits"),
    pytest.param(["1" + "0" * 40, "9" * 40], id="more digits than a type has"),
    pytest.param(["0/16B", "0/9A"], id="PostgreSQL"),
    pytest.param(["A/0", "9/FFFFFFFF"], id="PostgreSQL, beyond 4 GB"),
    pytest.param(["0/B", "0/a"], id="PostgreSQL, in two cases"),
    pytest.param(["0000002c:00000a30:0003", "0000002C:00000a2f:0009"], id="SQL Server"),
    pytest.param(["0x0000002C00000A300003", "0x0000002c00000a2f0009"], id="SQL Server, as binary"),
    pytest.param(["0x10", "0x9"], id="hexadecimal"),
    pytest.param(["mysql-bin.000003:154", "mysql-bin.000003:99"], id="MySQL, in a file"),
    pytest.param(["binlog.000010:4", "binlog.000009:154"], id="MySQL, in two files"),
]


@pytest.mark.parametrize("texts", ORDERS)
@pytest.mark.parametrize("type_", [pa.string(), pa.large_string()])
def test_text_of_numbers_is_ordered_as_numbers(texts: list[str], type_: pa.DataType) -> None:
    for rows in (texts, texts[::-1]):
        table = rs.create_table(fresh_uri(), pa.table({"k": ["a"], "s": ["0"]}), key=["k"])
        data = pa.table({"k": ["a", "a"], "s": pa.array(rows, type_), "op": ["u", "u"]})
        table.apply_changes(data, op="op", sequence="s")
        assert table.to_arrow()["s"].to_pylist() == texts[:1]


@pytest.mark.parametrize(
    "texts",
    [
        ["2026-01-01", "2026-01-02"],
        ["9", "0/9A"],
        ["-1", "1"],
        ["", "1"],
        ["1.5", "10.5"],
        ["a", "b"],
        ["0/", "0/1"],
        ["mysql-bin.000009:5", "binlog.000010:4"],
        [b"9", b"10"],
    ],
)
def test_text_without_an_order_of_its_own_is_refused(texts: list[str]) -> None:
    table = rs.create_table(fresh_uri(), SCHEMA, key=["k"])
    data = pa.table({"k": ["a", "b"], "v": [1, 2], "op": ["u", "u"], "lsn": texts})
    with pytest.raises(InvalidData, match=r"column 'lsn' \(sequence=\)"):
        table.apply_changes(data, op="op", sequence="lsn")
    assert table.refresh() == 0


def test_texts_of_one_number_are_one_sequence() -> None:
    table = rs.create_table(fresh_uri(), SCHEMA, key=["k"])
    data = pa.table({"k": ["a", "a"], "v": [1, 2], "op": ["u", "u"], "lsn": ["7", "007"]})
    with pytest.raises(KeyViolation, match="the same 'lsn'"):
        table.apply_changes(data, op="op", sequence="lsn")
