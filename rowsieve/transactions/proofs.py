"""Proves at commit that nothing which a transaction has read was changed since it began.

For each condition that was read, commits since then are searched for rows that match it: rows that
they added or changed (after-images), and rows of the transaction's version that they changed or hid
(before-images). Statistics prune first, then rows are read. So the transaction could have run right
before its own commit: it is serializable (invariant 41). Under snapshot isolation the keys that it
writes are checked instead (no lost updates).

Soundness: a condition that fails for a row matches it. Rewrites change no rows (invariant 12). A
commit of an unknown kind, or of other columns or properties, is a conflict. What was checked once
is not checked again: each call gets the commits since the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from rowsieve.bridges.condition_notes import brief
from rowsieve.changes.change import Question
from rowsieve.changes.current_rows import near_keys
from rowsieve.changes.mutation import AddsMatches, Check, TouchesKeys, key_columns_of, share_a_key
from rowsieve.errors import EvaluationError, TransactionConflict
from rowsieve.executor.execute import Execution
from rowsieve.executor.part_sources import PartSource
from rowsieve.objects import ObjectStore
from rowsieve.objects.shared.shown_place import shown_place
from rowsieve.planner.overlap import key_ranges
from rowsieve.planner.part_facts import planned_parts
from rowsieve.planner.plan import table_columns
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.ir import Predicate, conjoin
from rowsieve.storage.differential import is_differential
from rowsieve.storage.log.commit_log import Outrun
from rowsieve.storage.log.conflicts import (
    OPERATIONS,
    RETENTION_OPERATIONS,
    Isolation,
    Kind,
    Resolution,
    resolve,
)
from rowsieve.storage.log.log_entry import LogEntry
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyOrder


@dataclass(frozen=True, slots=True)
class HidesMatches:
    """A check that is True if a commit wrote or deleted the key of a row that matched.

    Rows of `snapshot` for which the condition is TRUE, or fails.
    """

    store: ObjectStore
    snapshot: Snapshot
    question: Question

    def __call__(self, entry: LogEntry) -> bool:
        """Prune both sides by statistics and key ranges; then look the commit's keys up."""
        if entry.added is None:
            return False
        order = KeyOrder.of(self.snapshot.schema, self.snapshot.table.key)
        read = _parts_read(self.store, self.snapshot, self.question.predicate, self.question)
        if not len(read):
            return False
        theirs = entry.added.without(entry.removed)
        ranges = key_ranges(read.table, order)
        near = [
            i
            for i, keys in enumerate(key_ranges(theirs.table, order))
            if any(keys.overlaps(one) for one in ranges)
        ]
        key = self.snapshot.schema.select(order.names)
        for part in planned_parts(theirs, np.array(near, dtype=np.int64)):
            source = PartSource(self.store, part, self.snapshot.schema)
            for batches in (source.tombstones(key), source.rows(key)):
                if any(self._is_matched(batch, order) for _, batch in batches):
                    return True
        return False

    def _is_matched(self, keys: pa.RecordBatch, order: KeyOrder) -> bool:
        """Whether a row with one of these keys matched."""
        table = pa.Table.from_batches([keys])
        both = conjoin((self.question.predicate, near_keys(table, order)))
        plan = plan_scan(
            self.snapshot,
            self.store.uri,
            predicate=both,
            columns=table_columns(order.names),
            semantics=self.question.semantics,
            now_us=self.question.now_us,
        )
        ours = key_columns_of([table], order)
        try:
            return any(
                share_a_key(ours, order.columns(batch))
                for batch in Execution(plan, self.store).read()
                if batch.num_rows
            )
        except EvaluationError:
            return True


def _parts_read(
    store: ObjectStore, snapshot: Snapshot, predicate: Predicate, question: Question
) -> PartTable:
    """The parts that a read of a condition cannot skip, with those that may hide rows of them."""
    plan = plan_scan(
        snapshot,
        store.uri,
        predicate=predicate,
        semantics=question.semantics,
        now_us=question.now_us,
    )
    ids = {
        piece.parts[read.part].part_id
        for split in plan.splits
        for piece in split.pieces
        for read in piece.reads
    }
    return snapshot.parts.chosen(frozenset(ids))


def hides_rows(
    store: ObjectStore, snapshot: Snapshot, question: Question, old: PartTable, new: PartTable
) -> bool:
    """Whether a matching row of `old` is hidden in `new`, the same parts of a table without a key.

    Vectors only grow, so that the numbers of matching rows are equal if none is.
    """

    def count(parts: PartTable) -> int:
        plan = plan_scan(
            replace(snapshot, parts=parts),
            store.uri,
            predicate=question.predicate,
            semantics=question.semantics,
            now_us=question.now_us,
        )
        return Execution(plan, store).count()

    try:
        return count(old) != count(new)
    except EvaluationError:
        return True


@contextmanager
def expiry_is_a_conflict(pinned: Snapshot, store: ObjectStore) -> Iterator[None]:
    """Raise TransactionConflict where commits since `pinned` can no longer be read.

    Without evidence a transaction does not commit (invariant 12).
    """
    try:
        yield
    except Outrun as error:
        raise TransactionConflict(
            f"transaction on {shown_place(store)}, begun at version {pinned.version}: commits "
            "since then have expired, so that nothing proves what they changed; nothing was "
            "committed. Run the transaction again, as rowsieve.run_transaction does",
            version=pinned.version + 1,
            table=store.uri,
        ) from error


