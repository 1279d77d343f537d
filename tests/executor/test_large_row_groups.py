"""Row groups that are too large for one batch are decoded in slices, by rows and by bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.errors import CorruptData, UnsupportedOperation
from rowsieve.executor import decode_row_group
from rowsieve.parquet import decode, group_slices
from rowsieve.parquet.group_slices import RowStream, decoded_bytes, slice_rows
from rowsieve.parquet.thrift import read_struct
from rowsieve.storage.parts import part_file, part_writer

ROWS = 5_000


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_slices, "WHOLE_ROWS", 1_000)
    monkeypatch.setattr(group_slices, "SLICE_ROWS", 300)


def rows() -> pa.Table:
    numbers = np.arange(ROWS)
    text = pa.array([None if i % 7 == 3 else f"value {i % 11}" for i in range(ROWS)])
    return pa.table(
        {
            "id": numbers,
            "text": text,
            "free": pa.array([f"row {i}" for i in range(ROWS)]),
            "items": pa.array([None if i % 5 == 0 else list(range(i % 4)) for i in range(ROWS)]),
            "pair": pa.array([{"a": i, "b": str(i % 3)} for i in range(ROWS)]),
        }
    )


def written(path: Path, table: pa.Table, **options: Any) -> Path:
    pq.write_table(table, path, row_group_size=len(table), store_schema=False, **options)
    return path


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}], ids=["dictionary", "plain"])
@pytest.mark.usefixtures("small_slices")
def test_slices_hold_the_rows_of_the_row_group(tmp_path: Path, options: dict[str, Any]) -> None:
    expected = rows()
    table = rs.open_parquet(written(tmp_path / "f.parquet", expected, **options))
    batches = list(table.scan().to_batches())
    assert max(batch.num_rows for batch in batches) <= 300
    assert pa.Table.from_batches(batches).to_pylist() == expected.to_pylist()
    conditions: list[tuple[str, Callable[[dict[str, Any]], bool]]] = [
        ("id >= 299 AND id < 302", lambda row: 299 <= row["id"] < 302),
        ("text = 'value 3'", lambda row: row["text"] == "value 3"),
        ("text IS NULL AND id > 4000", lambda row: row["text"] is None and row["id"] > 4000),
        ("free LIKE '%99'", lambda row: row["free"].endswith("99")),
    ]
    for where, keep in conditions:
        found = [row for row in expected.to_pylist() if keep(row)]
        assert table.scan(where).to_arrow().to_pylist() == found
        assert table.count(where) == len(found) > 0
        assert table.scan(where, pruning="off").to_arrow().to_pylist() == found
    assert table.scan(limit=7).to_arrow().num_rows == 7
    assert table.scan(columns=["pair", "id"], where="id = 4999").to_arrow().to_pylist() == [
        {"pair": {"a": 4999, "b": "1"}, "id": 4999}
    ]


@pytest.mark.usefixtures("small_slices")
def test_slices_of_parts_in_place_are_merged_by_key(tmp_path: Path) -> None:
    expected = {row["id"]: row for row in rows().to_pylist()}
    table = rs.from_parquet(written(tmp_path / "f.parquet", rows()), tmp_path / "t", key=["id"])
    changed = rows().slice(290, 30).set_column(1, "text", pa.array(["new"] * 30))
    table.upsert(changed)
    table.delete("id = 301")
    expected |= {row["id"]: row for row in changed.to_pylist()}
    del expected[301]
    found = table.scan(order_by_key=True, memory_bytes=50_000).to_arrow()
    assert found.to_pylist() == list(expected.values())
    assert table.count("text = 'new'") == 29
    table.compact()
    assert sorted(row["id"] for row in table.scan().to_arrow().to_pylist()) == sorted(expected)


def test_a_small_dictionary_of_long_text_is_cut_by_bytes(tmp_path: Path) -> None:
    """2,500,000 rows of five texts of 1 kB are 50 kB in a file, and 2.5 GB in memory."""
    agents = pa.array([f"{i}" * 1000 for i in range(5)])
    cells = pa.DictionaryArray.from_arrays(pa.array(np.arange(2_500, dtype="int32") % 5), agents)
    path = written(tmp_path / "f.parquet", pa.table({"agent": cells}))
    assert path.stat().st_size < 50_000
    table = rs.open_parquet(path)
    batches = list(table.scan(memory_bytes=1_600_000).to_batches())
    assert max(batch.nbytes for batch in batches) < 150_000
    assert sum(batch.num_rows for batch in batches) == 2_500
    assert table.count("agent < '1'") == 500
    assert table.scan(limit=1).to_arrow().num_rows == 1
    imported = rs.from_parquet(path, tmp_path / "t")
    assert imported.count("agent LIKE '4%'") == 500


def metadata_of(tmp_path: Path, table: pa.Table, **options: Any) -> pq.FileMetaData:
    return pq.read_metadata(written(tmp_path / "m.parquet", table, **options))


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        pytest.param(1_000, 2_500, id="short text is read whole"),
        pytest.param(100_000, 24, id="long text is cut"),
    ],
)
def test_the_decoded_bytes_of_a_dictionary_decide(
    tmp_path: Path, length: int, expected: int
) -> None:
    cells = pa.array(["x" * 5_000] * 2_500).dictionary_encode()
    metadata = metadata_of(tmp_path, pa.table({"s": cells, "n": np.arange(2_500)}))
    found = slice_rows(metadata.row_group(0), [0, 1], 40_000_000, lambda leaf: 2_500 * length)
    assert found == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
@pytest.mark.parametrize(("memory_bytes", "slices"), [(12_000_000, 1), (6_800_000, 5)])
def test_text_is_cut_by_its_decoded_bytes_in_any_encoding(
    encoding: str, memory_bytes: int, slices: int, tmp_path: Path
) -> None:
    texts = pa.table({"s": [f"{i:04}{'x' * 900}" for i in range(2_000)]})  # 1.8 MB
    options = {"use_dictionary": False, "column_encoding": {"s": encoding}}
    table = rs.open_parquet(written(tmp_path / "f.parquet", texts, **options))
    sizes = [batch.num_rows for batch in table.scan(memory_bytes=memory_bytes).to_batches()]
    assert slices - 1 <= len(sizes) <= 2 * slices
    assert table.to_arrow()["s"].to_pylist() == texts["s"].to_pylist()


def test_prefixes_that_values_share_count_for_each(tmp_path: Path) -> None:
    texts = pa.table({"s": ["x" * 100_000 + f"{i:03}" for i in range(500)]})  # 50 MB
    options = {"use_dictionary": False, "column_encoding": {"s": "DELTA_BYTE_ARRAY"}}
    path = written(tmp_path / "f.parquet", texts, **options)
    metadata = pq.read_metadata(path)
    assert metadata.row_group(0).column(0).total_uncompressed_size < 1_000_000
    with path.open("rb") as source:
        assert 50_000_000 < decoded_bytes(source, metadata, 0, 0) < 60_000_000


def test_a_stream_returns_later_ranges_only(tmp_path: Path) -> None:
    path = written(tmp_path / "f.parquet", rows())
    file = pq.ParquetFile(path)
    stream = RowStream(file.iter_batches(64), "f.parquet")
    for first, stop in ((0, 1), (1, 64), (64, 65), (700, 900), (4_999, 5_000)):
        assert stream.read(first, stop).equals(rows().slice(first, stop - first))
        assert stream.position == stop
    with pytest.raises(CorruptData, match=r"f\.parquet.*5000 rows"):
        stream.read(5_000, 5_001)


def test_a_column_beyond_the_limit_of_arrow_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def joined(column: pa.ChunkedArray) -> pa.Array:
        raise pa.ArrowInvalid("offset overflow while concatenating arrays")

    table = rs.open_parquet(written(tmp_path / "f.parquet", rows()))
    monkeypatch.setattr(decode_row_group, "_joined", joined)
    monkeypatch.setattr(decode_row_group, "_LARGEST_ARRAY_BYTES", 0)
    with pytest.raises(UnsupportedOperation, match=r"row group 0: column 'id'.*2 GiB.*smaller row"):
        table.scan().to_arrow()


def test_our_row_groups_are_cut_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_writer, "ROW_GROUP_BYTES", 100_000)
    table = rs.create_table(
        tmp_path / "t", pa.schema([("id", pa.int64()), ("s", pa.string())]), ["id"]
    )
    long = pa.table({"id": range(3_000), "s": ["y" * 500 + str(i) for i in range(3_000)]})
    table.upsert(long)
    short = pa.table({"id": range(5_000, 5_100), "s": ["y"] * 100})
    table.upsert(short)
    table.upsert(pa.table({"id": [9_000], "s": ["z" * 300_000]}))  # one value beyond the limit
    table.compact()
    for path in (tmp_path / "t/data").glob("*.parquet"):
        metadata = pq.read_metadata(path)
        assert metadata.num_row_groups == 1
        group = pq.ParquetFile(path).read_row_group(0)
        assert group["s"].nbytes <= 100_000 or len(group) == 1
    found = table.scan(order_by_key=True).to_arrow()
    assert found["id"].to_pylist() == [*range(3_000), *range(5_000, 5_100), 9_000]
    assert found["s"][2_999].as_py() == "y" * 500 + "2999"
    assert found["s"][3_100].as_py() == "z" * 300_000


def test_pages_and_tombstones_of_ours_are_cut_by_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_file, "_PAGE_BYTES", 400_000)
    monkeypatch.setattr(part_file, "_PAGE_BYTES_OF_LARGE_ROWS", 50_000)
    monkeypatch.setattr(part_writer, "ROW_GROUP_BYTES", 300_000)
    keys = [f"{i:04}{'k' * 10_000}" for i in range(100)]
    table = rs.create_table(tmp_path / "t", pa.table({"k": keys, "v": range(100)}), key=["k"])
    table.delete("v < 90")
    (deletes,) = (tmp_path / "t/data").glob("*.deletes.parquet")
    for path in (tmp_path / "t/data").glob("*.parquet"):
        file = pq.ParquetFile(path)
        for number in range(file.metadata.num_row_groups):
            assert file.read_row_group(number)["k"].nbytes <= 300_000
            assert max(page_sizes(path, number)) < 120_000
    assert pq.read_metadata(deletes).num_row_groups == 4
    for memory_bytes in (1, 100_000, 2**28):
        rest = table.scan(memory_bytes=memory_bytes, order_by_key=True).to_arrow()
        assert rest["k"].to_pylist() == keys[90:]
    table.compact()
    assert table.count() == 10


def page_sizes(path: Path, row_group: int) -> list[int]:
    """The decoded bytes of the pages of the first column."""
    chunk = pq.read_metadata(path).row_group(row_group).column(0)
    data = path.read_bytes()
    found, position = [], min(chunk.data_page_offset, chunk.dictionary_page_offset or 2**62)
    stop = position + chunk.total_compressed_size
    while position < stop:
        header, position = read_struct(data, position)
        found.append(header[2])
        position += header[3]
    return found


@pytest.mark.parametrize("foreign", [False, True], ids=["ours", "foreign"])
def test_reads_of_large_rows_decode_slices_that_memory_holds(tmp_path: Path, foreign: bool) -> None:
    count, memory_bytes = 400, 2_000_000
    rows = pa.table({"k": range(count), "v": [f"{i:04}{'x' * 10_000}" for i in range(count)]})
    if foreign:
        table = rs.open_parquet(written(tmp_path / "f.parquet", rows, use_dictionary=False))
    else:
        table = rs.create_table(tmp_path / "t", rows, key=["k"])
    scan = table.scan(memory_bytes=memory_bytes)
    batches = list(scan.to_batches())
    assert pa.Table.from_batches(batches).cast(rows.schema).equals(rows)
    assert max(batch.nbytes for batch in batches) < memory_bytes // 8
    for where, expected in (("k = 333", 1), ("length(v) > 5", count), ("v < '0007'", 7)):
        found = table.scan(where, memory_bytes=memory_bytes)
        assert found.to_arrow().num_rows == found.count() == expected
    assert table.scan(limit=1, memory_bytes=memory_bytes).to_arrow().num_rows == 1
    only_keys = table.scan(columns=["k"], memory_bytes=memory_bytes)
    assert len(list(only_keys.to_batches())) == 1  # these are small


def test_a_damaged_chunk_is_found_before_its_slices_are_decoded(tmp_path: Path) -> None:
    rows = pa.table({"k": range(40), "v": [f"{i:04}{'x' * 10_000}" for i in range(40)]})
    table = rs.create_table(tmp_path / "t", rows, key=["k"])
    (path,) = (tmp_path / "t/data").glob("*.parquet")
    data = path.read_bytes()
    chunk = pq.read_metadata(path).row_group(0).column(1)
    at = chunk.data_page_offset + chunk.total_compressed_size - 9  # in the last slice
    path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    with pytest.raises(CorruptData, match="column 'v', is damaged"):
        table.scan(limit=1, memory_bytes=100_000).to_arrow()


def test_slices_that_several_threads_read_are_decoded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []

    class Counted(RowStream):
        def __init__(self, batches: Any, where: str) -> None:
            begun.append(where)
            super().__init__(batches, where)

    monkeypatch.setattr(decode, "RowStream", Counted)
    table = rs.open_parquet(written(tmp_path / "f.parquet", rows(), use_dictionary=False))
    batches = list(table.scan(memory_bytes=400_000, threads=4).to_batches())
    assert pa.Table.from_batches(batches).to_pylist() == rows().to_pylist()
    assert len(batches) > 10
    assert len(begun) <= 2  # one for each call that reads a few columns
