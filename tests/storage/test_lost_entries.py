"""An entry that is lost is never passed over in silence, nor said not to count when it does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import rowsieve
from rowsieve.errors import CorruptData
from rowsieve.objects import ObjectStore
from rowsieve.storage.log.checkpoint import checkpoint_path
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.log_entry import log_path
from rowsieve.storage.log.log_head import _seen
from rowsieve.storage.snapshot import Snapshot
from tests.small_tables import kv
from tests.storage.log_fixtures import commit, copy, create, keep, memory_store, never, upsert


def entries(store: ObjectStore) -> list[str]:
    return [path for path in store.list("_rowsieve/log") if path.endswith(".json")]


def checkpointed(commits: int, interval: str = "4") -> tuple[CommitLog, Snapshot]:
    return create(memory_store(), commits, checkpoint_interval=interval)


def test_a_newest_entry_that_is_lost_is_named_by_its_checkpoint() -> None:
    log, head = checkpointed(4)
    lost = copy(log._store, log_path(4))
    for read in (
        lambda: CommitLog(lost).latest(),
        lambda: CommitLog(lost).latest(head),
        lambda: CommitLog(lost).latest(log.at(3)),
        lambda: CommitLog(lost).latest(log.at(1)),
        lambda: CommitLog(lost).history(),
    ):
        with pytest.raises(CorruptData, match=f"has a hole: {log_path(4)} is absent"):
            read()


@pytest.mark.parametrize("gone", [(3, 4), (2, 3, 4), (4,), (1, 4)])
def test_checkpoints_bound_the_entries_that_must_exist(gone: tuple[int, ...]) -> None:
    log, _ = checkpointed(4)
    lost = copy(log._store, *map(log_path, gone))
    with pytest.raises(CorruptData, match="is absent"):
        CommitLog(lost).latest()
    damaged = copy(lost, changed={checkpoint_path(4): b"damaged"})
    with pytest.raises(CorruptData, match=f"{log_path(gone[0])} is absent"):
        CommitLog(damaged).latest()


def test_nothing_is_written_to_a_table_whose_newest_entry_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = rowsieve.create_table(
        str(path), kv((1, 1)), key=["k"], properties={"checkpoint_interval": "2"}
    )
    table.upsert(kv((2, 2)))
    table.upsert(kv((3, 3)))
    head = path / log_path(2)
    bytes_ = head.read_bytes()
    head.unlink()
    files = sorted(path.rglob("*"))
    for handle in (table, None):
        with pytest.raises(CorruptData, match=r"0002\.json is absent"):
            (handle or rowsieve.open_table(str(path))).upsert(kv((4, 4)))
    assert sorted(path.rglob("*")) == files
    head.write_bytes(bytes_)
    assert table.upsert(kv((4, 4))).version == 3
    assert rowsieve.open_table(str(path)).scan().count() == 4


def test_a_commit_whose_predecessor_was_lost_meanwhile_says_that_it_is_published() -> None:
    log, head = checkpointed(4, "100")
    lost = copy(log._store, log_path(4))
    with pytest.raises(CorruptData, match=r"was published as \S+0005.json .* do not repeat it"):
        CommitLog(lost).commit(upsert(), head, never)
    restored = copy(lost)
    restored.put_new(log_path(4), log._store.get(log_path(4)))
    assert [line.version for line in CommitLog(restored).history()] == [5, 4, 3, 2, 1, 0]


def test_a_commit_whose_predecessor_was_lost_stands_if_a_fresh_read_finds_it() -> None:
    log, head = checkpointed(4)
    lost = copy(log._store, log_path(4))  # its checkpoint says what it made
    line, snapshot = CommitLog(lost).commit(upsert(), head, never)
    assert line.version == 5
    assert CommitLog(lost).latest() == snapshot
    with pytest.raises(CorruptData, match=f"{log_path(4)} is absent"):
        CommitLog(lost).history()


def test_a_commit_whose_predecessor_was_lost_counts_where_others_built_on_it() -> None:
    log, head = checkpointed(4, "100")
    lost = copy(log._store, log_path(4))

    class Followed:
        """Another commits on top of ours before ours looks at its neighbours."""

        def __init__(self) -> None:
            self.followed = False

        def __getattr__(self, name: str) -> Callable[..., object]:
            method: Callable[..., object] = getattr(lost, name)
            return method

        def put_new(self, path: str, data: bytes | memoryview) -> None:
            lost.put_new(path, data)
            if path == log_path(5):
                lost.put_new(log_path(4), log._store.get(log_path(4)))
                newer = CommitLog(lost)
                commit(newer, newer.latest())
                self.followed = True

    line, _ = CommitLog(Followed()).commit(upsert(), head, never)  # type: ignore[arg-type]
    assert line.version == 5
    assert CommitLog(lost).latest().version == 6


def test_a_commit_in_the_place_of_a_lost_one_is_noticed_by_its_checkpoint() -> None:
    log, _ = checkpointed(4)
    before = log.at(3)
    lost = copy(log._store, log_path(4))
    request = upsert()
    with pytest.raises(CorruptData, match=r"0004.json .* had been lost .* checkpoint is of"):
        CommitLog(lost).commit(request, before, keep(request))
    with pytest.raises(CorruptData, match="its number was reused"):
        CommitLog(lost).latest()


@pytest.mark.parametrize("hole", range(1, 9))
@pytest.mark.parametrize("interval", ["3", "4", "100"])
def test_history_and_old_versions_name_the_hole(hole: int, interval: str) -> None:
    log, head = checkpointed(9, interval)
    times = [line.timestamp for line in reversed(log.history())]
    holed = CommitLog(copy(log._store, log_path(hole)))
    named = f"{log_path(hole)} is absent"
    with pytest.raises(CorruptData, match=named):
        holed.history()
    if hole % int(interval):  # else its checkpoint holds it
        with pytest.raises(CorruptData, match=named):
            holed.at(hole)
    newest = max(range(0, 10, int(interval)))
    if hole > newest or interval == "100":
        with pytest.raises(CorruptData, match=named):
            holed.latest()
    else:  # the checkpoint and the entries after it say it all
        assert holed.latest() == head
        assert holed.history(9 - hole) == log.history(9 - hole)
        micros = log.at(hole).timestamp_us
        if hole % int(interval):
            with pytest.raises(CorruptData, match=named):
                holed.as_of(micros)
    assert times == sorted(times)


def test_a_lost_entry_that_nobody_saw_and_no_checkpoint_holds_cannot_be_noticed() -> None:
    """The limit of the promise: then the log is exactly one that never had it."""
    log, _ = checkpointed(6)
    lost = copy(log._store, log_path(6))
    _seen.clear()
    assert CommitLog(lost).latest() == log.at(5)


def test_the_newest_checkpoints_own_entry_does_not_expire() -> None:
    log, head = checkpointed(6)
    cut = CommitLog(copy(log._store, *map(log_path, range(5))))
    assert cut.latest() == head  # proved by the checkpoint and what follows it
    with pytest.raises(CorruptData, match=f"{log_path(4)} is absent"):
        cut.history()
    expired = CommitLog(copy(log._store, *map(log_path, range(4))))
    assert [line.version for line in expired.history()] == [6, 5, 4]


def test_an_entry_that_is_remembered_is_read_again_and_compared(tmp_path: Path) -> None:
    table = rowsieve.create_table(str(tmp_path / "t"), kv((1, 1), (2, 2)), key=["k"])
    head = tmp_path / "t" / log_path(0)
    for _ in range(2):
        assert table.scan().count() == 2
    whole = head.read_bytes()
    head.write_bytes(whole[:-2] + b"?" + whole[-1:])
    with pytest.raises(CorruptData):
        table.scan().count()
    head.write_bytes(whole)
    assert table.scan().count() == 2
