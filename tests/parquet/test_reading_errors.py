"""What a failed read of a file says: the cause decides, and the advice works."""

from __future__ import annotations

import errno
import struct
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.errors import (
    CorruptData,
    OutOfMemory,
    RowsieveError,
    SnapshotExpired,
    StoreError,
    UnsupportedOperation,
)
from rowsieve.parquet.footer import reading
from rowsieve.parquet.thrift import I32, I64, MalformedThrift, encoded_value, write_struct
from tests.foreign.damaged import Fields, edit_schema

ROWS = pa.table({"id": range(100), "s": ["abc" * 50] * 100})
SNAPPY, LZO = 2, 6  # as Thrift writes 1 and 3


@pytest.mark.parametrize(
    ("cause", "expected", "advice"),
    [
        (pa.ArrowMemoryError("malloc of size 9"), OutOfMemory, "fewer columns"),
        (MemoryError(), OutOfMemory, "memory_bytes="),
        (pa.ArrowNotImplementedError("codec"), UnsupportedOperation, "write the file again"),
        (OSError(errno.EIO, "Input/output error"), StoreError, "remove the cause"),
        (OSError(errno.EMFILE, "Too many open files"), StoreError, "remove the cause"),
        (FileNotFoundError(errno.ENOENT, "gone"), SnapshotExpired, "open the table again"),
        (OSError("Unexpected end of stream"), CorruptData, "from a copy"),
        (pa.ArrowInvalid("bad levels"), CorruptData, "from a copy"),
        (MalformedThrift("no end"), CorruptData, "from a copy"),
    ],
    ids=lambda each: each if isinstance(each, str) else getattr(each, "__name__", repr(each)),
)
def test_the_cause_decides_the_error(
    cause: Exception, expected: type[RowsieveError], advice: str
) -> None:
    with pytest.raises(expected, match=advice) as found, reading("data/x.parquet", 3):
        raise cause
    assert "data/x.parquet" in str(found.value)
    assert found.value.__cause__ is cause
    copied = expected is CorruptData
    assert ("restore the file" in str(found.value)) == copied


def test_lack_of_memory_is_a_memory_error() -> None:
    with pytest.raises(MemoryError), reading("x"):
        raise pa.ArrowMemoryError("malloc")


def with_codec(path: Path, codec: int) -> bytes:
    """The bytes of a file whose footer names another codec for a chunk, none of them checked."""
    pq.write_table(ROWS, path, compression="snappy", use_dictionary=False, write_statistics=False)
    data = path.read_bytes()
    start = len(data) - 8 - int(struct.unpack("<I", data[-8:-4])[0])
    paths = data.index(b"\x18\x01s", start) if b"\x18\x01s" in data[start:] else start
    for place in range(paths, len(data) - 8):
        if data[place - 1] == 0x15 and data[place] == SNAPPY:
            changed = data[:place] + bytes([codec]) + data[place + 1 :]
            metadata = pq.read_metadata(pa.BufferReader(changed))
            if "LZO" in {metadata.row_group(0).column(leaf).compression for leaf in range(2)}:
                return changed
    raise AssertionError("no codec in the footer")


