"""What the metadata tables of a table show, and the names that mean them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.metadata_tables.table_kinds import METADATA_TABLES, split_metadata_name


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    """Version 0 adds two rows, 1 one row with a note, 2 deletes one, 3 sets a property."""
    first = pa.table({"id": [1, 2], "s": ["a", "b"]})
    table = rs.create_table(str(tmp_path / "t"), first, key=["id"])
    table.upsert(pa.table({"id": [3], "s": ["c"]}), metadata={"note": "third"})
    table.delete(keys={"id": [1]})
    table.set_properties({"target_part_bytes": "1000000"})
    return table


def rows(table: rs.Table, kind: str, *columns: str) -> list[tuple[Any, ...]]:
    shown = METADATA_TABLES[kind](table)
    return [tuple(row.values()) for row in shown.select(columns).to_pylist()]


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("t$snapshots", ("t", "snapshots")),
        ("a$b$files", ("a$b", "files")),
        ("t$files$files", ("t$files", "files")),
        ("t$files@v12", ("t@v12", "files")),
        ("t@v12$files", ("t@v12", "files")),
        ("a\nb$refs_of$history", ("a\nb$refs_of", "history")),
        ("t$Snapshots", None),
        ("t$snapshots ", None),
        ("t$snapshot", None),
        ("$snapshots", None),
        ("snapshots", None),
        ("t$files@audit", ("t@audit", "files")),
        ("t$files@", None),
    ],
)
def test_a_name_is_split_at_its_last_dollar(name: str, split: tuple[str, str] | None) -> None:
    assert split_metadata_name(name) == split


def test_snapshots_and_history_list_the_commits(table: rs.Table) -> None:
    commits = table.history()[::-1]
    assert rows(table, "snapshots", "snapshot_id", "parent_id", "operation", "committed_at") == [
        (each.version, each.version - 1 if each.version else None, each.operation, each.timestamp)
        for each in commits
    ]
    counts = ("rows_written", "rows_deleted", "parts_added", "parts_removed")
    assert rows(table, "snapshots", *counts) == [
        tuple(getattr(each, name) for name in counts) for each in commits
    ]
    (summary,) = rows(table, "snapshots", "summary")[1]
    assert summary == [("note", "third")]
    assert rows(table, "history", "made_current_at", "snapshot_id", "is_current_ancestor") == [
        (each.timestamp, each.version, True) for each in commits
    ]


def test_files_are_those_of_the_table(table: rs.Table) -> None:
    shown = METADATA_TABLES["files"](table).to_pylist()
    files = table.files().to_pylist()
    assert [(each["file_path"], each["record_count"], each["part"]) for each in shown] == [
        (each["path"], each["rows"], each["part"]) for each in files
    ]
    assert sorted((each["content"], each["file_format"]) for each in shown) == [
        (0, "PARQUET"),
        (0, "PARQUET"),
        (2, "PARQUET"),
    ]


def test_deletion_vectors_are_files_with_places(tmp_path: Path) -> None:
    plain = rs.create_table(str(tmp_path / "plain"), pa.table({"n": range(100)}))
    plain.delete("n < 10")
    vectors = [each for each in METADATA_TABLES["files"](plain).to_pylist() if each["content"] == 1]
    assert [(each["file_format"], each["record_count"]) for each in vectors] == [(None, None)]
    (partition,) = METADATA_TABLES["partitions"](plain).to_pylist()
    assert partition["record_count"] == 100
    assert partition["position_delete_file_count"] == 1


def test_partitions_sum_the_files_of_the_table(table: rs.Table) -> None:
    (row,) = METADATA_TABLES["partitions"](table).to_pylist()
    data = [each for each in table.files().to_pylist() if each["kind"] == "data"]
    assert row == {
        "record_count": 3,
        "file_count": 2,
        "total_data_file_size_in_bytes": sum(each["size_bytes"] for each in data),
        "position_delete_file_count": 0,
        "equality_delete_record_count": 1,
        "equality_delete_file_count": 1,
        "last_updated_at": table.history(1)[0].timestamp,
        "last_updated_snapshot_id": 3,
    }


def test_properties_are_those_that_are_set(table: rs.Table) -> None:
    assert rows(table, "properties", "key", "value") == [("target_part_bytes", "1000000")]
    assert rows(table, "options", "key", "value") == [("target_part_bytes", "1000000")]


@pytest.mark.parametrize("kind", METADATA_TABLES)
def test_an_empty_table_has_the_same_columns(kind: str, table: rs.Table, tmp_path: Path) -> None:
    empty = rs.create_table(str(tmp_path / "empty"), pa.schema([("id", pa.int64())]))
    assert METADATA_TABLES[kind](empty).schema == METADATA_TABLES[kind](table).schema


def test_an_old_version_shows_what_was_known_then(table: rs.Table) -> None:
    old = rs.open_table(table.uri, version=1)
    assert rows(old, "snapshots", "snapshot_id") == [(0,), (1,)]
    assert rows(old, "history", "snapshot_id") == [(0,), (1,)]
    assert rows(old, "files", "content") == [(0,), (0,)]
    assert rows(old, "partitions", "last_updated_snapshot_id") == [(1,)]
    assert rows(old, "properties", "key") == []


def test_expired_versions_are_not_listed(table: rs.Table) -> None:
    table.vacuum(retain_last=2, grace_s=0)
    listed = [each.version for each in table.history()[::-1]]
    assert 0 not in listed
    assert rows(table, "snapshots", "snapshot_id") == [(each,) for each in listed]


def test_refs_are_the_table_its_branches_and_tags(table: rs.Table) -> None:
    assert rows(table, "refs", "name", "type", "snapshot_id") == [("main", "BRANCH", 3)]
    table.tag("first", version=0)
    branch = table.branch("audit")
    branch.upsert(pa.table({"id": [9], "s": ["z"]}))
    found = rows(table, "refs", "name", "type", "snapshot_id")
    assert found[0] == ("main", "BRANCH", table.version)
    assert sorted(found[1:]) == [
        ("audit", "BRANCH", branch.version),
        ("first", "TAG", 0),
    ]
