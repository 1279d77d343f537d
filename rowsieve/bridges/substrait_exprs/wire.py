"""The wire format of protocol buffers: numbered fields of a message, read and written.

Damage is `InvalidPredicate`, never a value: what is cut off, or of a wire type that protocol
buffers lack, is refused. Messages inside messages are read when they are asked for.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import TypeAlias

from rowsieve.errors import InvalidPredicate
from rowsieve.varints import decode_varint, encode_varint

Value: TypeAlias = int | bytes  # a varint, or the bytes of anything else
Message: TypeAlias = dict[int, list[Value]]

_FIXED = {1: 8, 5: 4}


def fields(data: Value) -> Message:
    """The fields of a message by their numbers, repeated ones in order."""
    if not isinstance(data, bytes):
        raise InvalidPredicate("a Substrait message holds a number where a message is wanted")
    found: Message = {}
    at, size = 0, len(data)
    while at < size:
        tag = data[at]
        at += 1
        if tag > 0x7F:
            tag, at = _varint(data, at - 1)
        wire = tag & 7
        value: Value
        if wire == 0:
            value, at = _varint(data, at)
        else:
            if wire == 2:
                length = data[at] if at < size else 0x80
                at += 1
                if length > 0x7F:
                    length, at = _varint(data, at - 1)
            elif wire in _FIXED:
                length = _FIXED[wire]
            else:
                raise InvalidPredicate(f"a Substrait message has a field of the wire type {wire}")
            value = data[at : at + length]
            at += length
            if at > size:
                raise InvalidPredicate("a Substrait message ends too early")
        found.setdefault(tag >> 3, []).append(value)
    return found


def one(message: Message, at: int, default: Value | None = None) -> Value:
    """The value of a field that is not repeated; engines differ about which of two they take."""
    values = message.get(at, [] if default is None else [default])
    if len(values) != 1:
        raise InvalidPredicate(
            f"a Substrait message holds {len(values)} values of the field {at}, where one is wanted"
        )
    return values[0]


def first_part(data: Value) -> tuple[bytes, bytes]:
    """Field 1 where a message begins with it, and all that follows; else two times nothing."""
    if not isinstance(data, bytes) or data[:1] != b"\x0a":
        return b"", b""
    length, at = _varint(data, 1)
    if at + length > len(data):
        raise InvalidPredicate("a Substrait message ends too early")
    return data[at : at + length], data[at + length :]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    try:
        return decode_varint(data, at)
    except (IndexError, OverflowError) as error:
        raise InvalidPredicate("a Substrait message ends too early") from error


def signed(value: Value) -> int:
    """A varint as a number with a sign; protocol buffers write them in 64 bits."""
    if not isinstance(value, int):
        raise InvalidPredicate("a Substrait message holds bytes where a number is wanted")
    return value - (1 << 64) if value >= 1 << 63 else value


def text(value: Value) -> str:
    """Bytes as text."""
    if not isinstance(value, bytes):
        raise InvalidPredicate("a Substrait message holds a number where text is wanted")
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise InvalidPredicate(f"a Substrait message holds damaged text: {error}") from error


def real(value: Value, form: str) -> float:
    """The eight or four bytes of a float."""
    if not isinstance(value, bytes) or len(value) != struct.calcsize(form):
        raise InvalidPredicate("a Substrait message holds a float of another size")
    number: float = struct.unpack(form, value)[0]
    return number


def number(field: int, value: int) -> bytes:
    """A field that is a varint; zero is written too."""
    return encode_varint(field << 3) + encode_varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def part(field: int, *content: bytes) -> bytes:
    """A field that is a message, text or bytes."""
    whole = b"".join(content)
    return encode_varint(field << 3 | 2) + encode_varint(len(whole)) + whole


def parts(field: int, contents: Iterable[bytes]) -> bytes:
    """A repeated field."""
    return b"".join(part(field, content) for content in contents)


def fixed(field: int, form: str, value: float) -> bytes:
    """A field that is a float, `<d` or `<f`."""
    return encode_varint(field << 3 | (1 if form == "<d" else 5)) + struct.pack(form, value)
