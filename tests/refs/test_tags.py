"""Tags: names of versions, which keep their files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import (
    InvalidInput,
    SnapshotExpired,
    TableNotFound,
    UnsupportedOperation,
    UnsupportedProtocol,
    VersionNotFound,
)
from rowsieve.objects import open_store
from rowsieve.refs import registering
from rowsieve.retention.dropping import close
from rowsieve.storage.log.commit_request import CommitRequest
from rowsieve.storage.log.log_entry import log_path
from rowsieve.storage.snapshot import REFS_WRITER
from tests.faults.interrupts import interrupted
from tests.small_tables import appended, keyed, kv, pairs


def churned(table: Table) -> None:
    """Rewrite everything, and expire and delete all that may go."""
    table.upsert(kv((1, 100), (2, 200)))
    table.delete("k = 3")
    table.compact()
    table.vacuum(retain_last=1, grace_s=0)


def test_a_tag_reads_its_version_after_everything_else_has_expired() -> None:  # invariant 42
    table = keyed({"k": [1, 2], "v": [1, 2]}, {"k": [2, 3], "v": [22, 3]})
    expected = pairs(table)
    table.tag("2026-Q3")
    churned(table)
    churned(table)
    with pytest.raises(SnapshotExpired):
        table.scan(version=2)
    assert pairs(table, version="2026-Q3") == expected
    assert pairs(rowsieve.open_table(table.uri, ref="2026-Q3")) == expected
    assert pairs(rowsieve.open_table(table.uri, version="2026-Q3")) == expected
    assert table.to_dataset(version="2026-Q3").to_table().num_rows == len(expected)


def test_without_the_tag_the_same_files_go() -> None:
    table = keyed({"k": [1, 2], "v": [1, 2]}, {"k": [2, 3], "v": [22, 3]})
    tagged = table.tag("q")
    table.drop_tag("q")
    churned(table)
    with pytest.raises((SnapshotExpired, VersionNotFound)):
        pairs(tagged)
    store = open_store(table.uri)
    assert len(store.list("data")) == 1
    assert not store.list("_rowsieve/refs")


def test_a_tag_of_an_older_version_and_of_a_time() -> None:
    table = appended({"k": [1], "v": [1]}, {"k": [2], "v": [2]}, {"k": [3], "v": [3]})
    second = next(each for each in table.history() if each.version == 2)
    table.tag("two", version=2)
    table.tag("then", as_of=second.timestamp)
    table.tag("again", version="two")
    churn = table.compact()
    assert churn.committed
    table.vacuum(retain_last=1, grace_s=0)
    for name in ("two", "then", "again"):
        assert pairs(table, version=name) == [(1, 1), (2, 2)]
    with pytest.raises(SnapshotExpired):
        table.tag("late", version=2)


def test_a_tag_never_changes() -> None:
    table = keyed({"k": [1], "v": [1]})
    tagged = table.tag("q")
    for way in (tagged, rowsieve.open_table(tagged.uri), rowsieve.open_table(table.uri, ref="q")):
        assert way.ref == "q"
        with pytest.raises(UnsupportedOperation, match="never changes"):
            way.upsert(kv((1, 2)))
        with pytest.raises(UnsupportedOperation, match="vacuum: 'q' is a tag, which never"):
            way.vacuum()
    log, head = tagged.handle.log, tagged.handle.pinned
    with pytest.raises(UnsupportedOperation, match="upsert: 'q' is a tag, which never changes"):
        log.commit(CommitRequest("upsert"), head, lambda *_: CommitRequest("upsert"))


@pytest.mark.parametrize("name", ["", "12", "v12", "main", "a/b", "a b", "-a", "é", "x" * 101])
def test_names_that_could_be_something_else_are_refused(name: str) -> None:
    table = keyed({"k": [1], "v": [1]})
    with pytest.raises(InvalidInput, match="cannot name a branch or tag"):
        table.tag(name)
    assert table.refs().num_rows == 0


def test_a_name_that_is_written_as_a_version_is_refused_with_names_that_work() -> None:
    table = keyed({"k": [1], "v": [1]})
    with pytest.raises(InvalidInput, match=r"as 7 or v7; write v7\.0 or release-7 instead"):
        table.tag("v1")
    table.tag("v7.0")
    table.tag("release-7")
    assert set(table.refs().column("name").to_pylist()) == {"v7.0", "release-7"}


def test_a_name_is_used_once() -> None:
    table = keyed({"k": [1], "v": [1]})
    table.tag("q")
    with pytest.raises(InvalidInput, match="has a tag 'q' already, of version 1"):
        table.branch("q")
    with pytest.raises(InvalidInput, match="is a tag, not a branch"):
        table.drop_branch("q")
    with pytest.raises(VersionNotFound, match="did you mean 'q'"):
        table.scan(version="q1")
    table.drop_ref("q")
    table.upsert(kv((1, 2)))
    table.tag("q")
    assert pairs(table, version="q") == [(1, 2)]


def test_an_older_writer_refuses_a_table_with_refs(monkeypatch: pytest.MonkeyPatch) -> None:
    table = keyed({"k": [1], "v": [1]})
    table.tag("q")
    monkeypatch.setattr("rowsieve.storage.log.commit_log.WRITER_VERSION", REFS_WRITER - 1)
    with pytest.raises(UnsupportedProtocol, match=f"writer protocol {REFS_WRITER}"):
        rowsieve.open_table(table.uri).vacuum(retain_last=1, grace_s=0)
    assert pairs(rowsieve.open_table(table.uri)) == [(1, 1)]


def test_refs_outlive_restore_and_properties_and_are_not_cloned(tmp_path: Path) -> None:
    table = rowsieve.create_table(tmp_path / "t", kv((1, 1)), key=["k"])
    table.upsert(kv((1, 2)))
    table.tag("q")
    table.set_properties({"checkpoint_interval": "7"})
    table.restore(0)
    assert table.refs().column("name").to_pylist() == ["q"]
    assert table.clone(tmp_path / "copy").refs().num_rows == 0
    with pytest.raises(InvalidInput, match="kept by Rowsieve"):
        table.set_properties({"rowsieve.ref.x": "{}"})


def test_a_table_is_restored_to_a_tag_whose_version_has_expired() -> None:
    table = keyed({"k": [1, 2, 3], "v": [1, 2, 3]})
    table.tag("q")
    churned(table)
    commit = table.restore("q")
    assert commit.metadata["restored"] == "1"
    assert pairs(table) == [(1, 1), (2, 2), (3, 3)]
    table.upsert(kv((1, 7)))
    table.drop_tag("q")
    table.vacuum(retain_last=1, grace_s=0)
    assert pairs(table) == [(1, 7), (2, 2), (3, 3)]


def test_a_table_with_refs_is_not_purged(tmp_path: Path) -> None:
    table = rowsieve.create_table(tmp_path / "t", kv((1, 1)), key=["k"])
    table.tag("q")
    with pytest.raises(UnsupportedOperation, match="has the branches and tags q"):
        close(open_store(table.uri))
    assert pairs(table, version="q") == [(1, 1)]


def test_a_lease_keeps_a_dropped_tag_until_its_end() -> None:  # invariant 42
    table = keyed({"k": [1], "v": [1]})
    table.tag("q")
    with table.lease(version="q") as held:
        table.drop_tag("q")
        churned(table)
        assert pairs(held) == [(1, 1)]
    table.vacuum(retain_last=1, grace_s=0)
    assert not open_store(table.uri).list("_rowsieve/refs")


def test_a_tag_of_a_branch_outlives_the_branch() -> None:
    table = keyed({"k": [1], "v": [1]})
    branch = table.branch("audit")
    branch.upsert(kv((2, 2)))
    branch.tag("audited")
    branch.upsert(kv((2, 3)))
    branch.vacuum(retain_last=1, grace_s=0)
    table.drop_branch("audit")
    table.vacuum(retain_last=1, grace_s=0)
    assert pairs(table, version="audited") == [(1, 1), (2, 2)]
    with pytest.raises(UnsupportedOperation, match="not a tag of a version of the table itself"):
        table.restore("audited")


def test_an_unfinished_creation_is_deleted_once_nobody_can_register_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = keyed({"k": [1], "v": [1]})

    with interrupted(registering, "commit_refs"):
        table.tag("q")
    store = open_store(table.uri)
    (folder,) = store.folders("_rowsieve/refs")
    assert table.refs().num_rows == 0
    table.vacuum(retain_last=1, grace_s=3600)
    assert store.folders("_rowsieve/refs") == [folder]
    table.upsert(kv((2, 2)))
    table.upsert(kv((2, 2)))
    table.vacuum(retain_last=1, grace_s=0)
    table.vacuum(retain_last=1, grace_s=0)
    assert not store.list("_rowsieve/refs")
    table.tag("q")
    assert pairs(table, version="q") == [(1, 1), (2, 2)]


def test_a_damaged_log_of_a_ref_stops_every_deletion(tmp_path: Path) -> None:
    table = rowsieve.create_table(tmp_path / "t", kv((1, 1)), key=["k"])
    branch = table.branch("audit")
    branch.upsert(kv((2, 2)))
    table.upsert(kv((1, 3)))
    table.compact()
    store = open_store(branch.uri)
    store.delete([log_path(branch.version)])
    before = open_store(table.uri).list("data")
    with pytest.raises(rowsieve.errors.CorruptData):
        table.vacuum(retain_last=1, grace_s=0)
    assert open_store(table.uri).list("data") == before


def test_refs_are_listed_with_their_newest_versions() -> None:
    table = keyed({"k": [1], "v": [1]})
    branch = table.branch("audit")
    branch.upsert(kv((2, 2)))
    branch.tag("checked")
    table.tag("q")
    expected = [
        {"name": "audit", "kind": "branch", "version": 2, "base_version": 1, "of": "main"},
        {"name": "checked", "kind": "tag", "version": 2, "base_version": 2, "of": "audit"},
        {"name": "q", "kind": "tag", "version": 3, "base_version": 3, "of": "main"},
    ]
    assert table.refs().drop_columns(["timestamp"]).to_pylist() == expected
    assert branch.refs().equals(table.refs())
    assert isinstance(table.refs(), pa.Table)


def test_a_write_to_a_tag_names_the_tag() -> None:
    table = keyed({"k": [1], "v": [1]})
    table.tag("q")
    tags = (
        table.at_ref("q"),
        rowsieve.open_table(table.uri, ref="q"),
        rowsieve.open_table(table.uri, version="q"),
    )
    for tag in tags:
        with pytest.raises(UnsupportedOperation, match="'q' is a tag, which never changes"):
            tag.upsert(kv((1, 2)))
        with pytest.raises(UnsupportedOperation, match="'q' is a tag, which never changes"):
            tag.compact()


def test_main_is_the_table_itself() -> None:
    table = keyed({"k": [1], "v": [1]})
    branch = table.branch("b")
    branch.upsert(kv((1, 5)))
    for main in (
        table.at_ref("main"),
        branch.at_ref("main"),
        rowsieve.open_table(table.uri, ref="main"),
        rowsieve.open_table(branch.uri, ref="main"),
    ):
        assert (main.uri, main.ref, pairs(main)) == (table.uri, None, [(1, 1)])
    table.at_ref("main").upsert(kv((2, 2)))
    assert pairs(branch, version="main") == [(1, 1), (2, 2)]
    assert pairs(branch) == [(1, 5)]


def test_a_handle_of_a_dropped_ref_says_that_it_was_dropped() -> None:
    table = keyed({"k": [1], "v": [1]})
    branch = table.branch("b")
    table.drop_branch("b")
    for call in (branch.to_arrow, lambda: rowsieve.open_table(branch.uri)):
        with pytest.raises(TableNotFound, match="it was dropped"):
            call()
