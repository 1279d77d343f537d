"""Below a NULL struct a member has any value; every codec gives the struct back as NULL.

Elsewhere a nested value that is NOT NULL must be in the bytes: none is made up for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.encodings import message_pack
from rowsieve.encodings.codecs import codec_to_read
from rowsieve.errors import CorruptData, InvalidData
from rowsieve.types.encodings import schema_of
from tests.encodings.tables_with_codecs import every_type

MEMBERS = every_type().drop_columns(["id"]).combine_chunks().to_batches()[0]
ABSENT = pa.array([True, False, False, True])


def rows_with(struct: pa.StructArray) -> pa.Table:
    """Rows with the struct as a column, in a list, and in a struct."""
    within = pa.StructArray.from_arrays([struct], ["inner"], mask=pa.array([False] * 3 + [True]))
    lists = pa.ListArray.from_arrays([0, 1, 1, 3, 4], struct)
    return pa.table({"id": range(4), "st": struct, "within": within, "lists": lists})


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize("encoding", ["both", "codec"])
@pytest.mark.parametrize("codec", ["msgpack", "json", "avro"])
def test_null_structs_come_back(tmp_path: Path, codec: str, encoding: str, required: bool) -> None:
    members, fields = MEMBERS.columns, list(MEMBERS.schema)
    if required:
        members = [each.drop_null().take([0] * 4) for each in members]
        fields = [field.with_nullable(nullable=False) for field in fields]
    rows = rows_with(pa.StructArray.from_arrays(members, fields=fields, mask=ABSENT))
    plain = rs.create_table(tmp_path / "plain", rows, key=["id"])
    expected = plain.scan(order_by_key=True).to_arrow()
    properties = {"row_codec": codec, "write_encoding": encoding}
    table = rs.create_table(tmp_path / "t", rows, key=["id"], properties=properties)
    for reading in ("codec", "shadow") if encoding == "both" else ("codec",):
        found = table.scan(order_by_key=True, read_encoding=reading).to_arrow()
        assert shown(found) == shown(expected)
    table.set_properties({"write_encoding": "columns"})
    table.upsert(rows.slice(1, 1))
    table.compact()
    assert shown(table.scan(order_by_key=True).to_arrow()) == shown(expected)


@pytest.mark.parametrize(
    ("type_", "value", "path"),
    [
        (pa.struct([pa.field("m", pa.int64(), nullable=False)]), {"m": 1}, "x.m"),
        (pa.list_(pa.field("item", pa.int64(), nullable=False)), [1], "x.item"),
        (pa.map_(pa.string(), pa.field("v", pa.int64(), nullable=False)), [("a", 1)], "x.v"),
        (
            pa.list_(pa.struct([pa.field("m", pa.int64(), nullable=False)])),
            [{"m": 1}],
            "x.item.m",
        ),
    ],
    ids=["member", "item", "value", "in a list"],
)
def test_a_codec_that_returns_null_in_a_required_nested_value_is_refused(
    tmp_path: Path, type_: pa.DataType, value: Any, path: str
) -> None:
    def emptied(rows: pa.Array, schema: pa.Schema) -> pa.RecordBatch:
        nulls = pa.array([None] * len(rows), pa.int64())
        arrays = [without(nulls, field.type) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    name = f"emptying_{path.replace('.', '_')}"
    rs.register_codec(name, 1, message_pack.encode, emptied)
    rows = pa.table({"id": [1], "x": pa.array([value], type_)})
    properties = {"row_codec": name, "write_encoding": "both"}
    table = rs.create_table(tmp_path / "t", rows, key=["id"], properties=properties)
    for reading in ("codec", "shadow"):
        with pytest.raises(CorruptData, match=rf"NULL in 1 values of '{path}', which is NOT NULL"):
            table.scan(read_encoding=reading).to_arrow()
    with pytest.raises(InvalidData, match=f"nothing was written.*{path}"):
        rs.create_table(
            tmp_path / "c", rows, key=["id"], properties={**properties, "write_encoding": "codec"}
        )


def without(nulls: pa.Array, type_: pa.DataType) -> pa.Array:
    """A value of one nested value that is NULL, for each."""
    if pa.types.is_int64(type_):
        return nulls
    if pa.types.is_struct(type_):
        return pa.StructArray.from_arrays([nulls], fields=[type_.field(0)])
    offsets = pa.array(range(len(nulls) + 1), pa.int32())
    if pa.types.is_map(type_):
        keys = pa.array(["a"] * len(nulls))
        return pa.MapArray.from_arrays(offsets, keys, nulls, type=type_)
    items = without(nulls, type_.value_type)
    return pa.ListArray.from_arrays(offsets, items, type=type_)


REQUIRED = pa.field("m", pa.int64(), nullable=False)


@pytest.mark.parametrize("codec", ["msgpack", "json"])
@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (pa.struct([REQUIRED, ("s", pa.string())]), {"m": None, "s": "a"}),
        (pa.struct([REQUIRED, ("s", pa.string())]), {"s": "a"}),
        (pa.list_(pa.struct([REQUIRED])), [{"m": 1}, {"m": None}]),
        (pa.list_(REQUIRED), [1, None]),
        (pa.map_(pa.string(), REQUIRED), [{"key": "a", "value": None}]),
        (pa.map_(pa.string(), pa.int64()), [{"key": None, "value": 1}]),
        (pa.map_(pa.string(), pa.int64()), [None]),
    ],
    ids=["member", "absent member", "in a list", "item", "value", "key", "pair"],
)
def test_bytes_without_a_required_nested_value_are_refused(
    codec: str, type_: pa.DataType, value: object
) -> None:
    row = (
        msgspec.msgpack.encode([value]) if codec == "msgpack" else msgspec.json.encode({"x": value})
    )
    schema, _ = schema_of(pa.schema([pa.field("x", type_)]))
    with pytest.raises(CorruptData, match=r"NOT NULL|without a value"):
        codec_to_read(codec, 1, "a test").decoded(pa.array([row], pa.binary()), schema, "a test")


def shown(rows: pa.Table) -> list[str]:
    """The rows as text, in which NaN is itself."""
    return [repr(row) for row in rows.to_pylist()]
