"""Select the parts to rewrite together: those that every read must merge, and small ones.

A run is neighbouring parts in key order (in commit order for a table without a key, so that data
of one time stays together). A run is rewritten if it may hold several versions of a key,
tombstones, hidden rows, or more than one small part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rowsieve.planner.overlap import overlap_groups
from rowsieve.storage.manifest import PartTable
from rowsieve.types.keys import KeyOrder


@dataclass(frozen=True, slots=True)
class Unit:
    """Parts that must be rewritten together: an overlap group, or one part without a key.

    `parts` are indices. `hidden_row_count` counts tombstones and rows of deletion vectors.
    """

    parts: tuple[int, ...]
    size_bytes: int
    row_count: int
    hidden_row_count: int

    @property
    def dirty(self) -> bool:
        """Whether a newer version or a delete may hide one of its rows."""
        return len(self.parts) > 1 or self.hidden_row_count > 0


def pick_runs(parts: PartTable, order: KeyOrder | None, target_bytes: int) -> list[list[int]]:
    """Return the indices of the parts to rewrite, by run; only whole overlap groups."""
    found = runs_of(
        units_of(parts, order), lambda unit: unit.dirty or unit.size_bytes < target_bytes // 2
    )
    worth = (run for run in found if len(run) > 1 or any(unit.dirty for unit in run))
    return [[part for unit in run for part in unit.parts] for run in worth]


def runs_of(units: Sequence[Unit], wanted: Callable[[Unit], bool]) -> list[list[Unit]]:
    """Return the longest runs of neighbouring units that are all wanted."""
    runs: list[list[Unit]] = [[]]
    for unit in units:
        if wanted(unit):
            runs[-1].append(unit)
        else:
            runs.append([])
    return [run for run in runs if run]


def units_of(parts: PartTable, order: KeyOrder | None) -> list[Unit]:
    """Return the units in key order; in commit order for a table without a key."""
    sizes = parts.numbers("data.size_bytes") + parts.numbers("deletes.size_bytes")
    rows = parts.numbers("data.rows")
    hidden = parts.numbers("deletes.rows") + parts.numbers("dv.rows")
    if order is None:
        ages = parts.numbers("commit_ts_max")
        groups = [[int(i)] for i in np.argsort(ages, kind="stable")]
    else:
        groups = list(overlap_groups(parts.select("key.").table, order))
    return [
        Unit(
            tuple(group),
            size_bytes=int(sizes[group].sum()),
            row_count=int(rows[group].sum()),
            hidden_row_count=int(hidden[group].sum()),
        )
        for group in groups
    ]
