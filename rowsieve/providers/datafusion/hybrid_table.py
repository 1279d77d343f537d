"""A table in two: DataFusion scans its clean parts, and our dataset reads the other parts.

Soundness: both read the parts of one version (invariants 23 and 32), each part once. The dataset is
part of every such table, because it checks that the files of DataFusion's scan exist.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import datafusion
from datafusion.catalog import Table as CatalogTable

from rowsieve.planner.cache import PLANS
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.splits import split_bytes_for_cores
from rowsieve.predicate.ir import TRUE, Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.datafusion.native_scan import native_frame, native_parts
from rowsieve.providers.datafusion.registered_table import (
    SMALLEST_SPLIT_BYTES,
    ReadOptions,
    TableDataset,
)
from rowsieve.providers.native_files.planned_parts import read_parts

if TYPE_CHECKING:
    from rowsieve.storage.manifest import FileRef
    from rowsieve.storage.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class HybridTable:
    """What to register in DataFusion, and the files of the parts that DataFusion reads itself."""

    provider: Any
    files: tuple[FileRef, ...]

    @property
    def native_parts(self) -> int:
        """How many parts DataFusion reads itself."""
        return len(self.files)


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
    part_ids: Collection[str] | None,
    target_partitions: int,
) -> HybridTable | None:
    """The hybrid of a table of one version; None if our dataset reads all of it.

    With `part_ids`, it has the rows of these parts alone.
    """
    snapshot = table.snapshot_for_engines()
    plan = planned(snapshot, table.uri)
    wanted = {part.part_id for part in read_parts(plan)}
    if part_ids is not None:
        wanted &= set(part_ids)
    native = {
        part_id: file
        for part_id, file in native_parts(plan, snapshot, table.store).items()
        if part_id in wanted
    }
    if not native:
        return None
    files = tuple(native.values())
    rest = TableDataset(
        table, ReadOptions(), frozenset(wanted - native.keys()), views=True, files=files
    )
    try:
        frame = native_frame(context, rest.schema, table.store, files, target_partitions)
    except ValueError:  # plans of this version of DataFusion have another form
        return None
    both = frame.union(context.read_table(CatalogTable(rest)))
    return HybridTable(both.into_view(), files)


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
