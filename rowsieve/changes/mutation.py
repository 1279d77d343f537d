"""Read-modify-write: changes computed from a snapshot, with conflict checks at commit.

A delete by predicate, an update or a partial overwrite reads rows to decide what to write. Before
it commits, every concurrent commit is checked for changes to the rows that were read. On a conflict
the change is computed again from the new head, until its deadline (`CommitConflict`).

Soundness: the isolation level of the table at commit time defines which reads are checked
(`storage/log/conflicts.py`). A commit that cannot be proved harmless makes the change stale.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, TypeVar

import pyarrow as pa

from rowsieve.changes.change import Question
from rowsieve.errors import CommitConflict, EvaluationError, RowsieveError, SnapshotExpired
from rowsieve.executor.execute import Execution
from rowsieve.executor.part_sources import PartSource
from rowsieve.objects import ObjectStore, beside
from rowsieve.planner.overlap import Bound, KeyRange, key_ranges
from rowsieve.planner.pieces import planned_part
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.storage.log.commit_log import CommitLog, CommitRequest
from rowsieve.storage.log.conflicts import Isolation, Kind, Resolution, isolation_of, resolve
from rowsieve.storage.log.log_entry import Commit, LogEntry
from rowsieve.storage.log.retries import Retries
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyColumns, KeyOrder, concat_columns
from rowsieve.types.schema import Schema

Check: TypeAlias = Callable[[LogEntry], bool]
"""Returns True if a commit since the snapshot changed something that the change depends on.

Called only for commits that the conflict matrix marks as CHECK.
"""

Complete: TypeAlias = Callable[[Snapshot, CommitRequest], CommitRequest]
"""Adds to a request what depends on the version right before its commit."""


_Built = TypeVar("_Built")


def never(_entry: LogEntry) -> bool:
    """Return False: for changes whose conflicts only the matrix and the log decide."""
    return False


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change computed from a snapshot, and the checks for conflicting commits.

    `touched_by`: the commit changed a row that this change writes. `matched_by`: the commit added a
    row that this change would have read; checked under serializable isolation only. `own_commits`
    are ids of earlier commits of the same call, which changed other parts; they never conflict.
    """

    request: CommitRequest
    kind: Kind
    touched_by: Check
    matched_by: Check = never
    own_commits: Sequence[str] = ()


class Stale(Exception):
    """A concurrent commit conflicts with the snapshot that a mutation was computed from."""


def built_beside(
    read: Callable[[], Snapshot],
    known: Snapshot,
    build: Callable[[Snapshot], _Built],
    otherwise: Callable[[Snapshot], _Built],
) -> tuple[Snapshot, Callable[[Snapshot], _Built]]:
    """Build from `known` while `read` looks up the head; return the head, and a builder.

    Its first call for `known` returns what is built already, or raises the error of that. For any
    other version, if another commit came between, `otherwise` builds.
    """
    head, result = beside(read, partial(build, known))
    results = [result]

    def built(snapshot: Snapshot) -> _Built:
        if not results or snapshot.commit_id != known.commit_id:
            results.clear()
            return otherwise(snapshot)
        first = results.pop()
        if isinstance(first, RowsieveError):
            raise first
        return first

    return head, built


def commit_mutation(
    log: CommitLog,
    build: Callable[[Snapshot], Mutation | None],
    base: Snapshot,
    retries: Retries,
    *,
    recompute: bool = True,
    complete: Complete = lambda _, request: request,
) -> tuple[Commit | None, Snapshot]:
    """Compute and commit a mutation; on a conflict, compute it again from the new head.

    `base` is the newest snapshot, which the caller has just read. Returns no commit if `build`
    returns None. Without `recompute`, a conflict raises Stale. `complete` adds to the request what
    depends on the version right before its commit. A snapshot that expires while it is read is a
    conflict, too, if there is a newer one.
    """
    while True:
        attempts = retries.attempts
        try:
            mutation = build(base)
        except SnapshotExpired as error:
            newer = _newer(log, base, error)
            if not recompute:
                raise Stale from error
            retries.wait(error)
            base = newer
            continue
        if mutation is None:
            return None, base
        rebase = partial(_rebased, mutation, complete)
        try:
            return log.commit(complete(base, mutation.request), base, rebase, retries)
        except (Stale, CommitConflict, SnapshotExpired) as error:
            if retries.is_over:
                raise
            if not recompute:
                _newer(log, base, error)
                raise Stale from error
            if retries.attempts == attempts:  # conflict before the first put: no backoff so far
                retries.wait(error)
            base = _newer(log, base, error)


