"""Changes that another process overtakes, at any call of the store, with a compaction and a vacuum.

Such a change has read a version whose files are gone, and files that it has written may be gone,
too. It reads and writes again: it neither fails nor loses anything.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import rowsieve
from rowsieve import Table
from rowsieve.changes.table_handle import Handle
from rowsieve.objects import ObjectStore
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.log_head import _seen
from tests.profiles import IS_DEEP
from tests.retention.small_histories import expected, paths, rows_of, table_of, with_history

VERSIONS = 4
EVERY = 1 if IS_DEEP else 6


class Overtaken:
    """A store that runs something else once, before one of its calls."""

    def __init__(self, store: ObjectStore, at: int = -1, then: Callable[[], Any] = int) -> None:
        self._store, self._at, self._then = store, at, then
        self.calls = self.published = -1

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not callable(found):
            return found

        def call(*args: Any, **options: Any) -> Any:
            self.calls += 1
            if name == "put_new" and str(args[0]).endswith(".json"):
                self.published = self.calls
            if self.calls == self._at:
                self._then()
            return found(*args, **options)

        return call


def through(store: Any) -> Table:
    _seen.clear()  # a process of its own
    log = CommitLog(store)
    return Table(Handle(store, log, log.latest()))


def overtake(store: ObjectStore) -> None:
    """Upsert what no change touches, and leave only what the newest version needs."""
    table = through(store)
    table.upsert(table_of((50, 50)))
    table.compact()
    table.vacuum(retain_last=1, grace_s=0)


CHANGES: dict[str, Callable[[Table], Any]] = {
    "upsert": lambda t: t.upsert(table_of((1, 9), (9, 9))),
    "delete": lambda t: t.delete("id = 1"),
    "update": lambda t: t.update({"v": "v + 1"}, where="id = 1"),
    "overwrite where": lambda t: t.overwrite(table_of((1, 8)), where="id = 1"),
    "compact": lambda t: t.compact(),
    "build_deletion_vectors": lambda t: t.build_deletion_vectors(),
}


@pytest.mark.parametrize("visibility", ["lazy", "eager"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_maintenance_overtakes_is_made_again(name: str, visibility: str) -> None:
    change = CHANGES[name]
    calm = with_history(versions=VERSIONS, visibility=visibility)
    counting = Overtaken(calm.handle.store)
    slow = through(counting)
    first = counting.calls + 1
    change(slow)
    wanted = [*rows_of(through(calm.handle.store)), {"id": 50, "v": 50}]
    if counting.published < 0:
        return  # an eager table has all vectors
    for at in (*range(first, counting.published, EVERY), counting.published):
        table = with_history(versions=VERSIONS, visibility=visibility)
        store = Overtaken(table.handle.store, at, partial(overtake, table.handle.store))
        change(through(store))
        head = through(table.handle.store)
        assert rows_of(head) == wanted, at
        assert set(head.files()["path"].to_pylist()) <= paths(table.handle.store, "data")


def test_a_read_only_version_that_expires_is_no_conflict() -> None:
    """The files of a version that is still the newest cannot expire: somebody deleted them."""
    table = with_history(versions=2)
    assert rows_of(table) == expected(1)
    table.handle.store.delete(list(paths(table.handle.store, "data")))
    with pytest.raises(rowsieve.errors.CorruptData, match="is missing"):
        through(table.handle.store).delete("v = 1")
