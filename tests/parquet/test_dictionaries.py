"""Text that is read as dictionaries: the same values, and damage is found all the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.errors import CorruptData
from rowsieve.objects import ObjectStore
from rowsieve.parquet.decode import ParquetReader
from rowsieve.parquet.footer import read_metadata
from rowsieve.storage.manifests.manifest import FileRef

TEXTS = ["a", None, "", "é" * 40, "b"]


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    count = 70_000
    rows = {
        "id": pa.array(range(count)),
        "text": pa.array([TEXTS[i % 5] for i in range(count)]),
        "bytes": pa.array([b"\xff" * (i % 3) for i in range(count)]),
        "plain": pa.array([str(i) for i in range(count)]),
    }
    return rs.create_table(str(tmp_path), pa.table(rows), key=["id"])


def part_of(table: rs.Table) -> tuple[ObjectStore, FileRef]:
    ref = table.handle.pinned.parts.entry(0).data
    assert ref is not None
    return table.handle.store, ref


def test_repeating_columns_are_read_as_dictionaries(table: rs.Table) -> None:
    store, ref = part_of(table)
    found = ParquetReader(store, ref).read(1, [1, 2, 3])
    kept = [pa.types.is_dictionary(column.type) for column in found.columns]
    assert kept == [True, True, False]
    usual = pq.ParquetFile(store.open_input(ref.path)).read_row_group(1, ["text", "bytes", "plain"])
    assert found.cast(usual.schema).equals(usual)


def test_a_scan_gives_plain_text(table: rs.Table) -> None:
    found = table.scan("id >= 65530 AND id < 65540", order_by_key=True).to_arrow()
    assert found.schema.types == [pa.int64(), pa.string(), pa.binary(), pa.string()]
    assert found.column("text").to_pylist() == [TEXTS[i % 5] for i in range(65_530, 65_540)]
    assert table.scan("text IS NULL").count() == 14_000
    assert table.scan("text = ''").count() == 14_000


@pytest.mark.parametrize("page", ["dictionary_page_offset", "data_page_offset"])
def test_damage_is_found_in_dictionaries_and_their_indices(
    table: rs.Table, tmp_path: Path, page: str
) -> None:
    store, ref = part_of(table)
    group = read_metadata(store, ref).row_group(0)
    chunk = next(c for i in range(4) if (c := group.column(i)).path_in_schema == "text")
    end = chunk.dictionary_page_offset + chunk.total_compressed_size
    if page == "dictionary_page_offset":
        end = chunk.data_page_offset
    path = tmp_path / ref.path
    data = bytearray(path.read_bytes())
    data[end - 3] ^= 0x10
    path.unlink()
    path.write_bytes(data)
    with pytest.raises(CorruptData):
        table.scan(columns=["text"]).to_arrow()
