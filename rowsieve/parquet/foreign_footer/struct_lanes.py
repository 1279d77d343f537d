"""Places of Thrift structs that are read at once, by the steps of one shape.

Soundness: a lane whose bytes are not a struct of the shape fails and is dropped. Most structs of a
shape have numbers and texts of the same lengths, so that many steps are compared at once; from the
first step on that has another length in some lane, it is read by itself.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from rowsieve.parquet.foreign_footer.struct_shapes import (
    LITERAL,
    SKIP,
    START,
    STOP,
    TEXT,
    VARINT,
    Shape,
    Token,
)

Numbers: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Words: TypeAlias = npt.NDArray[np.uint64]

_WINDOW: Final = 64  # bytes that are compared at once
_PADDING: Final = _WINDOW + 16  # zero bytes after the data, for lanes that left it
_LONGEST_VARINT: Final = 10
_PASSED: Final = np.zeros(0, np.uint64)
_NUMBERS: Final = np.array([(byte >> 1) ^ -(byte & 1) for byte in range(256)], np.int64)
"""Signed numbers of one byte."""


class Windows:
    """All runs of bytes of the data, which may begin anywhere; zero after its end."""

    def __init__(self, data: bytes) -> None:
        self.size = len(data)
        self.bytes: Bytes = np.frombuffer(data + bytes(_PADDING), np.uint8)
        count = len(self.bytes) - _WINDOW + 1
        self._all = np.ndarray((count,), f"V{_WINDOW}", self.bytes, strides=(1,))
        self._words = np.ndarray((count,), "<u8", self.bytes, strides=(1,))

    def at(self, places: Numbers) -> Words:
        """(n, words) the bytes from each place on."""
        return self._all[places].view(np.uint64).reshape(len(places), -1)

    def word_at(self, places: Numbers) -> Words:
        """(n,) the eight bytes from each place on; zero if it is after the end."""
        return self._words[np.minimum(places, self.size)]


class Lanes:
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

    def read(self, windows: Windows, shape: Shape) -> None:
        """Read all steps of the shape, and drop the lanes that fail."""
        expected = _Expected(windows.bytes, shape.tokens)
        place, count = 0, len(shape.tokens)
        while place < count and len(self.starts):
            cells = windows.at(self.at)
            stop, end = self._compared(cells, expected, place)
            self._pass(shape.tokens[place:stop], cells.view(np.uint8))
            if stop < end:
                self._take(windows.bytes, shape.tokens[stop])
                stop += 1
            place = stop
            self._stay_near()
            if np.count_nonzero(self._good) < 3 * len(self._good) // 4:
                self.drop_failed()
        self.drop_failed()

    def _compared(self, cells: Words, expected: _Expected, first: int) -> tuple[int, int]:
        """Compare the steps from `first` on, as many as fit into a window.

        Returns the first step that has another length in some lane, and the one after the last that
        was compared. Lanes that differ from a literal before fail.
        """
        words, mask, end = expected.window(first)
        wrong = (np.ascontiguousarray(cells.T) ^ words[:, None]) & mask[:, None]
        wrong[:, ~self._good] = 0
        while True:
            differing = np.bitwise_or.reduce(wrong, axis=1).view(np.uint8).nonzero()[0]
            if not len(differing):
                return end, end
            step = expected.step_at(first, int(differing[0]))
            if expected.tokens[step].step != LITERAL:
                return step, end
            fails = np.bitwise_or.reduce(wrong & expected.alone(first, step)[:, None], axis=0) != 0
            self._good &= ~fails
            wrong[:, fails] = 0

    def _pass(self, tokens: Sequence[Token], cells: Bytes) -> None:
        """Read steps that have the same lengths in all lanes; `cells`, shape (n, bytes)."""
        if not tokens:
            return
        base = tokens[0].start
        for token in tokens:
            if token.slot >= 0:
                self._note(token, cells, token.start - base)
        self.at += tokens[-1].stop - base

    def _note(self, token: Token, cells: Bytes, offset: int) -> None:
        """Keep what a step reads `offset` bytes after the lanes' places."""
        slot, after = token.slot, offset + token.stop - token.start
        if token.step == VARINT:
            self.values[slot] = _numbers(cells[:, offset : offset + token.size])
        elif token.step == TEXT:
            self.values[slot] = self.at + (offset + token.size)
        elif token.step == START:
            self.values[slot] = self._started(token, offset)
            return
        self.stops[slot] = self.at + after

    def _started(self, token: Token, offset: int = 0) -> Numbers:
        if token.items < 0:
            return np.asarray(self.at + offset, np.int64)
        return np.full(len(self.at), token.items, np.int64)

    def _take(self, data: Bytes, token: Token) -> None:
        """Read one step in every lane, in which its length differs."""
        if token.step == VARINT:
            value = self._varint(data, is_read=token.slot >= 0)
            if token.slot >= 0:
                self._set(token.slot, _zigzag(value))
        else:
            assert token.step == TEXT
            length = np.minimum(self._varint(data), np.uint64(self._outside)).view(np.int64)
            start = self.at.copy()
            self.at += length
            self._stay_near()
            if token.slot >= 0:
                self._set(token.slot, start)

    def drop_failed(self) -> None:
        """Forget the lanes that do not have a struct of this shape, or left the data."""
        self._good &= self.at < self._outside
        if not self._good.all():
            good = np.flatnonzero(self._good)
            self.starts, self.at, self._good = self.starts[good], self.at[good], self._good[good]
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


