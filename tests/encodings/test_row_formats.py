"""The binary formats of rows: our bytes are those of msgspec and fastavro, value by value."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import fastavro
import msgspec
import pyarrow as pa
import pytest

from rowsieve.encodings import avro_rows, message_pack
from rowsieve.encodings.cells import SLICE_ROWS
from rowsieve.encodings.codecs import codec_to_read
from rowsieve.encodings.comparing import differing_rows
from rowsieve.encodings.number_bytes import number_bytes, numbers_of_bytes
from rowsieve.encodings.plain_arrays import Form, to_plain, values_of
from rowsieve.errors import CorruptData
from rowsieve.types.encodings import schema_of
from tests.encodings.tables_with_codecs import every_type

EDGES = sorted(
    {sign * (1 << bits) + step for bits in range(63) for sign in (1, -1) for step in (-1, 0, 1)}
    | {-(2**63), 2**63 - 1, -33, -32, -31}
)
LOGICAL_TYPES: tuple[dict[str, Any], ...] = (
    {},
    {"logicalType": "decimal", "precision": 20, "scale": 0},
    {"logicalType": "time-micros"},
    {"logicalType": "decimal", "precision": 38, "scale": 10},
    {},
    {},
)
LENGTHS = (0, 1, 15, 16, 31, 32, 255, 256, 65_535, 65_536)


def batches() -> list[pa.RecordBatch]:
    """Columns at the edges of each form, alone and together, with NULL and without."""
    whole = every_type().combine_chunks().to_batches()[0]
    each = [whole.select([name]) for name in whole.schema.names]
    edges = [
        pa.array(EDGES, pa.int64()),
        pa.array([None, *EDGES], pa.int64()),
        pa.array([n for n in EDGES if n >= 0] + [2**64 - 1, 2**63], pa.uint64()),
        pa.array(range(-128, 128), pa.int8()),
        pa.array([2**31 - 1, -(2**31)] * 3, pa.int32()),
        pa.array([2**40] * 5, pa.int64()),
        pa.array(["ü" * (size // 2) for size in LENGTHS]),
        pa.array([b"x" * size for size in LENGTHS]),
        pa.array([[1] * size for size in LENGTHS[:8]], pa.list_(pa.int16())),
        pa.array([[], None, [{"a": [None]}]], pa.list_(pa.struct([("a", pa.list_(pa.string()))]))),
        pa.array([None, None], pa.float32()),
    ]
    sliced = whole.slice(1, 2)
    many = pa.RecordBatch.from_pydict({"n": range(SLICE_ROWS + 3), "s": ["a"] * (SLICE_ROWS + 3)})
    wide = pa.RecordBatch.from_arrays([pa.array([1, 2])] * 17, [f"c{i}" for i in range(17)])
    structs = pa.array([{f"m{i}": i for i in range(17)}, None])
    return [
        *each, whole, sliced, whole.slice(0, 0), many, wide,
        *(pa.RecordBatch.from_arrays([array], ["x"]) for array in (*edges, structs)),
    ]  # fmt: skip


BATCHES = batches()


def record_of(row: bytes, schema: Any) -> Any:
    """The record that fastavro reads."""
    return fastavro.schemaless_reader(io.BytesIO(row), schema, None)


def test_rows_of_messagepack_are_those_of_msgspec() -> None:
    for batch in BATCHES:
        columns = [values_of(to_plain(column, Form.BINARY)) for column in batch.columns]
        expected = [msgspec.msgpack.encode(row) for row in zip(*columns, strict=True)]
        assert message_pack.encode(batch).to_pylist() == expected, batch.schema


def test_rows_of_avro_are_those_of_fastavro() -> None:
    for batch in BATCHES:
        schema = fastavro.parse_schema(avro_rows.avro_schema(batch.schema))
        encoded = avro_rows.encode(batch).to_pylist()
        for row in encoded[:200]:
            record = record_of(row, schema)
            sink = io.BytesIO()
            fastavro.schemaless_writer(sink, schema, record)
            assert sink.getvalue() == row


@pytest.mark.parametrize("codec", ["msgpack", "json", "avro"])
def test_rows_are_decoded_to_what_was_encoded(codec: str) -> None:
    for batch in BATCHES:
        one = codec_to_read(codec, 1, "a test")
        decoded = one.decode(one.encoded(batch, "a test"), batch.schema)
        for before, after in zip(batch.columns, decoded.columns, strict=True):
            assert not len(differing_rows(before, after)), before.type


def test_logical_types_of_avro_are_values_for_other_readers() -> None:
    rows = every_type().select(["id", "u", "tm", "dec", "uuid", "st"]).combine_chunks()
    record = avro_rows.avro_schema(rows.schema)
    for field, logical in zip(record["fields"], LOGICAL_TYPES, strict=True):
        if logical:
            null, plain = field["type"]
            field["type"] = [null, {"type": plain, **logical}]
    schema = fastavro.parse_schema(record)
    (batch,) = rows.to_batches()
    values = [record_of(row, schema) for row in avro_rows.encode(batch).to_pylist()]
    for place, name in enumerate(rows.schema.names):
        read = [row[f"f{place}"] for row in values]
        expected = rows.column(name).to_pylist()
        if name == "st":
            assert [None if each is None else each["f0"] for each in read] == [1, None, None, 3]
        else:
            assert read == expected, name


def foreign(schema: pa.Schema, *rows: bytes) -> pa.RecordBatch:
    """Rows of another writer, decoded."""
    codec = codec_to_read("avro", 1, "a test")
    return codec.decoded(pa.array(rows, pa.binary()), schema_of(schema)[0], "a test")


def test_rows_of_other_writers_of_avro_are_read() -> None:
    lists = pa.schema([pa.field("l", pa.list_(pa.int64()), nullable=False)])
    blocks = b"\x02\x02\x0a" + b"\x03\x08\x02\x0c\x02\x0e" + b"\x00"  # one item, then two with size
    plain = b"\x02\x02\x0a\x00"
    assert foreign(lists, blocks, plain).column(0).to_pylist() == [[5, 6, 7], [5]]
    numbers = pa.schema([pa.field("n", pa.decimal128(10, 2), nullable=False)])
    longer = b"\x08\xff\xff\xff\xfe"  # -2 in four bytes
    assert foreign(numbers, longer).column(0).to_pylist() == [Decimal("-0.02")]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((b"\x02\x02",), "after its last value"),
        ((b"\x02\x02", b""), "cannot decode"),  # the bytes of two rows, in one of them
        ((b"",), "cannot decode"),
        ((b"\x80",), "cannot decode"),
    ],
)
def test_bytes_that_are_no_rows_of_avro_are_refused(rows: tuple[bytes, ...], message: str) -> None:
    with pytest.raises(CorruptData, match=message):
        foreign(pa.schema([pa.field("n", pa.int64(), nullable=False)]), *rows)


def test_numbers_as_bytes_are_the_shortest_of_twos_complement() -> None:
    numbers = [0, 1, -1, 127, 128, -128, -129, 255, 2**64, -(2**64), 10**38 - 1, 1 - 10**38]
    values = pa.array([*map(Decimal, numbers), None], pa.decimal128(38, 0))
    encoded = number_bytes(values)
    for number, octets in zip(numbers, encoded.to_pylist(), strict=False):
        size = (number if number >= 0 else ~number).bit_length() // 8 + 1
        assert octets == number.to_bytes(size, "big", signed=True)
    assert numbers_of_bytes(encoded, values.type).equals(values)
    assert numbers_of_bytes(encoded.slice(3, 4), values.type).equals(values.slice(3, 4))


def test_an_unknown_package_is_named(monkeypatch: Any) -> None:
    monkeypatch.setitem(__import__("sys").modules, "fastavro", None)
    batch = pa.RecordBatch.from_pydict({"n": [1]})
    with pytest.raises(ImportError, match=r"pip install 'rowsieve\[avro\]'"):
        codec_to_read("avro", 1, "a test").encoded(batch, "a test")
