"""What callers give a writer: rows as dicts, the place of its log, how long to wait."""

from __future__ import annotations

import asyncio
import gc
import warnings
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput, UnsupportedOperation, WriterFailed


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


@pytest.mark.parametrize("inside", ["", "wal", "a/b", "../t"])
def test_a_log_is_not_in_the_folder_of_its_table(table: rs.Table, inside: str) -> None:
    folder = Path(table.uri.removeprefix("file://"))
    with pytest.raises(InvalidInput, match="in the folder of the table"):
        table.writer(wal_dir=folder / inside)
    assert [each.name for each in folder.iterdir()] == ["_rowsieve"]
    table.writer(wal_dir=folder.with_name("t2")).close()


def test_a_writer_deletes_by_key_only(table: rs.Table, tmp_path: Path) -> None:  # invariant I7
    with table.writer(wal_dir=tmp_path / "wal") as writer:
        with pytest.raises(UnsupportedOperation, match=r"Table\.delete\(where\)"):
            writer.delete("id = 1")
        with pytest.raises(UnsupportedOperation, match=r"Table\.delete\(where\)"):
            asyncio.run(writer.delete_async(where="id = 1"))
        with pytest.raises(InvalidInput, match="give the keys"):
            writer.delete()


def test_a_constraint_of_another_process_stops_the_writer_until_it_is_dropped(
    table: rs.Table, tmp_path: Path
) -> None:
    writer = table.writer(wal_dir=tmp_path / "wal", flush_interval_s=3600)
    writer.upsert({"id": -1, "name": "a"}).result()
    other = rs.open_table(table.uri)
    other.add_constraint("above", "id > 0")
    for call in (writer.flush, writer.close):
        with pytest.raises(WriterFailed, match=r"'above'.*changes are in the write-ahead log"):
            call()
    with pytest.raises(WriterFailed, match="'above'"), table.writer(wal_dir=tmp_path / "wal"):
        pass
    other.drop_constraint("above")
    with table.writer(wal_dir=tmp_path / "wal"):
        pass
    assert other.refresh() == table.version
    assert other.to_arrow().to_pylist() == [{"id": -1, "name": "a"}]


def test_a_result_is_awaited_for_a_time_of_any_length(table: rs.Table, tmp_path: Path) -> None:
    with table.writer(wal_dir=tmp_path / "wal") as writer:
        acknowledged = writer.upsert({"id": 1, "name": "a"})
        wrong: Any = "x"
        with pytest.raises(InvalidInput, match="timeout_s"):
            acknowledged.result(wrong)
        assert acknowledged.result(1e300) == acknowledged.result(-1) == 1


def unread(record: list[warnings.WarningMessage]) -> list[str]:
    return [str(each.message) for each in record if each.category is RuntimeWarning]


@pytest.mark.parametrize("row", [{"id": "a", "name": "b"}, {"id": [1], "other": [2]}])
@pytest.mark.parametrize("durability", ["wal", "commit"])
def test_a_failed_call_whose_error_nobody_reads_is_a_warning(
    table: rs.Table, tmp_path: Path, row: dict[str, Any], durability: Literal["wal", "commit"]
) -> None:
    wal_dir = tmp_path / "wal" if durability == "wal" else None
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        with table.writer(durability=durability, wal_dir=wal_dir) as writer:
            writer.upsert({"id": 1, "name": "a"})
            writer.upsert(row)
        gc.collect()
    (text,) = unread(record)
    assert "its changes are not in the table" in text
    assert "SchemaMismatch" in text
    assert table.count() == 1


def test_a_failed_call_whose_error_is_read_is_no_warning(table: rs.Table, tmp_path: Path) -> None:
    async def failing() -> None:
        with pytest.raises(InvalidInput):
            await writer.upsert_async({"id": "a", "name": "b"})

    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        with table.writer(wal_dir=tmp_path / "wal") as writer:
            calls = [writer.upsert({"id": each, "name": "b"}) for each in ("a", "c")]
            asyncio.run(failing())
        assert isinstance(calls[0].exception(), InvalidInput)  # after the writer's end
        with pytest.raises(InvalidInput):
            calls[1].result()
        del calls
        gc.collect()
    assert unread(record) == []
