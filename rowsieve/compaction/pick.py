"""Select the parts to rewrite together: those that every read must merge, and small ones.

A run is neighbouring parts in key order (in commit order for a table without a key, so that data
of one time stays together). A run is rewritten if it may hold several versions of a key,
tombstones, hidden rows, or more than one small part.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

from rowsieve.planner.overlap import overlap_groups
from rowsieve.storage.manifest import PartTable
from rowsieve.types.keys import KeyOrder


@dataclass(frozen=True, slots=True)
class _Unit:
    """Parts that must be rewritten together: an overlap group, or one part without a key."""

    parts: tuple[int, ...]
    dirty: bool
    small: bool


def pick_runs(parts: PartTable, order: KeyOrder | None, target_bytes: int) -> list[list[int]]:
    """Return the indices of the parts to rewrite, by run; only whole overlap groups."""
    runs: list[list[_Unit]] = [[]]
    for unit in _units(parts, order, target_bytes):
        if unit.dirty or unit.small:
            runs[-1].append(unit)
        else:
            runs.append([])
    worth = (run for run in runs if len(run) > 1 or any(unit.dirty for unit in run))
    return [[part for unit in run for part in unit.parts] for run in worth]


def _units(parts: PartTable, order: KeyOrder | None, target_bytes: int) -> list[_Unit]:
    sizes = pc.add(
        pc.fill_null(parts.column("data.size_bytes"), 0),
        pc.fill_null(parts.column("deletes.size_bytes"), 0),
    ).to_pylist()
    marked = pc.or_(
        pc.is_valid(parts.column("deletes.path")), pc.is_valid(parts.column("dv.path"))
    ).to_pylist()
    if order is None:
        ages = parts.column("commit_ts_max").to_pylist()
        groups = [[i] for i in sorted(range(len(parts)), key=lambda i: ages[i])]
    else:
        groups = list(overlap_groups(parts.select("key.").table, order))
    return [
        _Unit(
            tuple(group),
            dirty=len(group) > 1 or any(marked[i] for i in group),
            small=sum(sizes[i] for i in group) < target_bytes // 2,
        )
        for group in groups
    ]
