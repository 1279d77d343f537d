"""Reads the changed rows of one commit, labelled and packaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec
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
from rowsieve.executor.execute import PIECES_AHEAD, Execution
from rowsieve.objects import ObjectStore
from rowsieve.parquet.footer import expect_tails
from rowsieve.planner.part_facts import planned_parts
from rowsieve.planner.plan import ScanPlan
from rowsieve.storage.manifests.manifest import FileRef, PartTable
from rowsieve.storage.parts.part_writer import ROW_GROUP_ROWS
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyOrder

SORTED_AT_ONCE_ROWS: Final = 1_000_000
"""Up to this many changed rows are sorted in memory, which costs no more for many parts."""
SORTED_AT_ONCE_BYTES: Final = 64 * 2**20
"""Up to these decoded bytes of either side; a merge has bounds in bytes of its own."""


def expect_parts(store: ObjectStore, commit: CommitParts) -> None:
    """Prefetch the footers of a commit's parts, and small files as a whole.

    The small files of older parts are read by each commit that overlaps them, so one request for
    all their pages saves many.
    """
    touched = commit.touched
    for parts in (commit.after, commit.before.without(commit.after.part_ids)):
        chosen, others = parts.chosen(touched), parts.without(sorted(touched))
        expect_tails(store, _files(chosen, len(chosen)), with_pages=True)
        expect_tails(store, _files(others, min(len(others), PIECES_AHEAD)), with_pages=True)


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


def _sorted(
    plan: ScanPlan, order: KeyOrder, read: Callable[[ScanPlan], Iterator[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """Read the rows of a plan part by part, and sort them by key; merge them if they are large.

    A merge takes a window for each of the parts, and looks at all of them for each window.
    """
    batches = _small(read(msgspec.structs.replace(plan, ordered=False)))
    if batches is None:
        yield from read(plan)
    elif batches:
        rows = pa.Table.from_batches(batches)
        keys = order.columns(rows)
        if not keys.is_sorted():  # those of one part are
            rows = rows.take(pa.array(keys.sort())).combine_chunks()
        yield from rows.to_batches(max_chunksize=ROW_GROUP_ROWS)


def _small(batches: Iterator[pa.RecordBatch]) -> list[pa.RecordBatch] | None:
    """All batches; None if they are larger than `SORTED_AT_ONCE_BYTES`."""
    buffered: list[pa.RecordBatch] = []
    size_bytes = 0
    for batch in batches:
        buffered.append(batch)
        size_bytes += batch.nbytes
        if size_bytes > SORTED_AT_ONCE_BYTES:
            return None
    return buffered


def _labelled(
    store: ObjectStore, target: Snapshot, commit: CommitParts, changes: ChangedRows
) -> Iterator[Labelled]:
    threads = 1 if changes.row_count <= ROW_GROUP_ROWS else None

    def read(plan: ScanPlan) -> Iterator[pa.RecordBatch]:
        return Execution(plan, store, threads=threads).read()

    order = KeyOrder.of(target.schema, target.table.key) if target.table.key else None
    if order is not None and changes.row_count <= SORTED_AT_ONCE_ROWS:
        before, after = (_sorted(plan, order, read) for plan in (changes.before, changes.after))
    else:
        before, after = read(changes.before), read(changes.after)
    if order is not None and len(commit.before):
        yield from paired(before, after, order, skip_same=commit.may_repeat_rows)
        return
    # An update of a table without a key hides exactly the rows whose new versions it appends.
    is_update = commit.operation == "update"
    yield from all_of(before, PREIMAGE if is_update else DELETE)
    yield from all_of(after, POSTIMAGE if is_update else INSERT)
