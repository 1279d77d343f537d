"""Selects the parts that `rewrite_data_files` rewrites, in groups that are rewritten whole.

Soundness: a group consists of neighbouring whole overlap groups, so no part outside it holds one of
its keys. The filter selects every part that may hold a matching row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rowsieve.compaction.late_horizon import Horizon
from rowsieve.compaction.pick import Unit, runs_of, units_of
from rowsieve.errors import InvalidInput
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.ir import TRUE
from rowsieve.procedures.built_ins.rewrite_options import JobOrder, RewriteOptions
from rowsieve.procedures.procedure import TargetScan
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.parts.part_writer import ROW_GROUP_ROWS
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyOrder


def groups_to_rewrite(
    snapshot: Snapshot,
    scan: TargetScan,
    options: RewriteOptions,
    only: frozenset[int] | None = None,
    sort_order: str | None = None,
    horizon: Horizon | None = None,
) -> list[PartTable]:
    """The parts of each group: neighbouring, selected by the filter, and worth a rewrite.

    With `only`, a group has one of the parts with these indices in each of its overlap groups. With
    `sort_order`, parts that do not record this order are worth a rewrite. `horizon`: which
    tombstones go (`rowsieve.compaction.late_horizon`).
    """
    key = snapshot.table.key
    order = KeyOrder.of(snapshot.schema, key) if key else None
    units = units_of(snapshot.parts, order, horizon, KeyOrder(snapshot.sequence_fields))
    selected = _selected(snapshot, scan, strict=options.strict)
    if only is not None:
        selected = only if selected is None else selected & only
    parts = snapshot.parts
    rules = _Rules(
        options,
        selected,
        _delete_files(parts),
        _too_large(parts, options),
        parts.sort_orders(),
        sort_order,
    )
    groups = [
        group
        for run in runs_of(units, rules.is_candidate)
        if rules.is_worth(run)
        for group in _cut(run, options.max_file_group_size_bytes)
        if rules.is_improved(group)
    ]
    return [
        snapshot.parts.take([part for unit in group for part in unit.parts])
        for group in _in_order(groups, options.job_order)
    ]


@dataclass(frozen=True, slots=True)
class _Rules:
    """Decides which units, and which runs of them, are rewritten.

    `deletes`, `too_large`: (n,) by part.
    """

    options: RewriteOptions
    selected: frozenset[int] | None
    deletes: np.ndarray
    too_large: np.ndarray
    orders: Sequence[str | None]
    sort_order: str | None

    def is_candidate(self, unit: Unit) -> bool:
        """Return whether the filter selects the unit, and it may gain from a rewrite."""
        if self.selected is not None and self.selected.isdisjoint(unit.parts):
            return False
        options = self.options
        if options.rewrite_all or unit.dirty or self._is_too_large(unit):
            return True
        is_small = unit.size_bytes < options.min_file_size_bytes * len(unit.parts)
        return is_small or self._is_unsorted(unit)

    def is_worth(self, run: Sequence[Unit]) -> bool:
        """Return whether a run of candidates is worth a rewrite."""
        if any(map(self._is_unsorted, run)):
            return True
        if (most := self.options.delete_file_threshold) is not None and any(
            self.deletes[list(unit.parts)].sum() >= most for unit in run
        ):
            return True
        return _is_worth(run, self.options)

    def is_improved(self, group: Sequence[Unit]) -> bool:
        """Return whether a rewrite of the group would not write the same parts again."""
        options = self.options
        if options.rewrite_all or any(
            unit.dirty or self._is_too_large(unit) or self._is_unsorted(unit) for unit in group
        ):
            return True
        size_bytes = sum(unit.size_bytes for unit in group)
        task_bytes = min(options.target_file_size_bytes, options.max_file_group_size_bytes)
        tasks = -(-size_bytes // task_bytes) or 1
        # One task for each new part, which may leave the rest of its rows in a second one. In a
        # unit of several parts, these would be neighbours, and candidates for ever.
        most = tasks if all(len(unit.parts) == 1 for unit in group) else 2 * tasks
        return sum(len(unit.parts) for unit in group) > most

    def _is_too_large(self, unit: Unit) -> bool:
        return bool(self.too_large[list(unit.parts)].any())

    def _is_unsorted(self, unit: Unit) -> bool:
        if self.sort_order is None:
            return False
        return any(self.orders[part] != self.sort_order for part in unit.parts)


def _too_large(parts: PartTable, options: RewriteOptions) -> np.ndarray:
    """Whether each part is above the limit, and can be cut: it has several row groups."""
    sizes, rows = parts.numbers("data.size_bytes"), parts.numbers("data.rows")
    return np.asarray((rows > ROW_GROUP_ROWS) & (sizes > options.max_file_size_bytes))


def has_deletes(parts: PartTable) -> list[bool]:
    """Return whether each part has tombstones or a deletion vector."""
    return [bool(count) for count in _delete_files(parts)]


def _delete_files(parts: PartTable) -> np.ndarray:
    """The number of files of deletes of each part."""
    counts = [
        parts.column(f"{kind}.path").is_valid().to_numpy().astype(np.int64)
        for kind in ("deletes", "dv")
    ]
    return np.asarray(counts[0] + counts[1])


def _selected(snapshot: Snapshot, scan: TargetScan, *, strict: bool) -> frozenset[int] | None:
    """The indices of the parts that may hold a row that matches the filter; None for all."""
    if scan.predicate == TRUE:
        return None
    plan = plan_scan(
        snapshot,
        scan.table.uri,
        predicate=scan.predicate,
        semantics=scan.semantics,
        now_us=scan.now_us,
    )
    pieces = [piece for split in plan.splits for piece in split.pieces]
    if strict and any(
        piece.residual or any(read.residual for read in piece.reads) for piece in pieces
    ):
        raise InvalidInput(
            "rewrite_data_files: strict is set, and some parts hold rows that match the filter "
            "together with rows that may not; rewrite whole parts without strict, or use a filter "
            "on the key that whole parts match"
        )
    index = {part_id: i for i, part_id in enumerate(snapshot.parts.part_ids)}
    return frozenset(index[part.part_id] for piece in pieces for part in piece.parts)


def _is_worth(run: Sequence[Unit], options: RewriteOptions) -> bool:
    parts = sum(len(unit.parts) for unit in run)
    rows = sum(unit.row_count for unit in run)
    hidden = sum(unit.hidden_row_count for unit in run)
    return (
        options.rewrite_all
        or parts >= options.min_input_files
        or sum(unit.size_bytes for unit in run) > options.max_file_size_bytes
        or 0 < options.delete_ratio * rows <= hidden
    )


def _cut(run: Sequence[Unit], most_bytes: int) -> Iterator[list[Unit]]:
    """Cut a run into groups of at most `most_bytes`, unless a single unit has more."""
    group: list[Unit] = []
    size = 0
    for unit in run:
        if group and size + unit.size_bytes > most_bytes:
            yield group
            group, size = [], 0
        group.append(unit)
        size += unit.size_bytes
    if group:
        yield group


def _in_order(groups: list[list[Unit]], order: JobOrder) -> list[list[Unit]]:
    def size_bytes(group: list[Unit]) -> int:
        return sum(unit.size_bytes for unit in group)

    def files(group: list[Unit]) -> int:
        return sum(len(unit.parts) for unit in group)

    if order is JobOrder.NONE:
        return groups
    by = size_bytes if order in (JobOrder.BYTES_ASCENDING, JobOrder.BYTES_DESCENDING) else files
    descending = order in (JobOrder.BYTES_DESCENDING, JobOrder.FILES_DESCENDING)
    return sorted(groups, key=by, reverse=descending)
