"""Files that outgrow memory while they are written continue on the disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.checksums import checksum
from rowsieve.errors import StoreError
from rowsieve.objects import LocalStore, Uploads, drafts, open_store
from tests.faults.files import FileCalls
from tests.faults.vocabulary import Fault

ROWS = 70_000


@pytest.fixture
def spilling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drafts leave memory at once."""
    monkeypatch.setattr(drafts, "SPILL_BYTES", 1_000)


def rows(seed: int = 1) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "k": np.arange(ROWS),
            "v": random.integers(0, 2**62, ROWS),
            "s": np.char.add("name ", random.integers(0, 50, ROWS).astype(str)),
        }
    )


def same_rows(table: rs.Table) -> bool:
    """Whether the table has `rows()`."""
    found = table.scan(order_by_key=True).to_arrow()
    return bool(found.equals(rows().cast(found.schema)))


def folder_of(table: rs.Table) -> Path:
    return Path(table.uri.removeprefix("file://"))


@pytest.mark.usefixtures("spilling")
def test_a_file_that_left_memory_is_the_file_that_memory_would_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spilled = rs.create_table(tmp_path / "spilled", rows(), key=["k"])
    monkeypatch.setattr(drafts, "SPILL_BYTES", 2**40)
    held = rs.create_table(tmp_path / "held", rows(), key=["k"])
    found = [sorted((folder_of(table) / "data").iterdir()) for table in (spilled, held)]
    assert [one.read_bytes() for one in found[0]] == [one.read_bytes() for one in found[1]]
    for table in (spilled, held):
        (entry,) = table.handle.pinned.parts.entries([0])
        assert entry.data is not None
        stored = (folder_of(table) / entry.data.path).read_bytes()
        assert entry.data.checksum == checksum(stored)
        assert entry.data.tail_checksum == checksum(stored[entry.data.tail_start :])
    assert same_rows(spilled)
    assert spilled.scan(where="k = 69000").to_arrow().column("k").to_pylist() == [69_000]


@pytest.mark.usefixtures("spilling")
def test_a_draft_that_is_given_up_leaves_no_file(tmp_path: Path) -> None:
    uploads = Uploads(LocalStore(tmp_path))
    draft = drafts.Draft(uploads.store, "data/x.0.parquet")
    draft.write(b"x" * 2_000)
    assert [path.name[:5] for path in (tmp_path / "data").iterdir()] == [".tmp-"]
    del draft
    assert list((tmp_path / "data").iterdir()) == []


@pytest.mark.usefixtures("spilling")
def test_a_draft_is_invisible_until_it_is_published(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    uploads = Uploads(store)
    draft = drafts.Draft(uploads.store, "data/x.0.parquet")
    draft.write(b"abc" * 1_000)
    draft.write(b"end")
    draft.replace(3_000, b"END")
    assert store.list("") == []
    uploads.publish(draft)
    uploads.wait()
    assert store.list("") == ["data/x.0.parquet"]
    assert store.get("data/x.0.parquet") == b"abc" * 1_000 + b"END"
    assert store.leftovers() == {}


def test_a_store_without_files_keeps_drafts_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "SPILL_BYTES", 1_000)
    store = open_store("memory:///drafts")
    uploads = Uploads(store)
    draft = drafts.Draft(uploads.store, "data/y.0.parquet")
    draft.write(b"x" * 5_000)
    assert draft.file is None
    uploads.publish(draft)
    assert store.get("data/y.0.parquet") == b"x" * 5_000


@pytest.mark.usefixtures("spilling")
@pytest.mark.parametrize("call", ["write", "fsync", "link"])
def test_a_full_disk_or_a_failed_sync_commits_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    table = rs.create_table(tmp_path / "t", rows(), key=["k"])
    version = table.version
    calls = FileCalls(monkeypatch, names=[call])
    calls.meet_where(Fault.NO_SPACE, call, lambda target: "/data/" in target)
    with pytest.raises(StoreError):
        table.upsert(rows(2))
    monkeypatch.undo()
    assert calls.failed is not None
    again = rs.open_table(table.uri)
    assert again.version == version
    assert [path.name for path in (tmp_path / "t" / "data").glob(".tmp-*")] == []
    assert same_rows(again)


@pytest.mark.usefixtures("spilling")
def test_inv3_a_published_draft_is_synced_before_it_is_visible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploads = Uploads(LocalStore(tmp_path))
    draft = drafts.Draft(uploads.store, "data/z.0.parquet")
    draft.write(b"x" * 2_000)
    calls = FileCalls(monkeypatch, names=("fsync", "link"))
    uploads.publish(draft)
    steps = [(name, Path(target).name[:5]) for name, target in calls.log]
    assert steps == [("fsync", ".tmp-"), ("link", "z.0.p"), ("fsync", "data")]
