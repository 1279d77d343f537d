"""The extents of geometries in well-known binary (WKB): least and greatest x and y.

Points, lines, polygons and collections of them, in ISO's form and in PostGIS's with flags (EWKB),
with z and m, in both byte orders. An empty geometry has no extent. Soundness: bytes that are not
complete WKB, and geometries with an infinite coordinate, have no extent either, which means
"unknown". Source: OGC 06-103r4, section 8; PostGIS, "EWKB".
"""

from __future__ import annotations

import struct
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SIDES: Final = ("st_xmin", "st_ymin", "st_xmax", "st_ymax")
"""The functions of the four columns of `extents`, as PostGIS and DuckDB call them."""

_DEEPEST: Final = 32  # levels of collections
_MAX_STEPS: Final = 256  # parts and rings of one geometry that are read together with others'
_POINTS: Final = 1 << 17  # that are decoded at a time
_POINT, _LINE, _POLYGON, _MULTI, _COLLECTION = 1, 2, 3, (4, 5, 6), 7
_FLAG_Z, _FLAG_M, _FLAG_SRID = 0x80000000, 0x40000000, 0x20000000

_Integers: TypeAlias = npt.NDArray[np.int64]
_Mask: TypeAlias = npt.NDArray[np.bool_]
Extents: TypeAlias = npt.NDArray[np.float64]
"""One row per geometry, one column per side; NaN where there is no extent."""


def extents(values: pa.Array) -> Extents:
    """Return the extents of an array of binary; a NULL has none.

    The parts and rings of all geometries are read together, step by step; collections and unusual
    geometries are read one by one.
    """
    sides = np.full((len(values), 4), np.nan)
    if not len(values):
        return sides
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset :][: len(values) + 1]
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    starts, ends = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
    valid = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
    rows = np.flatnonzero(valid)
    if not len(rows):
        return sides
    parsed = _Steps(data, starts[rows], ends[rows])
    sides[rows[parsed.read]] = parsed.extents()[parsed.read]
    for row in rows[~parsed.read].tolist():
        side = _extent(bytes(data[starts[row] : ends[row]]))
        if side is not None:
            sides[row] = side
    return sides


def side_of(values: pa.Array, side: str) -> pa.Array:
    """Return one side of the extents, such as `st_xmin`; NULL where there is none."""
    column = extents(values)[:, SIDES.index(side)]
    return pa.array(column, pa.float64(), mask=np.isnan(column))


class _Steps:
    """Reads one part or ring of every geometry at a time; `read`: the complete geometries."""

    def __init__(self, data: npt.NDArray[np.uint8], starts: _Integers, ends: _Integers) -> None:
        self._data = np.concatenate([data, np.zeros(32, np.uint8)])
        self._place, self._ends = starts.copy(), ends
        count = len(starts)
        self._parts, self._rings = np.ones(count, np.int64), np.zeros(count, np.int64)
        self._dims, self._big = np.full(count, 2), np.zeros(count, bool)
        self._odd = np.zeros(count, bool)
        self._runs: list[tuple[_Integers, _Integers, _Integers, _Integers, _Mask]] = []
        for step in range(_MAX_STEPS):
            active = ~self._odd & ((self._parts > 0) | (self._rings > 0))
            if not active.any():
                break
            ring = active & (self._rings > 0)
            if ring.any():
                rows = np.flatnonzero(ring)
                self._rings[rows] -= 1
                self._run(rows, self._count(rows))
            if (other := np.flatnonzero(active & ~ring)).size:
                self._header(other, first=step == 0)
        whole = (self._parts == 0) & (self._rings == 0) & (self._place == self._ends)
        self.read = whole & ~self._odd

    def _header(self, rows: _Integers, *, first: bool) -> None:
        order = self._data[np.minimum(self._place[rows], len(self._data) - 1)]
        self._big[rows] = order == 0
        self._place[rows] += 1
        code = self._count(rows)
        with_srid = (code & _FLAG_SRID) != 0
        self._place[rows[with_srid]] += 4
        more, kind = np.divmod(code & 0x1FFFFFFF, 1000)
        flags = ((code & _FLAG_Z) != 0).astype(np.int64) + ((code & _FLAG_M) != 0)
        self._dims[rows] = 2 + flags + np.where(more == 3, 2, more > 0)
        multi = np.isin(kind, _MULTI)
        odd = (order > 1) | (more > 3) | ((more > 0) & (flags > 0)) | (kind < 1) | (kind > 6)
        if not first:
            odd |= multi
        self._odd[rows[odd]] = True
        rows, kind = rows[~odd], kind[~odd]
        self._parts[rows] -= 1
        self._run(points := rows[kind == _POINT], np.ones(len(points), np.int64))
        self._run(lines := rows[kind == _LINE], self._count(lines))
        polygons, many = rows[kind == _POLYGON], rows[np.isin(kind, _MULTI)]
        self._rings[polygons] = self._count(polygons)
        self._parts[many] = self._count(many)

    def _count(self, rows: _Integers) -> _Integers:
        """Read four bytes as a number; `_WkbReader` reads a geometry that ends before."""
        place = self._place[rows]
        beyond = place + 4 > self._ends[rows]
        self._odd[rows[beyond]] = True
        four = self._data[np.where(beyond, 0, place)[:, None] + np.arange(4)]
        numbers = np.ascontiguousarray(four).view("<u4").reshape(len(rows))
        self._place[rows] += 4
        counts = np.where(self._big[rows], numbers.byteswap(), numbers).astype(np.int64)
        return np.where(beyond, 0, counts)

    def _run(self, rows: _Integers, counts: _Integers) -> None:
        """Record a run of points that begins at each row's current position."""
        size = 8 * self._dims[rows] * counts
        beyond = self._place[rows] + size > self._ends[rows]
        self._odd[rows[beyond]] = True
        fine, counts_of_fine = rows[~beyond], counts[~beyond]
        self._runs.append(
            (fine, self._place[fine], counts_of_fine, self._dims[fine], self._big[fine])
        )
        self._place[fine] += size[~beyond]

    def extents(self) -> Extents:
        """Return the extents; undefined for rows that were not read."""
        low = np.full((len(self._ends), 2), np.inf)
        high, bad = -low, np.zeros(len(self._ends), bool)
        joined = [np.concatenate(column) for column in zip(*self._runs, strict=True)]
        owners, places, counts, dims, big = joined
        owner, step = np.repeat(owners, counts), _within(counts)
        at = np.repeat(places, counts) + step * np.repeat(8 * dims, counts)
        swapped = np.repeat(big, counts)
        for start in range(0, len(at), _POINTS):
            cut = slice(start, start + _POINTS)
            raw = np.ascontiguousarray(self._data[at[cut, None] + np.arange(16)]).view("<f8")
            pairs = np.where(swapped[cut, None], raw.byteswap(), raw)
            known = ~np.isnan(pairs).all(axis=1)  # an empty point is NaN twice
            np.logical_or.at(bad, owner[cut], known & ~np.isfinite(pairs).all(axis=1))
            np.minimum.at(low, owner[cut][known], pairs[known])
            np.maximum.at(high, owner[cut][known], pairs[known])
        bad |= np.isinf(low).any(axis=1)
        return np.where(bad[:, None], np.nan, np.hstack([low, high]))