class CommitProofs:
    """The proofs of one transaction on one table; call it with the commits since the last call."""

    def __init__(
        self,
        store: ObjectStore,
        pinned: Snapshot,
        reads: Sequence[Question],
        kinds: frozenset[Kind],
        isolation: Isolation,
        touched_by: Sequence[Check],
        removed: frozenset[str],
    ) -> None:
        self._store = store
        self._pinned = pinned
        self._reads = tuple(reads) if isolation is Isolation.SERIALIZABLE else ()
        self._kinds = kinds | {Kind.READING} if self._reads else kinds
        self._isolation = isolation
        self._touched_by = tuple(touched_by)
        self._removed = removed
        self._parts = pinned.parts  # of the last version that was checked

    def __call__(self, entries: Sequence[LogEntry]) -> None:
        """Raise TransactionConflict if one of the commits changed what the transaction depends on.

        Entries have their parts loaded.
        """
        if self._pinned.table.key:
            changing = [entry for entry in entries if self._is_checked(entry)]
            if changing:
                self._prove_by_key(changing)
            return
        for entry in entries:
            is_checked = self._is_checked(entry)
            if self._removed.intersection(entry.removed):  # a rewrite of them is a conflict, too
                raise self._conflict(entry, "replaced a part in which it changes rows")
            if is_checked:
                self._prove_by_part(entry)
            added = PartTable.empty() if entry.added is None else entry.added
            self._parts = self._parts.without(entry.removed).append(added)

    def _is_checked(self, entry: LogEntry) -> bool:
        """Whether a commit has to be searched; TransactionConflict if its kind decides."""
        if entry.operation in RETENTION_OPERATIONS:
            return False  # the commit log obeys floors
        kind = OPERATIONS.get(entry.operation)
        alters = entry.schema is not None or entry.info is not None
        if is_differential(self._pinned.table) and kind is not Kind.REWRITING:
            if not self._reads:
                return False
            raise self._conflict(entry, f"changed updates that it read, by {entry.operation}")
        if kind is None or (alters and kind is not Kind.REWRITING):
            raise self._conflict(entry, "changed columns or properties of the table")
        reactions = {resolve(ours, entry.operation) for ours in self._kinds}
        if Resolution.CONFLICT in reactions:
            raise self._conflict(entry, f"is a commit of {entry.operation}")
        return kind is not Kind.REWRITING

    def _prove_by_key(self, entries: Sequence[LogEntry]) -> None:
        """Search all commits at once; then name the one that conflicts."""
        whole = _joined(entries)
        for check in self._touched_by:
            if check(whole):
                raise self._conflict(_first(check, entries), "changed a row that it writes")
        for question in self._reads:
            for check in (
                AddsMatches(self._store, self._pinned, question),
                HidesMatches(self._store, self._pinned, question),
            ):
                if check(whole):
                    raise self._changed_read(question, _first(check, entries))

    def _prove_by_part(self, entry: LogEntry) -> None:
        for check in self._touched_by:
            if check(entry):
                raise self._conflict(entry, "changed a row that it writes")
        old = self._parts.chosen(frozenset(entry.removed))
        new = PartTable.empty() if entry.added is None else entry.added.chosen(old.part_ids)
        for question in self._reads:
            adds = AddsMatches(self._store, self._pinned, question)
            hides = len(old) and hides_rows(self._store, self._pinned, question, old, new)
            if hides or adds(entry):
                raise self._changed_read(question, entry)

    def _changed_read(self, question: Question, entry: LogEntry) -> TransactionConflict:
        text = brief(question.predicate)
        return self._conflict(entry, f"changed rows of a condition that it read: {text}", text)

    def _conflict(
        self, entry: LogEntry, what: str, condition: str | None = None
    ) -> TransactionConflict:
        return TransactionConflict(
            f"transaction on {shown_place(self._store)}, begun at version "
            f"{self._pinned.version}: version {entry.version}, committed since, {what}; nothing "
            "was committed. Run the transaction again, as rowsieve.run_transaction does",
            condition=condition,
            version=entry.version,
            table=self._store.uri,
        )


def _joined(entries: Sequence[LogEntry]) -> LogEntry:
    """All commits as one that adds their parts; parts with new vectors are not new."""
    added = [entry.added.without(entry.removed) for entry in entries if entry.added is not None]
    return replace(entries[-1], removed=(), added=PartTable.empty().append(*added))


def _first(check: Check, entries: Sequence[LogEntry]) -> LogEntry:
    """The first commit for which the check is True alone; the last one if all are together."""
    return next((entry for entry in entries if check(entry)), entries[-1])


def written_keys(store: ObjectStore, pinned: Snapshot, parts: PartTable) -> TouchesKeys:
    """The check that a commit wrote one of the keys of these parts, which have a version."""
    order = KeyOrder.of(pinned.schema, pinned.table.key)
    key = pinned.schema.select(order.names)
    batches: list[pa.RecordBatch] = []
    for part in planned_parts(parts, np.arange(len(parts))):
        source = PartSource(store, part, pinned.schema)
        for stream in (source.tombstones(key), source.rows(key)):
            batches += [batch for _, batch in stream]
    table = pa.Table.from_batches(batches)
    columns = order.columns(table)
    positions = columns.sort()
    unique = table.take(pa.array(positions[~columns.repeats(positions)]))
    return TouchesKeys(store, pinned.schema, order, key_columns_of([unique], order))
