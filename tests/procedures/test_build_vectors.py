"""`CALL system.build_deletion_vectors`: tasks of overlap groups, and one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import CommitConflict, UnsupportedOperation
from rowsieve.procedures.engine import Job, LocalEngine
from rowsieve.storage.snapshot import VECTORS_WRITER
from tests.procedures.cluster_subjects import described, overlapping, with_small_tasks

BUILD = "CALL system.build_deletion_vectors('db', 't')"


@pytest.fixture
def catalog(tmp_path: Path) -> rs.Catalog:
    return overlapping(tmp_path)


class Noting(LocalEngine):
    """Notes the jobs that it runs, and does something after each."""

    def __init__(self, then: Callable[[], object] = lambda: None) -> None:
        super().__init__(1)
        self.task_counts: list[int] = []
        self._then = then

    def run(self, job: Job) -> Iterator[pa.RecordBatch]:
        """Run the tasks, then the other change."""
        self.task_counts.append(len(job.tasks))
        yield from super().run(job)
        self._then()


def stored(catalog: rs.Catalog) -> list[int | None]:
    found = catalog.open_table("db.t").handle.pinned.parts.vectors()
    return [None if ref is None else ref.rows for ref in found]


def test_tasks_store_what_the_method_stores(
    catalog: rs.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = overlapping(tmp_path / "twin")
    twin.open_table("db.t").build_deletion_vectors()
    with_small_tasks(monkeypatch)
    engine = Noting()
    (row,) = catalog.call(BUILD, engine=engine).to_pylist()
    assert engine.task_counts == [4]
    assert row["version"] == catalog.open_table("db.t").version
    assert row["parts_added"] == row["parts_removed"] > 0
    assert described(catalog) == described(twin)
    (again,) = catalog.call(BUILD, engine=engine).to_pylist()
    assert (again["version"], again["parts_added"]) == (row["version"], 0)


def test_a_filter_selects_groups(catalog: rs.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    with_small_tasks(monkeypatch)
    engine = Noting()
    catalog.call(BUILD.replace(")", ", 'id BETWEEN 20 AND 24')"), engine=engine)
    assert engine.task_counts == [1]
    assert 0 < sum(rows is not None for rows in stored(catalog)) < 8
    nothing = catalog.call(BUILD.replace(")", ", 'id > 1000')"), engine=engine).to_pylist()
    assert nothing[0]["parts_added"] == 0
    assert engine.task_counts == [1]  # no task, so no job


@pytest.mark.parametrize("damage", [b"", b"no bitmap"])
def test_a_damaged_vector_is_stored_again(
    catalog: rs.Catalog, tmp_path: Path, damage: bytes
) -> None:
    before = described(catalog)["rows"]
    catalog.call(BUILD)
    for path in (tmp_path / "lake/db/t/data").glob("*.vectors"):
        path.write_bytes(damage)
    assert catalog.call(BUILD).to_pylist()[0]["parts_added"] > 0
    assert catalog.call(BUILD).to_pylist()[0]["parts_added"] == 0
    assert described(catalog)["rows"] == before


def meanwhile(catalog: rs.Catalog, change: Callable[[rs.Table], Any]) -> type[Exception] | None:
    other = catalog.open_table("db.t")
    try:
        catalog.call(BUILD, engine=Noting(lambda: change(other)))
    except CommitConflict as error:
        return type(error)
    return None


def test_upserts_meanwhile_are_merged_by_key(catalog: rs.Catalog) -> None:  # invariant I4
    rows = pa.table({"id": [1, 12, 21], "v": [9, 9, 9]})
    assert meanwhile(catalog, lambda table: table.upsert(rows)) is None
    found = catalog.open_table("db.t").scan("v = 9").to_arrow()
    assert sorted(found.column("id").to_pylist()) == [1, 12, 21]
    assert catalog.open_table("db.t").scan("v <> 9 AND id IN (1, 12, 21)").count() == 0


def test_properties_that_are_set_meanwhile_stay(catalog: rs.Catalog) -> None:
    failure = meanwhile(catalog, lambda t: t.set_properties({"checkpoint_interval": "7"}))
    info = catalog.open_table("db.t").handle.pinned.table
    assert info.properties["checkpoint_interval"] == "7"
    assert failure is not None or info.writer_version == VECTORS_WRITER


def test_a_compaction_meanwhile_conflicts(catalog: rs.Catalog) -> None:  # invariant 13
    before = described(catalog)["rows"]
    assert meanwhile(catalog, lambda table: table.compact()) is CommitConflict
    assert described(catalog)["rows"] == before


def test_a_table_without_a_key_is_refused(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path)
    catalog.create_table("db.t", pa.table({"id": [1]}))
    with pytest.raises(UnsupportedOperation, match="has no key"):
        catalog.call(BUILD)


def test_the_plan_shows_a_distributed_procedure(catalog: rs.Catalog) -> None:
    plan = catalog.explain(BUILD.replace(")", ", 'id < 3')"))
    assert "CallDistributedProcedure [build_deletion_vectors(" in plan
    assert "id < 3" in plan
