"""Files of snapshots that left a publication are deleted, and those of the others stay."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import rowsieve as rs
from rowsieve.publication.iceberg import table_metadata
from tests.profiles import few

CHANGES = [
    "upsert",
    "upsert",
    "delete",
    "compact",
    "restore",
    "expire",
    "expire",
    "tag",
    "drop_tag",
]


def names_of(theirs: StaticTable) -> set[str]:
    """All files in `metadata` that the snapshots refer to."""
    paths = set()
    for snapshot in theirs.snapshots():
        paths.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(theirs.io):
            entries = manifest.fetch_manifest_entry(theirs.io, discard_deleted=True)
            paths |= {manifest.manifest_path, *(each.data_file.file_path for each in entries)}
    return {Path(path).name for path in paths if path is not None and "/metadata/" in path}


def rows_of(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.parametrize("seed", range(few(16)))
def test_what_no_snapshot_refers_to_is_gone(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    rows = pa.table({"id": range(40), "name": ["a"] * 40})
    table = rs.create_table(tmp_path / "t", rows, key=["id"])
    kept = [table.version]
    contents: dict[int, list[tuple[object, ...]]] = {}
    for step in range(12):
        change = draw.choice(CHANGES)
        match change:
            case "upsert":
                table.upsert({"id": [draw.randrange(50)], "name": [f"v{step}"]})
            case "delete":
                table.delete(f"id % 7 = {draw.randrange(7)}")
            case "compact":
                table.compact()
            case "restore":
                table.restore(draw.choice(kept))
            case "tag":
                table.tag(f"tag{step}", version=draw.choice(kept))
            case "drop_tag" if table.refs().num_rows:
                table.drop_tag(draw.choice(table.refs().column("name").to_pylist()))
            case "expire":
                table.expire_versions(retain_last=2)
                kept = [table.version]
        kept.append(table.version)
        publication = table.publish("iceberg")
        contents[publication.version] = rows_of(table.to_arrow())
        place = publication.metadata_location
        assert place is not None
    theirs = StaticTable.from_metadata(place)
    for snapshot in theirs.snapshots():
        version = int(snapshot.summary["rowsieve.version"])
        read = theirs.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
        assert rows_of(read) == contents[version]
    tags = {ref["name"] for ref in table.refs().to_pylist() if ref["version"] in contents}
    assert set(theirs.refs()) == {"main", *tags}
    stored = {each.name for each in (tmp_path / "t" / "metadata").iterdir()}
    assert {name for name in stored if name.endswith((".avro", ".puffin"))} == names_of(theirs)


def test_old_metadata_files_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_metadata, "_MAX_OLD_METADATA", 3)
    monkeypatch.setattr(table_metadata, "_MAX_SNAPSHOTS", 2)
    table = rs.create_table(tmp_path / "t", pa.table({"id": [1]}), key=["id"])
    for number in range(6):
        table.publish("iceberg")
        table.upsert({"id": [number]})
    table.publish("iceberg")
    stored = sorted(each.name for each in (tmp_path / "t" / "metadata").glob("*.json"))
    assert stored == [f"v{number}.metadata.json" for number in (4, 5, 6, 7)]


def test_a_file_that_is_missing_fails_no_publication(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", pa.table({"id": [1]}), key=["id"])
    place = table.publish("iceberg").metadata_location
    assert place is not None
    listed = StaticTable.from_metadata(place).snapshots()[0].manifest_list
    table.upsert({"id": [2]})
    table.publish("iceberg")
    Path(listed).unlink()
    table.expire_versions(retain_last=1)
    table.upsert({"id": [3]})
    place = table.publish("iceberg").metadata_location
    assert place is not None
    assert StaticTable.from_metadata(place).scan().to_arrow()["id"].to_pylist() == [1, 2, 3]


def test_a_tag_keeps_its_snapshot_when_its_version_expires(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_metadata, "_MAX_SNAPSHOTS", 3)
    table = rs.create_table(tmp_path / "t", pa.table({"id": [1]}), key=["id"])
    table.publish("iceberg")
    table.tag("T0", version=0)
    for number in range(2, 8):
        table.publish("iceberg")
        if number == 4:
            table.compact()
            table.publish("iceberg")
            table.expire_versions(retain_last=1)
        table.upsert({"id": [number]})
    place = table.publish("iceberg").metadata_location
    assert place is not None
    theirs = StaticTable.from_metadata(place)
    tagged = theirs.refs()["T0"].snapshot_id
    assert theirs.scan(snapshot_id=tagged).to_arrow()["id"].to_pylist() == [1]
    assert len(theirs.snapshots()) == 4
    table.drop_tag("T0")
    table.upsert({"id": [9]})
    place = table.publish("iceberg").metadata_location
    assert place is not None
    theirs = StaticTable.from_metadata(place)
    assert list(theirs.refs()) == ["main"]
    stored = {each.name for each in (tmp_path / "t" / "metadata").iterdir()}
    assert {name for name in stored if name.endswith((".avro", ".puffin"))} == names_of(theirs)
