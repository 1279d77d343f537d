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
    for step in range(12):
        change = draw.choice(["upsert", "upsert", "delete", "compact", "restore", "expire"])
        match change:
            case "upsert":
                table.upsert({"id": [draw.randrange(50)], "name": [f"v{step}"]})
            case "delete":
                table.delete(f"id % 7 = {draw.randrange(7)}")
            case "compact":
                table.compact()
            case "restore":
                table.restore(draw.choice(kept))
            case "expire":
                table.expire_versions(retain_last=2)
                kept = [table.version]
        kept.append(table.version)
        place = table.publish("iceberg").metadata_location
        assert place is not None
    theirs = StaticTable.from_metadata(place)
    for snapshot in theirs.snapshots():
        version = int(snapshot.summary["rowsieve.version"])
        mine = table.scan(version=version).to_arrow()
        assert rows_of(theirs.scan(snapshot_id=snapshot.snapshot_id).to_arrow()) == rows_of(mine)
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
