"""Rewrite parts by passes, until reads need no merge: each pass is one commit.

A run of whole overlap groups becomes parts with one version per key, without tombstones and hidden
rows: no other part holds any of their keys, so tombstones have no more rows to delete, and every
row may get the newest commit_ts of its inputs, because later commits have a newer one (invariant
11). A slice of a group keeps its tombstones (`rowsieve.compaction.slices`). Both require that the
snapshot's parts are unchanged at commit: a concurrent rollback, overwrite or rewrite of them makes
the pass stale (invariant 13, trap T25). In a table with an event order, tombstones are kept with
their sequences until the horizon has passed them (`rowsieve.compaction.late_horizon`). Memory holds
what `MEMORY_BYTES` allows of the inputs, and one output part.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.arguments.annotations import Progress
from rowsieve.changes.mutation import Mutation, never
from rowsieve.compaction.cut_ranges import KeyRanges
from rowsieve.compaction.late_horizon import KEEPS_ALL, Dropping, Horizon, with_raised_floor
from rowsieve.compaction.pace import Pace
from rowsieve.compaction.pick import Picked
from rowsieve.compaction.slices import SLICE_BYTES, Slice
from rowsieve.executor.consolidation.advanced_updates import advanced_updates
from rowsieve.executor.execute import Execution
from rowsieve.executor.newest_actions import newest_actions
from rowsieve.executor.sorted_rows import sorted_rows
from rowsieve.objects import ObjectStore, Uploads
from rowsieve.planner.overlap import overlap_groups
from rowsieve.planner.part_facts import planned_parts
from rowsieve.planner.plan import table_columns
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.planner.split import PlannedPart
from rowsieve.stats.bounds import LIMIT_BYTES
from rowsieve.stats.collect import Collecting
from rowsieve.storage.differential import as_updates, frontiers_of, is_differential
from rowsieve.storage.log.commit_log import CommitRequest
from rowsieve.storage.log.conflicts import Kind
from rowsieve.storage.manifests.key_bounds import MAX_BYTES, longest_bound
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.manifests.part_sketches import sketched_fields
from rowsieve.storage.parts.part_writer import PartWriter
from rowsieve.storage.parts.row_versions import to_rewrite
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.ordering.sort_order import SortOrder, cluster_order

COMPACTION_RETRY_TIMEOUT_S: Final = 3600.0
"""The default retry timeout of a compaction; one attempt may take minutes."""

MAX_PASSES: Final = 8
"""Commits of one call; a later call continues."""

MEMORY_BYTES: Final = 64 * 1024 * 1024
"""The bytes that a merge buffers of its inputs."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """The state of one call of `compact`: store, uploads, metrics and pace."""

    store: ObjectStore
    metadata: Mapping[str, str]
    progress: Progress | None = None
    collecting: Collecting | None = None
    pace: Pace = field(default_factory=Pace)

    def plan_pass(
        self, snapshot: Snapshot, picked: Picked, horizon: Horizon | None = None
    ) -> Mutation | None:
        """Rewrite the picked parts of the snapshot into new files; None if nothing was picked.

        The caller commits. Stopped if `pace` was stopped. `horizon`: see `late_horizon`.
        """
        if not picked.parts:
            return None
        snapshot = to_rewrite(snapshot)
        inputs = snapshot.parts.take(picked.parts)
        counting = _Counting(self.progress, pc.sum(inputs.table.column("data.rows")).as_py() or 0)
        added, uploads = PartTable.empty(), Uploads(self.store)
        for one in picked.slices:
            for writer in self._merged(snapshot, one, uploads, counting):
                added = added.append(_aged(writer, snapshot.parts.take(one.parts)))
        sequence = KeyOrder(snapshot.sequence_fields)
        dropping = Dropping(sequence, KEEPS_ALL if horizon is None else horizon)
        order = cluster_order(snapshot.table.properties, snapshot.schema)
        for run in picked.runs:
            parts = snapshot.parts.take(run)
            key_order = None if is_differential(snapshot.table) else order  # sums come in any order
            writer = self._writer(snapshot, uploads, key_order, _bound_bytes(snapshot, parts))
            for batch, deletes in self._remaining(snapshot, parts, order, dropping):
                self.pace.take(batch.nbytes)
                writer.write(batch)
                if deletes is not None:
                    writer.write_deletes(deletes)
                counting.add(batch.num_rows)
            added = added.append(_aged(writer, parts))
        self.pace.check()
        request = CommitRequest(
            operation="compact",
            added=added,
            removed=inputs.part_ids,
            metadata=self.metadata,
            rows_written=pc.sum(added.table.column("data.rows")).as_py() or 0,
            uploads=uploads,
            info=with_raised_floor(snapshot, [dropping.greatest]),
            keeps_order=True,
        )
        return Mutation(request, Kind.REWRITING, touched_by=never)

    def _remaining(
        self, snapshot: Snapshot, parts: PartTable, order: SortOrder | None, dropping: Dropping
    ) -> Iterator[tuple[pa.RecordBatch | pa.Table, pa.Table | None]]:
        """The visible rows of whole overlap groups, and the tombstones that are kept."""
        if is_differential(snapshot.table):
            since = frontiers_of(snapshot.table).since
            updates = _live_rows(self.store, as_updates(snapshot), parts, None)
            for batch in advanced_updates(updates, since):
                yield batch, None
            return
        if not snapshot.table.sequence or not parts.numbers("deletes.rows").any():
            for batch in _live_rows(self.store, snapshot, parts, order):
                yield batch, None
            return
        key = KeyOrder.of(snapshot.schema, snapshot.table.key)
        commits = parts.numbers("commit_ts_max")
        for members in overlap_groups(parts.select("key.").table, key):
            group = np.array(members)
            newest_first = group[np.argsort(-commits[group], kind="stable")]
            planned = planned_parts(parts, newest_first)
            for rows, deletes in self._newest(snapshot, planned, key, at_once=False):
                yield rows, dropping.without_dropped(deletes)

    def _newest(
        self, snapshot: Snapshot, planned: Sequence[PlannedPart], key: KeyOrder, *, at_once: bool
    ) -> Iterator[tuple[pa.Table, pa.Table]]:
        return newest_actions(
            self.store,
            planned,
            snapshot.schema,
            key,
            MEMORY_BYTES,
            at_once=at_once,
            sequence=snapshot.sequence_fields,
        )

    def _merged(
        self, snapshot: Snapshot, one: Slice, uploads: Uploads, counting: _Counting
    ) -> Iterator[PartWriter]:
        """Write the newest row or tombstone for each key of a slice; a writer for each range."""
        planned = planned_parts(snapshot.parts, one.parts)
        order = KeyOrder.of(snapshot.schema, snapshot.table.key)
        ranges = KeyRanges.of(snapshot.parts.take(one.cut_at), order.first)
        at_once = one.size_bytes <= SLICE_BYTES
        bound_bytes = MAX_BYTES if one.cut_at else LIMIT_BYTES
        writer, current = self._writer(snapshot, uploads, bound_bytes=bound_bytes), 0
        for rows, deletes in self._newest(snapshot, planned, order, at_once=at_once):
            self.pace.take(rows.nbytes + deletes.nbytes)
            counting.add(rows.num_rows)
            written, deleted = dict(ranges.split(rows)), dict(ranges.split(deletes))
            for number in sorted(written.keys() | deleted.keys()):
                if number != current:
                    yield writer
                    writer = self._writer(snapshot, uploads, bound_bytes=bound_bytes)
                    current = number
                if number in written:
                    writer.write(written[number])
                if number in deleted:
                    writer.write_deletes(deleted[number])
        yield writer

    def _writer(
        self,
        snapshot: Snapshot,
        uploads: Uploads,
        order: SortOrder | None = None,
        bound_bytes: int = LIMIT_BYTES,
    ) -> PartWriter:
        key = snapshot.table.key
        return PartWriter(
            self.store,
            snapshot.schema,
            KeyOrder.of(snapshot.schema, key).fields if key else (),
            snapshot.table.settings,
            snapshot.version,
            self.collecting,
            uploads,
            order,
            bound_bytes,
            sketched_fields(snapshot.parts, snapshot.schema),
            snapshot.sequence_fields,
            checked=True,
        )


@dataclass(slots=True)
class _Counting:
    """Reports the progress of one pass."""

    progress: Progress | None
    total: int
    done: int = 0

    def add(self, row_count: int) -> None:
        self.done += row_count
        if self.progress is not None:
            self.progress(self.done, self.total)


def _bound_bytes(snapshot: Snapshot, parts: PartTable) -> int:
    """The limit for key bounds: the larger one if these parts already have longer bounds."""
    fields = [snapshot.schema.field(name) for name in snapshot.table.key]
    names = [f"key.{field.id}.{side}" for field in fields for side in ("lower", "upper")]
    longest = longest_bound(parts.column(name) for name in names)
    return MAX_BYTES if longest > LIMIT_BYTES else LIMIT_BYTES


def _aged(writer: PartWriter, inputs: PartTable) -> PartTable:
    """Finish the parts of a writer; they get the newest commit_ts of their inputs."""
    return writer.finish().with_commit_ts(pc.max(inputs.column("commit_ts_max")).as_py())


def _live_rows(
    store: ObjectStore, snapshot: Snapshot, parts: PartTable, order: SortOrder | None
) -> Iterator[pa.RecordBatch | pa.Table]:
    """Yield the visible rows of these parts, in the order of the key or in the given one."""
    only = dataclasses.replace(snapshot, parts=parts)

    def read(columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        wanted = None if columns is None else table_columns(columns)
        ordered = bool(snapshot.table.key)
        plan = plan_scan(only, store.uri, columns=wanted, now_us=0, ordered=ordered)
        return Execution(plan, store, memory_bytes=MEMORY_BYTES).read()

    return read(None) if order is None else sorted_rows(read, order, snapshot.schema)
