"""A bloom filter may say yes to what is not there, never no to what is."""

from __future__ import annotations

import decimal
import io
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.errors import CorruptData, SnapshotExpired
from rowsieve.objects import open_store
from rowsieve.parquet.bloom import HASHED_IN_PYTHON_UP_TO, BloomFilter, plain_encoded, probes_of
from rowsieve.parquet.bloom_reader import BloomReader
from rowsieve.parquet.footer import read_footer
from rowsieve.parquet.leaf_columns import FileColumn, file_columns
from rowsieve.parquet.seals import BLOOMS_KEY
from rowsieve.parquet.thrift import MalformedThrift, read_struct
from rowsieve.predicate.arrays import Mask
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Field,
    Float,
    Int,
    LogicalType,
    Nanos,
    String,
    Time,
    Timestamp,
    Uuid,
)
from rowsieve.types.schema import Schema
from tests.parquet.files import opened, reference, seal_file, written
from tests.profiles import examples
from tests.strategies import arrow_array, as_decimal, values_of

COUNT = 400
KEY_TYPES: dict[LogicalType, list[Any]] = {
    **{Int(bits): list(range(-64, 64)) for bits in (8, 16, 32, 64)},
    **{Int(bits, signed=False): list(range(128, 256)) for bits in (8, 16, 32, 64)},
    Decimal(6, 2): [as_decimal(i - COUNT, 2) for i in range(COUNT)],
    Decimal(38, 10): [as_decimal((i - 200) * 10**33, 10) for i in range(COUNT)],
    String(): [f"é{i}" for i in range(COUNT)] + [""],
    Binary(): [bytes([i % 256, i // 256]) for i in range(COUNT)] + [b""],
    Date(): list(range(-200, COUNT)),
    Time(): [i * 10**6 + 1 for i in range(COUNT)],
    Timestamp(): [(i - 200) * 10**9 for i in range(COUNT)],
    Timestamp(utc=True): [(i - 200) * 10**9 for i in range(COUNT)],
    Uuid(): [i.to_bytes(16, "big") for i in range(COUNT)],
}
every_key_type = pytest.mark.parametrize("type_", KEY_TYPES, ids=str)


def may_contain(bloom: BloomFilter, values: pa.Array) -> Mask:
    """(n,) bool: value by value, whether the filter says that it may be there."""
    probes = probes_of(values, bloom.column)
    if probes is None:
        return np.ones(len(values), dtype=np.bool_)
    return np.array([bloom.may_contain_any([probe]) for probe in probes], dtype=np.bool_)


def schema_of_one(type_: LogicalType) -> Schema:
    return Schema(1, (Field(3, "c", type_),))


def split(type_: LogicalType) -> tuple[pa.Array, pa.Array]:
    """Every other value: those to be stored and those that are absent."""
    values = arrow_array(KEY_TYPES[type_], type_)
    numbers = np.arange(len(values))
    return values.take(pa.array(numbers[::2])), values.take(pa.array(numbers[1::2]))


def filter_of(data: Any, group: int = 0) -> BloomFilter:
    """The filter of the one column, without reader and seal."""
    metadata = read_footer(data)
    column = file_columns(metadata)[3]
    chunk = metadata.row_group(group).column(0)
    start = chunk.bloom_filter_offset
    stop = start + chunk.bloom_filter_length
    found = BloomFilter.parse(column, bytes(memoryview(data)[start:stop]))
    assert found is not None
    return found


@every_key_type
@pytest.mark.parametrize("repeats", [1, 20], ids=["plain", "dictionary"])
def test_every_value_is_found_and_most_others_are_not(type_: LogicalType, repeats: int) -> None:
    here, absent = split(type_)
    rows = pa.record_batch({"c": pa.concat_arrays([here] * repeats)})
    found = filter_of(written(schema_of_one(type_), [rows], ["c"]))
    assert may_contain(found, here).all()
    assert may_contain(found, absent).mean() < 0.15


@every_key_type
def test_a_few_values_are_probed_as_many_are(type_: LogicalType) -> None:
    here, _ = split(type_)
    column = filter_of(written(schema_of_one(type_), [pa.record_batch({"c": here})], ["c"])).column
    together = probes_of(here, column)
    assert together is not None
    assert len(together) > HASHED_IN_PYTHON_UP_TO
    assert [probes_of(here.slice(i, 1), column) for i in range(len(here))] == [
        [probe] for probe in together
    ]


@given(
    st.sampled_from(list(KEY_TYPES)).flatmap(
        lambda type_: st.tuples(st.just(type_), st.lists(values_of(type_), min_size=1, max_size=8))
    )
)
@examples(40)
def test_awkward_values_are_found(case: tuple[LogicalType, list[Any]]) -> None:
    type_, values = case
    column = arrow_array(values, type_)
    rows = pa.record_batch({"c": column})
    found = filter_of(written(schema_of_one(type_), [rows], ["c"]))
    assert may_contain(found, column).all()
    assert may_contain(found, column.slice(len(column) // 2)).all()


@every_key_type
def test_a_slice_is_looked_up_by_its_own_values(type_: LogicalType) -> None:
    here, absent = split(type_)
    found = filter_of(written(schema_of_one(type_), [pa.record_batch({"c": here})], ["c"]))
    both = pa.concat_arrays([absent, here])
    assert may_contain(found, both.slice(len(absent))).all()


@pytest.mark.parametrize("precision", [5, 9, 10, 18])
def test_decimals_stored_as_integers_are_found(precision: int) -> None:
    schema = schema_of_one(Decimal(precision, 2))
    values = [as_decimal(sign * (10**precision - i), 2) for i in range(1, 100) for sign in (-1, 1)]
    here = pa.array(values, pa.decimal128(precision, 2))
    sink = io.BytesIO()
    pq.write_table(
        pa.table([here], arrow_schema(schema)),
        sink,
        store_decimal_as_integer=True,
        bloom_filter_options={"c": {"ndv": 200, "fpp": 0.01}},
    )
    found = filter_of(sink.getvalue())
    assert found.column.physical in ("INT32", "INT64")
    assert may_contain(found, here).all()
    absent = pa.array([as_decimal(i, 2) for i in range(100)], pa.decimal128(precision, 2))
    assert may_contain(found, absent).mean() < 0.15


@pytest.mark.parametrize(
    ("stored_type", "stored_values", "asked_type", "asked", "encoded"),
    [
        (Int(32), [5], Int(64), [5, 2**31, -(2**31) - 1, -(2**31)], "ynny"),
        (Int(8), [5], Int(64), [5, 128, 133, 5 + 2**32], "ynnn"),
        (Int(8, signed=False), [200], Int(16), [200, -56, 256], "ynn"),
        (Int(32, signed=False), [2**31], Int(64), [2**31, -(2**31)], "yn"),
        (Int(32), [5], Float(64), [5.0, 5.5, math.nan, 2.0**31, -math.inf, -0.0], "ynnnny"),
        (Int(16, signed=False), [65535], Float(32), [65535.0, 65536.0, 0.5], "ynn"),
        (Int(32, signed=False), [2**32 - 1], Float(64), [2.0**32 - 1, 2.0**32], "yn"),
        (
            Int(64),
            [-(2**63)],
            Decimal(22, 2),
            [decimal.Decimal(text) for text in ("-9223372036854775808", "-0.01", "2e19", "7")],
            "ynny",
        ),
        (Int(64, signed=False), [2**64 - 1], Decimal(20, 0), [decimal.Decimal(2**64 - 1)], "y"),
        (Int(8), [-1], Decimal(5, 2), [decimal.Decimal("-1"), decimal.Decimal("255")], "yn"),
        (Date(), [1], Nanos(), [86_400 * 10**9, 86_400 * 10**9 + 1, -1], "ynn"),
        (
            Decimal(4, 1),
            [decimal.Decimal("1.5")],
            Decimal(9, 3),
            [decimal.Decimal(text) for text in ("1.500", "1.501", "1500.000", "-999.900")],
            "ynny",
        ),
    ],
)
def test_a_value_that_the_files_type_cannot_hold_is_absent(
    stored_type: LogicalType,
    stored_values: list[Any],
    asked_type: LogicalType,
    asked: list[Any],
    encoded: str,
) -> None:
    rows = pa.record_batch({"c": arrow_array(stored_values, stored_type)})
    found = filter_of(written(schema_of_one(stored_type), [rows], ["c"]))
    values = arrow_array(asked, asked_type)
    bytes_of = plain_encoded(values, found.column)
    assert bytes_of is not None
    assert "".join("n" if value is None else "y" for value in bytes_of) == encoded
    assert may_contain(found, values)[0]
    assert not may_contain(found, values)[[letter == "n" for letter in encoded]].any()


@pytest.mark.parametrize(
    ("asked", "value", "stored_type", "physical"),
    [
        (Float(64), 1.0, pa.float64(), "DOUBLE"),
        (Float(64), 1.0, pa.float32(), "FLOAT"),
        (Bool(), True, pa.bool_(), "BOOLEAN"),
        (Timestamp(), 1, pa.timestamp("us", "UTC"), "INT64"),
        (Timestamp(), 1000, pa.timestamp("ms"), "INT64"),
        (Date(), 1, pa.int32(), "INT32"),
        (Int(64), 1, pa.int64(), "INT32"),
        (Date(), 1, pa.date32(), "INT64"),
        (Uuid(), b"1" * 16, pa.binary(16), "BYTE_ARRAY"),
        (String(), "a", pa.string(), "FIXED_LEN_BYTE_ARRAY"),
        (Decimal(6, 2), as_decimal(100, 2), pa.decimal128(6, 2), "BYTE_ARRAY"),
        (Int(32), 1, pa.int64(), "INT64"),
    ],
    ids=str,
)
def test_a_value_with_an_uncertain_encoding_may_be_present(
    asked: LogicalType, value: Any, stored_type: Any, physical: str
) -> None:
    column = FileColumn(0, "c", stored_type, physical, 16)
    empty = BloomFilter(column, bytes(32))
    assert may_contain(empty, arrow_array([value], asked)).all()


def test_floats_and_booleans_have_no_filters() -> None:
    for type_, value in ((Float(64), 1.5), (Bool(), True)):
        rows = pa.record_batch({"c": arrow_array([value], type_)})
        metadata = read_footer(written(schema_of_one(type_), [rows], ["c"]))
        assert metadata.row_group(0).column(0).bloom_filter_offset is None


# The reader: filters in place, sealed, remembered

INTS = schema_of_one(Int())


def int_file(groups: int = 3, *, seal: bool = True) -> memoryview:
    batches = [pa.record_batch({"c": pa.array(range(i, 300, groups))}) for i in range(groups)]
    return written(INTS, batches, ["c"], seal=seal)


def column_of(metadata: pq.FileMetaData) -> FileColumn:
    return file_columns(metadata)[3]


def test_each_row_group_has_its_filter() -> None:
    metadata, reader, _ = opened(int_file())
    column = column_of(metadata)
    filters = reader.filters(column, [2, 0, 1])
    for group, found in zip((2, 0, 1), filters, strict=True):
        assert found is not None
        assert may_contain(found, pa.array(range(group, 300, 3))).all()
        assert may_contain(found, pa.array(range(group + 1, 300, 3))).mean() < 0.15
    assert reader.filters(column, []) == []


def test_filters_are_read_once_and_neighbours_together() -> None:
    data = int_file(5)  # no other test has this file, so that none of it is remembered
    for reads in (1, 0):
        metadata, reader, store = opened(data)
        assert None not in reader.filters(column_of(metadata), [0, 1, 2, 3, 4])
        assert len(store.reads) == reads


def test_distant_filters_are_read_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    from rowsieve.parquet import bloom_reader

    monkeypatch.setattr(bloom_reader, "GAP_BYTES", 0)
    metadata, reader, store = opened(int_file(4))
    filters = reader.filters(column_of(metadata), [3, 0, 1])
    assert len(store.reads) == 2
    for group, found in zip((3, 0, 1), filters, strict=True):
        assert found is not None
        assert may_contain(found, pa.array(range(group, 300, 4))).all()


def test_a_flipped_bit_in_any_filter_is_corrupt_data() -> None:
    data = bytearray(int_file(7))
    metadata = read_footer(data)
    for group in range(7):
        chunk = metadata.row_group(group).column(0)
        start, stop = chunk.bloom_filter_offset, chunk.bloom_filter_offset
        stop += chunk.bloom_filter_length
        for place in (start, start + 8, stop - 1):
            damaged = bytearray(data)
            damaged[place] ^= 4
            _, reader, _ = opened(memoryview(damaged))
            with pytest.raises(CorruptData, match=rf"data/a.parquet, row group {group}, col.*'c'"):
                reader.filters(column_of(metadata), [group])


def test_a_filter_without_a_seal_is_not_believed() -> None:
    metadata, reader, _ = opened(int_file(seal=False))
    assert reader.filters(column_of(metadata), [0, 1, 2]) == [None, None, None]


def test_a_seal_that_does_not_fit_is_not_believed() -> None:
    sink = pa.BufferOutputStream()
    table = pa.table([pa.array(range(10))], arrow_schema(INTS))
    writer = pq.ParquetWriter(
        sink, table.schema, bloom_filter_options={"c": {"ndv": 10, "fpp": 0.03}}
    )
    writer.write_table(table)
    writer.add_key_value_metadata({BLOOMS_KEY: "-" * 16 * 2})
    writer.close()
    data = bytearray(sink.getvalue())
    before = bytes(data)
    seal_file(data)
    assert bytes(data) == before
    metadata, reader, _ = opened(memoryview(before))
    assert reader.filters(column_of(metadata), [0]) == [None]


def test_sealing_leaves_a_file_that_others_read() -> None:
    data = int_file()
    sealed = read_footer(data).metadata[BLOOMS_KEY.encode()]
    assert len(sealed) == 3 * 16
    assert b"-" not in sealed
    assert pq.read_table(pa.BufferReader(pa.py_buffer(data))).num_rows == 300


def test_a_file_that_is_gone_is_an_expired_snapshot(tmp_path: Path) -> None:
    data = int_file(6)
    reader = BloomReader(open_store(str(tmp_path)), reference(data), read_footer(data))
    with pytest.raises(SnapshotExpired):
        reader.filters(column_of(read_footer(data)), [0])


# The header

KNOWN = b"\x15\x40\x1c\x1c\x00\x00\x1c\x1c\x00\x00\x1c\x1c\x00\x00\x00"
COLUMN = FileColumn(0, "c", pa.int64(), "INT64", 0)


def test_the_header_is_read() -> None:
    assert read_struct(KNOWN) == ({1: 32, 2: {1: {}}, 3: {1: {}}, 4: {1: {}}}, len(KNOWN))
    assert BloomFilter.parse(COLUMN, KNOWN + bytes(32)) is not None


@pytest.mark.parametrize("place", [3, 7, 11])
def test_a_filter_of_an_unknown_kind_is_ignored(place: int) -> None:
    other = bytearray(KNOWN)
    other[place] = 0x2C  # member 2 of the union
    assert BloomFilter.parse(COLUMN, bytes(other) + bytes(32)) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        KNOWN[:5],
        KNOWN + bytes(31),
        b"\x15\x42" + KNOWN[2:] + bytes(40),
        b"\x15\x00" + KNOWN[2:],
        b"\x15\x3f" + KNOWN[2:] + bytes(40),
        b"\x1c" * 100,
        b"\x19" * 100,
        b"\x15" + b"\xff" * 20,
        b"\x18\xff\xff\x03",
        b"\x1f\x00",
    ],
)
def test_bytes_that_are_not_a_filter_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedThrift):
        BloomFilter.parse(COLUMN, data)


@given(st.binary(max_size=60))
@examples(200)
def test_any_bytes_are_a_filter_or_malformed(data: bytes) -> None:
    with suppress(MalformedThrift):
        BloomFilter.parse(COLUMN, data)
