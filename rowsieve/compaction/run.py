"""Rewrite runs of parts: one version per key, no tombstones, no hidden rows.

Only whole overlap groups are rewritten, so no other part holds any of their keys. Tombstones then
have no more rows to delete, and every row may get the newest commit_ts of its inputs, because later
commits have a newer one (invariant 11). This requires that the snapshot's parts are unchanged at
commit: a concurrent rollback, overwrite or rewrite of them makes the compaction stale (invariant
13). Memory holds one batch per input part and one output part.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.changes.mutation import Mutation, never
from rowsieve.compaction.pick import pick_runs
from rowsieve.compaction.slices import SLICE_BYTES, Slice, pick_slices
from rowsieve.executor.execute import Execution
from rowsieve.executor.newest_actions import newest_actions
from rowsieve.objects import ObjectStore, Uploads
from rowsieve.planner.part_facts import planned_parts
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.stats.collect import Collecting
from rowsieve.storage.commit_log import CommitRequest
from rowsieve.storage.conflicts import Kind
from rowsieve.storage.manifest import PartTable
from rowsieve.storage.part_writer import PartWriter, target_part_bytes
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.keys import KeyOrder

COMPACTION_RETRY_TIMEOUT_S: Final = 3600.0
"""The default retry timeout of a compaction; one attempt may take minutes."""

MOST_PASSES: Final = 8
"""Commits of one call; a later call continues."""

Progress = Callable[[int, int], None]
"""Called with (rows written so far, rows to read in all)."""


def plan_compaction(
    store: ObjectStore,
    snapshot: Snapshot,
    metadata: Mapping[str, str],
    progress: Progress | None,
    collecting: Collecting | None = None,
) -> Mutation | None:
    """Rewrite the selected runs into new files; None if there are none. The caller commits.

    If many small parts overlap, merges only these with one another: call it again after the commit.
    """
    key = snapshot.table.key
    order = KeyOrder.of(snapshot.schema, key) if key else None
    if slices := _slices(snapshot):
        assert order is not None
        return _merge_slices(store, snapshot, order, slices, metadata, progress, collecting)
    runs = pick_runs(snapshot.parts, order, target_part_bytes(snapshot.table.properties))
    if not runs:
        return None
    inputs = snapshot.parts.take([part for run in runs for part in run])
    total = pc.sum(inputs.table.column("data.rows")).as_py() or 0
    added = PartTable.empty()
    written = 0
    uploads = Uploads(store)
    for run in runs:
        parts = snapshot.parts.take(run)
        writer = _writer(store, snapshot, order, collecting, uploads)
        for batch in _live_rows(store, snapshot, parts):
            writer.write(batch)
            written += batch.num_rows
            if progress is not None:
                progress(written, total)
        newest = pc.max(parts.column("commit_ts_max")).as_py()
        added = added.append(writer.finish().with_commit_ts(newest))
    request = CommitRequest(
        operation="compact",
        added=added,
        removed=inputs.part_ids,
        metadata=metadata,
        rows_written=written,
        uploads=uploads,
    )
    return Mutation(request, Kind.REWRITING, touched_by=never)


def has_passes_left(snapshot: Snapshot) -> bool:
    """Whether small parts of this version are merged with one another before the last pass."""
    return bool(_slices(snapshot))


def _slices(snapshot: Snapshot) -> list[Slice]:
    if not (key := snapshot.table.key):
        return []
    target_bytes = target_part_bytes(snapshot.table.properties)
    return pick_slices(snapshot.parts, KeyOrder.of(snapshot.schema, key), target_bytes)


def _merge_slices(
    store: ObjectStore,
    snapshot: Snapshot,
    order: KeyOrder,
    slices: Sequence[Slice],
    metadata: Mapping[str, str],
    progress: Progress | None,
    collecting: Collecting | None,
) -> Mutation:
    """Merge each slice into parts that have its newest rows and its tombstones."""
    inputs = snapshot.parts.take([part for one in slices for part in one.parts])
    total = pc.sum(inputs.table.column("data.rows")).as_py() or 0
    added, uploads = PartTable.empty(), Uploads(store)
    read = 0
    for one in slices:
        parts = snapshot.parts.take(one.parts)
        planned = planned_parts(snapshot.parts, one.parts)
        rows, deletes = newest_actions(store, planned, snapshot.schema, order, SLICE_BYTES)
        writer = _writer(store, snapshot, order, collecting, uploads)
        writer.write(rows)
        writer.write_deletes(deletes)
        newest = pc.max(parts.column("commit_ts_max")).as_py()
        added = added.append(writer.finish().with_commit_ts(newest))
        read += pc.sum(parts.table.column("data.rows")).as_py() or 0
        if progress is not None:
            progress(read, total)
    request = CommitRequest(
        operation="compact",
        added=added,
        removed=inputs.part_ids,
        metadata=metadata,
        rows_written=pc.sum(added.table.column("data.rows")).as_py() or 0,
        uploads=uploads,
    )
    return Mutation(request, Kind.REWRITING, touched_by=never)


def _writer(
    store: ObjectStore,
    snapshot: Snapshot,
    order: KeyOrder | None,
    collecting: Collecting | None,
    uploads: Uploads,
) -> PartWriter:
    return PartWriter(
        store,
        snapshot.schema,
        () if order is None else order.fields,
        snapshot.table.properties,
        snapshot.version,
        collecting,
        uploads,
    )


def _live_rows(
    store: ObjectStore, snapshot: Snapshot, parts: PartTable
) -> Iterator[pa.RecordBatch]:
    """Yield the visible rows of these parts; in key order if the table has a key."""
    only = dataclasses.replace(snapshot, parts=parts)
    plan = plan_scan(only, store.uri, now_us=0, ordered=bool(snapshot.table.key))
    return Execution(plan, store).read()