def _rebased(
    mutation: Mutation, complete: Complete, head: Snapshot, entries: Sequence[LogEntry]
) -> CommitRequest:
    """Return the request for a later head; Stale if one of the new entries conflicts."""
    isolation = isolation_of(head.table.properties)
    if any(_conflicts(mutation, entry, isolation) for entry in entries):
        raise Stale
    return complete(head, mutation.request)


def _newer(log: CommitLog, base: Snapshot, error: Exception) -> Snapshot:
    """The newest version; raises SnapshotExpired again if that is `base`, which cannot expire."""
    newest = log.latest(base)
    if isinstance(error, SnapshotExpired) and newest.version == base.version:
        raise error
    return newest


@dataclass(frozen=True, slots=True)
class TouchesKeys:
    """A check that is True if a commit wrote or deleted one of these keys."""

    store: ObjectStore
    schema: Schema
    order: KeyOrder
    keys: KeyColumns

    def __call__(self, entry: LogEntry) -> bool:
        """Read the keys of the commit's parts only where key ranges overlap."""
        if entry.added is None:
            return False
        # A part that is removed and added again has a new stored vector, but no new rows.
        added = entry.added.without(entry.removed)
        key_range = KeyRange(_bound(self.keys, 0), _bound(self.keys, len(self.keys) - 1))
        for i, keys in enumerate(key_ranges(added.table, self.order)):
            if keys.overlaps(key_range) and self._shares(added, i):
                return True
        return False

    def _shares(self, parts: PartTable, index: int) -> bool:
        source = PartSource(self.store, planned_part(parts.entry(index)), self.schema)
        key = self.schema.select(self.order.names)
        return any(
            share_a_key(self.keys, self.order.columns(batch))
            for _, batch in itertools.chain(source.tombstones(key), source.rows(key))
        )


@dataclass(frozen=True, slots=True)
class TouchesParts:
    """A check that is True if a commit removed or replaced one of these parts (without a key)."""

    part_ids: frozenset[str]

    def __call__(self, entry: LogEntry) -> bool:
        """Compare part ids; reads no files."""
        return not self.part_ids.isdisjoint(entry.removed)


@dataclass(frozen=True, slots=True)
class AddsMatches:
    """A check that is True if a commit added a row for which the predicate is TRUE, or fails.

    A changed row counts as added; a row that was only hidden or removed does not.
    """

    store: ObjectStore
    snapshot: Snapshot
    question: Question

    def __call__(self, entry: LogEntry) -> bool:
        """Prune the commit's parts by statistics, then read the remaining rows."""
        if entry.added is None:
            return False
        # A part that is removed and added again has more hidden rows, but no new ones.
        added = entry.added.without(entry.removed)
        if not len(added):
            return False
        plan = plan_scan(
            dataclasses.replace(self.snapshot, parts=added),
            self.store.uri,
            predicate=self.question.predicate,
            semantics=self.question.semantics,
            now_us=self.question.now_us,
            limit=1,
        )
        try:
            return Execution(plan, self.store).count() > 0
        except EvaluationError:
            return True  # the recomputation decides whether that row is still visible


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A check that is True if one of several checks is."""

    checks: tuple[Check, ...]

    def __call__(self, entry: LogEntry) -> bool:
        """Evaluate the checks in order, up to the first that holds."""
        return any(check(entry) for check in self.checks)


def _conflicts(mutation: Mutation, entry: LogEntry, isolation: Isolation) -> bool:
    if entry.commit_id in mutation.own_commits:
        return False
    if entry.schema is not None and mutation.kind is not Kind.REWRITING:
        return True  # names may mean other columns now
    if entry.info is not None and mutation.request.info is not None:
        return True  # it was computed from the properties before that commit
    match resolve(mutation.kind, entry.operation):
        case Resolution.REBASE:
            return False
        case Resolution.CHECK:
            if mutation.touched_by(entry):
                return True
            return isolation is Isolation.SERIALIZABLE and mutation.matched_by(entry)
        case Resolution.CONFLICT:
            return True


def share_a_key(ours: KeyColumns, theirs: KeyColumns) -> bool:
    """Return whether two sets of rows, each without repeats, have a key in common."""
    both = concat_columns([ours, theirs])
    return bool(both.repeats(both.sort()).any())


def key_columns_of(tables: Sequence[pa.Table | None], order: KeyOrder) -> KeyColumns:
    """Return the keys of all tables in one sorted `KeyColumns`."""
    names = list(order.names)
    keys = pa.concat_tables([table.select(names) for table in tables if table is not None])
    columns = order.columns(keys)
    positions = pa.array(columns.sort())
    return KeyColumns(tuple(array.take(positions) for array in columns.arrays))


def _bound(keys: KeyColumns, row: int) -> Bound:
    return tuple((1, part) for part in keys.key(row))
