"""A version that expires before a lease keeps it: whoever wanted the newest one begins again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import SnapshotExpired
from rowsieve.retention import retaining
from rowsieve.retention.leases import LEASES, Lease

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])
PROCEDURES = {
    "rewrite": "rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))",
    "rewrite in stages": (
        "rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true', "
        "'partial-progress.enabled', 'true', 'max-file-group-size-bytes', '1'))"
    ),
    "rewrite some": "rewrite_data_files(table => 'db.t', where => 'id >= 0')",
    "build vectors": "build_deletion_vectors(table => 'db.t')",
    "merge vectors": (
        "rewrite_position_delete_files(table => 'db.t', options => map('rewrite-all', 'true'))"
    ),
    "analyze": "analyze(table => 'db.t', rewrite_all => true)",
    "migrate": "migrate(table => 'db.t')",
}


def rows(*ids: int, v: int) -> pa.Table:
    return pa.table({"id": ids, "v": [v] * len(ids)}, schema=SCHEMA)


def made(folder: Path) -> tuple[rs.Catalog, rs.Table]:
    """Two parts with a file of vectors each, deletes of both, and rows from before there was `w`.

    Small changes are files, so that every procedure has something to do.
    """
    catalog = rs.Catalog(folder)
    table = catalog.create_table("db.t", SCHEMA, ["id"], properties={"inline_bytes": "1"})
    for start in (0, 20):
        table.upsert(rows(*range(start, start + 6), v=start))
    table.delete("id IN (1, 21)")
    for condition in ("id < 10", "id >= 10"):
        table.build_deletion_vectors(condition)
    table.delete("id IN (2, 22)")
    table.add_column("w", pa.int64())
    table.upsert(rows(90, v=1).append_column("w", pa.array([5])))
    return catalog, table


def overtake(monkeypatch: pytest.MonkeyPatch, table: rs.Table, times: int) -> list[int]:
    """Give up the version of a lease before it is created, `times` times; return the versions."""
    leased: list[int] = []
    other = rs.open_table(table.uri)

    def too_late(store: Any, uuid: str, version: int, *args: Any) -> Lease:
        leased.append(version)
        if len(leased) <= times:
            with monkeypatch.context() as undone:
                undone.setattr(retaining, "Lease", Lease)
                other.upsert(rows(99 + len(leased), v=3).append_column("w", pa.array([6])))
                other.vacuum(retain_last=1, grace_s=0)
        return Lease(store, uuid, version, *args)

    monkeypatch.setattr(retaining, "Lease", too_late)
    return leased


def content(table: rs.Table) -> list[dict[str, Any]]:
    table.refresh()
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("procedure", PROCEDURES)
def test_a_procedure_begins_again_if_its_version_expires_before_its_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, procedure: str
) -> None:
    """Invariant 16, trap T24: no task reads a version that no lease keeps."""
    catalog, table = made(tmp_path)
    before = content(table)
    leased = overtake(monkeypatch, table, times=2)
    catalog.call(f"CALL system.{PROCEDURES[procedure]}")
    monkeypatch.undo()
    added = [{"id": id_, "v": 3, "w": 6} for id_ in (100, 101)]
    assert content(table) == before + added
    assert len(leased) >= 3
    assert leased == sorted(leased)
    assert not table.handle.store.list(LEASES)


def test_a_filter_is_bound_again_to_the_columns_of_the_new_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version that expired had a column of that name, the new one has another."""
    catalog, table = made(tmp_path)
    other = rs.open_table(table.uri)

    def too_late(*args: Any) -> Lease:
        monkeypatch.undo()
        other.drop_column("w")
        other.vacuum(retain_last=1, grace_s=0)
        return Lease(*args)

    monkeypatch.setattr(retaining, "Lease", too_late)
    text = "CALL system.rewrite_data_files(table => 'db.t', where => 'w IS NULL OR w > 0')"
    with pytest.raises(rs.errors.RowsieveError, match="w"):
        catalog.call(text)


def test_a_missing_file_of_a_kept_version_is_an_error_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, table = made(tmp_path)
    begun: list[str] = []

    def absent(_store: Any, _uuid: str, version: int, *_args: Any) -> Lease:
        table.upsert(rows(200 + len(begun), v=1).append_column("w", pa.array([1])))
        begun.append(f"version {version}")
        raise SnapshotExpired("a file is absent")

    monkeypatch.setattr(retaining, "Lease", absent)
    with pytest.raises(SnapshotExpired, match="a file is absent"):
        catalog.call(f"CALL system.{PROCEDURES['rewrite']}")
    assert len(begun) == 1


def test_a_lease_of_the_newest_version_takes_the_one_that_is_the_newest_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, table = made(tmp_path)
    overtake(monkeypatch, table, times=2)
    with table.lease() as pinned:
        assert [row["id"] for row in content(pinned)][-2:] == [100, 101]
    overtake(monkeypatch, table, times=1)
    clone = table.clone(tmp_path / "clone")
    overtake(monkeypatch, table, times=1)
    table.branch("audit")
    monkeypatch.undo()
    assert content(clone) == content(table) == content(rs.open_table(table.uri, ref="audit"))
    with (
        pytest.raises(SnapshotExpired, match="versions"),
        table.lease(version=0, holder="an old version is what was asked for"),
    ):
        pass
