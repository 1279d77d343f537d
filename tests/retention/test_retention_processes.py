"""Writers, expirers and readers at once, in processes of their own, on a real disk."""

from __future__ import annotations

import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import SnapshotExpired
from rowsieve.retention import retaining
from rowsieve.retention.leases import LEASES
from tests.processes import PROCESSES, start
from tests.profiles import IS_DEEP
from tests.retention.small_histories import expected, paths, rows_of, table_of, with_history

ROUNDS = 200 if IS_DEEP else 6
READ_S = 60.0


def write(uri: str, rounds: int) -> None:
    """Version by version: the sum over all rows is always the same."""
    table = rowsieve.open_table(uri)
    for i in range(1, rounds + 1):
        table.upsert(table_of((0, -i), (i % 7 + 1, 0), (9, i)))
        if not i % 5:
            table.compact()


def expire(uri: str, stop: Any, grace_s: float) -> None:
    table = rowsieve.open_table(uri)
    while not stop.is_set():
        table.vacuum(retain_last=2, grace_s=grace_s)
        time.sleep(0.01)


def read(uri: str, stop: Any, leased: bool) -> None:
    """Each read gives a whole version, or says that it has expired; never with a lease."""
    table = rowsieve.open_table(uri)
    count = 0
    while not stop.is_set() or not count:
        if leased:
            try:
                held = table.lease(30)
                pinned = held.__enter__()
            except SnapshotExpired:
                continue  # it expired before the lease: there is a newer one
            try:
                for _ in range(3):
                    check(rows_of(pinned))
                    time.sleep(0.02)
            finally:
                held.__exit__(None, None, None)
            count += 1
            continue
        try:
            check(rows_of(table))
        except SnapshotExpired:
            continue
        count += 1


def check(rows: list[dict[str, Any]]) -> None:
    assert sum(row["v"] for row in rows) == 0, rows
    assert [row["id"] for row in rows][:1] == [0]


def test_a_writer_two_expirers_and_readers_at_once(tmp_path: Path) -> None:
    table = with_history(tmp_path / "t", versions=1)
    stop = PROCESSES.Event()
    others = [
        start(expire, table.uri, stop, 0.0),
        start(expire, table.uri, stop, 3600.0),
        start(partial(read, leased=True), table.uri, stop),
        start(partial(read, leased=False), table.uri, stop),
    ]
    writer = start(write, table.uri, ROUNDS)
    writer.join(1200)
    stop.set()
    for process in others:
        process.join(READ_S)
    assert [process.exitcode for process in (writer, *others)] == [0] * 5
    last = rowsieve.open_table(table.uri)
    rows = rows_of(last)
    check(rows)
    assert {"id": 9, "v": ROUNDS} in rows
    last.compact()
    last.vacuum(retain_last=1, grace_s=0)
    assert paths(last.handle.store, "data") == set(last.files()["path"].to_pylist())
    assert paths(last.handle.store, LEASES) == set()
    assert len(paths(last.handle.store)) < 20  # of hundreds of versions


def test_two_expirers_at_once_keep_what_either_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have seen the leases before either commits its floor."""
    table = with_history(versions=12)
    first, second = (rowsieve.open_table(table.uri) for _ in range(2))
    barrier = threading.Barrier(2, timeout=60)
    raise_floor = retaining._raise_floors
    errors: list[BaseException] = []

    def together(*args: Any, **options: Any) -> Any:
        barrier.wait()
        return raise_floor(*args, **options)

    monkeypatch.setattr(retaining, "_raise_floors", together)

    def run(one: Table, retain_last: int) -> None:
        try:
            one.expire_versions(retain_last=retain_last)
        except BaseException as error:
            errors.append(error)

    threads = [
        threading.Thread(target=run, args=(one, last)) for one, last in ((first, 3), (second, 6))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    monkeypatch.undo()
    fresh = rowsieve.open_table(table.uri)
    oldest = fresh.history()[-1].version
    assert oldest in (6, 9)
    for version in range(oldest, 12):
        assert rows_of(fresh.scan(version=version)) == expected(version)
    fresh.vacuum(retain_last=3, grace_s=0)
    assert rows_of(rowsieve.open_table(table.uri)) == expected(11)
