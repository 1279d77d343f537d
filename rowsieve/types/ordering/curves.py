"""Space-filling curves: they place rows with similar values in all columns near each other.

A row is a point whose coordinates are the ranks of its values, so every type with an order has
coordinates, and skewed values fill the space as evenly as others. The Z-order (Morton, 1966)
interleaves the bits of the coordinates; it jumps where a high bit changes. The Hilbert curve
visits neighbours one after the other; Skilling's transform ("Programming the Hilbert curve", 2004)
turns its coordinates into those of the Z-order.

A curve only clusters rows: no reader may conclude anything from a position on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Words: TypeAlias = npt.NDArray[np.int64]

_BITS: Final = 63


class Curve(Enum):
    """The curves, by their names in texts."""

    ZORDER = "zorder"
    HILBERT = "hilbert"


def positions(forms: Sequence[pa.Array], curve: Curve) -> Words:
    """Return, shape (n,), the position of each row on the curve; NULL is above every value.

    `forms` are 2 to 63 arrays of n values that sort like the columns. O(n log n).
    """
    count = len(forms[0])
    most = max(count - 1, 1)
    bits = min(_BITS // len(forms), most.bit_length())
    points = []
    for form in forms:
        ranks = ranks_of_values(form)
        if most >= 1 << bits:
            ranks = (ranks / most * ((1 << bits) - 1)).astype(np.int64)
        points.append(ranks)
    if curve is Curve.HILBERT:
        points = _unfolded(points, bits)
    return _interleaved(points, bits)


def ranks_of_values(form: pa.Array) -> Words:
    """Return, shape (n,), how many values are smaller; NULL is above every value."""
    order = np.asarray(pc.sort_indices(form).to_numpy(), dtype=np.int64)
    known = form.take(pa.array(order[: len(form) - form.null_count]))
    starts = np.zeros(len(form), dtype=np.int64)  # where each run of equal values begins
    if len(known) > 1:
        changes = pc.not_equal(known[1:], known[:-1]).to_numpy(zero_copy_only=False)
        starts[1 : len(known)] = np.where(changes, np.arange(1, len(known)), 0)
    starts[len(known) :] = len(known)
    ranks = np.empty(len(form), dtype=np.int64)
    ranks[order] = np.maximum.accumulate(starts)
    return ranks


def _interleaved(points: Sequence[Words], bits: int) -> Words:
    """The bits of all coordinates, the highest bit of every coordinate first."""
    words = np.zeros(len(points[0]), dtype=np.int64)
    for place, coordinate in enumerate(points):
        for bit in range(bits):
            words |= ((coordinate >> bit) & 1) << (bit * len(points) + len(points) - 1 - place)
    return words


def _unfolded(points: Sequence[Words], bits: int) -> list[Words]:
    """Turn coordinates into those whose interleaved bits are the position on a Hilbert curve."""
    axes = np.stack(points)
    for bit in range(bits - 1, 0, -1):
        low = (1 << bit) - 1
        for place in range(len(axes)):
            flips = -((axes[place] >> bit) & 1)  # all ones where the bit is set
            swapped = (axes[0] ^ axes[place]) & low & ~flips
            axes[0] ^= (low & flips) | swapped
            axes[place] ^= swapped
    np.bitwise_xor.accumulate(axes, axis=0, out=axes)  # Gray code of the coordinates
    turns = np.zeros(axes.shape[1], dtype=np.int64)
    for bit in range(bits - 1, 0, -1):
        turns ^= -((axes[-1] >> bit) & 1) & ((1 << bit) - 1)
    return list(axes ^ turns)
