"""Read-modify-write: changes computed from a snapshot, valid only while it stands.

A delete by predicate, an update or a partial overwrite reads rows to know what to write. Before it
is committed, every commit that came between is asked whether it touched one of those rows; if so
the change is computed again from the new head, five times at most (then `CommitConflict`). Rows
inserted meanwhile are none of its business and survive.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from rowsieve.errors import CommitConflict
from rowsieve.executor.sources import PartSource
from rowsieve.objects import ObjectStore
from rowsieve.planner.overlap import Bound, KeyRange, key_ranges
from rowsieve.planner.pieces import planned_part
from rowsieve.storage.commit_log import CommitLog, CommitRequest
from rowsieve.storage.conflicts import Resolution, resolve
from rowsieve.storage.log_entry import Commit, LogEntry
from rowsieve.storage.manifest import PartTable
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.keys import KeyColumns, KeyOrder, concat_columns
from rowsieve.types.schema import Schema

ATTEMPTS = 5


class Touch(Protocol):
    """Whether a commit since the snapshot touched a row that the change was computed from."""

    def __call__(self, entry: LogEntry) -> bool:
        """Asked only of commits that the conflict matrix wants checked."""
        ...


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change computed from a snapshot, and what would make it stale."""

    request: CommitRequest
    touched_by: Touch


class _Stale(Exception):
    """The snapshot that a mutation was computed from no longer stands."""


def commit_mutation(
    log: CommitLog,
    build: Callable[[Snapshot], Mutation | None],
    operation: str,
    known: Snapshot,
    *,
    attempts: int = ATTEMPTS,
) -> tuple[Commit | None, Snapshot]:
    """Compute and commit until no commit came between; no commit when nothing is to be done.

    `known` is any earlier snapshot of the table.
    """
    base = log.latest(known)
    for _ in range(attempts):
        mutation = build(base)
        if mutation is None:
            return None, base
        current = mutation

        def rebase(
            _head: Snapshot, entries: Sequence[LogEntry], mutation: Mutation = current
        ) -> CommitRequest:
            if any(_conflicts(mutation, entry) for entry in entries):
                raise _Stale
            return mutation.request

        try:
            return log.commit(current.request, base, rebase)
        except (_Stale, CommitConflict) as error:
            problem = error
            base = log.latest(base)
    raise CommitConflict(
        f"{operation}: other commits changed the same rows during each of {attempts} attempts; "
        "nothing was committed; try again when there is less traffic"
    ) from problem


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
class TouchesNothing:
    """For changes whose conflicts the matrix and the log decide alone."""

    def __call__(self, entry: LogEntry) -> bool:  # noqa: ARG002 - the protocol's argument
        """Never."""
        return False


def _conflicts(mutation: Mutation, entry: LogEntry) -> bool:
    match resolve(mutation.request.operation, entry.operation):
        case Resolution.REBASE:
            return False
        case Resolution.CHECK_KEYS:
            return mutation.touched_by(entry)
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
