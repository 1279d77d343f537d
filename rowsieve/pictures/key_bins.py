"""Many parts over an axis: counts by outcome in intervals, as stacked bars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rowsieve.pictures.markup import Markup, element, join, percent, text
from rowsieve.pictures.outcomes import OUTCOMES

if TYPE_CHECKING:
    from rowsieve.pictures.part_bar import PartBar
    from rowsieve.pictures.scale import Axis

BINS: Final = 100
_HEIGHT: Final = 180.0


def counted(parts: Sequence[PartBar], axis: Axis) -> list[Counter[str]]:
    """Count in each interval of the axis the parts that reach into it, by outcome.

    O(parts + intervals): changes are counted where a part begins and after it ends.
    """
    changes: list[Counter[str]] = [Counter() for _ in range(BINS + 1)]
    for part in parts:
        start = 0.0 if part.lower is None else axis.place(part.lower)
        end = 1.0 if part.upper is None else axis.place(part.upper)
        first = min(int(start * BINS), BINS - 1)
        changes[first][part.outcome] += 1
        changes[max(min(int(end * BINS), BINS - 1), first) + 1][part.outcome] -= 1
    bins: list[Counter[str]] = []
    sums: Counter[str] = Counter()
    for change in changes[:BINS]:
        sums = Counter({kind: sums[kind] + change[kind] for kind in OUTCOMES})
        bins.append(+sums)
    return bins


def stacked(bins: Sequence[Counter[str]]) -> tuple[float, Markup]:
    """Draw the counts; returns the height, and the marks."""
    most = max((sum(counts.values()) for counts in bins), default=0) or 1
    marks = []
    for number, counts in enumerate(bins):
        bars, y = [], _HEIGHT
        for kind in OUTCOMES:
            if count := counts[kind]:
                height = _HEIGHT * count / most
                y -= height
                bars.append(
                    element(
                        "rect",
                        x=percent(number / BINS),
                        width=percent(0.86 / BINS),
                        y=y,
                        height=height,
                        class_=kind,
                    )
                )
        if bars:
            labels = ", ".join(
                f"{counts[kind]:,} {label}" for kind, label in OUTCOMES.items() if counts[kind]
            )
            marks.append(element("g", element("title", text(f"parts here: {labels}")), *bars))
    return _HEIGHT, join(marks)
