"""What a handle on a table knows of its versions, and how changes are committed through it.

Two versions are kept: the newest that was seen, which changes start from, and the pinned one, which
engines read (invariant 23). Both only move forward. Safe to share between threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rowsieve.arguments.annotations import Metadata, StorageOptions, Token
from rowsieve.changes.change import Change
from rowsieve.changes.ingest import Changes
from rowsieve.changes.mutation import Mutation, commit_mutation
from rowsieve.config import current
from rowsieve.errors import UnsupportedOperation
from rowsieve.locks import ForkSafeLock
from rowsieve.metrics import CommitReport, Reporter, WriterMetrics, send
from rowsieve.objects import ObjectStore
from rowsieve.stats.collect import Collecting
from rowsieve.storage.commit_log import CommitLog
from rowsieve.storage.commit_request import CommitRequest, check_request
from rowsieve.storage.log_entry import Commit, LogEntry
from rowsieve.storage.retries import Retries
from rowsieve.storage.snapshot import Snapshot
from rowsieve.times import from_microseconds
from rowsieve.types.keys import KeyOrder


class Handle:
    """The base of `Table`: its state and its way to the commit log."""

    def __init__(
        self,
        store: ObjectStore,
        log: CommitLog,
        snapshot: Snapshot,
        *,
        read_only: bool = False,
        storage_options: StorageOptions | None = None,
    ) -> None:
        self._store = store
        self._log = log
        self._pinned = snapshot
        self._newest = snapshot
        self._read_only = read_only
        self._storage_options = dict(storage_options or {})
        self._lock = ForkSafeLock()
        self._collecting = Collecting()
        self._reporter: Reporter | None = None
        self._told = WriterMetrics()
        self.engine_error: Exception | None = None
        """What was last raised while an engine read this table; engines pass on its text only."""

    def _change(
        self,
        operation: str,
        metadata: Metadata | None,
        token: Token | None,
        retry_timeout_s: float | None = None,
    ) -> Change:
        self._writable(operation)
        retries = Retries(operation, retry_timeout_s)
        notes = dict(metadata or {})
        check_request(CommitRequest(operation, metadata=notes, token=token))  # before any write
        return Change(self._store, operation, notes, token, self._collecting, retries)

    def _writable(self, operation: str) -> None:
        if self._read_only:
            raise UnsupportedOperation(
                f"{operation}: this table was opened at version {self._pinned.version} and is "
                "read-only; open it without version= and as_of= to change it"
            )

    def _order(self, operation: str) -> KeyOrder:
        key = self._pinned.table.key
        if not key:
            raise UnsupportedOperation(
                f"{operation}: the table has no key; use append, or create a table with key="
            )
        return KeyOrder.of(self._newest.schema, key)

    def _commit_blind(self, change: Change, changes: Changes) -> Commit:
        """Commit what depends on nothing that is in the table."""
        base = self._latest()
        if (done := self._log.committed_before(change.token, base)) is not None:
            return done
        if changes.is_empty:
            return nothing_done(change.operation, base)
        request = change.write(base, changes)
        return self._commit(change, base, lambda _: request)

    def _commit(
        self,
        change: Change,
        base: Snapshot,
        request_for: Callable[[Snapshot], CommitRequest],
    ) -> Commit:
        def rebase(head: Snapshot, _entries: Sequence[LogEntry]) -> CommitRequest:
            return request_for(head)

        commit, snapshot = self._log.commit(request_for(base), base, rebase, change.retries)
        self._pin(snapshot)
        return self._reported(commit)

    def _reported(self, commit: Commit) -> Commit:
        """Report the commit and its write metrics, then return it."""
        if (reporter := self._reporter or current().reporter) is None:
            return commit
        with self._lock:
            now = replace(self._collecting.metrics)
            written, self._told = now.since(self._told), now
        counts = (
            commit.rows_written,
            commit.rows_deleted,
            commit.parts_added,
            commit.parts_removed,
        )
        report = CommitReport(self._store.uri, commit.version, commit.operation, *counts, written)
        send(reporter, report)
        return commit

    def _commit_mutation(
        self,
        change: Change,
        build: Callable[[Snapshot], Mutation | None],
        *,
        recompute: bool = True,
    ) -> Commit:
        head = self._latest()
        if (done := self._log.committed_before(change.token, head)) is not None:
            return done
        retries = change.retries or Retries(change.operation)
        commit, snapshot = commit_mutation(self._log, build, head, retries, recompute=recompute)
        self._pin(snapshot)
        if commit is not None:
            return self._reported(commit)
        return nothing_done(change.operation, snapshot)

    def _latest(self) -> Snapshot:
        with self._lock:
            known = self._newest
        found = self._log.latest(known)  # no lock is held across I/O (invariant 21)
        with self._lock:
            if found.version >= self._newest.version:
                self._newest = found
            return self._newest

    def _pin(self, snapshot: Snapshot) -> None:
        with self._lock:
            if snapshot.version >= self._newest.version:
                self._newest = snapshot
            if snapshot.version >= self._pinned.version:
                self._pinned = snapshot


def nothing_done(operation: str, snapshot: Snapshot) -> Commit:
    """The answer of a change that changes nothing and so commits nothing."""
    return Commit(
        version=snapshot.version,
        commit_id=snapshot.commit_id,
        timestamp=from_microseconds(snapshot.timestamp_us),
        operation=operation,
        rows_written=0,
        rows_deleted=0,
        parts_added=0,
        parts_removed=0,
        metadata={},
        committed=False,
    )
