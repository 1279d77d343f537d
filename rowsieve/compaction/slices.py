"""Select small parts to merge with one another while the oldest parts of their group stay.

Merging thousands of small parts with a large one in a single pass opens all of them at once, and
writes the large part again for every call. So where many parts are newer than the oldest ones of an
overlap group, a first pass merges small ones of neighbouring age into parts with rows and
tombstones, and the last pass, which rewrites the whole group, has few inputs.

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

from rowsieve.planner.overlap import Indices, overlap_groups
from rowsieve.storage.manifest import PartTable
from rowsieve.types.keys import KeyOrder

MOST_STREAMS: Final = 64
"""Parts that are newer than the oldest ones of a group; more are merged with one another first."""

SLICE_BYTES: Final = 8 * 1024 * 1024
"""The stored bytes of a slice, which is in memory as a whole."""

FEWEST_PARTS: Final = 8
"""A slice of fewer parts does not pay."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Parts to merge with one another, newest first; `parts` are indices."""

    parts: tuple[int, ...]


def pick_slices(parts: PartTable, order: KeyOrder, target_bytes: int) -> list[Slice]:
    """Return the slices of all groups with more than `MOST_STREAMS` newer parts.

    Commits of more than half of `target_bytes` are left alone: merging them would not make fewer
    parts.
    """
    if len(parts) <= MOST_STREAMS:
        return []
    newest, oldest = parts.numbers("commit_ts_max"), parts.numbers("commit_ts_min")
    sizes = parts.numbers("data.size_bytes") + parts.numbers("deletes.size_bytes")
    most_bytes = min(SLICE_BYTES // FEWEST_PARTS, target_bytes // 2)
    found: list[Slice] = []
    for group in overlap_groups(parts.select("key.").table, order):
        members = np.array(group)
        if len(members) <= MOST_STREAMS or (newest[members] != oldest[members]).any():
            continue
        newer = members[newest[members] > newest[members].min()]
        if len(newer) > MOST_STREAMS:
            newer = newer[np.argsort(-newest[newer], kind="stable")]
            found += _slices(newer, newest[newer], sizes[newer], most_bytes)
    return found


def _slices(members: Indices, commits: Indices, sizes: Indices, most_bytes: int) -> Iterator[Slice]:
    """Cut parts, newest first, into slices of commits of `most_bytes`; never within a commit."""
    starts = np.flatnonzero(np.diff(commits, prepend=commits[0] + 1))
    totals = np.add.reduceat(sizes, starts)
    stops = np.append(starts[1:], len(members))
    first, total = 0, 0
    for start, stop, size_bytes in zip(
        starts.tolist(), stops.tolist(), totals.tolist(), strict=True
    ):
        if total + size_bytes > SLICE_BYTES:
            yield from _slice(members[first:start])
            first, total = start, 0
        if size_bytes > most_bytes:
            yield from _slice(members[first:start])
            first, total = stop, 0
        else:
            total += size_bytes
    yield from _slice(members[first:])


def _slice(members: Indices) -> Iterator[Slice]:
    if len(members) >= FEWEST_PARTS:
        yield Slice(tuple(members.tolist()))
