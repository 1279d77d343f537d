"""The property `publish`: each commit is published after it, and retention keeps what is needed."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.table import StaticTable

import rowsieve as rs
from rowsieve.errors import InvalidInput
from rowsieve.metrics import CommitReport
from rowsieve.objects import LocalStore
from rowsieve.publication.publication import Publication
from rowsieve.retention.published_files import Format
from tests.faults.stores import EveryStore
from tests.faults.vocabulary import Fault
from tests.small_tables import KV, kv, pairs

BOTH = {"publish": "iceberg, delta"}
FORMATS: tuple[Format, ...] = ("iceberg", "delta")


def iceberg(folder: Path) -> StaticTable:
    number = (folder / "metadata/version-hint.text").read_text()
    return StaticTable.from_metadata(f"{folder}/metadata/v{number}.metadata.json")


def versions_of(folder: Path) -> list[int]:
    summaries = [each.summary or {} for each in iceberg(folder).snapshots()]
    return [int(summary["rowsieve.version"]) for summary in summaries]


def published(folder: Path) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The rows as readers of Iceberg and of Delta see them."""
    builder = QueryBuilder().register("t", DeltaTable(str(folder)))
    delta = pa.table(builder.execute("SELECT k, v FROM t").read_all())
    first, second = (
        sorted(zip(rows["k"].to_pylist(), rows["v"].to_pylist(), strict=True))
        for rows in (iceberg(folder).scan().to_arrow(), delta)
    )
    return first, second


