"""Reads the change feed: the changed rows of a range of commits, commit by commit.

Every row is read with the columns of the last version of the range. A commit that only rewrites
files, sets properties or changes columns emits nothing; a restore emits only the difference
(invariant 34). A lease protects the first version that is read while the feed is consumed.

Soundness: a range that needs an expired version is SnapshotExpired, before any row is returned.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Final, TypeVar

import pyarrow as pa

from rowsieve.change_feed.commit_parts import (
    CommitParts,
    check_has_key,
    parts_of_commit,
)
from rowsieve.change_feed.commit_rows import expect_parts, rows_of_commit
from rowsieve.change_feed.feed_columns import FeedColumns
from rowsieve.change_feed.undone_rewrites import net_parts
from rowsieve.config import DEFAULT
from rowsieve.errors import InvalidInput, SnapshotExpired, StoreError, VersionNotFound
from rowsieve.executor.read_ahead import PREFETCH_DIVISOR
from rowsieve.objects import FetchingStore, ObjectStore, in_thread
from rowsieve.retention.leases import LEASE_S, Lease
from rowsieve.storage.log.floors import check_kept, floors_of, is_closed
from rowsieve.storage.log.log_entry import LogEntry
from rowsieve.storage.log.log_reader import LogReader
from rowsieve.storage.log.missing_files import missing_files_of
from rowsieve.storage.log.next_version import version_after
from rowsieve.storage.snapshot import Snapshot

COMMITS_AT_ONCE: Final = 16
"""Commits whose log entries, footers and small files are requested at once across a network."""

T = TypeVar("T")
_log = logging.getLogger(__name__)


def checked_range(head: Snapshot, from_version: int, to_version: int | None) -> range:
    """Return the versions whose changes are asked for; empty if the head is just before them.

    SnapshotExpired if the version before the first one has expired, VersionNotFound if a version is
    after the head.
    """
    last = head.version if to_version is None else to_version
    if from_version < 0 or (to_version is not None and last < from_version):
        raise InvalidInput(
            f"changes: the range {from_version} to {last} has no version; give "
            "0 <= from_version <= to_version"
        )
    if last > head.version or from_version > last + 1:
        raise VersionNotFound(
            f"changes: the newest version is {head.version}, so there are no changes of version "
            f"{max(last, from_version)} yet; commit first, or begin with an earlier version"
        )
    check_changes_kept(head, from_version)
    return range(from_version, last + 1)


def check_changes_kept(head: Snapshot, version: int) -> None:
    """Raise SnapshotExpired if the changes of a version are gone; names the oldest version."""
    oldest = floors_of(head.table.properties).oldest_version
    if oldest and version <= oldest:
        if is_closed(head):
            check_kept(version, head)  # says that the table was dropped
        raise SnapshotExpired(
            f"the changes of version {version} of table {head.table.uuid} are gone: they need "
            f"version {max(version - 1, 0)}, and versions before {oldest} have expired. "
            + (
                f"Changes of versions {oldest + 1} to {head.version} are available"
                if oldest < head.version
                else f"Changes after version {oldest} will be available"
            )
        )


class ChangeFeed:
    """The changes of some versions, with the columns of the last one.

    `target` is the version whose columns the rows have. With `net`, the difference of its rows and
    those before the first version, as one commit.
    """

    def __init__(
        self,
        store: ObjectStore,
        log: LogReader,
        versions: range,
        target: Snapshot,
        columns: FeedColumns,
        *,
        net: bool = False,
    ) -> None:
        self._store = store
        self._log = log
        self._versions = versions
        self._target = target
        self._columns = columns
        self._net = net

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of every batch."""
        return self._columns.output

    @property
    def target(self) -> Snapshot:
        """The version whose columns the rows have."""
        return self._target

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the changes as a stream, which reads while it is consumed."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the changes in the order of their versions; batches are never empty."""
        if not self._versions:
            return
        first = self._versions[0]
        with self._lease(max(first - 1, 0)):
            if self._net:
                yield from self._net_rows(first)
                return
            before, entries = self._begin(first)
            at_once = COMMITS_AT_ONCE if self._store.overlaps else 1
            for start in range(0, len(self._versions), at_once):
                window = self._versions[start : start + at_once]
                commits = []
                for version, entry in zip(window, entries, strict=True):
                    after, operation = version_after(self._log, before, version, entry)
                    commits.append(parts_of_commit(before, after, operation, self._target))
                    before = after
                following = self._versions[start + at_once : start + 2 * at_once]
                reading = self._begun(partial(self._log.loaded_entries, following))
                yield from self._rows_of([commit for commit in commits if commit is not None])
                entries = reading()

    def _net_rows(self, first: int) -> Iterator[pa.RecordBatch]:
        """The difference of two versions, computed from the parts that only one of them has."""
        before = self._log.at(first - 1) if first else None
        check_changes_kept(self._log.newest(), first)  # after the lease, as in `_begin`
        commit = net_parts(self._log, before, self._target)
        yield from self._rows_of([] if commit is None else [commit])

    def _begin(self, first: int) -> tuple[Snapshot | None, list[LogEntry | None]]:
        """The version before the first one, and the entries of the first commits.

        SnapshotExpired if it had expired before the lease existed (invariants, rule 16).
        """
        at_once = COMMITS_AT_ONCE if self._store.overlaps else 1
        before = self._begun(partial(self._log.at, first - 1)) if first else None
        entries = self._begun(partial(self._log.loaded_entries, self._versions[:at_once]))
        check_changes_kept(self._log.newest(), first)  # after the lease
        return None if before is None else before(), entries()

    def _begun(self, task: Callable[[], T]) -> Callable[[], T]:
        """Begin the task now if requests overlap; return a function that gives its result."""
        return in_thread(task).result if self._store.overlaps else task

    def _rows_of(self, commits: Sequence[CommitParts]) -> Iterator[pa.RecordBatch]:
        """The changed rows of some commits, whose files are announced before the first is read."""
        store = self._store
        if store.overlaps:
            store = FetchingStore(store, DEFAULT.memory_bytes // PREFETCH_DIVISOR)
            for commit in commits:
                expect_parts(store, commit)
        with missing_files_of(self._store, self._target):
            for commit in commits:
                yield from rows_of_commit(store, self._target, commit, self._columns)

    def _lease(self, version: int) -> AbstractContextManager[object]:
        """A lease on the first version; without one if the table's folder cannot be written."""
        try:
            return Lease(self._store, self._target.table.uuid, version, LEASE_S, "changes")
        except StoreError as error:
            _log.info("changes of %s are read without a lease: %s", self._store.uri, error)
            return nullcontext()


def open_feed(
    store: ObjectStore,
    log: LogReader,
    head: Snapshot,
    from_version: int,
    to_version: int | None,
    *,
    columns: Sequence[str] | None,
    where: Any,
    dialect: str,
    session: Any,
    now_us: int,
    net: bool = False,
) -> ChangeFeed:
    """Check a request and return its feed; reads no rows."""
    versions = checked_range(head, from_version, to_version)
    last = versions[-1] if versions else head.version
    target = head if last == head.version else log.at(last)
    bound = FeedColumns.of(target, columns, where, dialect, session, now_us)
    if net:
        check_has_key(target)
    return ChangeFeed(store, log, versions, target, bound, net=net)