def _within(counts: _Integers) -> _Integers:
    """Count from 0 within each run."""
    before = np.cumsum(counts) - counts
    positions: _Integers = np.arange(int(counts.sum())) - np.repeat(before, counts)
    return positions


class _MalformedError(Exception):
    """Bytes that are not WKB."""


def _extent(data: bytes) -> Any:
    """Return the four sides of one geometry; None without an extent."""
    reader = _WkbReader(data)
    try:
        reader.geometry(0)
    except _MalformedError:
        return None
    if reader.place != len(data) or not reader.runs:
        return None
    pairs = np.concatenate(reader.runs)
    pairs = pairs[~np.isnan(pairs).all(axis=1)]
    if not len(pairs) or not np.isfinite(pairs).all():
        return None
    return np.concatenate([pairs.min(axis=0), pairs.max(axis=0)])


class _WkbReader:
    """Reads one geometry; `runs` are its pairs of x and y."""

    def __init__(self, data: bytes) -> None:
        self._data, self.place = data, 0
        self.runs: list[Extents] = []

    def geometry(self, depth: int) -> None:
        """Read a geometry and those inside it."""
        if depth > _DEEPEST or self.place >= len(self._data) or self._data[self.place] > 1:
            raise _MalformedError
        mark = "<" if self._data[self.place] else ">"
        self.place += 1
        kind, dims = self._kind(mark)
        if kind == _POINT:
            self._run(mark, dims, 1)
        elif kind == _LINE:
            self._run(mark, dims, self._count(mark))
        elif kind == _POLYGON:
            for _ in range(self._count(mark)):
                self._run(mark, dims, self._count(mark))
        else:
            for _ in range(self._count(mark)):
                self.geometry(depth + 1)

    def _kind(self, mark: str) -> tuple[int, int]:
        code = self._count(mark)
        if code & _FLAG_SRID:
            self._count(mark)
        flags = bool(code & _FLAG_Z) + bool(code & _FLAG_M)
        more, kind = divmod(code & 0x1FFFFFFF, 1000)
        if more > 3 or not _POINT <= kind <= _COLLECTION or (more and flags):
            raise _MalformedError
        return kind, 2 + flags + (2 if more == 3 else int(more > 0))

    def _count(self, mark: str) -> int:
        if self.place + 4 > len(self._data):
            raise _MalformedError
        count: int = struct.unpack_from(f"{mark}I", self._data, self.place)[0]
        self.place += 4
        return count

    def _run(self, mark: str, dims: int, count: int) -> None:
        size = 8 * dims * count
        if self.place + size > len(self._data):
            raise _MalformedError
        numbers = np.frombuffer(self._data, f"{mark}f8", dims * count, self.place)
        self.runs.append(numbers.reshape(count, dims)[:, :2].astype(np.float64))
        self.place += size
