"""What a plan tells a query engine about its execution, known before any read.

An engine chooses by it: the order that it need not sort into, tasks and their sizes, the rows that
it need not filter again, and what the metadata of each part has refuted. Nothing here decides
which rows are returned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rowsieve.planner.part_rows import PartRows
from rowsieve.planner.split import Piece, PlannedPart, Split


@dataclass(frozen=True, slots=True)
class PartMetrics:
    """What a plan does with one part that it opens.

    `rows_at_most` of its `rows` are read; 0 if it only hides rows of older parts. `merged`: whether
    its rows are merged with those of other parts. `filtered`: whether the condition is evaluated on
    its rows. `resolved`: its rows to read and what its metadata refuted; None unless the plan is
    resolved and reads it.
    """

    part_id: str
    rows: int
    rows_at_most: int
    size_bytes: int
    merged: bool
    filtered: bool
    resolved: PartRows | None


@dataclass(frozen=True, slots=True)
class ExecutionHints:
    """Hints for the engine that executes a plan.

    `sorted_by`: the key columns that the rows are ordered by, empty without order. `tasks`: splits,
    which return disjoint keys; `largest_task_bytes`: stored bytes of the largest. `rows_at_most`:
    an upper bound of the rows returned. `rows_merged`: how many of the stored rows are merged with
    those of other parts. `limit_is_per_task`: a task returns up to the limit, so the engine applies
    it again. The condition needs no second evaluation.
    """

    sorted_by: tuple[str, ...]
    tasks: int
    size_bytes: int
    largest_task_bytes: int
    rows_at_most: int
    rows_merged: int
    limit_is_per_task: bool
    parts: tuple[PartMetrics, ...]


def execution_hints(
    splits: Sequence[Split],
    resolved: Sequence[PartRows] | None,
    *,
    sorted_by: tuple[str, ...],
    limit: int | None,
) -> ExecutionHints:
    """Derive the hints of a plan; reads nothing."""
    parts = tuple(_part_metrics(splits, resolved or ()))
    sizes = [split.size_bytes for split in splits]
    rows = sum(part.rows_at_most for part in parts)
    return ExecutionHints(
        sorted_by,
        tasks=len(splits),
        size_bytes=sum(sizes),
        largest_task_bytes=max(sizes, default=0),
        rows_at_most=rows if limit is None else min(rows, limit),
        rows_merged=sum(part.rows_at_most for part in parts if part.merged),
        limit_is_per_task=limit is not None and len(splits) > 1,
        parts=parts,
    )


def _part_metrics(splits: Sequence[Split], resolved: Sequence[PartRows]) -> Iterator[PartMetrics]:
    """Combine what several pieces read of one part, in the order of the plan."""
    by_part = {part.part_id: part for part in resolved}
    opened: dict[str, PlannedPart] = {}
    rows: Counter[str] = Counter()
    merged: set[str] = set()
    filtered: set[str] = set()
    for piece in (piece for split in splits for piece in split.pieces):
        opened.update((part.part_id, part) for part in piece.parts)
        rows.update(_rows_in_row_groups(piece))
        if piece.needs_merge:
            merged.update(part.part_id for part in piece.parts)
        filtered.update(piece.parts[read.part].part_id for read in piece.reads if read.residual)
    for part_id, part in opened.items():
        resolved_rows = by_part.get(part_id)
        yield PartMetrics(
            part_id,
            part.row_count,
            rows[part_id] if resolved_rows is None else len(resolved_rows.rows),
            size_bytes=sum(file.size_bytes for file in (part.data, part.deletes) if file),
            merged=part_id in merged,
            filtered=part_id in filtered,
            resolved=resolved_rows,
        )


def _rows_in_row_groups(piece: Piece) -> Counter[str]:
    """Count the stored rows in the row groups that a piece reads, by part."""
    rows: Counter[str] = Counter()
    for read in piece.reads:
        part = piece.parts[read.part]
        start, stop = read.row_range(part.row_count)
        rows[part.part_id] += stop - start
    return rows
