"""Match the messages of a block with a template, and read its slots: all messages at once.

Bytes are compared and numbers are read as words of 64 bits, by NumPy.

Soundness: bytes that do not match, and scalars that are not surely read right, leave a message to
others: text with a control character or, where it is read, with an escape; integers of more than 18
digits, with zeros before them, or -0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.envelopes.templates.message_templates import Path, Slot, SlotKind, Template

Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

_WIDTHS: Final = (8, 16, 32, 64)  # bytes that are copied at once
_ALL: Final = 0xFFFF_FFFF_FFFF_FFFF
_ONES: Final = 0x0101_0101_0101_0101
_HIGH: Final = np.uint64(0x80 * _ONES)
_ZEROS: Final = np.uint64(ord("0") * _ONES)
_ABOVE_9: Final = np.uint64((0x80 - 10) * _ONES)
_NULL: Final = int.from_bytes(b"null", "little")
_DIGITS_OF_INT64: Final = 18
_LONGEST_TEXT: Final = 1 << 12
_POWERS: Final = np.array([10**digits for digits in range(9)], np.int64)
_ESCAPED: Final = np.isin(np.arange(256), list(b'"\\/bfnrt'))


class MessageBytes:
    """Messages of one buffer. `starts`, `stops` (n,): where each begins and ends in it."""

    def __init__(self, messages: pa.Array) -> None:
        _, offsets, data = messages.buffers()
        first = messages.offset
        ends = np.frombuffer(offsets, np.int32)[first : first + len(messages) + 1]
        low, high = int(ends[0]), int(ends[-1])
        padded = np.zeros(high - low + 2 * _WIDTHS[-1], np.uint8)
        padded[: high - low] = np.frombuffer(data, np.uint8)[low:high]
        self.starts: Places = ends[:-1].astype(np.int64) - low
        self.stops: Places = ends[1:].astype(np.int64) - low
        self.bytes = padded
        self.buffer = pa.py_buffer(padded)
        length = len(padded) - _WIDTHS[-1]
        self._windows = {
            width: np.lib.stride_tricks.as_strided(
                padded[:width].view(f"V{width}"), shape=(length,), strides=(1,)
            )
            for width in _WIDTHS
        }

    def words(self, at: Places, width: int) -> Words:
        """(m, width / 8) the bytes from each place on, which is at most the end of the data."""
        return self._windows[width][at].view("<u8").reshape(len(at), width // 8)

    def texts(self, starts: Places, stops: Places, null: Mask | None) -> pa.Array:
        """Text between places, which ascend."""
        count = len(starts)
        offsets = np.empty(2 * count, np.int32)
        offsets[::2], offsets[1::2] = starts, stops
        pieces = pa.StringArray.from_buffers(
            max(2 * count - 1, 0), pa.py_buffer(offsets), self.buffer
        )
        return pieces.take(pa.array(np.arange(0, 2 * count, 2), mask=null))


@dataclass(frozen=True, slots=True)
class Matched:
    """Messages `rows` (m,) that match, and the values of the slots that are read."""

    rows: Places
    values: Mapping[Path, pa.Array]


def match(template: Template, messages: MessageBytes, rows: Places) -> Matched:
    """Match these messages of a block with a template."""
    walk = _MessageWalk(messages, rows, messages.starts[rows])
    for fragment, slot in zip(template.fragments, template.slots, strict=False):
        walk.fragment(fragment)
        _READINGS[slot.kind](walk, slot)
    walk.fragment(template.fragments[-1])
    walk.keep(walk.at == messages.stops[walk.rows])
    values = {path: _array(messages, *arrays) for path, arrays in walk.values.items()}
    return Matched(walk.rows, values)


def _array(messages: MessageBytes, first: Any, second: Any, null: Any) -> pa.Array:
    mask = null if null is not None and null.any() else None
    if second is None:
        return pa.array(first, pa.int64(), mask=mask)
    return messages.texts(first, second, mask)


@dataclass(slots=True)
class _MessageWalk:
    """Where the matching of each message is: at `at`. Messages that do not match are left out."""

    messages: MessageBytes
    rows: Places
    at: Places
    values: dict[Path, tuple[Any, Any, Any]] = field(default_factory=dict)

    def keep(self, matching: Mask) -> None:
        """Go on with these messages only."""
        if matching.all():
            return
        self.rows, self.at = self.rows[matching], self.at[matching]
        for path, (first, second, null) in self.values.items():
            rest = (None if each is None else each[matching] for each in (second, null))
            self.values[path] = first[matching], *rest

    def fragment(self, expected: bytes) -> None:
        """Go over bytes that all messages have here."""
        for start in range(0, len(expected), _WIDTHS[-1]):
            piece = expected[start : start + _WIDTHS[-1]]
            width = next(each for each in _WIDTHS if each >= len(piece))
            words = self.messages.words(self.at, width)
            differing: Any = np.uint64(0)
            for place in range(0, len(piece), 8):
                part = piece[place : place + 8]
                other = words[:, place // 8] ^ np.uint64(int.from_bytes(part, "little"))
                if len(part) < 8:
                    other &= np.uint64(_ALL >> 8 * (8 - len(part)))
                differing = differing | other
            self.at = self.at + len(piece)
            self.keep(differing == 0)

    def _null(self) -> Mask:
        """Which messages have NULL here."""
        word = self.messages.words(self.at, 8)[:, 0]
        null: Mask = (word & np.uint64(0xFFFF_FFFF)) == np.uint64(_NULL)
        return null

    def integer(self, slot: Slot) -> None:
        """Go over an integer, or NULL where it may be."""
        data = self.messages.bytes
        first = data[self.at]
        negative = first == ord("-")
        starts = self.at + negative if negative.any() else self.at
        words = self.messages.words(starts, 32)
        values, digits = _digits(words[:, 0])
        for place in (1, 2):
            whole = digits == 8 * place
            if not whole.any():
                break
            more, count = _digits(words[:, place])
            count = np.where(whole, count, 0)
            values = np.where(whole, values * _POWERS[count] + more, values)
            digits = digits + count
        right = (digits > 0) & (digits <= _DIGITS_OF_INT64)
        leading = data[starts] == ord("0")
        if leading.any():
            right &= ~(leading & ((digits > 1) | negative))
        stops = starts + digits
        null = None
        if slot.nullable and not right.all():
            null = self._null()
            right |= null
            stops = np.where(null, self.at + 4, stops)
            values = np.where(null, 0, values)
        if negative.any():
            values = np.where(negative, -values, values)
        self.at = stops
        if slot.read:
            self.values[slot.path] = values, None, null
        self.keep(right)

    def text(self, slot: Slot) -> None:
        """Go over text and its quotes, or NULL where it may be."""
        quoted = self.messages.bytes[self.at] == ord('"')
        null = None
        right = quoted
        if slot.nullable and not quoted.all():
            null = self._null()
            right = quoted | null
        self.keep(right)
        if null is not None:
            null = null[right]
        starts = self.at + 1
        stops, right = _closing_quotes(self.messages, starts, null, escapes=not slot.read)
        if slot.read and not slot.nullable:
            right &= stops > starts  # a number of the log that is empty is none
        self.at = stops + 1
        if null is not None:
            starts, stops = np.where(null, self.at, starts), np.where(null, self.at, stops)
        if slot.read:
            self.values[slot.path] = starts, stops, null
        self.keep(right)


_READINGS: Final[Mapping[SlotKind, Callable[[_MessageWalk, Slot], None]]] = {
    SlotKind.INTEGER: _MessageWalk.integer,
    SlotKind.TEXT: _MessageWalk.text,
}


def _lowest_byte(flags: Words) -> Places:
    """The number of bytes below the lowest one whose high bit is set; 8 if none is."""
    return np.bitwise_count(~flags & (flags - np.uint64(1))).astype(np.int64) >> 3


def _digits(words: Words) -> tuple[Places, Places]:
    """The number that the digits at the beginning of each word are, and how many they are."""
    numbers = words ^ _ZEROS
    count = _lowest_byte(((numbers + _ABOVE_9) | numbers) & _HIGH)
    numbers = numbers << (np.uint64(64) - (count.astype(np.uint64) << np.uint64(3)))
    numbers = (numbers * np.uint64(2561)) >> np.uint64(8)
    numbers = ((numbers & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(6553601)) >> np.uint64(16)
    numbers = ((numbers & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(42949672960001)) >> np.uint64(
        32
    )
    return numbers.astype(np.int64), count


def _closing_quotes(
    messages: MessageBytes, starts: Places, null: Mask | None, *, escapes: bool
) -> tuple[Places, Mask]:
    """Where each text's closing quote is, and a mask of the texts that have one.

    Of NULL, the place of its last letter.
    """
    stops = starts.copy()
    right = np.zeros(len(starts), bool)
    pending = np.arange(len(starts))
    if null is not None:
        stops[null] += 2
        right[null] = True
        pending = pending[~null]
    at = starts[pending]
    limit = len(messages.bytes) - 2 * _WIDTHS[-1]
    for _ in range(_LONGEST_TEXT // 16):
        words = messages.words(at, 16)
        skipped = _before_special(words[:, 0])
        if (skipped == 8).any():
            skipped = np.where(skipped == 8, 8 + _before_special(words[:, 1]), skipped)
        at = at + skipped
        byte = messages.bytes[at]
        is_quote = byte == ord('"')
        stops[pending[is_quote]] = at[is_quote]
        right[pending[is_quote]] = True
        going = skipped == 16
        if escapes:
            escaped = (byte == ord("\\")) & ~going & _ESCAPED[messages.bytes[at + 1]]
            at = np.where(escaped, at + 2, at)
            going |= escaped
        going &= ~is_quote & (at <= limit)
        if not going.any():
            break
        pending, at = pending[going], at[going]
    return stops, right


def _before_special(words: Words) -> Places:
    """The number of bytes before the first quote, backslash or control character of a word."""
    quotes = words ^ np.uint64(ord('"') * _ONES)
    slashes = words ^ np.uint64(ord("\\") * _ONES)
    flags = (quotes - np.uint64(_ONES)) & ~quotes
    flags |= (slashes - np.uint64(_ONES)) & ~slashes
    flags |= (words - np.uint64(0x20 * _ONES)) & ~words
    return _lowest_byte(flags & _HIGH)
