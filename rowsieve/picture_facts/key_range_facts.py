"""The parts of a version over a column: their bounds, and what a read does with each.

Reads the manifest alone.

Soundness: bounds are those that pruning uses. A bound that is unknown, or was cut, is drawn as far
as the axis goes; hidden rows are those that are known without comparing keys.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rowsieve.errors import InvalidInput
from rowsieve.pictures.part_bar import PartBar
from rowsieve.planner.explanation import Explanation
from rowsieve.stats.tabulate import statistics_name
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.shown_values import python_values


def shown_column(snapshot: Snapshot, column: str | None) -> str:
    """Return the column to show: the one asked for, the first of the key, or the first of all."""
    if column is not None:
        return snapshot.schema.field(column).name
    names = snapshot.table.key or snapshot.schema.names
    if not names:
        raise InvalidInput("key_ranges: the table has no columns; add one first")
    return names[0]


def part_bars(
    snapshot: Snapshot, column: str, explanation: Explanation | None = None
) -> list[PartBar]:
    """Return the parts with their bounds of a column; O(parts)."""
    snapshot.note_read_of_all()
    parts, outcomes = snapshot.parts, {} if explanation is None else _outcomes(explanation)
    field_id = snapshot.schema.field(column).id
    lower, upper = (_bounds(parts, field_id, side) for side in ("lower", "upper"))
    sizes = parts.numbers("data.size_bytes") + parts.numbers("deletes.size_bytes")
    hidden = parts.numbers("dv.rows") + _vector_rows(parts)
    facts = zip(
        parts.part_ids,
        lower,
        upper,
        parts.numbers("data.rows").tolist(),
        hidden.tolist(),
        parts.numbers("deletes.rows").tolist(),
        sizes.tolist(),
        zip(
            parts.numbers("commit_ts_min").tolist(),
            parts.numbers("commit_ts_max").tolist(),
            strict=True,
        ),
        strict=True,
    )
    unknown = ("stored", "")
    return [PartBar._make((*fact, *outcomes.get(fact[0], unknown))) for fact in facts]


def _bounds(parts: PartTable, field_id: int, side: str) -> list[Any]:
    """The bounds of each part; those of keys cover deletes too."""
    names = parts.schema.names
    key, statistic = f"key.{field_id}.{side}", statistics_name(field_id, side)
    for name in (key, statistic):
        if name in names:
            return python_values(parts.column(name))
    return [None] * len(parts)


def _vector_rows(parts: PartTable) -> npt.NDArray[np.int64]:
    return np.array([0 if ref is None else ref.rows for ref in parts.vectors()], dtype=np.int64)


def _outcomes(explanation: Explanation) -> dict[str, tuple[str, str]]:
    """What a read does with each part, as a kind of outcome, and the reason."""
    outcomes = {part.part_id: (part.by, part.condition) for part in explanation.skipped}
    for group in explanation.groups:
        kind = "merged" if len(group.parts) > 1 else "read"
        for part in group.parts:
            outcomes[part.part_id] = (kind if part.read else "hides", group.why)
    return outcomes
