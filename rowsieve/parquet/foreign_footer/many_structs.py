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
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from rowsieve.parquet.thrift import MalformedThrift, field_number, zigzag
from rowsieve.varints import decode_varint

Numbers: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Path: TypeAlias = tuple[int, ...]
"""The field numbers from the struct to a nested field."""

INTEGERS: Final = (4, 5, 6)
BINARY, LIST, STRUCT = 8, 9, 12
_TRUE, _FALSE, _BYTE, _DOUBLE, _SET = 1, 2, 3, 7, 10
_LITERAL, _VARINT, _BINARY, _SKIP, _START, _STOP = range(6)
_NOTHING: Final = -1
_ABSENT: Final = -1
_MAX_DEEP: Final = 16
_MAX_GUESSED: Final = 64  # shapes whose places are guessed; each costs a pass over the footer
_WALKED_BELOW_BYTES: Final = 1_500  # structs in so few are walked: numpy has a cost per step
_PADDING: Final = 32  # zero bytes after the data, so that lanes that left it read something
_LONGEST_VARINT: Final = 10
_LONGEST_SHAPE: Final = 4_096
_PASSED: Final = np.zeros(0, np.uint64)


class _Token(NamedTuple):
    """A step of a shape: what is read, its literal bytes or their number, and its slot."""

    step: int
    literal: bytes = b""
    size: int = 0
    slot: int = _NOTHING


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
        self._padded = np.frombuffer(data + bytes(_PADDING), np.uint8)
        self._wanted = wanted
        self._slots = {path: slot for slot, path in enumerate(wanted)}
        self._parts: list[_Lanes | _Walked] = []
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
        shape = _Shape(
            self._data, self._wanted, self._slots,
            is_alone=len(self._parts) >= _MAX_GUESSED or rest < _WALKED_BELOW_BYTES,
        )  # fmt: skip
        end = shape.add_struct(position, (), 0)
        if end > len(self._data):
            raise MalformedThrift("a struct cannot be read")
        if shape.is_alone:
            return self._add_walked(position, end, shape)
        begins = self._padded[position : len(self._data)] == self._data[position]
        lanes = _Lanes(np.flatnonzero(begins) + position, len(self._data))
        for token in shape.tokens:
            lanes.take(self._padded, token)
        lanes.drop_failed()
        if not len(lanes.starts) or lanes.starts[0] != position:
            raise MalformedThrift("a struct cannot be read")
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
        return self._known[position]

    def _add_walked(self, position: int, end: int, shape: _Shape) -> int:
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

    def add(self, start: int, end: int, shape: _Shape) -> None:
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


class _Lanes:
    """Places that may have a struct of one shape, all read by the same steps; slots by number."""

    def __init__(self, starts: Numbers, size: int) -> None:
        self.starts = starts
        self.at = starts.copy()
        self._good = np.ones(len(starts), np.bool_)
        self._outside = size + 1
        self.values: dict[int, Numbers] = {}
        self.stops: dict[int, Numbers] = {}

    def has(self, slot: int) -> bool:
        """Return whether this shape has a value in a slot."""
        return slot in self.stops

    def values_of(self, slot: int) -> Numbers:
        """The values of a slot; -1 if this shape lacks it."""
        return self.values[slot] if slot in self.values else self._absent()

    def stops_of(self, slot: int) -> Numbers:
        """Where the values of a slot end; -1 if this shape lacks it."""
        return self.stops[slot] if slot in self.stops else self._absent()

    def _absent(self) -> Numbers:
        return np.full(len(self.starts), -1, np.int64)

    def runs(self) -> Numbers:
        """(n,) by lane: the number after the last of the lanes that follow without a gap."""
        last = np.append(np.flatnonzero(self.at[:-1] != self.starts[1:]), len(self.at) - 1)
        lanes = np.arange(len(self.at))
        return np.asarray(last[np.searchsorted(last, lanes)] + 1, np.int64)

    def take(self, data: Bytes, token: _Token) -> None:
        """Read one step in every lane."""
        if token.step == _LITERAL:
            for byte in token.literal:
                self._good &= data.take(self.at) == byte
                self.at += 1
            self._stay_near()
            if np.count_nonzero(self._good) < 3 * len(self._good) // 4:
                self.drop_failed()
        elif token.step == _VARINT and token.slot < 0:
            self._varint(data, is_read=False)
        elif token.step == _VARINT:
            value = self._varint(data)
            self._set(token.slot, (value >> np.uint64(1)).view(np.int64)
                      ^ -(value & np.uint64(1)).view(np.int64))  # fmt: skip
        elif token.step == _BINARY:
            length = np.minimum(self._varint(data), np.uint64(self._outside)).view(np.int64)
            start = self.at.copy()
            self.at += length
            self._stay_near()
            if token.slot >= 0:
                self._set(token.slot, start)
        elif token.step == _SKIP:
            self.at += token.size
            self._stay_near()
        elif token.step == _START:
            self.values[token.slot] = self.at.copy() if token.size < 0 else np.full(
                len(self.at), token.size, np.int64)  # fmt: skip
        else:
            self.stops[token.slot] = self.at.copy()

    def drop_failed(self) -> None:
        """Forget the lanes that do not have a struct of this shape, or left the data."""
        self._good &= self.at < self._outside
        if not self._good.all():
            good = np.flatnonzero(self._good)
            self.starts, self.at, self._good = (
                self.starts[good],
                self.at[good],
                self._good[good],
            )
            self.values = {slot: each[good] for slot, each in self.values.items()}
            self.stops = {slot: each[good] for slot, each in self.stops.items()}

    def _set(self, slot: int, values: Numbers) -> None:
        self.values[slot] = values
        self.stops[slot] = self.at.copy()

    def _stay_near(self) -> None:
        """Stop lanes that left the data right after its end: no later step brings them back."""
        np.minimum(self.at, self._outside, out=self.at)

    def _varint(self, data: Bytes, *, is_read: bool = True) -> npt.NDArray[np.uint64]:
        """Read a varint in every lane, or pass it; few have more than three bytes."""
        at = self.at
        byte = data.take(at)
        at += 1
        value = (byte & 127).astype(np.uint64) if is_read else _PASSED
        more = np.flatnonzero(byte > 127)
        for group in range(1, _LONGEST_VARINT):
            if not len(more):
                break
            shift = np.uint64(7 * group)
            if len(more) == len(at):
                byte = data.take(at)
                at += 1
                if is_read:
                    value |= (byte & 127).astype(np.uint64) << shift
                more = np.flatnonzero(byte > 127)
            else:
                byte = data.take(at[more])
                at[more] += 1
                if is_read:
                    value[more] |= (byte & 127).astype(np.uint64) << shift
                more = more[byte > 127]
        self._good[more] = False
        self._stay_near()
        return value


