"""`CALL system.rewrite_position_delete_files`: tasks that join files of vectors, one commit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import CommitConflict
from tests.procedures.cluster_subjects import described, with_small_tasks, with_vectors
from tests.procedures.test_build_vectors import Noting

MERGE = "CALL system.rewrite_position_delete_files('db', 't')"
NOTHING = {
    "rewritten_delete_files_count": 0,
    "added_delete_files_count": 0,
    "rewritten_bytes_count": 0,
    "added_bytes_count": 0,
}


@pytest.fixture
def catalog(tmp_path: Path) -> rs.Catalog:
    return with_vectors(tmp_path)


def vectors_of(catalog: rs.Catalog) -> dict[str, tuple[int, int]]:
    """By part, the rows of its vector and the version through which it is complete."""
    parts = catalog.open_table("db.t").handle.pinned.parts
    return {
        part_id: (ref.rows, ref.complete_through)
        for part_id, ref in zip(parts.part_ids, parts.vectors(), strict=True)
        if ref is not None
    }


def files_of(catalog: rs.Catalog) -> set[str]:
    refs = catalog.open_table("db.t").handle.pinned.parts.vectors()
    return {ref.path for ref in refs if ref is not None and ref.path is not None}


def test_tasks_join_small_files_once(catalog: rs.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    with_small_tasks(monkeypatch)
    before, vectors, files = described(catalog), vectors_of(catalog), files_of(catalog)
    engine = Noting()
    (row,) = catalog.call(MERGE, engine=engine).to_pylist()
    assert engine.task_counts == [2]  # of three vectors, and of one
    assert (row["rewritten_delete_files_count"], row["added_delete_files_count"]) == (4, 2)
    assert row["rewritten_bytes_count"] == row["added_bytes_count"] > 0
    assert row["version"] == before["version"] + 1
    assert described(catalog) == {**before, "version": row["version"]}
    assert vectors_of(catalog) == vectors
    assert len(files_of(catalog)) == 2
    assert not files & files_of(catalog)
    assert catalog.call(MERGE, engine=engine).to_pylist() == [
        {**NOTHING, "version": row["version"]}
    ]
    assert engine.task_counts == [2]  # no task, so no job


def test_the_method_writes_what_the_call_writes(catalog: rs.Catalog, tmp_path: Path) -> None:
    twin = with_vectors(tmp_path / "twin")
    catalog.call(MERGE)
    assert twin.open_table("db.t").rewrite_position_delete_files().committed
    assert described(catalog) == described(twin)
    assert (len(files_of(catalog)), len(files_of(twin))) == (1, 1)


def test_a_filter_selects_files(catalog: rs.Catalog) -> None:
    (row,) = catalog.call(MERGE.replace(")", ", 'id < 40')")).to_pylist()
    assert (row["rewritten_delete_files_count"], row["added_delete_files_count"]) == (2, 1)
    assert len(files_of(catalog)) == 3
    (row,) = catalog.call(MERGE.replace(")", ", 'id < 18')")).to_pylist()
    assert row["rewritten_delete_files_count"] == 0


def test_vectors_of_parts_that_are_gone_are_dropped(catalog: rs.Catalog) -> None:
    catalog.call(MERGE)
    table = catalog.open_table("db.t")
    rewrite = "CALL system.rewrite_data_files('db', 't', 'id < 18', options => map({}))"
    catalog.call(rewrite.format("'rewrite-all', 'true'"))
    (path,) = files_of(catalog)
    (row,) = catalog.call(MERGE).to_pylist()
    assert row["added_bytes_count"] < row["rewritten_bytes_count"]
    assert path not in files_of(catalog)
    table.refresh()
    assert catalog.call(MERGE).to_pylist() == [{**NOTHING, "version": table.version}]


@pytest.mark.parametrize("damage", [b"", b"no bitmap", None])
def test_vectors_that_cannot_be_read_are_dropped(
    catalog: rs.Catalog, tmp_path: Path, damage: bytes | None
) -> None:
    before, known = described(catalog)["rows"], len(vectors_of(catalog))
    path = sorted((tmp_path / "lake/db/t/data").glob("*.vectors"))[0]
    path.unlink() if damage is None else path.write_bytes(damage)
    (row,) = catalog.call(MERGE).to_pylist()
    assert (row["rewritten_delete_files_count"], row["added_delete_files_count"]) == (4, 1)
    assert len(vectors_of(catalog)) == known - 1
    assert described(catalog)["rows"] == before


def test_a_table_without_vectors_has_nothing_to_join(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path)
    table = catalog.create_table("db.t", pa.table({"id": [1, 2]}))
    table.delete("id = 1")  # a table without a key has a file of them for each part
    assert catalog.call(MERGE).to_pylist() == [{**NOTHING, "version": 1}]


def meanwhile(catalog: rs.Catalog, change: Callable[[rs.Table], Any]) -> type[Exception] | None:
    other = catalog.open_table("db.t")
    try:
        catalog.call(MERGE, engine=Noting(lambda: change(other)))
    except CommitConflict as error:
        return type(error)
    return None


def test_upserts_and_deletes_meanwhile_stay(catalog: rs.Catalog) -> None:  # invariant I4
    def change(table: rs.Table) -> None:
        table.upsert(pa.table({"id": [1, 12, 21], "v": [9, 9, 9]}))
        table.delete("id = 41")

    assert meanwhile(catalog, change) is None
    found = catalog.open_table("db.t").scan("v = 9 OR id = 41").to_arrow()
    assert sorted(found.column("id").to_pylist()) == [1, 12, 21]


@pytest.mark.parametrize("version", [1, 9])
def test_a_restore_meanwhile_conflicts(catalog: rs.Catalog, version: int) -> None:  # invariant 13
    wanted = sorted(
        catalog.open_table("db.t").scan(version=version).to_arrow().to_pylist(), key=repr
    )
    assert meanwhile(catalog, lambda table: table.restore(version)) is CommitConflict
    assert described(catalog)["rows"] == wanted
