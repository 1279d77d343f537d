"""Select parts to merge with one another while the oldest parts of their group stay.

Merging thousands of small parts with a large one in a single pass opens all of them at once, and
writes the large part again for every call. So where many parts are newer than the oldest ones of an
overlap group, a first pass merges parts of neighbouring age into parts with rows and tombstones,
and the last pass, which rewrites the whole group, has few inputs.

Soundness (invariant 11): a slice has consecutive parts of a group in the order of their commits,
and all parts of a commit or none. So no other part of the group was committed between its parts,
and its output can have the newest commit_ts of its inputs. A commit is never cut: parts of one
commit hold different keys, but older parts of the slice may share keys with its other parts. A
slice excludes the oldest commit of the group, and keeps its tombstones (trap T24).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from rowsieve.planner.overlap import Indices
from rowsieve.storage.manifests.manifest import PartTable

MAX_COMMITS: Final = 64
"""Commits newer than the oldest one of a group; more are merged with one another first."""

SLICE_BYTES: Final = 8 * 1024 * 1024
"""The stored bytes of a slice that is in memory as a whole; larger ones are streamed."""

STREAMS_AT_ONCE: Final = 32
"""A slice with at least this many commits ends at `SLICE_BYTES`."""

MIN_COMMITS: Final = 8
"""A slice of fewer commits does not pay."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Parts to merge with one another, newest first; `parts` are indices.

    The output is cut where the parts `cut_at` begin, which are not rewritten.
    """

    parts: tuple[int, ...]
    size_bytes: int
    cut_at: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Ages:
    """The properties of all parts that decide on slices: (n,) each."""

    newest: Indices
    oldest: Indices
    sizes: Indices

    @classmethod
    def of(cls, parts: PartTable) -> Ages:
        """Read them from the manifest."""
        return cls(
            parts.numbers("commit_ts_max"),
            parts.numbers("commit_ts_min"),
            parts.numbers("data.size_bytes") + parts.numbers("deletes.size_bytes"),
        )

    def newer_parts(self, group: Indices) -> Indices:
        """The parts of a group without its oldest commit, newest first; none if commits mix."""
        ranked = self.newest_first(group)
        return np.asarray(ranked[self.newest[ranked] > self.newest[group].min()])

    def newest_first(self, group: Indices) -> Indices:
        """The parts of a group, newest first; none if commits mix, or if it has one part."""
        newest = self.newest[group]
        if len(group) < 2 or (newest != self.oldest[group]).any():
            return group[:0]
        return np.asarray(group[np.argsort(-newest, kind="stable")])

    def commit_count(self, parts: Indices) -> int:
        """The number of commits that these parts are from."""
        return len(np.unique(self.newest[parts]))

    def slices(
        self, newer: Indices, most_bytes: int, fewest: int, ratio: int | None = None
    ) -> Iterator[Slice]:
        """Cut parts, newest first, into slices of at least `fewest` commits, never within one.

        Commits of more than `most_bytes` are not in slices. With `ratio`, a slice ends before a
        commit that has more than `ratio` times the bytes of the slice so far.
        """
        commits = self.newest[newer]
        starts = np.flatnonzero(np.diff(commits, prepend=commits[:1] + 1))
        totals = np.add.reduceat(self.sizes[newer], starts).tolist()
        edges = [*starts.tolist(), len(newer)]
        first, total = 0, 0  # of the open slice: its first commit, and its bytes
        for number, size_bytes in enumerate([*totals, 0]):
            is_full = total + size_bytes > SLICE_BYTES and number - first >= STREAMS_AT_ONCE
            is_larger = ratio is not None and 0 < ratio * total < size_bytes
            if is_full or is_larger or size_bytes > most_bytes or number == len(totals):
                if number - first >= fewest:
                    parts = newer[edges[first] : edges[number]]
                    yield Slice(tuple(parts.tolist()), total)
                first, total = number, 0
            if size_bytes > most_bytes:
                first = number + 1
            else:
                total += size_bytes
