"""Resolve a plan: add the rows to read of each part, drop parts without rows, join small splits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from rowsieve.planner.part_rows import PartRows, joined_by_part, within
from rowsieve.planner.plan import Pruned, ScanPlan
from rowsieve.planner.split import Piece, PlannedPart, Split
from rowsieve.predicate.rowset import RowSet


def with_rows(plan: ScanPlan, part_rows: Iterable[PartRows]) -> ScanPlan:
    """Return the resolved plan; `part_rows` are the rows of every read, in any order.

    Reads without rows are dropped, and pieces and splits without reads. `pruned` counts the dropped
    parts by the step that excluded their last row, or by "visibility" if they only hid rows.
    """
    resolved = joined_by_part(part_rows)
    rows = {part.part_id: part.rows for part in resolved}
    splits = tuple(
        Split(pieces)
        for split in plan.splits
        if (
            pieces := tuple(
                each for piece in split.pieces if (each := _without_empty_reads(piece, rows)).reads
            )
        )
    )
    before, after = _parts(plan.splits), _parts(splits)
    reasons = {part.part_id: part.emptied_by for part in resolved}
    gone = [
        (reasons.get(part_id, "visibility"), part)
        for part_id, part in before.items()
        if part_id not in after
    ]
    return msgspec.structs.replace(
        plan, splits=splits, pruned=_counted(plan.pruned, gone), resolved=resolved
    )


def rows_by_part(resolved: Iterable[PartRows]) -> Mapping[str, RowSet]:
    """Return the rows to read of each part."""
    return {part.part_id: part.rows for part in resolved}


def join_small_splits(plan: ScanPlan, split_bytes: int) -> ScanPlan:
    """Join neighbouring splits of a resolved plan whose pages to read have few stored bytes.

    A joined split reads at most about `split_bytes`. For a plan without order and limit.
    """
    if plan.resolved is None or plan.ordered or plan.limit is not None:
        return plan
    rows = {part.part_id: part for part in plan.resolved}
    joined: list[list[Piece]] = []
    open_bytes = 0
    for split in plan.splits:
        size_bytes = sum(_bytes_to_read(piece, rows) for piece in split.pieces)
        if joined and open_bytes + size_bytes <= split_bytes:
            joined[-1] += split.pieces
            open_bytes += size_bytes
        else:
            joined.append([*split.pieces])
            open_bytes = size_bytes
    return msgspec.structs.replace(plan, splits=tuple(Split(tuple(each)) for each in joined))


def _bytes_to_read(piece: Piece, rows: Mapping[str, PartRows]) -> int:
    """Estimate the stored bytes of the pages with a row to read."""
    size_bytes = 0
    for read in piece.reads:
        part = piece.parts[read.part]
        data, part_rows = part.data, rows[part.part_id]
        assert data is not None
        here = within(part_rows.rows, *read.row_range(data.rows))
        page_rows = part_rows.page_rows or 1  # unknown: only the rows count
        starts, stops = here.ranges()
        first, last = starts // page_rows, (stops - 1) // page_rows
        pages = int((last - first + 1).sum()) - int(np.count_nonzero(first[1:] == last[:-1]))
        size_bytes += data.size_bytes * min(pages * page_rows, data.rows) // max(data.rows, 1)
    return size_bytes


def _without_empty_reads(piece: Piece, rows: Mapping[str, RowSet]) -> Piece:
    """Return the piece with only the reads that have rows; its parts keep their indices."""
    reads = []
    for read in piece.reads:
        part = piece.parts[read.part]
        assert part.data is not None
        if not within(rows[part.part_id], *read.row_range(part.data.rows)).is_empty:
            reads.append(read)
    return msgspec.structs.replace(piece, reads=tuple(reads))


def _parts(splits: Iterable[Split]) -> dict[str, PlannedPart]:
    return {part.part_id: part for s in splits for piece in s.pieces for part in piece.parts}


def _counted(
    pruned: tuple[Pruned, ...], gone: Iterable[tuple[str, PlannedPart]]
) -> tuple[Pruned, ...]:
    """Add these parts to the counts of pruned parts."""
    by_reason = {each.by: each for each in pruned}
    for by, part in gone:
        known = by_reason.get(by, Pruned(by, 0, 0, 0))
        size_bytes = sum(ref.size_bytes for ref in (part.data, part.deletes) if ref is not None)
        rows = known.rows + part.row_count
        by_reason[by] = Pruned(by, known.parts + 1, rows, known.size_bytes + size_bytes)
    return tuple(by_reason.values())
