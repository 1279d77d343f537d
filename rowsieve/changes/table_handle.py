"""The base class of `Table`: the versions that it holds, and the commit of changes.

A handle holds two versions: the newest one seen, which changes start from, and the pinned one,
which engines read (invariant 23). Both only move forward. Thread-safe.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial, wraps
from typing import Concatenate, Final, ParamSpec, TypeVar, cast

import pyarrow as pa

from rowsieve.arguments.annotations import Metadata, StorageOptions, Token
from rowsieve.changes.change import Change
from rowsieve.changes.column_changes import check_same_columns, check_same_meaning
from rowsieve.changes.ingest import Changes
from rowsieve.changes.mutation import Mutation, Stale, commit_mutation, never
from rowsieve.changes.operations import overwrite_all
from rowsieve.changes.vector_building import with_eager_vectors
from rowsieve.config import current
from rowsieve.errors import (
    CommitConflict,
    EvaluationError,
    InvalidData,
    InvalidPredicate,
    UnsupportedOperation,
    without_frames,
)
from rowsieve.locks import ForkSafeLock
from rowsieve.metrics import CommitReport, Reporter, WriterMetrics, send
from rowsieve.objects import ObjectStore
from rowsieve.stats.collect import Collecting
from rowsieve.storage.log.commit_log import CommitLog, Outrun, check_writable
from rowsieve.storage.log.commit_request import CommitRequest, check_request
from rowsieve.storage.log.conflicts import Kind
from rowsieve.storage.log.floors import is_given_up
from rowsieve.storage.log.log_entry import Commit, LogEntry
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S, Retries
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.instants import from_microseconds
from rowsieve.types.logical import Field
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema

H = TypeVar("H", bound="Handle")
P = ParamSpec("P")
R = TypeVar("R")
_BY_STATE: Final = (InvalidData, InvalidPredicate, EvaluationError, CommitConflict)
"""Errors of a call that may have been valid for an earlier version of the table."""


def changes(
    operation: str,
) -> Callable[[Callable[Concatenate[H, P], R]], Callable[Concatenate[H, P], R]]:
    """Decorate a method so that a call which raises is reported as a failed `operation`.

    A call whose `token` was committed returns that commit, even if its data does not fit the table
    as it is now: the columns may have changed since.
    """

    def decorate(method: Callable[Concatenate[H, P], R]) -> Callable[Concatenate[H, P], R]:
        @wraps(method)
        def call(self: H, /, *args: P.args, **kwargs: P.kwargs) -> R:
            started_s = time.perf_counter()
            try:
                return method(self, *args, **kwargs)
            except BaseException as error:
                if (done := self._done_before(error, kwargs.get("token"))) is not None:
                    return cast("R", done)  # every method that takes a token returns a Commit
                reporter = self._reporter or current().reporter
                send_failure(
                    reporter, self._store, self._newest.version, operation, error, started_s
                )
                raise

        return call

    return decorate


def send_failure(
    reporter: Reporter | None,
    store: ObjectStore,
    version: int,
    operation: str,
    error: BaseException,
    started_s: float,
) -> None:
    """Report a change that raised; `started_s` is its start time by `time.perf_counter`."""
    elapsed_s = time.perf_counter() - started_s
    name = type(error).__name__
    send(reporter, CommitReport(store.uri, version, operation, error=name, elapsed_s=elapsed_s))


class Handle:
    """The state of a `Table`, and its access to the commit log.

    `read_only` may be the reason that changes fail with, if the table exists in memory only.
    """

    def __init__(
        self,
        store: ObjectStore,
        log: CommitLog,
        snapshot: Snapshot,
        *,
        read_only: bool | str = False,
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
        self._reported_metrics = WriterMetrics()
        self._engine_error: Exception | None = None

    @property
    def engine_error(self) -> Exception | None:
        """The last error raised while an engine read this table; engines keep only its text.

        Each call returns a new object: the frames of one that is raised keep their variables alive.
        """
        return None if self._engine_error is None else without_frames(self._engine_error)

    @engine_error.setter
    def engine_error(self, error: Exception | None) -> None:
        self._engine_error = None if error is None else without_frames(error)

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
        schema_id = self._newest.schema.id
        return Change(self._store, operation, notes, token, self._collecting, retries, schema_id)

    def _writable(self, operation: str) -> None:
        if isinstance(self._read_only, str):
            raise UnsupportedOperation(f"{operation}: {self._read_only}")
        if self._read_only:
            raise UnsupportedOperation(
                f"{operation}: the table was opened at version {self._pinned.version} and is "
                "read-only; open it without version= and as_of= to change it"
            )
        check_writable(operation, self._newest)

    def _done_before(self, error: BaseException, token: object) -> Commit | None:
        """Return the commit of a token if a call with it failed by the table's present state."""
        if not (isinstance(error, _BY_STATE) and isinstance(token, tuple)):
            return None
        return self._log.committed_before((str(token[0]), int(token[1])), self._latest())

    def _order(self, operation: str) -> KeyOrder:
        newest = self._newest  # one snapshot: another thread may move it
        if not newest.table.key:
            raise UnsupportedOperation(
                f"{operation}: the table has no key; use append, or create a table with key="
            )
        return KeyOrder.of(newest.schema, newest.table.key)

    def _commit_blind(self, change: Change, changes: Changes) -> Commit:
        """Commit changes that do not depend on the table's rows, nor on commits that expired."""
        base = self._latest()
        if (done := self._log.committed_before(change.token, base)) is not None:
            return done
        check_writable(change.operation, base)
        check_same_columns(change.operation, change.schema_id, base)
        if changes.is_empty:
            return nothing_done(change.operation, base)
        request = change.write(base, changes)

        def request_for(head: Snapshot) -> CommitRequest:
            nonlocal request
            check_writable(change.operation, head)
            if is_given_up(request.added, request.removed, head):
                request = change.write(replace(base, version=head.version), changes)
            return with_eager_vectors(self._store, head, request)

        while True:
            try:
                return self._commit(change, base, request_for)
            except Outrun:
                base = self._latest()
                check_same_columns(change.operation, change.schema_id, base)

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
        return self._reported(commit, change.started_s)

    def _commit_overwrite(self, change: Change, rows: pa.Table) -> Commit:
        """Replace all rows; writes them again if the head's floor is above their files' base."""
        base = self._latest()
        if (done := self._log.committed_before(change.token, base)) is not None:
            return done
        check_writable("overwrite", base)
        check_same_columns("overwrite", change.schema_id, base)
        added = change.write(base, Changes(rows, None)).added

        def replacing(head: Snapshot) -> CommitRequest:
            nonlocal added
            check_writable("overwrite", head)
            if is_given_up(added, (), head):
                now = replace(base, version=head.version)
                added = change.write(now, Changes(rows, None)).added
            assert added is not None
            return overwrite_all(change, head, added, rows.num_rows)

        return self._commit(change, base, replacing)

    def _reported(self, commit: Commit, started_s: float) -> Commit:
        """Report the commit and its write metrics, then return it."""
        if (reporter := self._reporter or current().reporter) is None:
            return commit
        elapsed_s = time.perf_counter() - started_s
        with self._lock:
            now = replace(self._collecting.metrics)
            written, self._reported_metrics = now.since(self._reported_metrics), now
        counts = (
            commit.rows_written,
            commit.rows_deleted,
            commit.parts_added,
            commit.parts_removed,
        )
        send(
            reporter,
            CommitReport(
                self._store.uri,
                commit.version,
                commit.operation,
                *counts,
                written,
                elapsed_s=elapsed_s,
            ),
        )
        return commit

    def _commit_mutation(
        self,
        change: Change,
        build: Callable[[Snapshot], Mutation | None],
        *,
        recompute: bool = True,
        any_columns: bool = False,
        reads: tuple[Schema, Callable[[], Iterable[Field]]] | None = None,
    ) -> Commit:
        """Commit what `build` returns; `any_columns`: it depends on no names of columns.

        `reads`: the schema that it was written for, and the columns whose meaning it depends on.
        """
        head = self._latest()
        if (done := self._log.committed_before(change.token, head)) is not None:
            return done
        retries = change.retries or Retries(change.operation)

        def checked(snapshot: Snapshot) -> Mutation | None:
            check_writable(change.operation, snapshot)
            if reads is not None:
                check_same_meaning(change.operation, reads[0], snapshot, reads[1])
            elif not any_columns:
                check_same_columns(change.operation, change.schema_id, snapshot)
            return build(snapshot)

        commit, snapshot = commit_mutation(
            self._log,
            checked,
            head,
            retries,
            recompute=recompute,
            complete=partial(with_eager_vectors, self._store),
        )
        self._pin(snapshot)
        if commit is not None:
            return self._reported(commit, change.started_s)
        return nothing_done(change.operation, snapshot)

    def require_writable(self, operation: str) -> None:
        """Raise UnsupportedOperation if the handle cannot commit, such as one at an old version."""
        self._writable(operation)

    def commit_rewrite(
        self,
        base: Snapshot,
        request: CommitRequest,
        started_s: float,
        *,
        own_commits: Sequence[str] = (),
    ) -> Commit:
        """Commit a rewrite of parts of `base` that was computed elsewhere; pin its version.

        `started_s` is its start time by `time.perf_counter`. CommitConflict if a concurrent commit
        replaced one of the parts, or the table's content. `own_commits` are ids of commits of the
        same call since `base`, which rewrote other parts.
        """
        reported = changes(request.operation)(Handle._commit_rewrite)
        return reported(self, base, request, started_s, own_commits)

    def commit_added(self, base: Snapshot, request: CommitRequest, started_s: float) -> Commit:
        """Commit new parts that were written elsewhere, based on `base`; pin the new version.

        `started_s` is the start time by `time.perf_counter`. Never conflicts, except with changes
        of columns. A request whose token was used returns that commit.
        """
        return changes(request.operation)(Handle._commit_added)(self, base, request, started_s)

    def commit_computed(
        self,
        operation: str,
        build: Callable[[Change, Snapshot], Mutation | None],
        retry_timeout_s: float | None = RETRY_TIMEOUT_S,
    ) -> Commit:
        """Commit what `build` computes from a version, and computes again after a conflict."""

        def commit(self: Handle) -> Commit:
            change = self._change(operation, None, None, retry_timeout_s)
            return self._commit_mutation(change, lambda snapshot: build(change, snapshot))

        return changes(operation)(commit)(self)

    def _commit_added(self, base: Snapshot, request: CommitRequest, started_s: float) -> Commit:
        self._writable(request.operation)
        commit, snapshot = self._log.commit(
            request, base, lambda _head, _entries: request, Retries(request.operation)
        )
        self._pin(snapshot)
        return self._reported(commit, started_s)

    def commit_placed(
        self,
        base: Snapshot,
        request_for: Callable[[Snapshot], CommitRequest],
        started_s: float,
    ) -> Commit:
        """Commit parts of foreign files; pin the new version.

        `request_for` makes the request for each head, the first for `base`. Keys replace existing
        rows, as in an upsert.
        """
        operation = "upsert" if base.table.key else "append"
        return changes(operation)(Handle._commit_placed)(self, base, request_for, started_s)

    def _commit_placed(
        self,
        base: Snapshot,
        request_for: Callable[[Snapshot], CommitRequest],
        started_s: float,
    ) -> Commit:
        request = request_for(base)
        self._writable(request.operation)
        commit, snapshot = self._log.commit(
            with_eager_vectors(self._store, base, request),
            base,
            lambda head, _: with_eager_vectors(self._store, head, request_for(head)),
            Retries(request.operation),
        )
        self._pin(snapshot)
        return self._reported(commit, started_s)

    def _commit_rewrite(
        self,
        base: Snapshot,
        request: CommitRequest,
        started_s: float,
        own_commits: Sequence[str],
    ) -> Commit:
        operation = request.operation
        self._writable(operation)
        mutation = Mutation(request, Kind.REWRITING, touched_by=never, own_commits=own_commits)
        try:
            commit, snapshot = commit_mutation(
                self._log, lambda _: mutation, base, Retries(operation), recompute=False
            )
        except Stale as error:
            raise CommitConflict(
                f"{operation}: a concurrent commit replaced parts of version {base.version} that "
                "were rewritten; nothing was committed. Call it again"
            ) from error
        self._pin(snapshot)
        assert commit is not None
        return self._reported(commit, started_s)

    def _latest(self) -> Snapshot:
        with self._lock:
            known = self._newest
        found = self._log.latest(known)  # without the lock: never hold it across I/O (invariant 21)
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
    """Return the result of a change that has nothing to commit."""
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
