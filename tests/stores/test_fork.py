"""A table in a forked process: refused on an object store, whole on the local disk."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import locks
from rowsieve.executor.live_rows import _VISIBLE
from rowsieve.locks import ForkSafeLock
from rowsieve.parquet import footer
from rowsieve.storage.log import log_head
from tests.stores.s3_server import S3

ROWS = pa.table({"id": [1, 2, 3]})


def in_child(act: Callable[[], object]) -> str:
    """What `act` returns, or raises, in a fork of this process; one that hangs is ended."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads
        child = os.fork()
    if child == 0:
        signal.alarm(30)
        try:
            said = str(act())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    assert os.waitpid(child, 0)[1] == 0, "the child hung"
    return said


@contextmanager
def held(*held_locks: ForkSafeLock) -> Iterator[None]:
    """Another thread holds these locks."""
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        for lock in held_locks:
            lock.__enter__()
        taken.set()
        done.wait()
        for lock in held_locks:
            lock.__exit__(None, None, None)

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_a_fork_of_a_process_that_used_an_object_store_is_told_to_spawn(s3: S3) -> None:
    uri = s3.fresh_uri()
    table = rs.create_table(uri, ROWS, key=["id"], storage_options=s3.options)
    for act in (
        lambda: table.scan().to_arrow(),
        lambda: table.upsert(ROWS),
        lambda: rs.open_table(uri, storage_options=s3.options),
        lambda: rs.create_table(s3.fresh_uri(), ROWS, storage_options=s3.options),
    ):
        said = in_child(act)
        assert said.startswith("UnsupportedOperation: s3://tables/")
        assert "a fork of process" in said
        assert "'spawn'" in said
        assert "open the table again" in said
    assert table.scan().count() == 3


def test_a_fork_reads_and_writes_on_local_disk_whatever_locks_were_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = rs.create_table(str(tmp_path / "t"), ROWS, key=["id"])
    table.upsert(pa.table({"id": [3, 4]}))
    assert table.scan().count() == 4
    monkeypatch.setattr(locks, "_ACQUIRE_TIMEOUT_S", 0.01)
    with held(footer._CACHE._lock, log_head._seen_lock, _VISIBLE._lock, table.handle._lock):
        assert in_child(lambda: table.scan("id > 1").to_arrow().num_rows) == "3"
        assert in_child(lambda: table.upsert(pa.table({"id": [5]})).version) == "2"
    assert table.scan().count() == 5


def test_a_fork_does_not_wait_for_a_thread_of_its_parent(tmp_path: Path) -> None:
    begun, done = threading.Event(), threading.Event()

    def compute() -> tuple[()]:
        begun.set()
        done.wait()
        return ()

    thread = threading.Thread(target=_VISIBLE.get, args=("parts", compute))
    thread.start()
    begun.wait()
    try:
        assert in_child(lambda: _VISIBLE.get("parts", lambda: ())) == "()"
    finally:
        done.set()
        thread.join()


def test_a_fork_never_sees_guarded_state_half_changed() -> None:
    lock, counts, done = ForkSafeLock(), [0, 0], threading.Event()

    def change() -> None:
        while not done.is_set():
            with lock:
                counts[0] += 1
                sum(range(100))
                counts[1] += 1

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(20):
            assert in_child(lambda: counts[0] - counts[1]) == "0"
    finally:
        done.set()
        thread.join()
