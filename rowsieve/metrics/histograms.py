"""Histograms: counts of values by ranges that are fixed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

BUCKETS_S: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0)
BUCKETS_ROWS: Final = (1, 2, 5, 10, 20, 50, 100, 1_000, 10_000, 100_000)
BUCKETS_BYTES: Final = (16, 64, 256, 1_024, 4_096, 16_384, 65_536, 1_048_576)


class Histogram:
    """One count per bucket, whose upper bounds are inclusive; the last is above all bounds."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...] = BUCKETS_S) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def __repr__(self) -> str:
        return f"Histogram({self.as_dict()})"

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def merge(self, other: Histogram) -> None:
        """Add the values of another histogram with these bounds."""
        self.counts = [
            mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)
        ]
        self.total += other.total

    def since(self, earlier: Histogram | None) -> Histogram:
        """Return the values that were added since a copy was made; all of them without one."""
        later = Histogram(self.bounds)
        later.merge(self)
        if earlier is not None:
            later.counts = [
                now - then for now, then in zip(later.counts, earlier.counts, strict=True)
            ]
            later.total -= earlier.total
        return later

    def cumulative(self) -> Iterator[int]:
        """Yield the number of values up to each bound, then that of all."""
        return accumulate(self.counts)

    def as_dict(self) -> dict[str, float]:
        """The number of values, their sum, and the number up to each bound."""
        names = (*map(str, self.bounds), "+Inf")
        return {
            "count": sum(self.counts),
            "sum": self.total,
            **dict(zip(names, self.cumulative(), strict=True)),
        }
