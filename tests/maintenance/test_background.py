"""Maintenance in a thread: waiting, stopping, failing, forking."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

import rowsieve as rs
from rowsieve.compaction.pace import Pace
from rowsieve.errors import UnsupportedOperation
from rowsieve.maintenance.background import Background
from tests.small_tables import keyed, kv, pairs

OVERLAPPING = ({"k": [1, 2], "v": [0, 0]}, {"k": [1], "v": [1]})


def test_wait_returns_what_maintain_returns() -> None:
    table = keyed(*OVERLAPPING)
    run = table.maintain(background=True)
    done = run.wait(60)
    assert done is not None
    assert (run.state, run.error) == ("done", None)
    assert done.compaction.parts_removed == 2
    assert pairs(table) == [(1, 1), (2, 0)]


def test_arguments_are_checked_before_the_thread_starts() -> None:
    table = keyed(*OVERLAPPING)
    before = threading.active_count()
    for wrong in ({"grace_s": -1.0}, {"max_bytes_per_s": 0.0}):
        with pytest.raises(rs.errors.InvalidInput):
            table.maintain(background=True, **wrong)  # type: ignore[call-overload]
    with pytest.raises(UnsupportedOperation):
        rs.open_table(table.uri, version=1).maintain(background=True)
    assert threading.active_count() == before


def test_stop_commits_nothing_more_and_writers_go_on() -> None:
    table = keyed(*OVERLAPPING)
    version = table.refresh()
    run = table.maintain(background=True, max_bytes_per_s=1e-3)
    assert run.wait(0.05) is None
    assert run.state == "running"
    table.upsert(kv((3, 3)))
    run.stop()
    assert run.wait(60) is None
    assert run.state == "stopped"
    assert table.refresh() == version + 1
    assert pairs(table) == [(1, 1), (2, 0), (3, 3)]


def test_error_is_reported_by_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    table = keyed(*OVERLAPPING)

    def fails(*_: Any, **__: Any) -> None:
        raise rs.errors.StoreError("the store is away")

    monkeypatch.setattr(rs.Table, "vacuum", fails)
    run = table.maintain(background=True)
    with pytest.raises(rs.errors.StoreError, match="away"):
        run.wait(60)
    assert run.state == "failed"
    assert isinstance(run.error, rs.errors.StoreError)
    assert "failed" in repr(run)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_neither_runs_it_nor_waits() -> None:
    ended = threading.Event()
    run = Background(ended.wait, Pace())
    child = os.fork()
    if child == 0:
        try:
            run.wait(0.01)
        except UnsupportedOperation:
            os._exit(0 if run.state == "forked" else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert run.state == "running"
    ended.set()
    assert run.wait(60) is True
