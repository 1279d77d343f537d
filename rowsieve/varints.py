"""Varints: unsigned integers in 7-bit groups, lowest first; the top bit marks a continuation.

Protocol buffers and Thrift's compact protocol encode lengths, tags and integers as varints.
"""

from __future__ import annotations

from collections.abc import Sequence

_LONGEST_SHIFT = 63  # the shift of the tenth group, the last one of a 64-bit integer


def encode_varint(value: int) -> bytes:
    """Encode an integer, which must not be negative."""
    if value < 0x80:
        return bytes((value,))
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 0x20_0000:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def decode_varint(data: Sequence[int], at: int) -> tuple[int, int]:
    """Decode the varint at offset `at`; return the value and the offset after it.

    IndexError if the data ends inside the varint, OverflowError for more than ten groups.
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
            raise OverflowError("the varint has more than 64 bits")
