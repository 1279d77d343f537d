"""The shape of a Thrift struct: the steps that read structs with the same fields in one order.

Soundness: a shape is made of one struct that was walked byte by byte. A struct has the shape if it
has the same bytes where the steps are literal; only numbers and texts may differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from rowsieve.parquet.thrift import MalformedThrift, field_number, zigzag
from rowsieve.varints import decode_varint

Path: TypeAlias = tuple[int, ...]
"""The field numbers from the struct to a nested field."""

INTEGERS: Final = (4, 5, 6)
BINARY, LIST, STRUCT = 8, 9, 12
LITERAL, VARINT, TEXT, SKIP, START, STOP = range(6)
LONGEST_LITERAL: Final = 16  # bytes of a step
_TRUE, _FALSE, _BYTE = 1, 2, 3
_NOTHING: Final = -1
_MAX_DEEP: Final = 16
_LONGEST_SHAPE: Final = 4_096


class Token(NamedTuple):
    """A step of a shape: what is read, where the first struct has it in the data, and its slot.

    `size`: its literal bytes, or those of its number or of the length of its text, which come
    first. `items`: how many a list has that starts here; -1 for a struct.
    """

    step: int
    start: int
    size: int
    stop: int
    slot: int = _NOTHING
    items: int = -1


class Shape:
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
        self.tokens: list[Token] = []
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
                    self._literal(start, data[start:position])
                position = self._add_value(position, kind, (*path, number), depth)
        except IndexError as error:
            raise MalformedThrift("the bytes end within a struct") from error
        except OverflowError as error:
            raise MalformedThrift(str(error)) from error
        self._literal(position, b"\0")
        return position + 1

    def _add_value(self, position: int, kind: int, path: Path, depth: int) -> int:
        slot = self._slots[path] if self._wanted.get(path) == kind else _NOTHING
        if kind in INTEGERS:
            start = position
            value, position = decode_varint(self._data, position)
            self.tokens.append(Token(VARINT, start, position - start, position, slot))
            return self._set(slot, zigzag(value), position)
        match kind:
            case 1 | 2:  # in the header of the field
                return position
            case 3 | 7:
                size = 1 if kind == _BYTE else 8
                self.tokens.append(Token(SKIP, position, 0, position + size))
                return position + size
            case 8:
                length, start = decode_varint(self._data, position)
                stop = start + length
                self.tokens.append(Token(TEXT, position, start - position, stop, slot))
                return self._set(slot, start, stop)
            case 9 | 10:
                return self._add_list(position, slot, path, depth)
            case 12:
                if slot >= 0:
                    self.tokens.append(Token(START, position, 0, position, slot))
                start, position = position, self.add_struct(position, path, depth + 1)
                if slot >= 0:
                    self.tokens.append(Token(STOP, position, 0, position, slot))
                return self._set(slot, start, position)
        raise MalformedThrift(f"a field of the unexpected kind {kind}")

    def _add_list(self, position: int, slot: int, path: Path, depth: int) -> int:
        start, head = position, self._data[position]
        count, kind, position = head >> 4, head & 15, position + 1
        if count == 15:
            count, position = decode_varint(self._data, position)
        self._literal(start, self._data[start:position])
        if count > min(_LONGEST_SHAPE, len(self._data) - position):
            raise MalformedThrift(f"a list of {count} values within a column chunk")
        if slot >= 0:
            self.tokens.append(Token(START, position, 0, position, slot, count))
        for _ in range(count):
            if kind in (_TRUE, _FALSE):
                self.tokens.append(Token(SKIP, position, 0, position + 1))
                position += 1
            else:  # no field number: items have no slots
                position = self._add_value(position, kind, (*path, 0), depth + 1)
        if slot >= 0:
            self.tokens.append(Token(STOP, position, 0, position, slot))
        return self._set(slot, count, position)

    def _set(self, slot: int, value: int, stop: int) -> int:
        if slot >= 0:
            self.values[slot] = value
            self.stops[slot] = stop
        return stop

    def _literal(self, start: int, data: bytes) -> None:
        """Add bytes that every struct of this shape has here, if possible to the last step."""
        stop = start + len(data)
        last = self.tokens[-1] if self.tokens else None
        if last is not None and last.step == LITERAL and last.stop == start:
            start = self.tokens.pop().start
        while stop - start > LONGEST_LITERAL:
            cut = start + LONGEST_LITERAL
            self.tokens.append(Token(LITERAL, start, LONGEST_LITERAL, cut))
            start = cut
        self.tokens.append(Token(LITERAL, start, stop - start, stop))
