"""What stands there is not what was written: damaged, missing, expired, foreign or too new."""

from __future__ import annotations

import re
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from datafusion import SessionContext

import rowsieve
from rowsieve.errors import (
    CorruptData,
    InvalidInput,
    SnapshotExpired,
    TableNotFound,
    UnsupportedProtocol,
)
from rowsieve.storage.log.sealed_lines import seal, unseal
from tests.small_tables import KV, kv


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("template") / "table"
    rowsieve.create_table(str(root), kv((1, 1)), key=["k"]).upsert(kv((2, 2)))
    return root


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    """A table of two versions and two parts, to be damaged."""
    return Path(shutil.copytree(template, tmp_path / "table"))


def tree(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("_delta_log/0.json", "a Delta table"),
        ("metadata/v1.json", "an Iceberg table"),
        ("a.csv", "not a Rowsieve table"),
    ],
)
def test_a_foreign_directory(tmp_path: Path, name: str, kind: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("x")
    with pytest.raises(TableNotFound, match=kind):
        rowsieve.open_table(str(tmp_path))
    with pytest.raises(InvalidInput, match="new or empty directory"):
        rowsieve.create_table(str(tmp_path), KV)
    assert tree(tmp_path) == {name: b"x"}


def entry_of(table: Path, version: int) -> Path:
    return table / "_rowsieve" / "log" / f"{version:020}.json"


def overwrite(path: Path, content: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(content)


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0x40
    overwrite(path, bytes(content))


def newest_part(root: Path) -> Path:
    parts = [p for p in (root / "data").iterdir() if ".1." in p.name or ".0." in p.name]
    snapshot = rowsieve.open_table(str(root)).handle.pinned
    wanted = snapshot.parts.entry(len(snapshot.parts) - 1).data
    assert wanted is not None
    return next(p for p in parts if wanted.path.endswith(p.name))


def test_a_corrupt_commit(root: Path) -> None:
    for at in (0, 40, -3):
        path = entry_of(root, 1)
        good = path.read_bytes()
        flip(path, at)
        with pytest.raises(CorruptData, match=re.escape(path.name)):
            rowsieve.open_table(str(root))
        overwrite(path, good)
    assert rowsieve.open_table(str(root)).version == 1


def test_a_cut_commit(root: Path) -> None:
    path = entry_of(root, 1)
    overwrite(path, path.read_bytes()[:-10])
    with pytest.raises(CorruptData, match=re.escape(path.name)):
        rowsieve.open_table(str(root))


def test_a_corrupt_list_of_parts(root: Path) -> None:
    log = root / "_rowsieve" / "log"
    (path,) = (
        log / f"{commit.commit_id}.arrow" for commit in rowsieve.open_table(str(root)).history(1)
    )
    flip(path, path.stat().st_size // 2)
    with pytest.raises(CorruptData, match=path.stem):
        rowsieve.open_table(str(root))


def test_a_corrupt_page_of_a_part(root: Path) -> None:
    path = newest_part(root)
    flip(path, 30)  # in the first page
    with pytest.raises(CorruptData, match=re.escape(path.name)):
        rowsieve.open_table(str(root)).scan().to_arrow()


@pytest.mark.parametrize("back", [1, 6, 40, 200])
def test_a_corrupt_tail_of_a_part(root: Path, back: int) -> None:
    path = newest_part(root)
    flip(path, -back)
    with pytest.raises(CorruptData, match=re.escape(path.name)):
        rowsieve.open_table(str(root)).scan().to_arrow()


def test_a_cut_part(root: Path) -> None:
    path = newest_part(root)
    overwrite(path, path.read_bytes()[:-100])
    with pytest.raises(CorruptData, match=re.escape(path.name)):
        rowsieve.open_table(str(root)).scan().to_arrow()


def test_a_missing_part_is_never_an_empty_result(root: Path) -> None:
    path = newest_part(root)
    path.unlink()
    table = rowsieve.open_table(str(root))
    for where in (None, "k % 7 = 2"):
        with pytest.raises(CorruptData, match=re.escape(path.name)) as found:
            table.scan(where).to_arrow()
        assert "which is the newest" in str(found.value)
    with pytest.raises(CorruptData, match="which is the newest"):
        table.update({"v": "v + 1"}, where="v >= 0")
    table.upsert(kv((-1, -1)))
    with pytest.raises(SnapshotExpired, match=re.escape(path.name)):
        table.scan(version=table.version - 1).to_arrow()


def test_a_damaged_part_fails_through_datafusion_too(root: Path) -> None:
    flip(newest_part(root), 30)
    context = SessionContext()
    context.register_table("t", rowsieve.open_table(str(root)))
    with pytest.raises(Exception, match=r"damaged|checksum|Corrupt"):
        context.sql("SELECT * FROM t").to_arrow_table()


def test_an_expired_version(tmp_path: Path) -> None:
    path = str(tmp_path / "few")
    few = rowsieve.create_table(path, KV, key=["k"], properties={"checkpoint_interval": "2"})
    for key in range(6):
        few.upsert(kv((key, key)))
    for version in range(4):
        entry_of(Path(path), version).unlink()
    for old in (Path(path) / "_rowsieve" / "checkpoints").glob("*.json"):
        if int(old.stem) < 4:
            old.unlink()
    assert rowsieve.open_table(path).scan().count() == 6
    with pytest.raises(SnapshotExpired, match="version 1"):
        rowsieve.open_table(path, version=1)
    with pytest.raises(SnapshotExpired):
        few.restore(1)
    with pytest.raises(SnapshotExpired):
        few.scan(as_of=few.history()[-1].timestamp - timedelta(seconds=0.5))


@pytest.mark.parametrize("field", ["reader", "writer", "features"])
def test_a_newer_protocol(root: Path, field: str) -> None:
    """A table that needs more than is known here is refused, for reading or for writing."""
    path = entry_of(root, 0)
    lines = unseal(path.read_bytes(), str(path))
    found = False
    for _, line in lines:
        for value in line.values():
            if isinstance(value, dict) and field in value:
                value[field] = ["time_machines"] if field == "features" else 99
                found = True
    assert found
    overwrite(path, seal([line for _, line in lines]))
    with pytest.raises(UnsupportedProtocol, match=r"99|time_machines") as caught:
        rowsieve.open_table(str(root)).upsert(kv((3, 3)))
    assert "upgrade" in str(caught.value)
    assert not entry_of(root, 2).exists()
