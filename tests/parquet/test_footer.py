"""Opening a Parquet file by its checked tail; damage and absence each have their error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowsieve.byte_cache import ByteCache
from rowsieve.checksums import checksum
from rowsieve.errors import CorruptData, SnapshotExpired
from rowsieve.objects import ObjectStore, open_store
from rowsieve.parquet import footer
from rowsieve.parquet.decode import ParquetReader
from rowsieve.parquet.footer import read_footer, read_metadata
from rowsieve.storage.manifests.manifest import FileRef
from rowsieve.storage.parts.part_writer import ROW_GROUP_ROWS, write_parts
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.logical import Field, Float, Int, List, String
from rowsieve.types.schema import Schema
from tests.parquet.files import tail_start

SCHEMA = Schema(
    0,
    (
        Field(1, "id", Int(), nullable=False),
        Field(2, "a.b", String()),
        Field(3, "a", List(Field(4, "item", Float()))),
    ),
)


def rows_of(count: int) -> pa.Table:
    columns = {
        "id": pa.array(range(count)),
        "a.b": pa.array([f"text {i % 977}" for i in range(count)]),
        "a": pa.array([[i / 3] for i in range(count)]),
    }
    return pa.table(columns).cast(arrow_schema(SCHEMA))


def write(store: ObjectStore, count: int) -> FileRef:
    parts = write_parts(
        store, SCHEMA, SCHEMA.fields[:1], rows_of(count), None, base_version=0, properties={}
    )
    ref = parts.entry(0).data
    assert ref is not None
    return ref


class CountingStore:
    """A store that counts ranged reads."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.range_reads = 0

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        self.range_reads += 1
        return self._store.get_range(path, start, stop)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.fixture(autouse=True)
def _nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footer, "_CACHE", ByteCache(footer.CACHE_BYTES))


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(str(tmp_path))


def damage(root: Path, ref: FileRef, offset: int) -> None:
    file = root / ref.path
    data = bytearray(file.read_bytes())
    data[offset] ^= 0x10
    file.unlink()
    file.write_bytes(data)


def test_the_tail_begins_behind_all_data_and_blooms(store: ObjectStore) -> None:
    ref = write(store, ROW_GROUP_ROWS + 10)
    metadata = read_footer(store.get(ref.path))
    ends = []
    for group in range(metadata.num_row_groups):
        for i in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(i)
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            ends.append(start + chunk.total_compressed_size)
            if chunk.bloom_filter_offset is not None:
                ends.append(chunk.bloom_filter_offset + chunk.bloom_filter_length)
    assert metadata.num_row_groups == 2
    assert tail_start(metadata) == max(ends) == ref.tail_start < ref.size_bytes
    footer_start = ref.size_bytes - 8 - metadata.serialized_size
    assert ref.tail_start < footer_start  # the page index lies between


def read_columns(store: ObjectStore, ref: FileRef, names: Sequence[str]) -> pa.Table:
    """Columns of the first row group, each decoded by itself."""
    reader = ParquetReader(store, ref)
    columns = [reader.read(0, reader.leaves[name]).column(0) for name in names]
    fields = [arrow_schema(SCHEMA).field(name) for name in names]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def test_a_file_without_row_groups_has_a_tail() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(arrow_schema(SCHEMA).empty_table(), sink)
    assert tail_start(read_footer(sink.getvalue())) >= 4


def test_opening_reads_the_tail_once(store: ObjectStore) -> None:
    ref = write(store, 100)
    counting: Any = CountingStore(store)
    for _ in range(3):
        assert read_metadata(counting, ref).num_rows == 100
    assert counting.range_reads == 1


def test_rows_come_back_as_they_were(store: ObjectStore) -> None:
    ref = write(store, 1000)
    assert read_columns(store, ref, SCHEMA.names).equals(rows_of(1000))


def test_a_column_whose_name_begins_like_another_path_comes_alone(store: ObjectStore) -> None:
    ref = write(store, 10)
    found = read_columns(store, ref, ["a"])
    assert found.column_names == ["a"]
    assert found.column("a").to_pylist()[3] == [1.0]


def test_columns_are_read_together_too(store: ObjectStore) -> None:
    ref = write(store, 10)
    reader = ParquetReader(store, ref)
    assert reader.read(0, range(reader.metadata.num_columns)).equals(rows_of(10))


def test_any_flipped_bit_of_the_tail_is_found(store: ObjectStore, tmp_path: Path) -> None:
    ref = write(store, 50)
    for offset in range(ref.tail_start, ref.size_bytes, 37):
        damage(tmp_path, ref, offset)
        with pytest.raises(CorruptData, match=ref.path):
            read_metadata(store, ref)
        damage(tmp_path, ref, offset)
    assert read_metadata(store, ref).num_rows == 50


def test_a_flipped_bit_of_a_page_is_found_when_it_is_read(
    store: ObjectStore, tmp_path: Path
) -> None:
    ref = write(store, 5000)
    metadata = read_metadata(store, ref)
    whole = read_columns(store, ref, SCHEMA.names)
    messages = []
    for i in range(metadata.num_columns):
        chunk = metadata.row_group(0).column(i)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        name = chunk.path_in_schema.removesuffix(".list.element")
        body = (start + chunk.total_compressed_size * step // 8 for step in range(1, 8))
        for offset in (*range(start, start + 30), *body):  # the first 30 are of the page's header
            damage(tmp_path, ref, offset)
            try:
                found = read_columns(store, ref, [name])
            except CorruptData as error:
                messages.append(str(error))
            else:
                assert found.column(0).equals(whole.column(name))  # a bound that is not used
            damage(tmp_path, ref, offset)
    assert len(messages) > 3 * 20
    assert all(ref.path in message for message in messages)


def test_a_missing_file_is_an_expired_snapshot(store: ObjectStore, tmp_path: Path) -> None:
    ref = write(store, 10)
    other = write(store, 10)
    read_metadata(store, other)
    for gone in (ref, other):  # its tail unknown, and remembered
        (tmp_path / gone.path).unlink()
        with pytest.raises(SnapshotExpired, match=gone.path):
            ParquetReader(store, gone)


def test_a_file_that_is_cut_short_is_corrupt(store: ObjectStore, tmp_path: Path) -> None:
    ref = write(store, 10)
    file = tmp_path / ref.path
    data = file.read_bytes()
    file.unlink()
    file.write_bytes(data[:-20])
    with pytest.raises(CorruptData, match=ref.path):
        read_metadata(store, ref)


def test_a_malformed_footer_is_corrupt(store: ObjectStore) -> None:
    ref = write(store, 10)
    data = store.get(ref.path)
    for start in (ref.size_bytes - 4, ref.size_bytes - 9):
        lying = replace(ref, tail_start=start, tail_checksum=checksum(data[start:]))
        with pytest.raises(CorruptData, match=ref.path):
            read_metadata(store, lying)


def test_remembered_footers_are_bounded_and_the_oldest_goes(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    refs = [write(store, 10) for _ in range(4)]
    sizes = [footer.read_tail(store, ref).size_bytes for ref in refs]
    monkeypatch.setattr(footer, "_CACHE", ByteCache(sum(sizes[:2]) + 5))
    counting: Any = CountingStore(store)
    for ref in (refs[0], refs[1], refs[0], refs[2]):
        footer.read_tail(counting, ref)
    assert counting.range_reads == 3
    for ref in (refs[0], refs[2]):
        footer.read_tail(counting, ref)
    assert counting.range_reads == 3
    footer.read_tail(counting, refs[1])
    assert counting.range_reads == 4
