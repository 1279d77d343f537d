"""Read-modify-write: changes computed from a snapshot, valid only while it stands.

A delete by predicate, an update or a partial overwrite reads rows to know what to write. Before it
is committed, every commit that came between is asked whether it changed what was read; if so the
change is computed again from the new head, until its deadline has passed (`CommitConflict`).

Soundness: what was read is what the isolation level says (`storage/conflicts.py`), as the table has
it when the change commits. A commit that cannot be proved harmless makes the change stale.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from rowsieve.changes.change import Question
from rowsieve.errors import CommitConflict, EvaluationError
from rowsieve.executor.execute import Execution
from rowsieve.executor.sources import PartSource
from rowsieve.objects import ObjectStore
from rowsieve.planner.overlap import Bound, KeyRange, key_ranges
from rowsieve.planner.pieces import planned_part
from rowsieve.planner.scan import plan_scan
from rowsieve.storage.commit_log import CommitLog, CommitRequest
from rowsieve.storage.conflicts import Isolation, Kind, Resolution, isolation_of, resolve
from rowsieve.storage.log_entry import Commit, LogEntry
from rowsieve.storage.manifest import PartTable
from rowsieve.storage.retries import Retries
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.keys import KeyColumns, KeyOrder, concat_columns
from rowsieve.types.schema import Schema

Check: TypeAlias = Callable[[LogEntry], bool]
"""Whether a commit since the snapshot changed something that the change depends on.

It is asked only of commits that the conflict matrix wants checked.
"""


def never(_entry: LogEntry) -> bool:
    """For changes whose conflicts the matrix and the log decide alone."""
    return False


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change computed from a snapshot, and what would make it stale.

    `touched_by`: commits that changed a row which this change writes. `matched_by`: commits that
    added a row which it would have read; it counts under serializable isolation only.
    """

    request: CommitRequest
    kind: Kind
    touched_by: Check
    matched_by: Check = never


class Stale(Exception):
    """The snapshot that a mutation was computed from no longer stands."""


def commit_mutation(
    log: CommitLog,
    build: Callable[[Snapshot], Mutation | None],
    base: Snapshot,
    retries: Retries,
    *,
    recompute: bool = True,
) -> tuple[Commit | None, Snapshot]:
    """Compute and commit until no commit came between; no commit when nothing is to be done.

    `base` is the newest snapshot, as it was just read. Without `recompute`, Stale is raised instead
    of computing again.
    """
    while True:
        mutation = build(base)
        if mutation is None:
            return None, base
        current, attempts = mutation, retries.attempts

        def rebase(
            head: Snapshot, entries: Sequence[LogEntry], mutation: Mutation = current
        ) -> CommitRequest:
            isolation = isolation_of(head.table.properties)
            if any(_conflicts(mutation, entry, isolation) for entry in entries):
                raise Stale
            return mutation.request

        try:
            return log.commit(current.request, base, rebase, retries)
        except (Stale, CommitConflict) as error:
            if retries.is_over:
                raise
            if not recompute:
                raise Stale from error
            if retries.attempts == attempts:  # lost before its first put: nobody has waited yet
                retries.wait(error)
            base = log.latest(base)


@dataclass(frozen=True, slots=True)
class TouchesKeys:
    """Whether a commit wrote or deleted one of these keys."""

    store: ObjectStore
    schema: Schema
    order: KeyOrder
    keys: KeyColumns

    def __call__(self, entry: LogEntry) -> bool:
        """Reads the keys of the commit's parts only where ranges overlap."""
        if entry.added is None:
            return False
        own = KeyRange(_bound(self.keys, 0), _bound(self.keys, len(self.keys) - 1))
        for i, keys in enumerate(key_ranges(entry.added.table, self.order)):
            if keys.overlaps(own) and self._shares(entry.added, i):
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
    """Whether a commit took away or replaced one of these parts (tables without a key)."""

    part_ids: frozenset[str]

    def __call__(self, entry: LogEntry) -> bool:
        """Looks at part ids alone."""
        return not self.part_ids.isdisjoint(entry.removed)


@dataclass(frozen=True, slots=True)
class AddsMatches:
    """Whether a commit added a row for which the predicate is TRUE, or fails.

    A row that it changed counts as added, one that it only hid or took away does not.
    """

    store: ObjectStore
    snapshot: Snapshot
    question: Question

    def __call__(self, entry: LogEntry) -> bool:
        """Statistics refute parts first, then the rows are read."""
        if entry.added is None:
            return False
        # A part that was taken away and added again has more hidden rows and no new ones.
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
            return True  # computing the change again finds out whether that row still stands


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Whether one of several checks holds."""

    checks: tuple[Check, ...]

    def __call__(self, entry: LogEntry) -> bool:
        """Asks in order, up to the first that holds."""
        return any(check(entry) for check in self.checks)


def _conflicts(mutation: Mutation, entry: LogEntry, isolation: Isolation) -> bool:
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
    """Whether two sets of rows, each without repeats, have a key in common."""
    both = concat_columns([ours, theirs])
    return bool(both.repeats(both.sort()).any())


def key_columns_of(tables: Sequence[pa.Table | None], order: KeyOrder) -> KeyColumns:
    """The keys of several tables together, sorted."""
    names = list(order.names)
    keys = pa.concat_tables([table.select(names) for table in tables if table is not None])
    columns = order.columns(keys)
    positions = pa.array(columns.sort())
    return KeyColumns(tuple(array.take(positions) for array in columns.arrays))


def _bound(keys: KeyColumns, row: int) -> Bound:
    return tuple((1, part) for part in keys.key(row))
