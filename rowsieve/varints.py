"""Varints: numbers in groups of seven bits, lowest first; the top bit says that more follow.

Protocol buffers and Thrift's compact protocol write lengths, tags and numbers as these.
"""

from __future__ import annotations

from collections.abc import Sequence

_LONGEST_SHIFT = 63  # of the tenth group, in which a number of 64 bits ends


def encode_varint(value: int) -> bytes:
    """The bytes of a number, which is not negative."""
    if value < 0x80:
        return bytes((value,))
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def decode_varint(data: Sequence[int], at: int) -> tuple[int, int]:
    """The number that begins at `at`, and where it ends.

    IndexError where the bytes end within it, OverflowError for more than ten groups.
    """
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > _LONGEST_SHIFT:
            raise OverflowError("a number of more than 64 bits")