def test_each_commit_is_published(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    table = rs.create_table(str(folder), KV, key=["k"], properties=BOTH)
    table.upsert(kv((1, 10), (2, 20), (3, 30)))
    assert published(folder) == (pairs(table), pairs(table))
    table.delete("k = 2")
    table.update({"v": "v + 1"}, where="k = 3")
    assert published(folder) == (pairs(table), pairs(table)) == ([(1, 10), (3, 31)],) * 2
    with table.transaction() as tx:
        before = published(folder)
        tx.upsert(kv((4, 40)))
        tx.delete("k = 1")
        assert published(folder) == before
    assert published(folder) == (pairs(table), pairs(table))
    table.compact()
    table.restore(version=1)
    assert published(folder) == (pairs(table), pairs(table))
    with table.writer(durability="commit") as writer:
        writer.upsert(kv((9, 90))).result()
    assert published(folder) == (pairs(table), pairs(table))
    versions = versions_of(folder)
    assert versions == list(range(table.version + 1))
    with pytest.raises(InvalidInput, match="publish"):
        table.set_properties({"publish": "csv"})


def _is_below(folder: str, path: str) -> bool:
    return path.startswith(folder)


@pytest.mark.parametrize("fault", [Fault.UNAVAILABLE, Fault.NO_SPACE])
def test_a_failed_publication_fails_no_commit(
    fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "t"
    table = rs.create_table(str(folder), KV, key=["k"], properties=BOTH)
    reports: list[Any] = []

    class Keeping:
        def report(self, report: Any) -> None:
            reports.append(report)

    table.report_to(Keeping())
    with monkeypatch.context() as patch:
        stores = EveryStore(patch, LocalStore)
        for place in ("metadata/", "_delta_log/"):
            stores.meet_where(fault, "put_new", partial(_is_below, place))
        assert table.upsert(kv((1, 10))).committed
    failed = [r for r in reports if isinstance(r, CommitReport) and r.error]
    assert [(r.operation, r.error) for r in failed] == [
        ("publish iceberg", "StoreError"),
        ("publish delta", "StoreError"),
    ]
    table.maintain()
    assert published(folder) == ([(1, 10)], [(1, 10)])


def test_a_publication_keeps_what_another_format_holds(tmp_path: Path) -> None:
    """A hold moves once it is many versions old: that of its own publication alone."""
    folder = tmp_path / "t"
    table = rs.create_table(str(folder), kv((1, 10), (2, 20)), key=["k"])
    table.publish("delta")
    for number in range(17):
        table.upsert(kv((1, number)))
    table.publish("iceberg")
    table.compact()
    table.vacuum(retain_last=1, grace_s=0)
    assert published(folder) == ([(1, 16), (2, 20)], [(1, 10), (2, 20)])


@pytest.mark.parametrize("kind", FORMATS)
def test_retention_keeps_what_the_newest_publication_has(kind: Format, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    table = rs.create_table(str(folder), kv((1, 10), (2, 20)), key=["k"])
    table.publish(kind)
    rows = pairs(table)
    table.upsert(kv((1, 11)))
    table.compact()
    table.expire_versions(retain_last=1)
    table.remove_orphans(grace_s=0)
    assert pairs(rs.open_table(str(folder), version=0)) == rows
    reader = rs.from_delta(folder) if kind == "delta" else rs.from_iceberg(iceberg(folder))
    assert pairs(reader) == rows
    table.publish(kind)
    table.vacuum(retain_last=1, grace_s=0)
    assert len(list((folder / "data").iterdir())) == 1
    reader = rs.from_delta(folder) if kind == "delta" else rs.from_iceberg(iceberg(folder))
    assert pairs(reader) == pairs(table)


@pytest.mark.parametrize("retention", ["expire_versions", "vacuum", "maintain", "of the table"])
@pytest.mark.parametrize("kind", FORMATS)
def test_retention_of_a_branch_keeps_what_its_publication_has(
    retention: str, kind: Format, tmp_path: Path
) -> None:
    folder, place = tmp_path / "t", tmp_path / "other"
    table = rs.create_table(str(folder), kv((1, 10), (2, 20)), key=["k"])
    branch = table.branch("try")
    branch.upsert(kv((1, 11)))
    published = branch.publish(kind, place)
    rows = pairs(branch)
    for i in range(2):
        branch.upsert(kv((3, i)))
        branch.compact()
        removing(branch, table, retention)
        assert pairs(reader_of(published)) == rows
        published, rows = branch.publish(kind, place), pairs(branch)
    removing(branch, table, "vacuum")
    assert len(list((folder / "data").iterdir())) == 2  # one is the table's


def reader_of(publication: Publication) -> rs.Table:
    """The published table, as it can be imported."""
    if publication.metadata_location is None:
        return rs.from_delta(publication.location)
    return rs.from_iceberg(StaticTable.from_metadata(publication.metadata_location))


def removing(branch: rs.Table, table: rs.Table, retention: str) -> None:
    """Delete what retention lets go."""
    if retention == "expire_versions":
        branch.expire_versions(retain_last=1)
    elif retention == "maintain":
        branch.maintain(retain_last=1, grace_s=0)
    else:
        owner = table if retention == "of the table" else branch
        owner.vacuum(retain_last=1, grace_s=0)


def test_expired_versions_leave_the_publication(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    table = rs.create_table(str(folder), KV, key=["k"], properties={"publish": "iceberg"})
    for i in range(6):
        table.upsert(kv((i, i)))
    table.expire_versions(retain_last=2)
    versions = versions_of(folder)
    assert min(versions) >= 5
    for snapshot in iceberg(folder).snapshots():
        assert iceberg(folder).scan(snapshot_id=snapshot.snapshot_id).to_arrow().num_rows


def test_tags_are_refs(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    table = rs.create_table(str(folder), KV, key=["k"], properties={"publish": "iceberg"})
    table.upsert(kv((1, 10)))
    table.tag("before")
    table.upsert(kv((1, 11)))
    ref = iceberg(folder).metadata.refs["before"]
    assert iceberg(folder).scan(snapshot_id=ref.snapshot_id).to_arrow()["v"].to_pylist() == [10]
    document = json.loads((folder / f"metadata/v{table.version + 1}.metadata.json").read_text())
    assert document["refs"]["before"]["type"] == "tag"


def test_a_branch_is_published_where_it_is_told_to(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    table = rs.create_table(str(folder), kv((1, 10)), key=["k"], properties=BOTH)
    branch = table.branch("try")
    branch.upsert(kv((1, 11)))
    assert published(folder) == ([(1, 10)], [(1, 10)])
    place = branch.publish("iceberg", str(tmp_path / "other")).metadata_location
    assert StaticTable.from_metadata(str(place)).scan().to_arrow()["v"].to_pylist() == [11]
    table.fast_forward("try")
    assert branch.publish("iceberg", str(tmp_path / "other")).metadata_location == place
    table.maintain()
    assert published(folder) == ([(1, 11)], [(1, 11)])


def test_a_dropped_table_of_a_database_keeps_no_published_files(tmp_path: Path) -> None:
    database = rs.Database(str(tmp_path / "db"))
    table = database.create_table("a", kv((1, 10)), key=["k"], properties=BOTH)
    table.delete("k = 1")
    folder = Path(table.publish("iceberg").location)
    assert published(folder) == ([], [])
    database.drop_table("a")
    database.vacuum(retain_s=0)
    assert not [each for each in folder.rglob("*") if each.is_file()]
