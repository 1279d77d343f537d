"""Branches: written beside the table over the same files, and published in one commit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import (
    CommitConflict,
    ConstraintViolation,
    InvalidInput,
    UnsupportedOperation,
)
from rowsieve.objects import open_store
from rowsieve.objects.ref_store import REFS
from rowsieve.scan import read_split
from rowsieve.storage.log.refs import dropped_of
from rowsieve.storage.versioned_names import writer_of_path
from tests.small_tables import KV, appended, keyed, kv, pairs


def base() -> Table:
    return keyed({"k": [1, 2, 3], "v": [1, 2, 3]})


def changes_of(table: Table, version: int) -> list[tuple[Any, ...]]:
    rows = table.changes(version, version).read_all().to_pylist()
    return sorted((row["_change_type"], row["k"], row["v"]) for row in rows)


def test_a_branch_and_its_table_see_nothing_of_each_other() -> None:
    table = base()
    branch = table.branch("audit")
    branch.upsert(kv((3, 30), (4, 40)))
    table.upsert(kv((1, 100)))
    branch.delete("k = 2")
    assert pairs(branch) == [(1, 1), (3, 30), (4, 40)]
    assert pairs(table) == [(1, 100), (2, 2), (3, 3)]
    assert pairs(rowsieve.open_table(table.uri, ref="audit")) == pairs(branch)
    assert pairs(rowsieve.open_table(branch.uri)) == pairs(branch)
    assert pairs(branch, version=2) == [(1, 1), (2, 2), (3, 30), (4, 40)]
    assert pairs(table, version="audit") == pairs(branch)


def test_files_are_shared_and_new_ones_say_whose_they_are(tmp_path: Path) -> None:
    table = rowsieve.create_table(tmp_path / "t", kv((1, 1)), key=["k"])
    before = open_store(table.uri).list("data")
    branch = table.branch("audit")
    assert open_store(table.uri).list("data") == before
    branch.upsert(kv((2, 2)))
    (new,) = set(open_store(table.uri).list("data")) - set(before)
    assert writer_of_path(new) == branch.uri.rpartition(".")[2]


def test_a_split_of_a_branch_is_read_by_another_process(tmp_path: Path) -> None:
    table = rowsieve.create_table(tmp_path / "t", kv((1, 1)), key=["k"])
    branch = table.branch("audit")
    branch.upsert(kv((2, 2)))
    splits = branch.scan().plan().splits_to_bytes()
    rows = [row for split in splits for row in read_split(split).read_all().to_pylist()]
    assert sorted(row["k"] for row in rows) == [1, 2]


def test_a_publication_is_one_commit_with_the_net_changes() -> None:
    table = base()
    branch = table.branch("audit")
    branch.upsert(kv((3, 30), (4, 40)))
    branch.upsert(kv((4, 41)))
    branch.delete("k = 1")
    branch.upsert(kv((2, 2)))
    version = table.handle.latest().version
    commit = table.fast_forward("audit", metadata={"by": "test"})
    assert commit.version == version + 1
    assert commit.metadata == {"by": "test", "ref": "audit"}
    assert pairs(table) == pairs(branch) == [(2, 2), (3, 30), (4, 41)]
    assert changes_of(table, commit.version) == [
        ("delete", 1, 1),
        ("insert", 4, 41),
        ("update_postimage", 3, 30),
        ("update_preimage", 3, 3),
    ]
    assert not table.fast_forward("audit").committed


def test_commits_after_a_publication_are_newer_than_it() -> None:  # invariant I1
    table = base()
    branch = table.branch("audit")
    for number in range(12):  # its versions are far ahead of the table's
        branch.upsert(kv((1, number)))
    table.fast_forward("audit")
    assert pairs(table)[0] == (1, 11)
    table.upsert(kv((1, 99)))
    assert pairs(table)[0] == (1, 99)
    table.delete("k = 1")
    assert pairs(table) == [(2, 2), (3, 3)]
    table.compact()
    assert pairs(table) == [(2, 2), (3, 3)]


def test_a_branch_goes_on_after_its_publication() -> None:
    table = base()
    branch = table.branch("audit")
    branch.upsert(kv((1, 10)))
    table.fast_forward("audit")
    branch.upsert(kv((1, 11), (2, 20)))
    branch.compact()
    branch.upsert(kv((2, 21)))
    branch.delete("k = 3")
    assert pairs(table) == [(1, 10), (2, 2), (3, 3)]
    commit = table.fast_forward("audit")
    assert pairs(table) == [(1, 11), (2, 21)]
    assert [kind for kind, *_ in changes_of(table, commit.version)].count("delete") == 1
    table.drop_branch("audit")
    table.vacuum(retain_last=1, grace_s=0)
    assert pairs(rowsieve.open_table(table.uri)) == [(1, 11), (2, 21)]


MOVES: dict[str, Callable[[Table], Any]] = {
    "upsert": lambda t: t.upsert(kv((9, 9))),
    "delete": lambda t: t.delete("k = 1"),
    "restore": lambda t: t.restore(0),
    "set_properties": lambda t: t.set_properties({"checkpoint_interval": "9"}),
    "alter": lambda t: t.add_column("w", pa.int64()),
}


@pytest.mark.parametrize("name", MOVES)
def test_a_table_that_has_moved_refuses_the_publication(name: str) -> None:  # invariant 42
    table = base()
    branch = table.branch("audit")
    branch.upsert(kv((4, 4)))
    MOVES[name](table)
    before = table.handle.latest().version
    with pytest.raises(CommitConflict, match=rf"moved since version 1, .*: version 3 by {name}"):
        table.fast_forward("audit")
    assert table.handle.latest().version == before


def test_upkeep_and_other_refs_do_not_count_as_moves() -> None:
    table = base()
    table.upsert(kv((1, 10)))
    branch = table.branch("audit")
    branch.upsert(kv((4, 4)))
    table.compact()
    table.build_deletion_vectors()
    table.tag("q")
    table.branch("other")
    table.vacuum(retain_last=3, grace_s=0)
    table.fast_forward("audit")
    assert pairs(table) == [(1, 10), (2, 2), (3, 3), (4, 4)]
    rowsieve.open_table(table.uri, ref="other").upsert(kv((5, 5)))
    with pytest.raises(CommitConflict, match="by fast_forward"):
        table.fast_forward("other")


def test_commits_that_have_expired_count_as_moves_unless_nothing_differs() -> None:
    for changed in (False, True):
        table = base()
        branch = table.branch("audit")
        branch.upsert(kv((4, 4)))
        if changed:
            table.upsert(kv((1, 10)))
        table.vacuum(retain_last=1, grace_s=0)
        table.vacuum(retain_last=1, grace_s=0)
        if changed:
            with pytest.raises(CommitConflict):
                table.fast_forward("audit")
        else:
            table.fast_forward("audit")
            assert pairs(table)[-1] == (4, 4)


@pytest.mark.parametrize("visibility", ["lazy", "eager"])
def test_stored_vectors_of_both_sides(visibility: str) -> None:  # invariant I4
    table = keyed({"k": [1, 2, 3], "v": [1, 2, 3]}, properties={"visibility": visibility})
    branch = table.branch("audit")
    branch.upsert(kv((1, 10)))
    branch.upsert(kv((2, 20)))
    branch.build_deletion_vectors()
    table.fast_forward("audit")
    assert pairs(table) == [(1, 10), (2, 20), (3, 3)]
    table.upsert(kv((1, 11)))  # a vector that is known too far would not see it
    table.upsert(kv((3, 33)))
    assert pairs(table) == [(1, 11), (2, 20), (3, 33)]


def test_a_branch_that_was_restored_shows_rows_that_vectors_of_the_table_hide() -> None:
    table = base()
    table.upsert(kv((1, 10)))
    branch = table.branch("audit")
    table.build_deletion_vectors()
    branch.vacuum()
    branch.overwrite(kv((7, 7)))
    branch.restore(branch.version - 1)
    branch.upsert(kv((8, 8)))
    table.fast_forward("audit")
    assert pairs(table) == [(1, 10), (2, 2), (3, 3), (8, 8)]
    branch.overwrite(kv((7, 7)))
    table.fast_forward("audit")
    assert pairs(table) == [(7, 7)]
    branch.restore(branch.version - 1)
    table.fast_forward("audit")
    assert pairs(table) == [(1, 10), (2, 2), (3, 3), (8, 8)]


def test_a_table_without_a_key() -> None:
    table = appended({"k": [1, 2], "v": [1, 2]}, {"k": [3], "v": [3]})
    branch = table.branch("audit")
    branch.append(kv((4, 4)))
    branch.append(kv((4, 4)))
    branch.delete("k = 1")
    branch.update({"v": "v + 10"}, where="k = 3")
    table.fast_forward("audit")
    expected = [(2, 2), (3, 13), (4, 4), (4, 4)]
    assert pairs(table) == expected
    table.append(kv((5, 5)))
    table.compact()
    table.drop_branch("audit")
    table.vacuum(retain_last=1, grace_s=0)
    assert pairs(rowsieve.open_table(table.uri)) == [*expected, (5, 5)]


def test_columns_and_properties_of_the_branch_are_published() -> None:
    table = base()
    branch = table.branch("audit")
    branch.add_column("w", pa.int64())
    branch.set_properties({"checkpoint_interval": "7"})
    wide = pa.table({"k": [1], "v": [5], "w": [6]})
    branch.upsert(wide.cast(branch.schema))
    branch.drop_column("v")
    table.fast_forward("audit")
    table.refresh()
    assert table.schema.names == ["k", "w"]
    assert table.scan("w = 6").to_arrow().to_pylist() == [{"k": 1, "w": 6}]
    assert table.detail()["properties"]["checkpoint_interval"] == "7"
    table.upsert(pa.table({"k": [2], "w": [7]}).cast(table.schema))
    assert table.scan("w > 0").count() == 2


def test_constraints_of_the_branch_hold_for_writers_that_do_not_know_them_yet() -> None:
    table = base()
    stale = rowsieve.open_table(table.uri)
    branch = table.branch("audit")
    for _ in range(9):
        branch.upsert(kv((1, 1)))
    branch.add_constraint("positive", "v > 0")
    table.fast_forward("audit")
    with pytest.raises(ConstraintViolation):
        table.upsert(kv((1, -1)))
    with pytest.raises((ConstraintViolation, CommitConflict)):
        stale.upsert(kv((1, -1)))
    table.upsert(kv((1, 7)))  # and later numbers of the branch do not stand in the way
    assert pairs(table)[0] == (1, 7)


def test_an_event_order_holds_across_a_publication() -> None:
    schema = pa.schema([*KV, pa.field("s", pa.int64(), nullable=False)])

    def rows(*values: tuple[int, int, int]) -> pa.Table:
        return pa.Table.from_pylist([dict(zip("kvs", row, strict=True)) for row in values], schema)

    table = rowsieve.create_table(
        f"memory:///{id(schema)}-order", rows((1, 1, 10), (2, 2, 10)), key=["k"], sequence="s"
    )
    branch = table.branch("audit")
    branch.upsert(rows((1, 5, 5), (2, 20, 20)))
    branch.upsert(rows((2, 15, 15), (3, 3, 30)))
    branch.upsert(rows((3, 4, 40)))
    table.fast_forward("audit")
    table.upsert(rows((2, 16, 16), (3, 35, 35), (1, 11, 11)))
    read = {row["k"]: row["v"] for row in table.scan().to_arrow().to_pylist()}
    assert read == {1: 11, 2: 20, 3: 4}


def test_a_branch_keeps_the_files_that_its_table_has_given_up() -> None:  # invariant 42
    table = base()
    branch = table.branch("audit")
    table.overwrite(kv((7, 7)))
    table.vacuum(retain_last=1, grace_s=0)
    assert pairs(rowsieve.open_table(table.uri, ref="audit")) == [(1, 1), (2, 2), (3, 3)]
    branch.upsert(kv((1, 10)))
    table.vacuum(retain_last=1, grace_s=0)
    assert pairs(rowsieve.open_table(table.uri, ref="audit"))[0] == (1, 10)


def test_a_table_keeps_published_files_that_the_branch_has_given_up() -> None:  # invariant 42
    table = base()
    branch = table.branch("audit")
    branch.upsert(kv((1, 10)))
    table.fast_forward("audit")
    branch.overwrite(kv((7, 7)))
    branch.vacuum(retain_last=1, grace_s=0)
    assert pairs(rowsieve.open_table(table.uri)) == [(1, 10), (2, 2), (3, 3)]
    table.drop_branch("audit")
    table.vacuum(retain_last=1, grace_s=0)
    assert pairs(rowsieve.open_table(table.uri)) == [(1, 10), (2, 2), (3, 3)]


def test_uncommitted_files_of_a_branch_are_its_own_orphans(tmp_path: Path) -> None:
    table = rowsieve.create_table(tmp_path / "t", kv((1, 1)), key=["k"])
    branch = table.branch("audit")
    branch.upsert(kv((2, 2)))
    tag = branch.uri.rpartition(".")[2]
    stray = f"data/{'0' * 32}.0.{tag}.parquet"  # a writer of the branch is about to commit it
    open_store(branch.uri).put_new(stray, b"x")
    for _ in range(5):
        table.upsert(kv((1, 1)))
    table.vacuum(retain_last=1, grace_s=0)
    assert open_store(table.uri).exists(stray)
    branch.vacuum(retain_last=1, grace_s=0)
    assert not open_store(table.uri).exists(stray)
    open_store(branch.uri).put_new(stray, b"x")
    table.drop_branch("audit")
    assert not open_store(table.uri).exists(stray)


def test_a_dropped_branch_leaves_no_folder(tmp_path: Path) -> None:
    table = rowsieve.create_table(tmp_path / "t", kv((1, 1)), key=["k"])
    table.branch("audit").upsert(kv((2, 2)))
    table.tag("q3")
    folder = tmp_path / "t/_rowsieve/refs"
    assert len(list(folder.iterdir())) == 2
    table.drop_ref("audit")
    (left,) = folder.iterdir()
    assert left.name.startswith("q3.")
    assert pairs(table.at_ref("q3")) == [(1, 1)]


def test_a_deletion_of_a_dropped_branch_that_died_halfway_goes_on() -> None:
    """Its log is gone, and the table still lists it as dropped."""
    table = base()
    with table.branch("audit").lease():  # so that it is not deleted at once
        table.drop_branch("audit")
    (folder,) = dropped_of(table.handle.latest().table.properties)
    store = open_store(table.uri)
    store.delete(store.list(f"{REFS}/{folder}"))
    table.upsert(kv((1, 11)))
    table.expire_versions(retain_last=1, grace_s=0)
    table.vacuum(retain_last=1, grace_s=0)
    assert not dropped_of(table.handle.latest().table.properties)
    assert pairs(rowsieve.open_table(table.uri)) == [(1, 11), (2, 2), (3, 3)]


def test_a_writer_of_a_dropped_branch_is_refused() -> None:
    table = base()
    branch = table.branch("audit")
    table.drop_branch("audit")
    with pytest.raises(rowsieve.errors.RowsieveError):
        branch.upsert(kv((1, 10)))
    again = table.branch("audit")
    assert pairs(again) == [(1, 1), (2, 2), (3, 3)]
    assert again.uri != branch.uri


def test_a_branch_of_a_branch_publishes_what_both_have_changed() -> None:
    table = base()
    parent = table.branch("audit")
    parent.upsert(kv((1, 10)))
    child = parent.branch("more")
    child.upsert(kv((1, 11), (4, 4)))
    parent.upsert(kv((5, 5)))
    assert pairs(table) == [(1, 1), (2, 2), (3, 3)]
    assert pairs(parent) == [(1, 10), (2, 2), (3, 3), (5, 5)]
    assert pairs(child) == [(1, 11), (2, 2), (3, 3), (4, 4)]
    listed = {row["name"]: row for row in table.refs().to_pylist()}
    assert listed["more"]["base_version"] == listed["audit"]["base_version"]
    table.fast_forward("more")
    assert pairs(table) == pairs(child)
    with pytest.raises(CommitConflict, match="has moved"):
        table.fast_forward("audit")
    table.drop_branch("audit")
    child.compact()
    table.vacuum(retain_last=1, grace_s=0)
    child.vacuum(retain_last=1, grace_s=0)
    child.upsert(kv((6, 6)))
    assert table.fast_forward("more").committed
    assert pairs(table) == [(1, 11), (2, 2), (3, 3), (4, 4), (6, 6)]


def test_a_branch_of_a_published_branch_goes_on_from_there() -> None:
    table = base()
    parent = table.branch("audit")
    parent.upsert(kv((1, 10)))
    table.fast_forward("audit")
    child = parent.branch("more")
    assert not table.fast_forward("more").committed
    child.upsert(kv((2, 20)))
    tagged = table.branch("of-a-version", version=table.version)
    assert pairs(tagged) == [(1, 10), (2, 2), (3, 3)]
    table.fast_forward("more")
    assert pairs(table) == [(1, 10), (2, 20), (3, 3)]
    earlier = parent.branch("earlier", version=parent.version - 1)
    assert pairs(earlier) == [(1, 1), (2, 2), (3, 3)]
    earlier.upsert(kv((9, 9)))
    with pytest.raises(CommitConflict, match="has moved"):
        table.fast_forward("earlier")


def test_what_cannot_be_published_is_refused_by_name() -> None:
    table = base()
    branch = table.branch("audit")
    table.tag("q")
    with pytest.raises(InvalidInput, match="'q' is a tag"):
        table.fast_forward("q")
    with pytest.raises(UnsupportedOperation, match="call it on the table"):
        branch.fast_forward("audit")
    with pytest.raises(UnsupportedOperation, match="read-only"):
        rowsieve.open_table(table.uri, version=1).fast_forward("audit")