class _Expected:
    """The bytes of the first struct of a shape, as far as others have them.

    A window is eight words, which begin at the first of several steps.
    """

    def __init__(self, data: Bytes, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self._starts = [each.start for each in tokens]
        self._stops = [each.start + each.size for each in tokens]
        self._first = tokens[0].start
        size = tokens[-1].stop - self._first
        self._bytes = data[self._first : self._first + size].tobytes() + bytes(_WINDOW)
        mask = bytearray(size + _WINDOW)
        for token in tokens:
            place = token.start - self._first
            mask[place : place + token.size] = _MASKS[token.step] * token.size
        self._mask = bytes(mask)

    def window(self, first: int) -> tuple[Words, Words, int]:
        """The words from a step on, the bits that count, and the step after the last in them."""
        base = self._starts[first]
        end = bisect_right(self._stops, base + _WINDOW)
        start = base - self._first
        words = np.frombuffer(self._bytes, np.uint64, _WINDOW // 8, start)
        return words, self._bits(first, first, end), end

    def step_at(self, first: int, offset: int) -> int:
        """The step at a byte of the window from `first` on."""
        return bisect_right(self._starts, self._starts[first] + offset) - 1

    def alone(self, first: int, step: int) -> Words:
        """The bits of one step in the window from `first` on."""
        return self._bits(first, step, step + 1)

    def _bits(self, first: int, start: int, stop: int) -> Words:
        base = self._starts[first]
        from_, to = self._starts[start], self._stops[stop - 1]
        bits = self._mask[from_ - self._first : to - self._first]
        return np.frombuffer(bytes(from_ - base) + bits + bytes(base + _WINDOW - to), np.uint64)


_MASKS: Final = {LITERAL: b"\xff", VARINT: b"\x80", TEXT: b"\xff", SKIP: b"", START: b"", STOP: b""}
"""The bits of a step's first bytes that are alike: of a number those that say whether it ends."""


def _numbers(cells: Bytes) -> Numbers:
    """(n,) the signed numbers of varints, shape (n, bytes)."""
    if cells.shape[1] == 1:
        return _NUMBERS[cells[:, 0]]
    value = np.zeros(len(cells), np.uint64)
    for place in range(cells.shape[1]):
        value |= (cells[:, place] & 127).astype(np.uint64) << np.uint64(7 * place)
    return _zigzag(value)


def _zigzag(value: Words) -> Numbers:
    """Decode signed numbers."""
    return np.asarray(
        (value >> np.uint64(1)).view(np.int64) ^ -(value & np.uint64(1)).view(np.int64)
    )
