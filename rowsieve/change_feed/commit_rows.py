"""Reads the changed rows of one commit, labelled and packaged."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from rowsieve.change_feed.changed_rows import ChangedRows, changed_rows
from rowsieve.change_feed.commit_parts import CommitParts
from rowsieve.change_feed.feed_columns import FeedColumns
from rowsieve.change_feed.images import (
    DELETE,
    INSERT,
    POSTIMAGE,
    PREIMAGE,
    Labelled,
    all_of,
    paired,
)
from rowsieve.executor.execute import FOOTERS_AHEAD, Execution
from rowsieve.objects import ObjectStore
from rowsieve.parquet.footer import expect_tails
from rowsieve.planner.part_facts import planned_parts
from rowsieve.planner.plan import ScanPlan
from rowsieve.storage.manifests.manifest import FileRef, PartTable
from rowsieve.storage.parts.part_writer import ROW_GROUP_ROWS
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyOrder


def expect_parts(store: ObjectStore, commit: CommitParts) -> None:
    """Prefetch the footers of a commit's parts, and small files as a whole.

    The small files of older parts are read by each commit that overlaps them, so one request for
    all their pages saves many.
    """
    touched = commit.touched
    for parts in (commit.after, commit.before.without(commit.after.part_ids)):
        own, others = parts.chosen(touched), parts.without(sorted(touched))
        expect_tails(store, _files(own, len(own)), with_pages=True)
        expect_tails(store, _files(others, min(len(others), FOOTERS_AHEAD)), with_pages=True)


def _files(parts: PartTable, count: int) -> Iterator[FileRef]:
    for part in planned_parts(parts, range(count)):
        yield from (ref for ref in (part.data, part.deletes) if ref is not None)


def rows_of_commit(
    store: ObjectStore, target: Snapshot, commit: CommitParts, columns: FeedColumns
) -> Iterator[pa.RecordBatch]:
    """Yield the changes of a commit with the columns of `target`; batches are never empty."""
    names = columns.everything if commit.may_repeat_rows else columns.to_read
    changes = changed_rows(store, target, commit, names, columns.narrowing)
    if changes is None:
        return
    for labelled in _labelled(store, target, commit, changes):
        batch = columns.package(labelled, commit.version, commit.timestamp_us)
        if batch.num_rows:
            yield batch


def _labelled(
    store: ObjectStore, target: Snapshot, commit: CommitParts, changes: ChangedRows
) -> Iterator[Labelled]:
    threads = 1 if changes.row_count <= ROW_GROUP_ROWS else None

    def read(plan: ScanPlan) -> Iterator[pa.RecordBatch]:
        return Execution(plan, store, threads=threads).read()

    before, after = read(changes.before), read(changes.after)
    if target.table.key and len(commit.before):
        order = KeyOrder.of(target.schema, target.table.key)
        yield from paired(before, after, order, skip_same=commit.may_repeat_rows)
        return
    # An update of a table without a key hides exactly the rows whose new versions it appends.
    is_update = commit.operation == "update"
    yield from all_of(before, PREIMAGE if is_update else DELETE)
    yield from all_of(after, POSTIMAGE if is_update else INSERT)
