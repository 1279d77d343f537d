"""Convert runs to roaring bitmaps and back, linear in runs and bitmap bytes, never in rows.

pyroaring can add runs only with one call each, and cannot return them. To build a bitmap, numpy
lays out the runs as run containers of roaring's portable format, which is then decoded. To extract
runs: a run starts at an id whose predecessor is absent, and stops before an absent id whose
predecessor is present, so both are differences of the bitmap and a copy shifted by one.

Source: github.com/RoaringBitmap/RoaringFormatSpec, "Standard 32-bit Roaring Bitmap".
"""

from __future__ import annotations

import array

import numpy as np
import numpy.typing as npt
import pyroaring

from rowsieve.predicate.rowset.ranges import Ids

ID_LIMIT = 1 << 32
CONTAINER_ROWS = 1 << 16
_LOW = CONTAINER_ROWS - 1
_RUN_COOKIE = 12347
_NO_OFFSETS_BELOW = 4  # with fewer containers, the format omits offsets
_BLOCK_RUNS = 1 << 20  # bounds the memory of one block


def bitmap_of_runs(starts: Ids, stops: Ids) -> pyroaring.BitMap:
    """Build the bitmap of ascending runs with gaps between them, in its smallest form."""
    bitmap = pyroaring.BitMap()
    for begin in range(0, len(starts), _BLOCK_RUNS):
        block = slice(begin, begin + _BLOCK_RUNS)
        bitmap |= pyroaring.BitMap.deserialize(_run_containers(starts[block], stops[block] - 1))
    bitmap.run_optimize()
    return bitmap


def bitmap_of_ids(ids: Ids) -> pyroaring.BitMap:
    """Build the bitmap of ids in any order, preferably ascending, in its smallest form."""
    bitmap = pyroaring.BitMap(array.array("I", ids.astype(np.uint32).tobytes()))
    bitmap.run_optimize()
    return bitmap


def ids_view(bitmap: pyroaring.BitMap) -> npt.NDArray[np.uint32]:
    """Return the ids, ascending, as a view of the buffer that roaring filled."""
    return np.frombuffer(bitmap.to_array(), dtype=np.uint32)


def run_count(bitmap: pyroaring.BitMap) -> int:
    """Return the number of runs in the bitmap."""
    return int(bitmap.difference_cardinality(bitmap.shift(1)))


def runs_of_bitmap(bitmap: pyroaring.BitMap) -> tuple[Ids, Ids]:
    """Return the bitmap's runs [starts[i], stops[i])."""
    moved = bitmap.shift(1)
    starts = ids_view(bitmap - moved).astype(np.int64)
    stops = ids_view(moved - bitmap).astype(np.int64)
    if len(stops) < len(starts):  # the last possible id has no successor
        stops = np.append(stops, ID_LIMIT)
    return starts, stops


def _run_containers(starts: Ids, lasts: Ids) -> bytes:
    """Encode runs [starts[i], lasts[i]], at least one, in roaring's portable format."""
    keys, lows, highs = _cut_at_containers(starts, lasts)
    heads = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    count = len(heads)
    run_counts = np.diff(heads, append=len(keys))
    header = np.empty((count, 2), dtype="<u2")
    header[:, 0] = keys[heads]
    header[:, 1] = np.add.reduceat(highs - lows + 1, heads) - 1

    body = np.empty(count + 2 * len(keys), dtype="<u2")
    body[2 * heads + np.arange(count)] = run_counts
    at = 2 * np.arange(len(keys)) + np.repeat(np.arange(count), run_counts) + 1
    body[at] = lows
    body[at + 1] = highs - lows

    cookie = (_RUN_COOKIE | (count - 1) << 16).to_bytes(4, "little")
    flags = np.packbits(np.ones(count, dtype=np.bool_), bitorder="little").tobytes()
    offsets = b""
    if count >= _NO_OFFSETS_BELOW:
        body_start = len(cookie) + len(flags) + 4 * count + 4 * count
        offsets = (body_start + 2 * (2 * heads + np.arange(count))).astype("<u4").tobytes()
    return b"".join((cookie, flags, header.tobytes(), offsets, body.tobytes()))


def _cut_at_containers(starts: Ids, lasts: Ids) -> tuple[Ids, Ids, Ids]:
    """Split runs at container boundaries: container, first and last low half of each piece."""
    first, final = starts >> 16, lasts >> 16
    pieces = final - first + 1
    run = np.repeat(np.arange(len(starts)), pieces)
    nth = np.arange(len(run)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    keys = first[run] + nth
    lows = np.where(nth == 0, starts[run] & _LOW, 0)
    highs = np.where(keys == final[run], lasts[run] & _LOW, _LOW)
    return keys, lows, highs
