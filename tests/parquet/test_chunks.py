"""Column chunks and their digests: every byte is covered, and fetched no more than it must be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from obstore.store import MemoryStore

from rowsieve.checksums import checksum
from rowsieve.errors import CorruptData
from rowsieve.objects import ObjectStore, RemoteStore, open_store
from rowsieve.parquet.chunks import chunk_seal
from rowsieve.parquet.decode import ParquetReader
from rowsieve.parquet.footer import read_footer
from rowsieve.parquet.seals import CHUNKS_KEY
from rowsieve.storage.manifests.manifest import FileRef
from rowsieve.storage.parts.part_writer import write_parts
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.logical import Field, Float, Int, String
from rowsieve.types.schema import Schema
from tests.parquet.files import tail_start

SCHEMA = Schema(
    0,
    (
        Field(1, "id", Int(64), nullable=False),
        Field(2, "value", Float(64)),
        Field(3, "place", String()),
    ),
)


@pytest.fixture
def rows() -> pa.Table:
    rng = np.random.default_rng(3)
    columns = [
        pa.array(range(5_000)),
        pa.array(rng.normal(size=5_000)),
        pa.array([f"p{i % 7}" for i in range(5_000)]),
    ]
    return pa.table(columns, arrow_schema(SCHEMA))


def write(store: ObjectStore, rows: pa.Table) -> FileRef:
    parts = write_parts(store, SCHEMA, SCHEMA.fields[:1], rows, None, base_version=0, properties={})
    ref = parts.entry(0).data
    assert ref is not None
    return ref


def chunks(path: Path) -> Iterator[tuple[str, int, int]]:
    group = pq.read_metadata(path).row_group(0)
    for i in range(group.num_columns):
        chunk = group.column(i)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        yield chunk.path_in_schema, start, start + chunk.total_compressed_size


def test_any_damaged_byte_of_a_chunk_is_found(tmp_path: Path, rows: pa.Table) -> None:
    store = open_store(str(tmp_path))
    ref = write(store, rows)
    path = tmp_path / ref.path
    whole = path.read_bytes()
    for name, start, stop in chunks(path):
        for offset in (*range(start, start + 40), *range(start, stop, (stop - start) // 20)):
            path.write_bytes(whole[:offset] + bytes([whole[offset] ^ 4]) + whole[offset + 1 :])
            reader = ParquetReader(store, ref)
            with pytest.raises(CorruptData, match=f"column '{name}'"):
                reader.read(0, reader.leaves[name])
    path.write_bytes(whole)
    assert ParquetReader(store, ref).read(0, range(3)).cast(rows.schema).equals(rows)


def test_a_chunk_in_the_place_of_another_is_found(tmp_path: Path, rows: pa.Table) -> None:
    store = open_store(str(tmp_path))
    moved = rows.set_column(0, rows.schema.field(0), pa.array(range(1, 5_001)))
    ref, other = write(store, rows), write(store, moved)
    (tmp_path / ref.path).write_bytes((tmp_path / other.path).read_bytes())
    with pytest.raises(CorruptData):
        ParquetReader(store, ref).read(0, [0])


def test_a_file_without_seal_is_read_by_its_page_checksums(tmp_path: Path, rows: pa.Table) -> None:
    path = tmp_path / "plain.parquet"
    pq.write_table(rows, path, write_page_checksum=True)
    data = path.read_bytes()
    metadata = read_footer(data)
    assert chunk_seal(metadata) is None
    start = tail_start(metadata)
    ref = FileRef(
        path.name, len(rows), len(data), checksum(data), start, checksum(memoryview(data)[start:])
    )
    store = open_store(str(tmp_path))
    assert ParquetReader(store, ref).read(0, range(3)).cast(rows.schema).equals(rows)
    _, first, stop = next(chunks(path))
    middle = (first + stop) // 2
    path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    with pytest.raises(CorruptData, match=path.name):
        ParquetReader(store, ref).read(0, [0])


def test_every_chunk_is_sealed(tmp_path: Path, rows: pa.Table) -> None:
    ref = write(open_store(str(tmp_path)), rows)
    metadata = pq.read_metadata(tmp_path / ref.path)
    assert chunk_seal(metadata) is not None
    assert len(metadata.metadata[CHUNKS_KEY.encode()]) == 3 * 16


def test_neighbours_are_fetched_in_one_request_where_requests_cost(rows: pa.Table) -> None:
    store = RemoteStore(MemoryStore(), "memory:///chunks", overlaps=True)
    ref = write(store, rows)
    reader = ParquetReader(store, ref)
    assert reader.fetches_together
    asked: list[tuple[int, int]] = []
    source: Any = reader._chunks
    real = source._source

    class Counting:
        def read_at(self, size: int, start: int) -> bytes:
            asked.append((start, size))
            found: bytes = real.read_at(size, start)
            return found

    source._source = Counting()
    assert reader.read(0, [0, 1, 2]).cast(rows.schema).equals(rows)
    assert len(asked) == 1
    assert reader.read(0, [0, 2]).num_rows == len(rows)
    assert len(asked) == 2  # the gap between them is small
