"""Decode MessagePack to plain values, without recursion: expressions nest as deep as their chains.

msgspec recurses (its limit is 1,000; a chain of 500 ORs is deeper) and does not return the position
of a value in the bytes, by which a part of an expression is returned. All types that polars writes
are decoded, extension types are refused; damage is `UnsupportedOperation`, never a value.
"""

from __future__ import annotations

import struct
from typing import Any

from rowsieve.errors import UnsupportedOperation

# Values that are their mark; the form of numbers; what has a size in 1, 2 or 4 bytes after it.
_WHOLE = {
    **{mark: mark for mark in range(0x80)},
    **{mark: mark - 0x100 for mark in range(0xE0, 0x100)},
    0xC0: None,
    0xC2: False,
    0xC3: True,
}
_NUMBERS = {mark: f">{form}" for mark, form in enumerate("fdBHIQbhiq", 0xCA)}
_SIZED = {
    **{0xC4 + power: ("bytes", 1 << power) for power in range(3)},
    **{0xD9 + power: ("text", 1 << power) for power in range(3)},
    **{0xDB + power: ("array", 1 << power) for power in (1, 2)},
    **{0xDD + power: ("map", 1 << power) for power in (1, 2)},
}
_SHORT = {
    **{mark: ("map", mark & 0x0F) for mark in range(0x80, 0x90)},
    **{mark: ("array", mark & 0x0F) for mark in range(0x90, 0xA0)},
    **{mark: ("text", mark & 0x1F) for mark in range(0xA0, 0xC0)},
}


def decode(data: bytes) -> tuple[Any, dict[int, tuple[int, int]]]:
    """Return the value, and the start and end of each mapping in the bytes, by `id`."""
    decoder = _Decoder(data)
    try:
        value, end = decoder.decode()
    except (struct.error, IndexError, UnicodeDecodeError, TypeError) as error:
        raise UnsupportedOperation(f"a serialised expression is damaged: {error}") from error
    if end != len(data):
        raise UnsupportedOperation("a serialised expression has bytes after its end")
    return value, decoder.spans


class _Decoder:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self.spans: dict[int, tuple[int, int]] = {}

    def decode(self) -> tuple[Any, int]:
        open_: list[tuple[list[Any], int, int]] = []  # items so far, items wanted, a map's start
        while True:
            value: Any
            start = self._at
            kind, size = self._head()
            if kind in ("array", "map"):
                if size:
                    wanted = size * (2 if kind == "map" else 1)
                    open_.append(([], wanted, start if kind == "map" else -1))
                    continue
                value = {} if kind == "map" else []
            else:
                value = size
            while open_:
                items, wanted, start = open_[-1]
                items.append(value)
                if len(items) < wanted:
                    break
                open_.pop()
                value = items
                if start >= 0:
                    value = dict(zip(items[::2], items[1::2], strict=True))
                    self.spans[id(value)] = (start, self._at)
            else:
                return value, self._at

    def _head(self) -> tuple[str, Any]:
        """Read the next head: an array or map with its length, or a whole value."""
        mark = self._take(1)[0]
        if mark in _WHOLE:
            return "value", _WHOLE[mark]
        if (form := _NUMBERS.get(mark)) is not None:
            return "value", struct.unpack(form, self._take(struct.calcsize(form)))[0]
        if mark in _SHORT:
            kind, size = _SHORT[mark]
        elif mark in _SIZED:
            kind, width = _SIZED[mark]
            size = int.from_bytes(self._take(width), "big")
        else:
            raise UnsupportedOperation(f"a serialised expression holds the unknown mark {mark:#x}")
        if kind in ("array", "map"):
            return kind, size
        content = self._take(size)
        return "value", content.decode() if kind == "text" else content

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) != size:
            raise IndexError("it ends too early")
        self._at += size
        return taken
