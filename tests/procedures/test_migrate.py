"""Files of older forms are rewritten, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from tests.golden.test_golden import FOLDER

MIGRATE = "CALL system.migrate('db', 't')"


def counted(catalog: rs.Catalog, statement: str = MIGRATE) -> tuple[int, int]:
    (row,) = catalog.call(statement).to_pylist()
    return row["rewritten_data_files_count"], row["version"]


@pytest.mark.parametrize("name", ["evolved", "tagged"])
def test_tables_of_earlier_formats_are_brought_forward(tmp_path: Path, name: str) -> None:
    shutil.copytree(FOLDER / name, tmp_path / "db" / "t")
    catalog = rs.Catalog(tmp_path)
    table = catalog.open_table("db.t")
    before, version = table.scan(order_by_key=True).to_arrow(), table.version
    assert counted(catalog, MIGRATE.replace("'t'", "'t', dry_run => TRUE"))[1] == version
    assert counted(catalog) == (3, version + 1)
    table.refresh()
    now = table.handle.pinned
    assert set(now.parts.column("schema_id").to_pylist()) == {now.schema.id}
    assert repr(table.scan(order_by_key=True).to_arrow().to_pylist()) == repr(before.to_pylist())
    assert counted(catalog) == (0, version + 1)  # nothing left, so no commit


@pytest.mark.parametrize("key", [["id"], None])
def test_imported_files_become_files_of_the_table(tmp_path: Path, key: list[str] | None) -> None:
    for start in (0, 10):
        rows = pa.table({"id": range(start, start + 10), "v": range(10)})
        pq.write_table(rows, tmp_path / f"{start}.parquet")
    catalog = rs.Catalog(tmp_path / "lake")
    files = [str(tmp_path / "0.parquet"), str(tmp_path / "10.parquet")]
    table = rs.from_parquet(files, catalog.uri_of("db.t"), key)
    (table.upsert if key else table.append)(pa.table({"id": [3, 100], "v": [33, 0]}))
    before = sorted(table.scan().to_arrow().to_pylist(), key=repr)
    counted(catalog)
    table.refresh()
    assert not [path for path in table.files().column("path").to_pylist() if "://" in path]
    assert sorted(table.scan().to_arrow().to_pylist(), key=repr) == before
    assert all(Path(file).exists() for file in files)
    assert counted(catalog) == (0, table.version)
