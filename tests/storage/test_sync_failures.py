"""An fsync that fails once is never made up for: that commit is not acknowledged.

The kernel reports a failed write-back once, may drop the pages and then succeeds. So after the
first error nothing that depended on it may count as durable.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import RowsieveError, StoreError
from rowsieve.objects import LocalStore, SyncFailed
from rowsieve.storage.log.commit_log import CommitLog
from tests.faults.files import FileCalls
from tests.faults.vocabulary import Fault
from tests.small_tables import kv
from tests.storage.log_fixtures import commit, create


def failing_sync(patch: pytest.MonkeyPatch, fail_at: int) -> FileCalls:
    """Let the n-th fsync of the process fail with EIO, and no other."""
    return FileCalls(patch, Fault.IO_ERROR, fail_at, names=("fsync",))


def keyed_table(path: Path) -> Table:
    """One whose statistics are large enough for a file of their own."""
    properties = {"statistics_inline_bytes": "1"}
    return rowsieve.create_table(str(path), kv((1, 1), (2, 1)), key=["k"], properties=properties)


def unkeyed_table(path: Path) -> Table:
    return rowsieve.create_table(str(path), kv((1, 1), (2, 1)))


CHANGES: dict[str, tuple[Callable[[Path], Table], Callable[[Table], object], set[str]]] = {
    "upsert": (keyed_table, lambda t: t.upsert(kv((3, 3))), {"data", "_rowsieve/log"}),
    "update": (keyed_table, lambda t: t.update({"v": "v + 1"}), {"data", "_rowsieve/log"}),
    "delete by hiding": (
        unkeyed_table, lambda t: t.delete("k = 1"), {"data", "_rowsieve/log"}),
    "compact": (unkeyed_table, lambda t: (t.append(kv((3, 3))), t.compact()),
                {"data", "_rowsieve/log"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES, ids=lambda name: name.replace(" ", "_"))
def test_a_commit_during_which_an_fsync_failed_once_is_not_acknowledged(
    name: str, tmp_path: Path
) -> None:
    make, change, folders = CHANGES[name]
    failed: set[str] = set()
    seen_after_failure = 0
    for number in range(60):
        path = tmp_path / str(number)
        table = make(path)
        with pytest.MonkeyPatch.context() as patch:
            syncs = failing_sync(patch, number)
            try:
                change(table)
            except StoreError as error:
                problem = str(error)
                assert re.search(r"fsync of \S+ failed \(Input/output error\)", problem)
            else:
                assert syncs.failed is None  # every fsync was tried: this run was not disturbed
                break
        assert syncs.failed is not None
        place = os.path.relpath(syncs.failed, path)
        failed.add(place if (path / place).is_dir() else f"a file in {Path(place).parent}")
        again = rowsieve.open_table(str(path))
        if "look for this id" in problem:
            seen_after_failure += 1
            assert again.history(1)[0].commit_id in problem
        assert again.scan().to_arrow().num_rows in (1, 2, 3)
        before = again.version
        assert again.delete("k = 2").rows_deleted == 1  # a commit whose fsyncs all succeed
        assert rowsieve.open_table(str(path)).version == before + 1
    assert failed == folders | {f"a file in {folder}" for folder in folders}
    assert seen_after_failure >= 1


def test_a_table_whose_creation_could_not_be_synced_is_not_acknowledged(tmp_path: Path) -> None:
    number = 0
    while True:
        path = tmp_path / str(number)
        with pytest.MonkeyPatch.context() as patch:
            syncs = failing_sync(patch, number)
            try:
                keyed_table(path)
            except StoreError:
                assert syncs.failed is not None
            else:
                assert syncs.failed is None
                break
        number += 1
    assert number > 8  # folders that are new, data, statistics, list of parts, entry


def test_a_sync_that_failed_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    store.put_new("data/first", b"1")
    syncs = failing_sync(monkeypatch, 1)  # the file's, then its folder's
    with pytest.raises(SyncFailed) as caught:
        store.put_new("data/second", b"2")
    assert (caught.value.path, caught.value.is_visible) == ("data/second", True)
    assert [Path(target).name for target in syncs.targets][1:] == ["data"]
    assert store.get("data/second") == b"2"


def test_a_file_whose_sync_failed_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    store.put_new("data/first", b"1")
    failing_sync(monkeypatch, 0)
    with pytest.raises(SyncFailed) as caught:
        store.put_new("data/second", b"2")
    assert not caught.value.is_visible
    assert store.children("data") == ["first"]
    assert list(tmp_path.rglob(".tmp-*")) == []


def test_a_checkpoint_that_could_not_be_synced_fails_no_commit(tmp_path: Path) -> None:
    """It is an aid: what it holds is in the log, whose own fsyncs succeeded."""
    log, before = create(LocalStore(tmp_path), checkpoint_interval="1")
    with pytest.MonkeyPatch.context() as patch:
        syncs = failing_sync(patch, -1)
        commit(log, before)
        of_commit = next(i for i, t in enumerate(syncs.targets) if "checkpoints" in t)
    head = log.latest()
    with pytest.MonkeyPatch.context() as patch:
        failing_sync(patch, of_commit)
        assert commit(log, head).version == head.version + 1
    assert CommitLog(LocalStore(tmp_path)).latest().version == head.version + 1


def test_a_token_finds_a_commit_that_was_not_acknowledged(tmp_path: Path) -> None:
    table = keyed_table(tmp_path / "t")
    rows = pa.table({"k": [7], "v": [7]})
    with pytest.MonkeyPatch.context() as patch:
        syncs = failing_sync(patch, -1)
        table.upsert(kv((6, 6)))
        last = len(syncs.targets) - 1
    with pytest.MonkeyPatch.context() as patch:
        failing_sync(patch, last)  # the folder of the entry, which stands by then
        with pytest.raises(StoreError) as caught:
            table.upsert(rows, token=("job", 1))
    assert isinstance(caught.value, RowsieveError)
    found = rowsieve.open_table(table.uri).upsert(rows, token=("job", 1))
    assert found.commit_id in str(caught.value)
    assert rowsieve.open_table(table.uri).version == found.version