class _Shape:
    """The steps that read one struct, known byte by byte, and the slots of this struct.

    `is_alone`: no other struct is read by the steps, so that there are none.
    """

    def __init__(
        self,
        data: bytes,
        wanted: Mapping[Path, int],
        slots: Mapping[Path, int],
        *,
        is_alone: bool = False,
    ) -> None:
        self.is_alone = is_alone
        self._data = data
        self._wanted = wanted
        self._slots = slots
        self.tokens: list[_Token] = []
        self.values: dict[int, int] = {}
        self.stops: dict[int, int] = {}

    def add_struct(self, position: int, path: Path, depth: int) -> int:
        """Add the steps of the struct at `position`; returns its end."""
        if depth > _MAX_DEEP or len(self.tokens) > _LONGEST_SHAPE:
            raise MalformedThrift("a struct has too many fields or levels")
        data, number = self._data, 0
        try:
            while head := data[position]:
                start, kind = position, head & 15
                position += 1
                number, position = field_number(data, position, number, head)
                if not self.is_alone:
                    self._literal(data[start:position])
                position = self._add_value(position, kind, (*path, number), depth)
        except IndexError as error:
            raise MalformedThrift("the bytes end within a struct") from error
        except OverflowError as error:
            raise MalformedThrift(str(error)) from error
        self._literal(b"\0")
        return position + 1

    def _add_value(self, position: int, kind: int, path: Path, depth: int) -> int:
        slot = self._slots[path] if self._wanted.get(path) == kind else _NOTHING
        if kind in INTEGERS:
            self.tokens.append(_Token(_VARINT, slot=slot))
            value, position = decode_varint(self._data, position)
            return self._set(slot, zigzag(value), position)
        match kind:
            case 1 | 2:  # in the header of the field
                return position
            case 3 | 7:
                size = 1 if kind == _BYTE else 8
                self.tokens.append(_Token(_SKIP, size=size))
                return position + size
            case 8:
                self.tokens.append(_Token(_BINARY, slot=slot))
                length, position = decode_varint(self._data, position)
                return self._set(slot, position, position + length)
            case 9 | 10:
                return self._add_list(position, slot, path, depth)
            case 12:
                if slot >= 0:
                    self.tokens.append(_Token(_START, size=-1, slot=slot))
                start, position = position, self.add_struct(position, path, depth + 1)
                if slot >= 0:
                    self.tokens.append(_Token(_STOP, slot=slot))
                return self._set(slot, start, position)
        raise MalformedThrift(f"a field of the unexpected kind {kind}")

    def _add_list(self, position: int, slot: int, path: Path, depth: int) -> int:
        start, head = position, self._data[position]
        count, kind, position = head >> 4, head & 15, position + 1
        if count == 15:
            count, position = decode_varint(self._data, position)
        self._literal(self._data[start:position])
        if count > min(_LONGEST_SHAPE, len(self._data) - position):
            raise MalformedThrift(f"a list of {count} values within a column chunk")
        if slot >= 0:
            self.tokens.append(_Token(_START, size=count, slot=slot))
        for _ in range(count):
            if kind in (_TRUE, _FALSE):
                self.tokens.append(_Token(_SKIP, size=1))
                position += 1
            else:  # no field number: items have no slots
                position = self._add_value(position, kind, (*path, 0), depth + 1)
        if slot >= 0:
            self.tokens.append(_Token(_STOP, slot=slot))
        return self._set(slot, count, position)

    def _set(self, slot: int, value: int, stop: int) -> int:
        if slot >= 0:
            self.values[slot] = value
            self.stops[slot] = stop
        return stop

    def _literal(self, data: bytes) -> None:
        """Add bytes that every struct of this shape has here, if possible to the last step."""
        if self.tokens and self.tokens[-1].step == _LITERAL:
            data = self.tokens.pop().literal + data
        if len(data) > _PADDING // 2:
            self.tokens.append(_Token(_LITERAL, data[: _PADDING // 2]))
            data = data[_PADDING // 2 :]
        self.tokens.append(_Token(_LITERAL, data))
