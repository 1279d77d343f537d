"""What was published is deleted again, and retention keeps nothing for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.table import StaticTable

import rowsieve as rs
from rowsieve.errors import InvalidInput, UnsupportedOperation

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})
FORMATS: list[Any] = ["iceberg", "delta"]


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    """A table with a hidden row, and with rows that only its log has."""
    table = rs.create_table(tmp_path / "t", ROWS, key=["id"])
    table.upsert({"id": [2], "name": ["B"]})
    table.set_properties({"inline_bytes": "16384"})
    table.upsert({"id": [4], "name": ["d"]})
    return table


@pytest.mark.parametrize("format_", FORMATS)
def test_the_files_of_a_publication_go_and_no_others(
    table: rs.Table, tmp_path: Path, format_: Any
) -> None:
    before = files_of(tmp_path / "t")
    table.publish(format_)
    (tmp_path / "t" / "metadata").mkdir(exist_ok=True)
    (tmp_path / "t" / "metadata" / "notes.txt").write_text("mine")
    written = files_of(tmp_path / "t") - before
    count = table.unpublish(format_)
    assert files_of(tmp_path / "t") - before == {"metadata/notes.txt"}
    assert 0 < count < len(written)  # and the hold, and the note
    assert table.unpublish(format_) == 0
    assert rs.open_table(tmp_path / "t").scan().count() == 4
    assert table.publish(format_).version == table.version  # it begins anew


@pytest.mark.parametrize("format_", FORMATS)
def test_another_publication_keeps_its_files(table: rs.Table, tmp_path: Path, format_: Any) -> None:
    (other,) = set(FORMATS) - {format_}
    places = {each: table.publish(each) for each in FORMATS}
    table.unpublish(format_)
    if other == "delta":
        theirs = DeltaTable(str(tmp_path / "t"))
        rows: Any = QueryBuilder().register("t", theirs).execute("SELECT id FROM t")
        ids = pa.table(rows.read_all())["id"]
    else:
        place = places[other].metadata_location
        assert place is not None
        ids = StaticTable.from_metadata(place).scan().to_arrow()["id"]
    assert sorted(ids.to_pylist()) == [1, 2, 3, 4]


def test_retention_keeps_nothing_for_it(table: rs.Table, tmp_path: Path) -> None:
    table.publish("iceberg")
    table.compact()
    table.expire_versions(retain_last=1)
    held = len(files_of(tmp_path / "t" / "data"))
    table.unpublish("iceberg")
    table.expire_versions(retain_last=1)
    table.vacuum()
    assert len(files_of(tmp_path / "t" / "data")) < held


def test_what_is_published_after_each_commit_stays(table: rs.Table, tmp_path: Path) -> None:
    table.set_properties({"publish": "iceberg"})
    with pytest.raises(UnsupportedOperation, match="'publish' publishes each commit as iceberg"):
        table.unpublish("iceberg")
    table.publish("iceberg", tmp_path / "beside")
    assert table.unpublish("iceberg", tmp_path / "beside") > 0  # that place is not published again


@pytest.mark.parametrize("format_", FORMATS)
def test_the_publication_of_another_table_stays(tmp_path: Path, format_: Any) -> None:
    one, other = (rs.create_table(tmp_path / each, ROWS, key=["id"]) for each in ("a", "b"))
    one.publish(format_)
    with pytest.raises(UnsupportedOperation, match="another"):
        other.unpublish(format_, tmp_path / "a")


@pytest.mark.parametrize("format_", FORMATS)
def test_a_table_is_created_where_a_published_one_was_dropped(tmp_path: Path, format_: Any) -> None:
    rs.create_table(tmp_path / "t", ROWS, key=["id"]).publish(format_)
    rs.drop_table(tmp_path / "t")
    again = rs.create_table(tmp_path / "t", ROWS.slice(1))
    assert again.publish(format_).version == 0
    assert again.clone(tmp_path / "copy").count() == 2


@pytest.mark.parametrize("name", ["metadata", "_delta_log"])
def test_a_folder_of_that_name_with_another_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "t" / name / "sub").mkdir(parents=True)
    (tmp_path / "t" / name / "sub" / "mine").touch()
    with pytest.raises(InvalidInput, match=f"contains {name}; give a new or empty"):
        rs.create_table(tmp_path / "t", ROWS)
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / name).touch()
    with pytest.raises(InvalidInput, match=f"contains {name}; give a new or empty"):
        rs.create_table(tmp_path / "u", ROWS)


def test_temporary_files_of_killed_publications_go(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", ROWS, key=["id"])
    for format_ in FORMATS:
        table.publish(format_)
    leftovers = [tmp_path / "t" / name / f".tmp-{'a' * 32}" for name in ("metadata", "_delta_log")]
    for path in leftovers:
        path.touch()
    table.remove_orphans(grace_s=0)
    assert all(path.exists() for path in leftovers)  # a put may be writing to them
    for path in leftovers:
        os.utime(path, (0, 0))
    table.remove_orphans(grace_s=0)
    assert not any(path.exists() for path in leftovers)
    leftovers[0].touch()
    rs.drop_table(table.uri)
    assert not files_of(tmp_path / "t")
