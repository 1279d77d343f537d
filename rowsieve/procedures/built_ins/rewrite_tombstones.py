"""The tombstones of a table with an event order, in the tasks of a rewrite.

A rewrite of whole overlap groups drops tombstones elsewhere; an event order needs them until the
late horizon has passed (`rowsieve.compaction.late_horizon`). A task keeps those of its range of
keys, with their sequences and the commit_ts that they had first.

Soundness: all versions of a key are in one task. The newest tombstone of a key is its newest
version if none of the task's visible rows has this key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa

from rowsieve.changes.event_order.stored_floors import floor_texts
from rowsieve.compaction.late_horizon import KEEPS_ALL, Dropping, Horizon
from rowsieve.executor.newest_actions import dated
from rowsieve.executor.part_sources import PartSource
from rowsieve.objects import ObjectStore
from rowsieve.planner.part_facts import planned_parts
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.split import PlannedPart
from rowsieve.predicate.evaluate import matching
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.parts.tombstones import tombstone_schema
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.ordering.keys import KeyOrder, concat_columns
from rowsieve.types.schema import Schema


class TombstoneTask(msgspec.Struct, frozen=True):
    """The parts with tombstones, newest first, and which tombstones may go."""

    parts: tuple[PlannedPart, ...]
    horizon: Horizon


class TaskResult(msgspec.Struct, frozen=True):
    """The new parts of a task, and the greatest sequence of the tombstones that it dropped."""

    parts: bytes
    dropped: tuple[str, ...] = ()


def tombstone_task(
    snapshot: Snapshot, parts: PartTable, horizon: Horizon | None
) -> TombstoneTask | None:
    """What the tasks of these parts need; None where all tombstones go."""
    if not snapshot.table.sequence:
        return None
    places = np.flatnonzero(parts.numbers("deletes.rows"))
    if not len(places):
        return None
    commits = parts.numbers("commit_ts_max")[places]
    newest_first = places[np.argsort(-commits, kind="stable")]
    parts_to_read = tuple(planned_parts(parts, newest_first))
    return TombstoneTask(parts_to_read, KEEPS_ALL if horizon is None else horizon)


@dataclass(slots=True)
class KeptTombstones:
    """The tombstones of a task's range; those of keys with a visible row are left out.

    `take` is called with the rows in key order.
    """

    key: KeyOrder
    rest: pa.Table
    dropping: Dropping

    @classmethod
    def of(
        cls, plan: ScanPlan, store: ObjectStore, task: TombstoneTask | None, sequence: KeyOrder
    ) -> KeptTombstones:
        """Read the newest tombstone of each key in the plan's range."""
        key = KeyOrder.of(plan.schema, plan.key)
        columns = tombstone_schema(plan.schema, key.fields, sequence.fields, dated=True)
        nothing = arrow_schema(columns).empty_table()
        if task is None:
            return cls(key, nothing, Dropping(sequence, KEEPS_ALL))
        batches = _in_range(plan, store, task, columns)
        deletes = pa.Table.from_batches(batches, nothing.schema).combine_chunks()
        forms = key.columns(deletes)
        positions = forms.sort()  # stable: the newest of a key stays first
        newest = positions[~forms.repeats(positions)]
        return cls(key, deletes.take(pa.array(newest)), Dropping(sequence, task.horizon))

    def take(self, rows: pa.Table | pa.RecordBatch) -> pa.Table:
        """The tombstones up to the last key of these rows that have no row here."""
        if not self.rest.num_rows or not rows.num_rows:
            return self.rest.slice(0, 0)
        forms = self.key.columns(rows)
        count = self.key.columns(self.rest).count_up_to(forms.key(len(forms) - 1))
        here, self.rest = self.rest.slice(0, count), self.rest.slice(count)
        both = concat_columns([forms, self.key.columns(here)])
        positions = both.sort()  # stable: rows come first
        hidden = positions[both.repeats(positions)] - len(forms)
        visible = np.ones(here.num_rows, dtype=bool)
        visible[hidden] = False
        return self.dropping.without_dropped(here.filter(pa.array(visible)))

    def remaining(self) -> pa.Table:
        """The tombstones after the last row."""
        here, self.rest = self.rest, self.rest.slice(0, 0)
        return self.dropping.without_dropped(here) if here.num_rows else here

    def result(self, parts: PartTable) -> bytes:
        """The report of the task, once all was taken."""
        greatest = self.dropping.greatest
        texts = () if greatest is None else floor_texts(greatest, self.dropping.sequence.fields)
        return msgspec.msgpack.encode(TaskResult(parts.to_ipc(), texts))


def _in_range(
    plan: ScanPlan, store: ObjectStore, task: TombstoneTask, columns: Schema
) -> Iterator[pa.RecordBatch]:
    """The tombstones of the plan's range, newest parts first."""
    for part in task.parts:
        for _, batch in PartSource(store, part, plan.schema).tombstones(columns):
            matching_rows = batch
            if plan.filter is not None:
                matching_rows = batch.filter(pa.array(matching(plan.filter, batch)))
            yield dated(matching_rows, part.commit_ts)
