"""Parses many Thrift structs of few shapes at once: a footer has one struct per column chunk.

The first struct is walked byte by byte. Its *shape* is the sequence of field headers, list heads
and value kinds, and most other structs have the same: only their numbers and texts differ. So a
shape is applied, by numpy, to every place where a struct of this shape may begin. Soundness: a
guessed place counts only if the walk from struct to struct arrives at it, so each struct begins
where the one before it ends; a struct of another shape is walked byte by byte in its turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rowsieve.parquet.foreign_footer.struct_lanes import Lanes, Numbers, Windows
from rowsieve.parquet.foreign_footer.struct_shapes import Path, Shape
from rowsieve.parquet.thrift import MalformedThrift

_ABSENT: Final = -1
_MAX_GUESSED: Final = 64  # shapes whose places are guessed; each costs a pass over the footer
_WALKED_BELOW_BYTES: Final = 1_500  # structs in so few are walked: numpy has a cost per step
_LANES_AT_ONCE: Final = 8_192  # so that their bytes stay in the processor's cache


@dataclass(frozen=True, slots=True)
class Structs:
    """Fields of n structs, by path. `stops`, shape (n,), is where a value ends; -1 if absent.

    `values`, shape (n,): a number; the number of items of a list; the start of bytes or a struct.
    `starts`, `ends`: where the structs lie.
    """

    starts: Numbers
    ends: Numbers
    values: Mapping[Path, Numbers]
    stops: Mapping[Path, Numbers]

    def __len__(self) -> int:
        return len(self.starts)


class ManyStructs:
    """Finds the structs in `data` on a walk from one to the next.

    `wanted`: the kind of each wanted field, by path; a field of another kind counts as absent, as
    readers skip it.
    """

    def __init__(self, data: bytes, wanted: Mapping[Path, int]) -> None:
        self._data = data
        self._windows = Windows(data)
        self._wanted = wanted
        self._slots = {path: slot for slot, path in enumerate(wanted)}
        self._shapes = 0
        self._parts: list[Lanes | _Walked] = []
        self._known: dict[int, int] = {}  # the row of a struct by its start
        self._ends: list[int] = []
        self._runs: list[int] = []  # by row: where the rows end that follow each other in the data

    def walk(self, position: int, count: int, rows: list[int]) -> int:
        """Append the rows of `count` structs from `position` on; returns where the last ends."""
        if count > len(self._data) - position:
            raise MalformedThrift(f"a list of {count} values exceeds the data")
        while count:
            row = self._known.get(position)
            if row is None:
                row = self._find(position)
            stop = min(row + count, self._runs[row])
            rows.extend(range(row, stop))
            count -= stop - row
            position = self._ends[stop - 1]
        return position

    def structs(self, rows: Sequence[int]) -> Structs:
        """The structs in the order of the walk."""
        taken = np.array(rows, np.int64)
        in_order = len(rows) == len(self._ends) and rows == list(range(len(rows)))

        def joined(arrays: list[Numbers]) -> Numbers:
            if in_order and len(arrays) == 1:
                return arrays[0]
            return np.concatenate([np.zeros(0, np.int64), *arrays])[taken]

        parts = self._parts
        absent = np.full(len(rows), _ABSENT, np.int64)
        values, stops = dict.fromkeys(self._slots, absent), dict.fromkeys(self._slots, absent)
        for path, slot in self._slots.items():
            if any(each.has(slot) for each in parts):
                values[path] = joined([each.values_of(slot) for each in parts])
                stops[path] = joined([each.stops_of(slot) for each in parts])
        starts, ends = joined([each.starts for each in parts]), joined([each.at for each in parts])
        return Structs(starts, ends, values, stops)

    def _find(self, position: int) -> int:
        rest = len(self._data) - position
        is_alone = self._shapes >= _MAX_GUESSED or rest < _WALKED_BELOW_BYTES
        shape = Shape(self._data, self._wanted, self._slots, is_alone=is_alone)
        end = shape.add_struct(position, (), 0)
        if end > len(self._data):
            raise MalformedThrift("a struct cannot be read")
        if shape.is_alone:
            return self._add_walked(position, end, shape)
        self._shapes += 1
        begins = self._guessed(position)
        for first in range(0, len(begins), _LANES_AT_ONCE):
            lanes = Lanes(begins[first : first + _LANES_AT_ONCE], len(self._data))
            lanes.read(self._windows, shape)
            self._add_lanes(lanes)
        if position not in self._known:
            raise MalformedThrift("a struct cannot be read")
        return self._known[position]

    def _guessed(self, position: int) -> Numbers:
        """Where structs may begin as at `position`: after the end of one, or the head of a list."""
        data = np.frombuffer(self._data, np.uint8)[position:]
        begins = np.flatnonzero(data == data[0])
        before = data[begins - 1]  # of the first one the last byte of all, which is not used
        after_other = before == 0
        if position:
            after_other |= before == self._data[position - 1]
        after_other[0] = True
        return np.asarray(begins[after_other] + position, np.int64)

    def _add_lanes(self, lanes: Lanes) -> None:
        """Add the structs of one shape."""
        if not len(lanes.starts):
            return
        first = len(self._ends)
        self._ends += lanes.at.tolist()
        self._runs += (lanes.runs() + first).tolist()
        self._parts.append(lanes)
        new = zip(lanes.starts.tolist(), range(first, len(self._ends)), strict=True)
        if len(lanes.starts) > len(self._known):
            self._known = dict(new) | self._known
        else:
            for start, row in new:
                self._known.setdefault(start, row)

    def _add_walked(self, position: int, end: int, shape: Shape) -> int:
        """Add the one struct that has shown the shape."""
        if not self._parts or not isinstance(self._parts[-1], _Walked):
            self._parts.append(_Walked(len(self._slots)))
        last = self._parts[-1]
        assert isinstance(last, _Walked)
        last.add(position, end, shape)
        row = self._known[position] = len(self._ends)
        self._ends.append(end)
        self._runs.append(row + 1)
        return row


class _Walked:
    """Structs that were read byte by byte, because there are few; each is a row of each table."""

    def __init__(self, slot_count: int) -> None:
        self._slots = range(slot_count)
        self._edges: list[tuple[int, int]] = []
        self._rows: list[tuple[list[int], list[int]]] = []
        self._present: list[Mapping[int, int]] = []
        self._tables: Numbers | None = None

    def add(self, start: int, end: int, shape: Shape) -> None:
        """Append a struct."""
        self._edges.append((start, end))
        both = (shape.values, shape.stops)
        values, stops = ([each.get(slot, -1) for slot in self._slots] for each in both)
        self._rows.append((values, stops))
        self._present.append(shape.stops)

    @property
    def starts(self) -> Numbers:
        """Where the structs begin."""
        return np.array([start for start, _ in self._edges], np.int64)

    @property
    def at(self) -> Numbers:
        """Where they end."""
        return np.array([end for _, end in self._edges], np.int64)

    def has(self, slot: int) -> bool:
        """Return whether any struct has a value in a slot."""
        return any(slot in stops for stops in self._present)

    def values_of(self, slot: int) -> Numbers:
        """The values of a slot; -1 where it is absent."""
        return self._table()[:, 0, slot]

    def stops_of(self, slot: int) -> Numbers:
        """Where the values of a slot end; -1 where it is absent."""
        return self._table()[:, 1, slot]

    def _table(self) -> Numbers:
        """(structs, 2, slots), made once all structs are there."""
        if self._tables is None or len(self._tables) < len(self._rows):
            self._tables = np.array(self._rows, np.int64)
        return self._tables