def test_a_codec_that_pyarrow_lacks_is_named(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(with_codec(path, LZO))
    with pytest.raises(UnsupportedOperation, match=r"LZO.*compressed by zstd and encoded PLAIN"):
        rs.open_parquet(path).scan().to_arrow()
    # the advice
    pq.write_table(ROWS, path, compression="zstd", use_dictionary=False, column_encoding="PLAIN")
    assert rs.open_parquet(path).scan().to_arrow().equals(ROWS)


def test_a_damaged_file_of_others_is_not_said_to_differ(tmp_path: Path) -> None:
    path, copy = tmp_path / "f.parquet", tmp_path / "copy.parquet"
    pq.write_table(ROWS, path, compression="zstd", use_dictionary=False)
    copy.write_bytes(data := path.read_bytes())
    path.write_bytes(data[:30] + bytes(200) + data[230:])
    table = rs.open_parquet(path)
    with pytest.raises(CorruptData, match="restore the file from a copy") as found:
        table.scan().to_arrow()
    assert "differ" not in str(found.value)
    copy.replace(path)  # the advice
    assert rs.open_parquet(path).scan().to_arrow().equals(ROWS)


def test_a_damaged_file_of_ours_is_restored_from_a_copy(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", ROWS, key=["id"])
    (path,) = (tmp_path / "t/data").iterdir()
    data = path.read_bytes()
    path.write_bytes(data[:40] + bytes([data[40] ^ 255]) + data[41:])
    with pytest.raises(CorruptData, match=r"differ from .* restore the file from a copy"):
        table.scan().to_arrow()
    path.write_bytes(data)  # the advice
    assert table.scan().to_arrow().num_rows == 100


def with_dictionary_of_booleans() -> bytes:
    """A file by hand, with TRUE and FALSE in the order of a dictionary."""
    page, codes = b"\x01", b"\x01\x02\x01\x02\x00"  # the width 1, and runs of one code each
    head = {1: I32(2), 2: I32(len(page)), 3: I32(len(page)), 7: {1: I32(2), 2: I32(0)}}
    data_head = {1: I32(2), 2: I32(8), 3: I32(3), 4: I32(3)}
    sizes = {2: I32(len(codes)), 3: I32(len(codes))}
    body = write_struct(head) + page
    data_at = 4 + len(body)
    body += write_struct({1: I32(0), **sizes, 5: data_head}) + codes
    metadata = {
        1: I32(0), 2: [I32(8), I32(3)], 3: [b"b"], 4: I32(0), 5: I64(2), 6: I64(len(body)),
        7: I64(len(body)), 9: I64(data_at), 11: I64(4),
    }  # fmt: skip
    schema = [{4: b"schema", 5: I32(1)}, {1: I32(0), 3: I32(0), 4: b"b"}]
    groups = [{1: [{2: I64(4), 3: metadata}], 2: I64(len(body)), 3: I64(2)}]
    footer = write_struct({1: I32(1), 2: schema, 3: I64(2), 4: groups, 6: b"hand"})
    return b"PAR1" + body + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def test_booleans_in_a_dictionary_are_not_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(with_dictionary_of_booleans())
    table = rs.open_parquet(path)
    assert table.count() == 2
    with pytest.raises(UnsupportedOperation, match=r"whose column 'b' has a dictionary.*PLAIN"):
        table.to_arrow()


def write_decimals(path: Path, *values: bytes) -> None:
    """Write a file whose decimals say how many bytes each of them has."""
    rows = pa.table({"id": range(len(values)), "p": pa.array(values, pa.binary())})
    pq.write_table(rows, path, use_dictionary=False, write_statistics=False)

    def declare(place: int, element: Fields) -> None:
        if place == 2:
            converted, scale, precision = (encoded_value(I32(number)) for number in (5, 2, 9))
            element |= {6: converted, 7: scale, 8: precision}

    edit_schema(path, declare)


@pytest.mark.parametrize("value", [b"", (-12345).to_bytes(17, "big", signed=True)])
def test_decimals_of_another_length_are_not_called_damaged(tmp_path: Path, value: bytes) -> None:
    path = tmp_path / "a.parquet"
    write_decimals(path, b"\x30\x39", value)
    table = rs.open_parquet(path)
    assert table.scan(columns=["id"]).to_arrow().num_rows == 2  # the advice
    with pytest.raises(UnsupportedOperation, match=r"the decimals of column 'p'.*fixed length"):
        table.to_arrow()


def test_decimals_with_bytes_to_spare_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_decimals(path, b"\x30\x39", (-12345).to_bytes(16, "big", signed=True))
    assert rs.open_parquet(path).to_arrow()["p"].to_pylist() == [
        Decimal("123.45"),
        -Decimal("123.45"),
    ]


def test_a_map_without_required_keys_is_not_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    maps = pa.array([{"m": [("a", 1)]}], pa.struct([("m", pa.map_(pa.string(), pa.int64()))]))
    pq.write_table(pa.table({"id": [1], "s": maps}), path)

    def loosen(_: int, element: Fields) -> None:
        if element[4][1].endswith(b"key"):
            element[3] = encoded_value(I32(1))

    edit_schema(path, loosen)
    with pytest.raises(UnsupportedOperation, match=r"map 's\.m' has keys that may be NULL"):
        rs.open_parquet(path)


def test_an_error_of_two_lines_has_one(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": range(9)}), path, use_dictionary=False, compression="none")
    data = path.read_bytes()
    path.write_bytes(data[:4] + b"\xff" * 8 + data[12:])
    with pytest.raises(CorruptData, match=r"deserialize thrift.*from a copy") as raised:
        rs.open_parquet(path).to_arrow()
    assert "\n" not in str(raised.value)
