"""A table in two: DataFusion scans parts of it, and our dataset reads the other parts.

DataFusion scans clean parts as they are. If the statement allows it, it also scans parts with
hidden rows, and a condition on their row numbers leaves these out.

Soundness: both read the parts of one version (invariants 23 and 32), each part once. The dataset
checks that the files of DataFusion's scans exist. So it is part of every such table, except of one
for a `ClosedFrame` that checks the files.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import datafusion
from datafusion.catalog import Table as CatalogTable

from rowsieve.executor.visible_by_part import visible_by_part
from rowsieve.planner.cache import PLANS
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.splits import split_bytes_for_cores
from rowsieve.predicate.ir import TRUE, Predicate
from rowsieve.predicate.rowset import RowSet
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.datafusion.hidden_rows import visible_alone
from rowsieve.providers.datafusion.native_scan import NativeParts, native_frame
from rowsieve.providers.datafusion.registered_table import (
    SMALLEST_SPLIT_BYTES,
    ReadOptions,
    TableDataset,
)
from rowsieve.providers.native_files.planned_parts import only_parts, read_parts

if TYPE_CHECKING:
    from rowsieve.storage.manifests.manifest import FileRef
    from rowsieve.storage.snapshot import Snapshot

VisibleParts: TypeAlias = Mapping[str, RowSet | None]
"""The visible rows of parts by their ids; None if all are."""
_MOST_BITMAPS: Final = 16  # each is a scan of its own in DataFusion's plan
_MOST_BITMAP_ROWS: Final = 200_000_000  # 25 MB of bits
_LEAST_VISIBLE: Final = 0.1  # share of visible rows from which DataFusion reads a file itself


@dataclass(frozen=True, slots=True)
class HybridTable:
    """What to register in DataFusion, the files that DataFusion reads, and how many in part.

    `checks_files`: our dataset is part of it, and checks the files while the query runs.
    """

    provider: Any
    files: tuple[FileRef, ...]
    bitmap_parts: int
    checks_files: bool

    @property
    def native_parts(self) -> int:
        """How many parts DataFusion reads whole."""
        return len(self.files) - self.bitmap_parts


def may_be_hybrid(table: Any, snapshot: Snapshot) -> bool:
    """Whether DataFusion may read parts; not if reads are audited, reported or not pruned."""
    return table.reporter is None and may_skip(snapshot)


def may_skip(snapshot: Snapshot) -> bool:
    """Whether parts may be left out before our dataset plans: not if it is to check or read all."""
    settings = ReadOptions().settings(snapshot.table.properties)
    return settings.skips and not settings.audited_percent


def hybrid_table(
    context: datafusion.SessionContext,
    table: Any,
    native: NativeParts,
    part_ids: Collection[str] | None,
    target_partitions: int,
    visible: VisibleParts,
    *,
    is_checked: bool,
    only_counts: bool = False,
) -> HybridTable | None:
    """The hybrid of a table of one version; None if our dataset reads all of it.

    With `part_ids`, it has the rows of these parts alone. DataFusion reads the clean parts, and the
    rows that `visible` has of other parts; with `only_counts`, any rows, but as many. If the files
    are checked elsewhere, it has our dataset only for other parts.
    """
    snapshot = table.snapshot_for_engines()
    wanted = {part.part_id for part in read_parts(planned(snapshot, table.uri))}
    if part_ids is not None:
        wanted &= set(part_ids)
    whole = {part_id: file for part_id, file in native.clean.items() if part_id in wanted}
    bitmaps: list[tuple[FileRef, RowSet]] = []
    for part_id, rows in visible.items():
        if part_id in wanted and rows is None:
            whole[part_id] = native.others[part_id]
        elif part_id in wanted and rows is not None:
            bitmaps.append((native.others[part_id], rows))
    if not whole and not bitmaps:
        return None
    files = (*whole.values(), *(file for file, _ in bitmaps))
    left = wanted - whole.keys() - visible.keys()
    rest = TableDataset(table, ReadOptions(), frozenset(left), views=True, files=files)

    def scan(*scanned: FileRef) -> datafusion.DataFrame:
        return native_frame(context, rest.schema, table.store, scanned, target_partitions)

    try:
        if only_counts and bitmaps:  # rows without columns differ in nothing
            count = sum(file.rows for file in whole.values()) + sum(len(r) for _, r in bitmaps)
            frames = [scan(*files).limit(count)]
        else:
            frames = [scan(*whole.values())] if whole else []
            frames += [visible_alone(context, scan(file), file.path, r) for file, r in bitmaps]
    except ValueError:  # plans of this version of DataFusion have another form
        return None
    if checks_files := bool(left) or not is_checked:
        frames.append(context.read_table(CatalogTable(rest)))
    both = reduce(lambda one, other: one.union(other), frames)
    return HybridTable(both.into_view(), files, len(bitmaps), checks_files)


def may_be_bitmaps(row_counts: Sequence[int]) -> bool:
    """Whether DataFusion should read files of so many rows without their hidden rows."""
    return len(row_counts) <= _MOST_BITMAPS and sum(row_counts) <= _MOST_BITMAP_ROWS


def is_bitmap(visible: RowSet) -> bool:
    """Whether DataFusion should read the file with these visible rows."""
    return len(visible) >= _LEAST_VISIBLE * visible.row_count and not visible.is_empty


def find_visible(table: Any, part_ids: Collection[str]) -> VisibleParts:
    """The visible rows of these parts; reads keys of them, and of the parts that overlap them."""
    plan = only_parts(planned(table.snapshot_for_engines(), table.uri), part_ids)
    return {part.part_id: rows for part, rows in visible_by_part(plan, table.store)}


def planned(snapshot: Snapshot, uri: str, condition: Predicate = TRUE) -> ScanPlan:
    """The plan of a version, without the parts that have no row which meets the condition."""
    return PLANS.plan(
        snapshot,
        uri,
        predicate=condition,
        semantics=Semantics.DATAFUSION,
        now_us=time.time_ns() // 1000,
        split_bytes=split_bytes_for_cores(snapshot.parts, least=SMALLEST_SPLIT_BYTES),
        pruning=True,
    )[0]
