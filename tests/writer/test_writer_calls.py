"""What callers give a writer: rows as dicts, the place of its log, how long to wait."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
    return rs.create_table(tmp_path / "t", schema, key=["id"])


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        ({"v": pa.int64(), "u": pa.int64()}, {"v": 5, "u": 6}),
        ({"v": pa.int64()}, {"v": None}),
        ({"v": pa.string()}, {"v": "text"}),
        ({"v": pa.binary()}, {"v": b"bytes"}),
        ({"v": pa.list_(pa.string()), "u": pa.int64()}, {"v": ["a", "b"], "u": None}),
        ({"v": pa.list_(pa.string()), "u": pa.int64()}, {"v": [], "u": 1}),
    ],
)
def test_a_dict_of_values_is_one_row_of_a_table_without_a_key(
    tmp_path: Path, columns: dict[str, pa.DataType], row: dict[str, Any]
) -> None:
    table = rs.create_table(tmp_path / "t", pa.schema(columns))
    with table.writer(wal_dir=tmp_path / "wal") as writer:
        writer.append(row).result()
        asyncio.run(writer.append_async(row))
        writer.append({name: [value] for name, value in row.items()}).result()
    assert table.to_arrow().to_pylist() == [row] * 3


@pytest.mark.parametrize(
    "wal_dir", ["", " ", "s3://bucket/wal", "file:///tmp/wal", "gs://b", "memory:///x", "s3:/b"]
)
def test_a_log_is_in_a_local_directory(
    table: rs.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wal_dir: str
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InvalidInput, match="path of a local directory"):
        table.writer(wal_dir=wal_dir)
    assert sorted(tmp_path.iterdir()) == before


def test_a_result_is_awaited_for_a_time_of_any_length(table: rs.Table, tmp_path: Path) -> None:
    with table.writer(wal_dir=tmp_path / "wal") as writer:
        acknowledged = writer.upsert({"id": 1, "name": "a"})
        wrong: Any = "x"
        with pytest.raises(InvalidInput, match="timeout_s"):
            acknowledged.result(wrong)
        assert acknowledged.result(1e300) == acknowledged.result(-1) == 1
