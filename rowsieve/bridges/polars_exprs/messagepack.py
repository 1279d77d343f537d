"""Decode MessagePack to plain values, without recursion: expressions nest as deep as their chains.

msgspec recurses (its limit is 1,000; a chain of 500 ORs is deeper) and does not return the position
of a value in the bytes, by which a part of an expression is returned. All types that polars writes
are decoded, extension types are refused; damage is `UnsupportedOperation`, never a value.
"""

from __future__ import annotations

import struct
from typing import Any

from rowsieve.errors import UnsupportedOperation

_NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_BYTES = {0xC4: 1, 0xC5: 2, 0xC6: 4}  # bytes of the length
_TEXTS = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_ARRAYS = {0xDC: 2, 0xDD: 4}
_MAPS = {0xDE: 2, 0xDF: 4}


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
        byte = self._data[self._at]
        self._at += 1
        if byte < 0x80:
            return "value", byte
        if byte < 0x90:
            return "map", byte & 0x0F
        if byte < 0xA0:
            return "array", byte & 0x0F
        if byte < 0xC0:
            return "value", self._take(byte & 0x1F).decode()
        if byte >= 0xE0:
            return "value", byte - 0x100
        if byte in _CONSTANTS:
            return "value", _CONSTANTS[byte]
        if byte in _NUMBERS:
            form = _NUMBERS[byte]
            return "value", struct.unpack(form, self._take(struct.calcsize(form)))[0]
        if byte in _TEXTS:
            return "value", self._take(self._length(_TEXTS[byte])).decode()
        if byte in _BYTES:
            return "value", self._take(self._length(_BYTES[byte]))
        if byte in _ARRAYS:
            return "array", self._length(_ARRAYS[byte])
        if byte in _MAPS:
            return "map", self._length(_MAPS[byte])
        raise UnsupportedOperation(f"a serialised expression holds the unknown mark {byte:#x}")

    def _length(self, width: int) -> int:
        return int.from_bytes(self._take(width), "big")

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) != size:
            raise IndexError("it ends too early")
        self._at += size
        return taken
