"""Find the points that lie in one of many boxes; the time hardly grows with the number of boxes.

A box is a half-open range of ranks on each axis. One axis is searched: the boxes of one cell of the
other axes become disjoint ranges on it, and a binary search finds a point's range. On the other
axes a range is a few dyadic cells (2^l ranks that start at a multiple of 2^l), so that n boxes of a
range in m ranks have at most 2 n log m cells, and a point lies in one cell of each level.

Soundness: `RankBoxes.of` returns None where cells would be too many or their numbers too large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from rowsieve.predicate.arrays import Mask

Ranks: TypeAlias = npt.NDArray[np.int64]

_MAX_CELLS: Final = 4_000_000
_LEVELS: Final = 64
_BOXES_PER_SEARCH: Final = 8  # fewer boxes are faster compared one by one


@dataclass(frozen=True, slots=True)
class _Searched:
    """Disjoint ascending ranges of keys: of a cell's number, then of the rank on the last axis."""

    levels: tuple[int, ...]
    starts: Ranks
    stops: Ranks


@dataclass(frozen=True, slots=True)
class RankBoxes:
    """Boxes over some axes; `last` is the axis that is searched, `others` give the cells."""

    others: tuple[int, ...]
    last: int
    sizes: tuple[int, ...]
    searched: tuple[_Searched, ...]

    @classmethod
    def of(
        cls, starts: Sequence[Ranks], stops: Sequence[Ranks], sizes: Sequence[int]
    ) -> RankBoxes | None:
        """Index boxes, an array of starts and of stops per axis; None if that is not worth it.

        `sizes`: an upper bound of the ranks of each axis, which points may have.
        """
        full = np.logical_and.reduce([a < b for a, b in zip(starts, stops, strict=True)])
        lows, highs = [axis[full] for axis in starts], [axis[full] for axis in stops]
        widths = [int((b - a).sum()) for a, b in zip(lows, highs, strict=True)]
        last = int(np.argmax(widths))
        others = tuple(axis for axis in range(len(sizes)) if axis != last)
        if np.prod([float(size) for size in sizes]) > 2.0**61:
            return None
        boxes = np.arange(len(lows[0]))
        levels, cells = np.zeros_like(boxes), np.zeros_like(boxes)
        for axis in others:
            pieces = _dyadic(lows[axis][boxes], highs[axis][boxes])
            if len(pieces[0]) > _MAX_CELLS:
                return None
            place, level, node = pieces
            boxes, levels = boxes[place], levels[place] * _LEVELS + level
            cells = cells[place] * sizes[axis] + node
        kinds = np.unique(levels)
        if len(kinds) * _BOXES_PER_SEARCH > len(full):
            return None
        low, high = (cells * sizes[last] + ends[last][boxes] for ends in (lows, highs))
        searched = [
            _Searched(_split(int(kind), len(others)), *_disjoint(low[of_kind], high[of_kind]))
            for kind in kinds
            for of_kind in (levels == kind,)
        ]
        return cls(others, last, tuple(sizes), tuple(searched))

    def contain(self, ranks: Sequence[Ranks]) -> Mask:
        """Whether each point lies in a box; an array of ranks per axis."""
        inside = np.zeros(len(ranks[0]), dtype=np.bool_)
        for each in self.searched:
            keys = np.zeros_like(ranks[0])
            for axis, level in zip(self.others, each.levels, strict=True):
                keys = keys * self.sizes[axis] + (ranks[axis] >> level)
            keys = keys * self.sizes[self.last] + ranks[self.last]
            place = np.searchsorted(each.starts, keys, side="right") - 1
            inside |= (place >= 0) & (keys < each.stops[place])
        return inside


def _dyadic(starts: Ranks, stops: Ranks) -> tuple[Ranks, Ranks, Ranks]:
    """Divide ranges into cells: the number of the range, the level, and the cell's number there."""
    places, levels, nodes = [], [], []
    left, right, box_numbers = starts.copy(), stops.copy(), np.arange(len(starts))
    level = 0
    while len(box_numbers):
        for takes, node in (((left & 1) == 1, left), ((right & 1) == 1, right - 1)):
            places.append(box_numbers[takes])
            levels.append(np.full(int(takes.sum()), level))
            nodes.append(node[takes])
        left, right = (left + 1) >> 1, right >> 1
        wide = left < right
        left, right, box_numbers = left[wide], right[wide], box_numbers[wide]
        level += 1
    if not places:
        return box_numbers, box_numbers, box_numbers
    return np.concatenate(places), np.concatenate(levels), np.concatenate(nodes)


def _disjoint(starts: Ranks, stops: Ranks) -> tuple[Ranks, Ranks]:
    """Join ranges that overlap or touch."""
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(stops[order])
    begins = np.concatenate([[True], starts[1:] > reach[:-1]])
    ends = np.concatenate([begins[1:], [True]])
    return starts[begins], reach[ends]


def _split(kind: int, count: int) -> tuple[int, ...]:
    """Decode a number of `levels` to the level of each axis."""
    levels = []
    for _ in range(count):
        kind, level = divmod(kind, _LEVELS)
        levels.append(level)
    return tuple(reversed(levels))
