"""What a `Table` stands on: the versions that it holds, and the commit of changes.

A handle holds two versions: the newest one seen, which changes start from, and the pinned one,
which engines read (invariant 23). Both only move forward. Thread-safe.
"""

from __future__ import annotations

import copy
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TypeVar

import pyarrow as pa

from rowsieve.arguments.annotations import Metadata, Moment, StorageOptions, Token
from rowsieve.changes.change import Change, OpenWriter, nothing_done, send_failure
from rowsieve.changes.column_changes import alter_columns, check_same_columns, check_same_meaning
from rowsieve.changes.computed import only_token
from rowsieve.changes.data.ingest import Changes
from rowsieve.changes.event_order.ordered_commits import changes_in_order
from rowsieve.changes.event_order.too_late import OnTooLate
from rowsieve.changes.merged_columns import changes_with_data
from rowsieve.changes.mutation import Mutation, built_beside, commit_mutation
from rowsieve.changes.operations import overwrite_all
from rowsieve.changes.vector_building import with_eager_vectors
from rowsieve.config import current
from rowsieve.errors import (
    InvalidInput,
    UnsupportedOperation,
    without_frames,
)
from rowsieve.flags.resolution import flags_as_dict
from rowsieve.locks import ForkSafeLock
from rowsieve.metrics import CommitReport, Reporter, WriterMetrics, send
from rowsieve.metrics.running_operations import operation as begun_operation
from rowsieve.objects import ObjectStore
from rowsieve.properties import PUBLISH
from rowsieve.stats.collect import Collecting
from rowsieve.storage.constraints import with_constraints_of
from rowsieve.storage.log.commit_log import CommitLog, Draft, Outrun, check_writable
from rowsieve.storage.log.commit_request import (
    REFUSING_PARTS,
    CommitRequest,
    check_request,
    must_write_again,
)
from rowsieve.storage.log.inline_parts import is_full
from rowsieve.storage.log.log_entry import Commit, LogEntry
from rowsieve.storage.log.refs import refuse_tag
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S, Retries
from rowsieve.storage.log.version_arguments import resolve_snapshot
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.logical import Field
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema

_T = TypeVar("_T")


