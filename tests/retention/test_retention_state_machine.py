"""Retention against a model: no file that a version or a lease needs is ever deleted.

Random changes, expiries, leases and sweeps, each of which may die at any call of the store, before
or after the call took effect. After each step every version that the table still has, and every
version under a lease, reads the rows that the model has for it. In the end everything else goes.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import rowsieve
from rowsieve import Table
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import SnapshotExpired
from rowsieve.objects import open_store
from rowsieve.retention.leases import LEASES
from rowsieve.storage.log import create_only
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.floors import floors_of
from rowsieve.storage.log.log_head import _seen
from tests.faults.ages import aged
from tests.faults.stores import FaultyStore
from tests.faults.vocabulary import Crash, Fault
from tests.profiles import examples
from tests.retention.small_histories import ROWS, Row, paths, rows_of, table_of

KEYS = st.lists(st.integers(0, 6), min_size=1, max_size=4, unique=True)
LAST = st.integers(1, 4)
CRASH = st.none() | st.integers(0, 50)
GRACE = st.sampled_from((0.0, 0.0, 3600.0))


class RetentionMachine(RuleBasedStateMachine):
    """One table; `versions` are the rows that the model has for each version."""

    @initialize(keyed=st.booleans(), interval=st.sampled_from(("1", "3", "100")))
    def create(self, keyed: bool, interval: str) -> None:
        self.store = open_store(f"memory:///retention-{uuid.uuid4().hex}")
        self.keyed = keyed
        rowsieve.create_table(
            self.store.uri,
            ROWS,
            key=["id"] if keyed else None,
            properties={"checkpoint_interval": interval},
        )
        self.versions: list[list[Row]] = [[]]
        self.leases: list[tuple[Any, Table]] = []
        self.readers: list[tuple[Table, int]] = []
        self.number = 0

    def table(self, store: Any = None) -> Table:
        """A process of its own: it knows nothing of the others."""
        _seen.clear()
        create_only._proven.clear()
        store = store or self.store
        log = CommitLog(store)
        return Table(Handle(store, log, log.latest()))

    def run(
        self, change: Callable[[Table], Any], crash: int | None, after: list[Row] | None = None
    ) -> None:
        """Run a change, maybe up to a crash; then take over what it has committed.

        `after` are the rows after it, those before it if it is None.
        """
        if crash is None:
            change(self.table())
        else:
            dying = FaultyStore(self.store)
            victim = self.table(dying)
            dying.meet((Fault.CRASH_BEFORE, Fault.CRASH_AFTER)[crash % 2], crash // 2)
            with suppress(Crash):
                change(victim)
        head = self.table().version
        rows = self.versions[-1] if after is None else ordered(after)
        self.versions += [rows] * (head + 1 - len(self.versions))

    # Changes

    @rule(ids=KEYS, crash=CRASH)
    def write(self, ids: list[int], crash: int | None) -> None:
        self.number += 1
        rows = table_of(*((i, self.number) for i in ids))
        kept = [row for row in self.versions[-1] if not self.keyed or row["id"] not in ids]
        after = kept + rows.to_pylist()
        self.run(lambda t: t.upsert(rows) if self.keyed else t.append(rows), crash, after)

    @rule(key=st.integers(0, 6), crash=CRASH)
    def delete(self, key: int, crash: int | None) -> None:
        after = [row for row in self.versions[-1] if row["id"] != key]
        self.run(lambda t: t.delete(f"id = {key}"), crash, after)

    @rule(crash=CRASH)
    def compact(self, crash: int | None) -> None:
        self.run(lambda t: t.compact(), crash)

    @rule(crash=CRASH)
    def set_property(self, crash: int | None) -> None:
        self.number += 1
        self.run(lambda t: t.set_properties({"audit_percent": self.number % 100}), crash)

    @rule(crash=CRASH)
    def alter(self, crash: int | None) -> None:
        self.number += 1
        self.run(lambda t: t.set_default("v", self.number), crash)

    @rule(back=st.integers(0, 5), crash=CRASH)
    def restore(self, back: int, crash: int | None) -> None:
        version = max(0, len(self.versions) - 1 - back)
        if version >= self.floor():
            self.run(lambda t: t.restore(version), crash, self.versions[version])
            return
        with pytest.raises(SnapshotExpired):
            self.table().restore(version)

    # Retention

    @rule(last=LAST, crash=st.none() | st.integers(0, 90))
    def expire(self, last: int, crash: int | None) -> None:
        self.run(lambda t: t.expire_versions(retain_last=last), crash)

    @rule(grace_s=GRACE, crash=st.none() | st.integers(0, 90))
    def sweep(self, grace_s: float, crash: int | None) -> None:
        self.run(lambda t: t.remove_orphans(grace_s=grace_s), crash)

    @rule(last=LAST, crash=st.none() | st.integers(0, 150))
    def vacuum(self, last: int, crash: int | None) -> None:
        self.run(lambda t: t.vacuum(retain_last=last, grace_s=0), crash)

    @rule(back=st.integers(0, 4))
    def take_lease(self, back: int) -> None:
        version = max(self.floor(), len(self.versions) - 1 - back)
        held = self.table().lease(3600, version=version)
        pinned = held.__enter__()
        self.leases.append((held, pinned))

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def end_lease(self, data: st.DataObject) -> None:
        held, _ = self.leases.pop(data.draw(st.integers(0, len(self.leases) - 1)))
        held.__exit__(None, None, None)

    @rule()
    def open_reader(self) -> None:
        """A handle that reads its version later, if the table still has it then."""
        version = self.table().version
        self.readers.append((rowsieve.open_table(self.store.uri, version=version), version))

    # What must hold

    def floor(self) -> int:
        return floors_of(self.table().handle.pinned.table.properties).oldest_version

    @invariant()
    def every_kept_version_reads_its_rows(self) -> None:
        table = self.table()
        floor = floors_of(table.handle.pinned.table.properties).oldest_version
        assert rows_of(table) == self.versions[-1]
        for version in range(floor, len(self.versions)):
            assert rows_of(table.scan(version=version)) == self.versions[version], version
        for version in range(floor):
            try:
                table.scan(version=version)
            except SnapshotExpired:
                continue
            raise AssertionError(f"version {version} is below the floor {floor}")

    @invariant()
    def every_lease_reads_its_rows(self) -> None:
        for _, pinned in self.leases:
            assert rows_of(pinned) == self.versions[pinned.version]

    @invariant()
    def a_reader_reads_its_rows_or_is_told_that_they_expired(self) -> None:
        floor = self.floor()
        for reader, version in self.readers:
            try:
                assert rows_of(reader) == self.versions[version]
            except SnapshotExpired:
                assert version < floor

    def teardown(self) -> None:
        """Everything else goes in the end, once the leases of the dead are over."""
        if not hasattr(self, "store"):
            return
        for held, _ in self.leases:
            held.__exit__(None, None, None)
        dead = paths(self.store, LEASES)
        self.table().set_properties({"checkpoint_interval": "1000"})
        self.table().set_properties({"audit_percent": "99.5"})
        with aged(self.store, dead.__contains__):
            log = CommitLog(self.store)
            Table(Handle(self.store, log, log.latest())).vacuum(retain_last=1, grace_s=0)
        head = self.table()
        assert rows_of(head) == self.versions[-1]
        assert paths(self.store, "data") == set(head.files()["path"].to_pylist())
        oldest = self.floor()
        names = {path.rpartition("/")[2] for path in paths(self.store, "_rowsieve")}
        entries = {int(name[:20]) for name in names if name.endswith(".json")}
        assert min(entries) == oldest
        ids = {commit.commit_id for commit in head.history()}
        in_log = {path for path in paths(self.store, "_rowsieve/log") if ".json" not in path}
        assert {path.rpartition("/")[2].partition(".")[0] for path in in_log} <= ids
        assert len(names) <= 2 * (head.version + 1 - oldest) + 6
        assert paths(self.store, LEASES) == set()


def ordered(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["id"], row["v"]))


TestRetention = RetentionMachine.TestCase
TestRetention.settings = settings(
    cast("settings", examples(10, promised=300)), stateful_step_count=12
)
