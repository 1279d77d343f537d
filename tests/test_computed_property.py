"""Attributes that are computed once, and never under a lock."""

from __future__ import annotations

import ast
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve.changes.table_handle import Handle
from rowsieve.computed_property import computed_property
from rowsieve.objects import ObjectStore
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.table import Table
from tests import house

ROOT = Path(rowsieve.__file__).parent
PATIENCE_S = 120  # only a failing test waits this long


class Counted:
    """An object with one computed attribute, which counts its computations."""

    def __init__(self) -> None:
        self.computed = 0
        self.fails = False

    @computed_property
    def value(self) -> list[int]:
        """What is computed."""
        self.computed += 1
        if self.fails:
            raise ValueError("computed at a bad time")
        return [self.computed]


def test_a_value_is_computed_once_per_object() -> None:
    one, other = Counted(), Counted()
    assert one.value is one.value
    assert (one.computed, other.computed) == (1, 0)
    assert Counted.value.__doc__ == "What is computed."


def test_a_failure_is_not_kept() -> None:
    one = Counted()
    one.fails = True
    with pytest.raises(ValueError, match="bad time"):
        _ = one.value
    one.fails = False
    assert one.value == [2]


def test_threads_that_compute_at_once_get_one_value() -> None:
    begun, together = threading.Barrier(4, timeout=PATIENCE_S), []

    class Slow:
        @computed_property
        def value(self) -> object:
            begun.wait()
            return object()

    slow = Slow()
    threads = [threading.Thread(target=lambda: together.append(slow.value)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(together) == 4
    assert len(set(map(id, together))) == 1


class HeldBack:
    """A store whose requests for statistics of shards wait until `go` is set."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.is_slow = False
        self.asked, self.go = threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        """Return bytes of an object, once they may be had."""
        if self.is_slow and path.endswith(".shards"):
            self.asked.set()
            assert self.go.wait(PATIENCE_S)
        return self._store.get_range(path, start, stop)


def sharded(uri: str) -> Table:
    rows = pa.table({"id": range(10), "v": range(10)})
    properties = {"checkpoint_interval": "1", "statistics_inline_bytes": "1"}
    table = rowsieve.create_table(uri, rows, key=["id"], properties=properties)
    for i in range(3):
        table.upsert(pa.table({"id": [i], "v": [i]}))
    return table


def test_a_slow_request_of_one_table_holds_up_no_other(tmp_path: Path) -> None:
    """Invariant 21: no lock is held across I/O, not even one of the standard library."""
    store = HeldBack(sharded(str(tmp_path / "slow")).handle.store)
    log = CommitLog(store)
    slow = Table(Handle(store, log, log.latest()))
    sharded(str(tmp_path / "fast"))
    fast = rowsieve.open_table(tmp_path / "fast")
    store.is_slow = True
    held = threading.Thread(target=lambda: slow.scan("v = 3").to_arrow(), daemon=True)
    counts: list[int] = []
    other = threading.Thread(target=lambda: counts.append(fast.count("v = 4")), daemon=True)
    held.start()
    assert store.asked.wait(PATIENCE_S)
    other.start()
    other.join(PATIENCE_S / 2)
    found = list(counts)
    store.go.set()
    held.join(PATIENCE_S)
    other.join(PATIENCE_S)
    assert found == [1]


def test_the_package_computes_no_attribute_under_the_lock_of_a_class() -> None:
    """Invariant 21: `functools.cached_property` of Python 3.11 has a lock per class."""
    found = [
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if "cached_property" in path.read_text()
        for node in ast.walk(house.tree_of(path))
        if (isinstance(node, ast.alias) and node.name == "cached_property")
        or (isinstance(node, ast.Attribute) and node.attr == "cached_property")
    ]
    assert found == []
