"""What column gets which Parquet encoding, and that other readers decode it to the same values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datafusion
import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.storage.parts import part_file

ROWS = 20_000
INTEGERS = [
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.uint8(),
    pa.uint16(),
    pa.uint32(),
    pa.uint64(),
]


def part_of(folder: Path, columns: dict[str, Any]) -> pq.FileMetaData:
    data = {"id": pa.array(range(ROWS)), **columns}
    rs.create_table(str(folder / "t"), pa.table(data), key=["id"])
    (path,) = (folder / "t" / "data").glob("*.parquet")
    return pq.ParquetFile(path).metadata


def encodings(metadata: pq.FileMetaData) -> dict[str, str]:
    group = metadata.row_group(0)
    found = {}
    for i in range(group.num_columns):
        chunk = group.column(i)
        names = {"RLE_DICTIONARY": "dictionary", "DELTA_BINARY_PACKED": "delta"}
        kinds = [names[name] for name in chunk.encodings if name in names]
        found[chunk.path_in_schema] = kinds[0] if kinds else "plain"
    return found


def test_integers_and_times_are_deltas_unless_they_repeat(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    metadata = part_of(
        tmp_path,
        {
            "few": pa.array(rng.integers(0, 900, ROWS)),
            "many": pa.array(rng.integers(0, 5_000, ROWS)),
            "day": pa.array(np.arange(ROWS, dtype=np.int32), pa.date32()),
            "at": pa.array(np.arange(ROWS), pa.timestamp("us", "UTC")),
            "time": pa.array(np.arange(ROWS), pa.time64("us")),
            "value": pa.array(rng.normal(size=ROWS)),
            "flag": pa.array(rng.integers(0, 2, ROWS).astype(bool)),
        },
    )
    assert encodings(metadata) == {
        "id": "delta",
        "few": "dictionary",
        "many": "delta",
        "day": "delta",
        "at": "delta",
        "time": "delta",
        "value": "plain",
        "flag": "plain",
    }


@pytest.mark.parametrize(
    ("distinct", "encoding"), [(1, "dictionary"), (900, "dictionary"), (2_000, "plain")]
)
def test_text_has_a_dictionary_where_it_repeats(
    tmp_path: Path, distinct: int, encoding: str
) -> None:
    text = pa.array([f"place-{i % distinct}" for i in range(ROWS)])
    assert encodings(part_of(tmp_path, {"text": text}))["text"] == encoding


def test_a_sample_is_every_nth_value_of_all_chunks() -> None:
    values = pa.chunked_array([[0, 1, 2], [], [3], [4, 5, 6, 7, 8]])
    for step in range(1, 10):
        assert part_file._every(values, step).to_pylist() == list(range(9))[::step]


def test_long_values_are_not_copied_to_choose_an_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    def noting(values: pa.ChunkedArray) -> pa.Scalar:
        counted.append(values.nbytes)
        return pa.scalar(len(values))

    monkeypatch.setattr(pc, "count_distinct", noting)
    monkeypatch.setattr(part_file, "_SAMPLE_BYTES", 10_000)
    assert not part_file._repeats(pa.chunked_array([[f"{n:01000}" for n in range(200)]]))
    assert max(counted) <= 11_000


@pytest.mark.parametrize("type_", INTEGERS, ids=str)
def test_other_readers_decode_deltas(tmp_path: Path, type_: pa.DataType) -> None:
    dtype = type_.to_pandas_dtype()
    limits = np.iinfo(dtype)
    values = np.random.default_rng(2).integers(limits.min, limits.max, ROWS, dtype, endpoint=True)
    values[:4] = [limits.min, limits.max, limits.max, limits.min]
    mask = np.arange(ROWS) % 7 == 3
    metadata = part_of(tmp_path, {"n": pa.array(values, type_, mask=mask)})
    assert type_.bit_width == 8 or encodings(metadata)["n"] == "delta"
    path = str(next((tmp_path / "t" / "data").glob("*.parquet")))
    wanted = [None if hidden else int(value) for value, hidden in zip(values, mask, strict=True)]
    found = duckdb.connect().execute(f"SELECT n FROM '{path}' ORDER BY id").fetchall()
    assert [row[0] for row in found] == wanted
    context = datafusion.SessionContext()
    context.register_parquet("t", path)
    assert [r["n"] for r in context.sql("SELECT n FROM t ORDER BY id").to_pylist()] == wanted
    table = rs.open_table(str(tmp_path / "t"))
    assert table.scan(columns=["n"], order_by_key=True).to_arrow().column("n").to_pylist() == wanted


@pytest.mark.parametrize(("length", "codec"), [(1, "UNCOMPRESSED"), (500, "ZSTD")])
def test_a_file_of_short_columns_is_not_compressed(tmp_path: Path, length: int, codec: str) -> None:
    rows = pa.table({"id": range(10), "text": ["x" * length] * 10})
    rs.create_table(str(tmp_path / "t"), rows, key=["id"])
    (path,) = (tmp_path / "t" / "data").glob("*.parquet")
    group = pq.ParquetFile(path).metadata.row_group(0)
    assert {group.column(i).compression for i in range(2)} == {codec}
    assert rs.open_table(str(tmp_path / "t")).to_arrow().to_pydict() == rows.to_pydict()
