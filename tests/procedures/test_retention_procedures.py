"""The procedures that give disk space back, and the lease of a call."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput, SnapshotExpired
from rowsieve.procedures import engine as engines
from rowsieve.procedures.engine import Job, LocalEngine
from rowsieve.retention import deleting
from rowsieve.retention.leases import LEASES
from tests.retention.small_histories import expected, paths, rows_of, with_history


@pytest.fixture
def catalog(tmp_path: Path) -> rs.Catalog:
    catalog = rs.Catalog(tmp_path)
    with_history(catalog.uri_of("db.t"), versions=8)
    return catalog


def one(catalog: rs.Catalog, statement: str) -> dict[str, Any]:
    (row,) = catalog.call(statement).to_pylist()
    return dict(row)


def test_each_returns_its_row_and_deletes_nothing_in_a_dry_run(catalog: rs.Catalog) -> None:
    table = catalog.open_table("db.t")
    table.compact()
    for name in ("expire_snapshots", "vacuum"):
        call = f"CALL system.{name}('db', 't', retain_last => 2"
        before = paths(table.handle.store)
        dry = one(catalog, f"{call}, dry_run => TRUE)")
        assert paths(table.handle.store) == before
        assert dry == one(catalog, f"{call})")
    row = one(catalog, "CALL system.vacuum(table => 'db.t', retain_last => 1, grace_s => 0)")
    assert row["oldest_version"] == 8
    assert row["expired_versions_count"] == 1
    assert row["removed_data_files_count"] == 8
    assert row["removed_log_files_count"] >= 2
    assert row["removed_bytes_count"] > 0
    nothing = one(catalog, "CALL system.remove_orphan_files('db', 't', grace_s => 0)")
    assert set(nothing.values()) == {0, 8}
    assert rows_of(catalog.open_table("db.t")) == expected(7)
    with pytest.raises(SnapshotExpired):
        catalog.call("CALL system.rollback_to_snapshot('db', 't', 1)")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("retain_last => 0", "keep at least 1"),
        ("retain_last => 'x'", "retain_last is bigint"),
        ("older_than => 5", "older_than is timestamp with time zone, and 5 is not"),
        ("older_than => 'yesterday'", "not a time"),
        ("older_than => '2999-01-01T00:00:00Z'", "in the future"),
        ("retain => 1", "did you mean 'retain_last'"),
    ],
)
def test_wrong_arguments_are_refused(catalog: rs.Catalog, arguments: str, message: str) -> None:
    for name in ("expire_snapshots", "vacuum"):
        with pytest.raises(InvalidInput, match=message):
            catalog.call(f"CALL system.{name}('db', 't', {arguments})")
    assert catalog.open_table("db.t").version == 7


def test_a_call_holds_a_lease_while_its_tasks_run(
    catalog: rs.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trap T24: what is expired meanwhile does not take the files of the tasks away."""
    table = catalog.open_table("db.t")
    run = engines.LocalEngine.run
    removed = []

    def expiring(self: Any, job: Any) -> Any:
        other = rs.open_table(table.uri)
        other.compact()
        removed.append(other.vacuum(retain_last=1, grace_s=3600))
        assert len(paths(table.handle.store, LEASES)) == 1
        return run(self, job)

    monkeypatch.setattr(engines.LocalEngine, "run", expiring)
    with pytest.raises(rs.errors.CommitConflict):  # of the compaction, not of the expiry
        catalog.call(
            "CALL system.rewrite_data_files('db', 't', options => map('rewrite-all', 'true'))"
        )
    assert (removed[0].leased_version, removed[0].oldest_version) == (7, 7)
    assert paths(table.handle.store, LEASES) == set()
    assert rows_of(rs.open_table(table.uri)) == expected(7)


def test_a_call_without_tasks_takes_no_lease(
    catalog: rs.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewrite = "CALL system.rewrite_data_files('db', 't')"
    catalog.call(rewrite)
    monkeypatch.setattr(rs.Table, "lease", None)
    before = paths(catalog.open_table("db.t").handle.store)
    catalog.call(rewrite)
    assert paths(catalog.open_table("db.t").handle.store) == before


def test_stored_vectors_are_built_and_joined_by_calls(catalog: rs.Catalog) -> None:
    table = catalog.open_table("db.t")
    some = one(catalog, "CALL system.build_deletion_vectors(table => 'db.t', where => 'id = 99')")
    assert some["parts_added"] == 0
    built = one(catalog, "CALL system.build_deletion_vectors('db', 't', 'id = 0')")
    assert built["parts_added"] == built["parts_removed"] == 7
    assert built["rows_written"] == 0
    table.upsert(table.to_arrow())
    assert one(catalog, "CALL system.build_deletion_vectors('db', 't')")["parts_added"] == 8
    table.refresh()
    joined = one(catalog, "CALL system.rewrite_position_delete_files('db', 't')")
    assert joined["rewritten_delete_files_count"] == 0  # there is one file
    assert rows_of(table) == expected(7)


def test_procedures_of_the_coordinator_tell_their_progress(
    catalog: rs.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deleting, "DELETED_AT_ONCE", 3)
    told: list[tuple[int, int]] = []
    engine = LocalEngine(1, lambda done, total: told.append((done, total)))

    def call(statement: str) -> list[tuple[int, int]]:
        told.clear()
        catalog.call(f"CALL system.{statement}", engine=engine)
        return list(told)

    table = catalog.open_table("db.t")
    rows = table.files().filter(pc.field("kind") == "data").column("rows").to_pylist()
    assert call("rewrite_manifests('db', 't')") == [(1, 1)]
    compacted = call("compact('db', 't')")
    assert compacted[-1] == (sum(rows), sum(rows))
    assert compacted == sorted(compacted)
    assert call("compact('db', 't')") == [(1, 1)]  # nothing is left to do
    expired = call("expire_snapshots('db', 't', retain_last => 1)")
    count = expired[-1][1]
    assert expired[-1] == (count, count)
    assert len(expired) > 3
    assert all(0 < after[0] - before[0] <= 3 for before, after in itertools.pairwise(expired))
    assert call("vacuum('db', 't', grace_s => 0)")[-1] == (1, 1)


class OnlyTasks:
    """An engine that can run tasks, and no more."""

    def run(self, job: Job) -> Iterator[pa.RecordBatch]:
        """Run them on a thread."""
        return LocalEngine(1).run(job)

    def cancel(self) -> None:
        """Do nothing."""


def test_an_engine_need_not_tell_progress(catalog: rs.Catalog) -> None:
    assert catalog.call("CALL system.compact('db', 't')", engine=OnlyTasks()).num_rows == 1
