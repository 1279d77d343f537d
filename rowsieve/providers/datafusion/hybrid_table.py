"""Splits a table between two readers: DataFusion's Parquet scan and our dataset.

DataFusion scans clean parts as they are. If the statement allows it, it also scans parts with
hidden rows, under a filter on row numbers that removes these rows.

Soundness: both readers read parts of one version (invariants 23 and 32), and each part is read
once. Our dataset checks that the files of DataFusion's scans exist. So it is part of every hybrid
table, except for a `FinalFrame`, which checks the files itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import datafusion

from rowsieve import clock
from rowsieve.executor.visible_by_part import visible_by_part
from rowsieve.planner.cache import PLANS
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.splits import split_bytes_for_cores
from rowsieve.predicate.ir import TRUE, Predicate
from rowsieve.predicate.rowset import RowSet
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.datafusion.hidden_rows import only_visible
from rowsieve.providers.datafusion.native_scan import NativeParts, native_frame
from rowsieve.providers.datafusion.part_choice.named_scans import files_name, named_frame
from rowsieve.providers.datafusion.registered_table import (
    SMALLEST_SPLIT_BYTES,
    ReadOptions,
    TableDataset,
    registrable,
)
from rowsieve.providers.native_files.planned_parts import only_parts, read_parts

if TYPE_CHECKING:
    from rowsieve.storage.manifests.manifest import FileRef
    from rowsieve.storage.snapshot import Snapshot

VisibleParts: TypeAlias = Mapping[str, RowSet | None]
"""Visible rows by part id; None: all rows are visible."""
_MAX_BITMAPS: Final = 16  # each is a scan of its own in DataFusion's plan
_MAX_BITMAP_ROWS: Final = 200_000_000  # 25 MB of bits
_MIN_VISIBLE: Final = 0.1  # with a smaller share of visible rows, our dataset reads the file


@dataclass(frozen=True, slots=True)
class HybridTable:
    """The provider to register in DataFusion, and the files that DataFusion scans for it.

    `bitmap_parts` counts the files that are scanned under a filter on row numbers. `checks_files`:
    the provider contains our dataset, which checks the files while the query runs.
    """

    provider: Any
    files: tuple[FileRef, ...]
    bitmap_parts: int
    checks_files: bool

    @property
    def native_parts(self) -> int:
        """The number of parts that DataFusion scans without a filter on row numbers."""
        return len(self.files) - self.bitmap_parts


def may_be_hybrid(table: Any, snapshot: Snapshot) -> bool:
    """Return whether DataFusion may scan parts: not if reads are audited, reported or unpruned.

    Nor inside a transaction, which logs the conditions that our dataset reads.
    """
    return table.handle.reporter is None and snapshot.on_read is None and may_skip(snapshot)


def may_skip(snapshot: Snapshot) -> bool:
    """Return whether parts may be skipped before our dataset plans: not if it audits reads."""
    settings = ReadOptions().settings(snapshot.table)
    return settings.skips and not settings.audited_percent


def hybrid_table(
    context: datafusion.SessionContext,
    name: str,
    table: Any,
    native: NativeParts,
    part_ids: Collection[str] | None,
    target_partitions: int,
    visible: VisibleParts,
    *,
    is_checked: bool,
) -> HybridTable | None:
    """Build the hybrid table of a version; None if our dataset reads all of it.

    `name` is the name of our dataset's scan in plans, by which its conditions are recognised.
    `part_ids` limits it to these parts. DataFusion scans the clean parts, and the `visible` rows of
    other parts. With `is_checked`, the caller checks the files, and our dataset is included only if
    some parts are not scanned.
    """
    snapshot = table.handle.pinned
    wanted = {part.part_id for part in read_parts(planned(snapshot, table.uri))}
    if part_ids is not None:
        wanted &= set(part_ids)
    whole, bitmaps = _scanned_files(native, wanted, visible)
    if not whole and not bitmaps:
        return None
    files = (*whole.values(), *(file for file, _ in bitmaps))
    remaining = wanted - whole.keys() - visible.keys()
    rest = TableDataset(table, ReadOptions(), frozenset(remaining), views=True, files=files)

    def scan(*scanned: FileRef) -> datafusion.DataFrame:
        scan_name, store = files_name(name), table.handle.store
        return native_frame(context, scan_name, rest.schema, store, scanned, target_partitions)

    try:
        frames = [scan(*whole.values())] if whole else []
        frames += [only_visible(context, scan(file), file.path, r) for file, r in bitmaps]
    except ValueError:  # this version of DataFusion serialises plans in another form
        return None
    if checks_files := bool(remaining) or not is_checked:
        frames.append(named_frame(context, name, registrable(rest)))
    both = reduce(lambda one, other: one.union(other), frames)
    return HybridTable(both.into_view(), files, len(bitmaps), checks_files)


def _scanned_files(
    native: NativeParts, wanted: Collection[str], visible: VisibleParts
) -> tuple[dict[str, FileRef], list[tuple[FileRef, RowSet]]]:
    """The files to scan whole, by part id, and those to scan under a filter on row numbers."""
    whole = {part_id: file for part_id, file in native.clean.items() if part_id in wanted}
    bitmaps = []
    for part_id, rows in visible.items():
        if part_id not in wanted:
            continue
        if rows is None:
            whole[part_id] = native.unproven[part_id]
        else:
            bitmaps.append((native.unproven[part_id], rows))
    return whole, bitmaps


def may_be_bitmaps(row_counts: Sequence[int]) -> bool:
    """Return whether files with these row counts are few and small enough for bitmap filters."""
    return len(row_counts) <= _MAX_BITMAPS and sum(row_counts) <= _MAX_BITMAP_ROWS


def is_bitmap(visible: RowSet) -> bool:
    """Return whether enough rows are visible for DataFusion to scan the file with a bitmap."""
    return len(visible) >= _MIN_VISIBLE * visible.row_count and not visible.is_empty


def find_visible(table: Any, part_ids: Collection[str]) -> VisibleParts:
    """Find the visible rows of these parts; reads their keys, and those of overlapping parts."""
    plan = only_parts(planned(table.handle.pinned, table.uri), part_ids)
    return {part.part_id: rows for part, rows in visible_by_part(plan, table.handle.store)}


def planned(snapshot: Snapshot, uri: str, condition: Predicate = TRUE) -> ScanPlan:
    """Plan a read of a version; parts that cannot have a matching row are pruned."""
    return PLANS.plan(
        snapshot,
        uri,
        predicate=condition,
        semantics=Semantics.DATAFUSION,
        now_us=clock.now_us(),
        split_bytes=split_bytes_for_cores(snapshot.parts, least=SMALLEST_SPLIT_BYTES),
        pruning=True,
    )[0]