class Handle:
    """The versions that a `Table` holds, its writers' counters, and its access to the commit log.

    `pinned` is what engines read, `newest` what changes start from. `read_only` may be the reason
    that changes fail with, if the table exists in memory only. `folds` writes parts in memory into
    files when a commit has made them many; `publishes` writes the metadata of other formats.
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
        self.store = store
        self.log = log
        self.pinned = snapshot
        self.newest = snapshot
        self.read_only = read_only
        self.storage_options = dict(storage_options or {})
        self.collecting = Collecting()
        self._lock = ForkSafeLock()
        self.own_reporter: Reporter | None = None
        self.writer: OpenWriter | None = None
        self._reported_metrics = WriterMetrics()
        self.folds: Callable[[Handle], None] | None = None
        self.publishes: Callable[..., None] | None = None
        self._engine_errors: deque[Exception] = deque(maxlen=1)
        self._was_head = True  # at the last look-up nobody else had committed

    @property
    def line(self) -> str:
        """The line of versions that this handle follows: the table's, or that of a transaction."""
        return self.newest.table.uuid

    @property
    def may_build_ahead(self) -> bool:
        """True if a look-up costs a round trip, and the last one met no commit of others."""
        return self.store.overlaps and self._was_head

    def fixed_at(self, snapshot: Snapshot) -> Handle:
        """Return a read-only handle at one version; errors of engines that read it come here."""
        fixed = copy.copy(self)
        fixed.pinned = fixed.newest = snapshot
        fixed.read_only = self.read_only or True
        fixed.writer = None
        return fixed

    def at_log(self, log: CommitLog, snapshot: Snapshot, *, read_only: bool) -> Handle:
        """Return a handle at another log of the same table, that of a branch or tag."""
        options = self.storage_options
        handle = Handle(log.store, log, snapshot, read_only=read_only, storage_options=options)
        handle.own_reporter = self.own_reporter
        return handle

    @property
    def engine_error(self) -> Exception | None:
        """The last error raised while an engine read this table; engines keep only its text.

        Each call returns a new object: the frames of one that is raised keep their variables alive.
        """
        return without_frames(self._engine_errors[0]) if self._engine_errors else None

    @engine_error.setter
    def engine_error(self, error: Exception | None) -> None:
        self._engine_errors.clear()
        if error is not None:
            self._engine_errors.append(without_frames(error))

    @property
    def reporter(self) -> Reporter | None:
        """The reporter of reads and commits: the table's own, else the process's."""
        return self.own_reporter or current().reporter

    def report_to(self, reporter: Reporter | None) -> None:
        """Replace the table's own reporter."""
        with self._lock.mutex:
            self.own_reporter = reporter
            self._reported_metrics = replace(self.collecting.metrics)

    @contextmanager
    def changing(self, operation: str) -> Iterator[None]:
        """Run the block as one change, and report what it raises as a failed `operation`.

        An open writer has committed all its earlier calls when the block begins.
        """
        started_s = time.perf_counter()
        reporter, uri = self.reporter, self.store.uri
        with begun_operation("change", operation, uri, reporter):
            try:
                with self.turn():
                    yield
            except BaseException as error:
                version = self.newest.version
                send_failure(reporter, self.store, version, operation, error, started_s)
                raise

    def change(
        self,
        operation: str,
        metadata: Metadata | None = None,
        token: Token | None = None,
        retry_timeout_s: float | None = None,
        on_too_late: OnTooLate | None = None,
    ) -> Change:
        """Begin a change; UnsupportedOperation if the handle cannot commit it."""
        self.require_writable(operation)
        if on_too_late is not None and not self.newest.table.sequence:
            raise InvalidInput(
                f"{operation}: on_too_late= is for tables with an event order, and this one has "
                "none; leave it out, or create the table with sequence="
            )
        retries = Retries(operation, retry_timeout_s)
        notes = dict(metadata or {})
        check_request(CommitRequest(operation, metadata=notes, token=token))  # before any write
        schema_id = self.newest.schema.id
        return Change(
            self.store,
            operation,
            notes,
            token,
            self.collecting,
            retries,
            schema_id,
            on_too_late,
        )

    def require_writable(self, operation: str) -> None:
        """Raise UnsupportedOperation if the handle cannot commit, such as one at an old version."""
        if isinstance(self.read_only, str):
            raise UnsupportedOperation(f"{operation}: {self.read_only}")
        if self.read_only:
            refuse_tag(operation, self.pinned)
            raise UnsupportedOperation(
                f"{operation}: the table was opened at version {self.pinned.version} and is "
                "read-only; open it without version= and as_of= to change it"
            )
        check_writable(operation, self.newest)

    def require_committed(self, what: str) -> None:
        """Do nothing: the newest version is in the log. Inside a transaction it is not."""

    def committed_before(self, token: object) -> Commit | None:
        """Return the commit of a call's token, if it was used."""
        if not isinstance(token, tuple):
            return None
        return self.log.committed_before((str(token[0]), int(token[1])), self.latest())

    def order(self, operation: str) -> KeyOrder:
        """Return the order of the key; UnsupportedOperation for a table without one."""
        newest = self.newest  # one snapshot: another thread may move it
        if not newest.table.key:
            raise UnsupportedOperation(
                f"{operation}: the table has no key; use append, or create a table with key="
            )
        return KeyOrder.of(newest.schema, newest.table.key)

    def commit_blind(self, change: Change, changes: Changes) -> Commit:
        """Commit changes that do not depend on the table's rows, nor on commits that expired."""

        def stage(snapshot: Snapshot) -> tuple[CommitRequest, Draft | None]:
            check_same_columns(change.operation, change.schema_id, snapshot)
            request = change.write(snapshot, changes)
            return request, self.log.stage(request, snapshot)

        def write(snapshot: Snapshot) -> tuple[CommitRequest, Draft | None]:
            return change.write(snapshot, changes), None

        newest = self.newest
        needs_head = changes.is_empty or bool(newest.table.sequence) or newest.table.is_eager
        base, written = self.beside_look_up(change, None if needs_head else stage, write)
        if (done := self.log.committed_before(change.token, base)) is not None:
            return done
        check_writable(change.operation, base)
        check_same_columns(change.operation, change.schema_id, base)
        if changes.is_empty:
            return nothing_done(change.operation, base)
        if base.table.sequence:
            return self._commit_in_order(change, changes)
        request, draft = written(base)

        def request_for(head: Snapshot) -> CommitRequest:
            nonlocal request
            check_writable(change.operation, head)
            rules = REFUSING_PARTS.intersection(head.table.properties)
            if rules and must_write_again(request.operation, request.added, request.removed, head):
                request = change.write(with_constraints_of(base, head), changes)
            return with_eager_vectors(self.store, head, request) if head.table.is_eager else request

        while True:
            try:
                return self.commit(change, base, request_for, draft)
            except Outrun:
                base, draft = self.latest(), None
                check_same_columns(change.operation, change.schema_id, base)

    def beside_look_up(
        self,
        change: Change,
        build: Callable[[Snapshot], _T] | None,
        otherwise: Callable[[Snapshot], _T],
    ) -> tuple[Snapshot, Callable[[Snapshot], _T]]:
        """Look up the head while `build` works on the newest version known; return both.

        What was built for another version is not used. So this is for a store where a look-up costs
        a round trip, if nobody else had committed at the last one; else `otherwise` builds later.
        """
        if build is None or change.token is not None or not self.may_build_ahead:
            return self.latest(), otherwise
        return built_beside(self.latest, self.newest, build, otherwise)

    def _commit_in_order(self, change: Change, changes: Changes) -> Commit:
        """Commit the changes that no stored version of their key is newer than."""
        late = 0

        def build(snapshot: Snapshot) -> Mutation | None:
            nonlocal late
            mutation, late = changes_in_order(change, snapshot, changes)
            return mutation or only_token(change, late)

        commit = self.commit_mutation(change, build)
        return commit if commit.committed else replace(commit, rows_late=late)

    def commit_merging(
        self,
        change: Change,
        columns: pa.Table,
        prepare: Callable[[Schema], Changes],
    ) -> Commit:
        """Add and widen columns for data with these `columns`, and write it, in one commit."""
        base = self.latest()
        if (done := self.log.committed_before(change.token, base)) is not None:
            return done
        if not columns.num_rows:  # libraries guess the types of empty data
            return nothing_done(change.operation, base)
        wanted = changes_with_data(base.schema, columns)
        if not wanted:
            now = replace(change, schema_id=base.schema.id)
            return self.commit_blind(now, prepare(base.schema))
        schema = alter_columns(change, base, base, wanted).schema
        assert schema is not None
        written = prepare(schema)
        request, resolved = change.write(replace(base, schema=schema), written), base.version

        def altered(head: Snapshot) -> CommitRequest:
            nonlocal request, resolved
            again = alter_columns(change, base, head, wanted)
            is_overtaken = bool(head.table.sequence) and resolved != head.version
            parts = request.added, request.removed
            if is_overtaken or must_write_again(request.operation, *parts, head):
                request = change.write(replace(head, schema=schema), written)
                resolved = head.version
            return replace(
                request, info=again.info, schema=again.schema, next_field_id=again.next_field_id
            )

        return self.commit(change, base, altered)

    def commit(
        self,
        change: Change,
        base: Snapshot,
        request_for: Callable[[Snapshot], CommitRequest],
        draft: Draft | None = None,
    ) -> Commit:
        """Commit the request for `base`, or for the head that another commit made meanwhile."""

        def rebase(head: Snapshot, _entries: Sequence[LogEntry]) -> CommitRequest:
            return request_for(head)

        commit, snapshot = self.log.commit(request_for(base), base, rebase, change.retries, draft)
        self.pin(snapshot)
        return self.ended(commit, change.started_s)

    def commit_overwrite(self, change: Change, rows: pa.Table | None) -> Commit:
        """Replace all rows; without new ones the table is empty afterwards.

        Writes rows again if the head's floor is above their files' base.
        """
        base = self.latest()
        if (done := self.log.committed_before(change.token, base)) is not None:
            return done
        check_writable("overwrite", base)
        check_same_columns("overwrite", change.schema_id, base)
        added = change.write(base, Changes(rows, None), overtakes=True).added

        def replacing(head: Snapshot) -> CommitRequest:
            nonlocal added
            check_writable("overwrite", head)
            if must_write_again("overwrite", added, (), head):
                now = with_constraints_of(base, head)
                added = change.write(now, Changes(rows, None), overtakes=True).added
            count = 0 if rows is None else rows.num_rows
            request = overwrite_all(change, head, added, count)
            return replace(request, keeps_order=True)  # it replaces all versions

        return self.commit(change, base, replacing)

    def ended(self, commit: Commit, started_s: float) -> Commit:
        """Report a commit; then write the parts in memory into files if there are many."""
        self.reported(commit, started_s, folds=commit.operation != "compact")
        return commit

    def reported(self, commit: Commit, started_s: float, *, folds: bool = False) -> Commit:
        """Report the commit and its write metrics, publish it, then return it."""
        if (reporter := self.reporter) is not None:
            self._report(reporter, commit, started_s)
        self.follow_up(folds=folds)
        return commit

    def follow_up(self, *, folds: bool = True) -> None:
        """Publish the newest version, as its properties say, and fold what it has in memory."""
        if self.publishes is not None and PUBLISH in self.newest.table.properties:
            self.publishes(self)
        if folds and self.folds is not None and is_full(self.newest):
            self.folds(self)

    def _report(self, reporter: Reporter, commit: Commit, started_s: float) -> None:
        elapsed_s = time.perf_counter() - started_s
        with self._lock.mutex:
            now = replace(self.collecting.metrics)
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
                self.store.uri,
                commit.version,
                commit.operation,
                *counts,
                written,
                flags=flags_as_dict(self.newest.table.flags.of_writes()),
                elapsed_s=elapsed_s,
                commit_id=commit.commit_id,
            ),
        )

    def commit_mutation(
        self,
        change: Change,
        build: Callable[[Snapshot], Mutation | None],
        *,
        recompute: bool = True,
        any_columns: bool = False,
        reads: tuple[Schema, Callable[[], Iterable[Field]]] | None = None,
        in_background: bool = False,
    ) -> Commit:
        """Commit what `build` returns; `any_columns`: it depends on no names of columns.

        `reads`: the schema that it was written for, and the columns whose meaning it depends on.
        `in_background`: engines stay at their version, for a statement may be reading it.
        """
        retries = change.retries or Retries(change.operation)

        def checked(snapshot: Snapshot) -> Mutation | None:
            check_writable(change.operation, snapshot)
            if reads is not None:
                check_same_meaning(change.operation, reads[0], snapshot, reads[1])
            elif not any_columns:
                check_same_columns(change.operation, change.schema_id, snapshot)
            return build(snapshot) or only_token(change)

        head, computed = self.beside_look_up(change, checked, checked)
        if (done := self.log.committed_before(change.token, head)) is not None:
            return done
        commit, snapshot = commit_mutation(
            self.log,
            computed,
            head,
            retries,
            recompute=recompute,
            complete=partial(with_eager_vectors, self.store),
        )
        self.pin(snapshot, engines=not in_background)
        if commit is not None:
            return self.ended(commit, change.started_s)
        return nothing_done(change.operation, snapshot)

    def commit_computed(
        self,
        operation: str,
        build: Callable[[Change, Snapshot], Mutation | None],
        retry_timeout_s: float | None = RETRY_TIMEOUT_S,
        *,
        metadata: Metadata | None = None,
        token: Token | None = None,
    ) -> Commit:
        """Commit what `build` computes from a version, and computes again after a conflict."""
        with self.changing(operation):
            change = self.change(operation, metadata, token, retry_timeout_s)
            return self.commit_mutation(change, lambda snapshot: build(change, snapshot))

    def resolve(self, version: int | str | None = None, as_of: Moment | None = None) -> Snapshot:
        """Return the version of `version` or `as_of`, else the newest one that may be read."""
        if version is None and as_of is None:
            return self.pinned if self.read_only else self.latest()
        return resolve_snapshot(self.log, version, as_of)

    def turn(self) -> AbstractContextManager[None]:
        """Let a change take its turn among the calls of an open writer (invariants, rule 19)."""
        return nullcontext() if self.writer is None else self.writer.direct()

    def committed(self) -> Snapshot:
        """Return the newest version; an open writer has committed all its earlier calls in it."""
        with self.turn():
            return self.resolve()

    def readable(self, version: int | str | None = None, as_of: Moment | None = None) -> Snapshot:
        """Return what a read sees: without arguments, also what an open writer acknowledged.

        This is one atomic view (invariant 20); other processes see its version only.
        """
        snapshot = self.resolve(version, as_of)
        if version is not None or as_of is not None:
            return snapshot
        while (writer := self.writer) is not None:
            if (view := writer.over(snapshot)) is not None:
                return view
            snapshot = self.latest()  # a flush was faster
        return snapshot

    def latest(self) -> Snapshot:
        """Look up the newest version."""
        with self._lock.mutex:
            known = self.newest
        newest = self.log.latest(known)  # without the lock: never hold it across I/O (invariant 21)
        with self._lock.mutex:
            self._was_head = newest.version == known.version
            if newest.version >= self.newest.version:
                self.newest = newest
            return self.newest

    def pin(self, snapshot: Snapshot, *, engines: bool = True) -> None:
        """Move both versions forward to this one; without `engines`, only that of changes.

        Engines also see what an open writer has acknowledged, as before.
        """
        seen = snapshot
        if engines and (writer := self.writer) is not None:
            seen = writer.over(snapshot) or snapshot
        with self._lock.mutex:
            if snapshot.version >= self.newest.version:
                self.newest = snapshot
            if engines and snapshot.version >= self.pinned.version:
                self.pinned = seen

    def pin_readable(self) -> None:
        """Let engines read what a read sees now."""
        snapshot = self.readable()
        with self._lock.mutex:
            if snapshot.version >= self.pinned.version:
                self.pinned = snapshot
