"""Select what a pass rewrites: slices of overlap groups, or whole groups and small parts.

A run is neighbouring parts in key order (in commit order for a table without a key, so that data
of one time stays together). A run is rewritten if it may hold several versions of a key,
tombstones, hidden rows, more than one small part, only parts in memory, or files with other forms
of their rows than the table writes now.

The table property `compaction` names the picker. *Leveled* rewrites every group until no part
overlaps another: reads look at one part for each row. Before that, it cuts new parts with few rows
at the keys where large old ones begin, so that old parts without a new row are not rewritten.
*Tiered* rewrites the oldest commit of a group only when the newer parts have a quarter of the
group's bytes, and merges newer commits of similar size with one another when they are more than
four: it writes less, and reads look at a few parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import Final

import numpy as np

from rowsieve.compaction import slices as cut
from rowsieve.compaction.cut_ranges import cut_count, newest_over_disjoint
from rowsieve.compaction.late_horizon import Horizon, kept_by_default, tombstones_to_drop
from rowsieve.compaction.outdated_forms import outdated_forms
from rowsieve.compaction.slices import Ages, Slice
from rowsieve.planner.overlap import overlap_groups
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.parts.file_forms import target_part_bytes
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyOrder

TIERS: Final = 4
"""Newer commits of a group that the tiered picker tolerates, and its ratio between sizes."""

CUT_RATIO: Final = 8
"""New parts are cut if the old ones have at least this many times their bytes: it is cheap then."""

MIN_OLD_PARTS: Final = 4
"""A group with fewer old parts is not cut."""


class Picker(Enum):
    """A strategy that picks groups of overlapping parts."""

    LEVELED = "leveled"
    TIERED = "tiered"


@dataclass(frozen=True, slots=True)
class Unit:
    """Parts that must be rewritten together: an overlap group, or one part without a key.

    `parts` are indices. `hidden_row_count` counts tombstones and rows of deletion vectors.
    `is_one_commit`: all rows have one commit_ts, so no key is in two parts (rule 10); their bounds
    overlap only where long keys are cut. `in_memory`: the parts that no file has, by index.
    """

    parts: tuple[int, ...]
    size_bytes: int
    row_count: int
    hidden_row_count: int
    is_one_commit: bool
    in_memory: tuple[int, ...] = ()

    @property
    def only_in_memory(self) -> bool:
        """True if no file has a row of it."""
        return len(self.in_memory) == len(self.parts)

    @property
    def dirty(self) -> bool:
        """True if a newer version or a delete may hide one of its rows."""
        return (len(self.parts) > 1 and not self.is_one_commit) or self.hidden_row_count > 0


@dataclass(frozen=True, slots=True)
class Picked:
    """The parts that the next pass rewrites, by index: slices, or runs if no slice pays."""

    slices: tuple[Slice, ...] = ()
    runs: tuple[tuple[int, ...], ...] = ()

    @property
    def parts(self) -> list[int]:
        """All parts that it rewrites."""
        chosen = [one.parts for one in self.slices] or self.runs
        return [part for parts in chosen for part in parts]


def picker_of(properties: Mapping[str, str]) -> Picker:
    """Read the property `compaction`; any value but "tiered" means LEVELED."""
    return Picker.TIERED if properties.get("compaction") == Picker.TIERED.value else Picker.LEVELED


def pick(
    snapshot: Snapshot,
    is_full: Callable[[int], bool] = lambda _part: False,
    horizon: Horizon | None = None,
    before_since: frozenset[int] = frozenset(),
) -> Picked:
    """Select what the next pass rewrites; nothing if no rewrite would pay.

    `is_full` says of a small part, by index, that it could not hold more rows. `horizon` is that of
    `rowsieve.compaction.late_horizon`. `before_since`: parts of a differential table with times
    before `since`, by index, which are rewritten with their neighbours.
    """
    parts, key = snapshot.parts, snapshot.table.key
    if horizon is None:
        horizon = kept_by_default(snapshot)
    target_bytes = target_part_bytes(snapshot.table.properties)
    order = KeyOrder.of(snapshot.schema, key) if key else None
    sequence = KeyOrder(snapshot.sequence_fields)
    units, ages = units_of(parts, order, horizon, sequence), Ages.of(parts)
    picker = picker_of(snapshot.table.settings)
    if order is not None:
        slices = [one for unit in units for one in _slices_of(unit, ages, target_bytes, picker)]
        if not slices and picker is Picker.LEVELED:
            cuts = (_cut_slice(unit, parts, ages, target_bytes, order) for unit in units)
            slices = [one for one in cuts if one is not None]
        if slices:
            return Picked(slices=tuple(slices))

    old = outdated_forms(parts, snapshot.table.settings)

    def outdated(unit: Unit) -> bool:
        if not before_since.isdisjoint(unit.parts):
            return True
        return unit.only_in_memory or bool(old[list(unit.parts)].any())

    def wanted(unit: Unit) -> bool:
        if not unit.dirty:
            is_small = unit.size_bytes < target_bytes // 2
            return is_small and not (len(unit.parts) == 1 and is_full(unit.parts[0]))
        return picker is Picker.LEVELED or order is None or _outgrown(unit, ages)

    runs = runs_of(units, lambda unit: outdated(unit) or wanted(unit))
    worth = (
        run
        for run in runs
        if sum(len(unit.parts) for unit in run) > 1
        or any(unit.dirty or outdated(unit) for unit in run)
    )
    return Picked(runs=tuple(tuple(part for unit in run for part in unit.parts) for run in worth))


def _slices_of(unit: Unit, ages: Ages, target_bytes: int, picker: Picker) -> list[Slice]:
    """Return the slices of one overlap group; none if it is better rewritten as a whole."""
    if picker is Picker.TIERED and unit.in_memory and not _outgrown(unit, ages):
        return list(_slices_in_memory(unit, ages))
    if len(unit.parts) <= min(TIERS, cut.MAX_COMMITS):
        return []
    newer = ages.newer_parts(np.array(unit.parts))
    count = ages.commit_count(newer)
    if picker is Picker.TIERED and count > TIERS and not _outgrown(unit, ages):
        return list(ages.slices(newer, unit.size_bytes, TIERS, ratio=TIERS))
    if count > cut.MAX_COMMITS:
        return list(ages.slices(newer, target_bytes // 2, cut.MIN_COMMITS))
    return []


def pick_in_memory(snapshot: Snapshot) -> Picked:
    """Select only parts in memory, to write them into files; nothing if there are none.

    Groups without a file are rewritten as a whole. In others, neighbours by age become a slice.
    """
    parts, key = snapshot.parts, snapshot.table.key
    if not parts.held_in_memory().any():
        return Picked()
    order = KeyOrder.of(snapshot.schema, key) if key else None
    units, ages = units_of(parts, order, kept_by_default(snapshot)), Ages.of(parts)
    slices = [
        one for unit in units if not unit.only_in_memory for one in _slices_in_memory(unit, ages)
    ]
    if slices:
        return Picked(slices=tuple(slices))
    runs = runs_of(units, lambda unit: unit.only_in_memory)
    return Picked(runs=tuple(tuple(part for unit in run for part in unit.parts) for run in runs))


def _slices_in_memory(unit: Unit, ages: Ages) -> Iterator[Slice]:
    """The parts in memory of a group with files: a slice for each run of ages without a file.

    None if commits mix, because a slice would then not be of one age.
    """
    in_memory = frozenset(unit.in_memory)
    ranked = ages.newest_first(np.array(unit.parts)).tolist()
    for is_held, some in groupby(ranked, key=in_memory.__contains__):
        if is_held:
            parts = tuple(some)
            yield Slice(parts, int(ages.sizes[list(parts)].sum()))


def _cut_slice(
    unit: Unit, parts: PartTable, ages: Ages, target_bytes: int, order: KeyOrder
) -> Slice | None:
    """The newer parts of a group, to be cut at its older ones; None if that does not pay.

    A part that was cut is not cut again: afterwards it overlaps at most one cut, because bounds are
    truncated.
    """
    if len(unit.parts) <= MIN_OLD_PARTS or unit.size_bytes < 2 * target_bytes:
        return None
    ranked = ages.newest_first(np.array(unit.parts))
    if not len(ranked):
        return None
    group = parts.take(ranked)
    newer = newest_over_disjoint(group, ages.newest[ranked], order)
    size_bytes, old_bytes = (int(ages.sizes[some].sum()) for some in np.split(ranked, [newer]))
    if not newer or len(ranked) - newer < MIN_OLD_PARTS or size_bytes * CUT_RATIO > old_bytes:
        return None
    if cut_count(group, newer, order.first) <= newer:
        return None
    return Slice(tuple(ranked[:newer].tolist()), size_bytes, tuple(ranked[newer:].tolist()))


def _outgrown(unit: Unit, ages: Ages) -> bool:
    """Return whether the newer parts of a group are worth rewriting its oldest commit for."""
    newer = ages.newer_parts(np.array(unit.parts))
    if not len(newer):  # tombstones or hidden rows of one part, or commits that mix
        return unit.hidden_row_count * TIERS >= unit.row_count or len(unit.parts) > 1
    return int(ages.sizes[newer].sum()) * TIERS >= unit.size_bytes


def runs_of(units: Sequence[Unit], wanted: Callable[[Unit], bool]) -> list[list[Unit]]:
    """Return the longest runs of neighbouring units that are all wanted."""
    runs: list[list[Unit]] = [[]]
    for unit in units:
        if wanted(unit):
            runs[-1].append(unit)
        else:
            runs.append([])
    return [run for run in runs if run]


def units_of(
    parts: PartTable,
    order: KeyOrder | None,
    horizon: Horizon | None = None,
    sequence: KeyOrder | None = None,
) -> list[Unit]:
    """Return the units in key order; in commit order for a table without a key.

    Tombstones that the horizon keeps hide nothing that a rewrite could remove; `sequence` orders
    the table's events.
    """
    sizes = parts.numbers("data.size_bytes") + parts.numbers("deletes.size_bytes")
    rows = parts.numbers("data.rows")
    hidden = tombstones_to_drop(parts, horizon, sequence) + parts.numbers("dv.rows")
    oldest, newest = (parts.numbers(f"commit_ts_{end}") for end in ("min", "max"))
    in_memory = parts.held_in_memory()
    if order is None:
        groups = [[int(i)] for i in np.argsort(newest, kind="stable")]
    else:
        groups = list(overlap_groups(parts.select("key.").table, order))
    return [
        Unit(
            tuple(group),
            size_bytes=int(sizes[group].sum()),
            row_count=int(rows[group].sum()),
            hidden_row_count=int(hidden[group].sum()),
            is_one_commit=bool(oldest[group].min() == newest[group].max()),
            in_memory=tuple(part for part in group if in_memory[part]),
        )
        for group in groups
    ]
