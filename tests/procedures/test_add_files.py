"""Rows of foreign files, appended in one commit; and lists of parts in a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.errors import CorruptData, NotFound, RowsieveError, UnsupportedOperation


@pytest.fixture
def catalog(tmp_path: Path) -> rs.Catalog:
    catalog = rs.Catalog(tmp_path / "lake")
    catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("v", pa.string())]))
    return catalog


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    folder = tmp_path / "foreign"
    (folder / "deep").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2], "v": ["a", None]}), folder / "one.parquet")
    pq.write_table(
        pa.table({"id": pa.array([3], pa.int32())}), folder / "deep" / "two.snappy.parquet"
    )
    (folder / "_SUCCESS").touch()
    return folder


def add(catalog: rs.Catalog, folder: Path, name: str = "t") -> dict[str, Any]:
    (row,) = catalog.call(f"CALL system.add_files('db', '{name}', '{folder}')").to_pylist()
    return dict(row)


def test_files_are_added_once(catalog: rs.Catalog, foreign: Path) -> None:
    assert add(catalog, foreign) == {
        "added_files_count": 2,
        "added_rows_count": 3,
        "version": 1,
    }
    table = catalog.open_table("db.t")
    assert sorted(table.scan().to_arrow().to_pylist(), key=repr) == [
        {"id": 1, "v": "a"},
        {"id": 2, "v": None},
        {"id": 3, "v": None},
    ]
    assert add(catalog, foreign) == {"added_files_count": 0, "added_rows_count": 0, "version": 1}
    pq.write_table(pa.table({"id": [4]}), foreign / "three.parquet")
    assert add(catalog, foreign)["added_files_count"] == 3  # another set of files
    table.vacuum(retain_last=1, grace_s=0)
    assert len(list(foreign.rglob("*.parquet"))) == 3


def test_what_cannot_be_added_is_refused(
    catalog: rs.Catalog, foreign: Path, tmp_path: Path
) -> None:
    catalog.create_table("db.keyed", pa.schema([("id", pa.int64())]), ["id"])
    with pytest.raises(UnsupportedOperation, match="call upsert"):
        add(catalog, foreign, "keyed")
    with pytest.raises(NotFound, match=r"no \.parquet file"):
        add(catalog, tmp_path / "lake" / "db")
    (foreign / "broken.parquet").write_bytes(b"PAR1 is not all of it")
    with pytest.raises(CorruptData, match=r"broken\.parquet.*nothing was committed"):
        add(catalog, foreign)
    (foreign / "broken.parquet").unlink()
    pq.write_table(pa.table({"id": ["text"]}), foreign / "text.parquet")
    with pytest.raises(RowsieveError, match="id"):
        add(catalog, foreign)
    pq.write_table(pa.table({"id": [1], "other": [1]}), foreign / "text.parquet")
    with pytest.raises(RowsieveError, match="other"):
        add(catalog, foreign)
    assert catalog.open_table("db.t").version == 0


def test_list_of_parts_moves_into_one_checkpoint(catalog: rs.Catalog, tmp_path: Path) -> None:
    table = catalog.open_table("db.t")
    for i in range(5):
        table.append(pa.table({"id": [i], "v": [None]}, schema=table.schema))
    for _ in range(2):
        (row,) = catalog.call("CALL system.rewrite_manifests('db', 't')").to_pylist()
        assert row == {"parts": 5, "version": 5}
    assert (tmp_path / "lake/db/t/_rowsieve/checkpoints" / f"{5:020d}.json").exists()
    table.append(pa.table({"id": [9], "v": [None]}, schema=table.schema))
    assert catalog.open_table("db.t").scan().count() == 6
    (row,) = catalog.call("CALL system.set_current_snapshot('db', 't', 2)").to_pylist()
    assert row["version"] == 7
    assert catalog.open_table("db.t").scan().count() == 2
