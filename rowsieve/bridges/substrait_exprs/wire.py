"""Read and write the wire format of protocol buffers: messages of numbered fields.

Damage is `InvalidPredicate`, never a value: a truncated message, or an unknown wire type. Nested
messages are decoded on demand.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from rowsieve.errors import InvalidPredicate
from rowsieve.varints import decode_varint, encode_varint

Value: TypeAlias = int | bytes  # a varint, or the bytes of anything else
Message: TypeAlias = dict[int, list[Value]]

_FIXED = {1: 8, 5: 4}
_SHORT = [bytes((size,)) for size in range(0x80)]  # lengths that are one byte
_BITS = 0xFFFF_FFFF_FFFF_FFFF


def fields(data: Value) -> Message:
    """Return a message's fields by number, repeated ones in order."""
    if not isinstance(data, bytes):
        raise InvalidPredicate("a Substrait message holds a number where a message is expected")
    message: Message = {}
    at, size = 0, len(data)
    try:
        while at < size:
            tag = data[at]  # one byte of almost all
            at += 1
            if tag > 0x7F:
                tag, at = decode_varint(data, at - 1)
            value: Value
            if (wire := tag & 7) == 0:
                value, at = decode_varint(data, at)
            else:
                length = _FIXED.get(wire, 0)
                if wire == 2:
                    length, at = decode_varint(data, at)
                elif not length:
                    raise InvalidPredicate(f"a Substrait message has a field of wire type {wire}")
                value = data[at : at + length]
                at += length
                if at > size:
                    raise IndexError
            message.setdefault(tag >> 3, []).append(value)
    except (IndexError, OverflowError) as error:
        raise InvalidPredicate("a Substrait message ends too early") from error
    return message


def one(message: Message, at: int, default: Value | None = None) -> Value:
    """Return the value of a field; raise if it occurs twice, where engines differ."""
    values = message.get(at, [] if default is None else [default])
    if len(values) != 1:
        raise InvalidPredicate(
            f"a Substrait message holds {len(values)} values of the field {at}, where one is wanted"
        )
    return values[0]


def signed(value: Value) -> int:
    """Convert a varint to a signed number of 64 bits."""
    if not isinstance(value, int):
        raise InvalidPredicate("a Substrait message holds bytes where a number is expected")
    return value - (1 << 64) if value >= 1 << 63 else value


def raw(value: Value) -> bytes:
    """Return the bytes of a field."""
    if not isinstance(value, bytes):
        raise InvalidPredicate("a Substrait message holds a number where bytes are expected")
    return value


def text(value: Value) -> str:
    """Decode bytes as text."""
    try:
        return raw(value).decode()
    except UnicodeDecodeError as error:
        raise InvalidPredicate(f"a Substrait message holds damaged text: {error}") from error


def real(value: Value, form: str) -> float:
    """Decode a float of eight or four bytes."""
    if len(raw(value)) != struct.calcsize(form):
        raise InvalidPredicate("a Substrait message holds a float of another size")
    float_number: float = struct.unpack(form, raw(value))[0]
    return float_number


def number(field: int, value: int) -> bytes:
    """Write a varint field; zero is written, too."""
    return encode_varint(field << 3) + encode_varint(value & _BITS)


def numbers(field: int) -> Callable[[int], bytes]:
    """Return `number` for one field, for many values."""
    tag = encode_varint(field << 3)
    return lambda value: tag + encode_varint(value & _BITS)


def part(field: int, *content: bytes) -> bytes:
    """Write a field of a message, text or bytes."""
    whole = b"".join(content)
    return encode_varint(field << 3 | 2) + encode_varint(len(whole)) + whole


def each_part(field: int, contents: Iterable[bytes]) -> Iterator[bytes]:
    """Write a repeated field item by item, for up to a million items."""
    tag = encode_varint(field << 3 | 2)
    for content in contents:
        size = len(content)
        yield tag + (_SHORT[size] if size < len(_SHORT) else encode_varint(size)) + content


def parts(field: int, contents: Iterable[bytes]) -> bytes:
    """Write a repeated field."""
    return b"".join(each_part(field, contents))


def fixed(field: int, form: str, value: float) -> bytes:
    """Write a float field, in the form `<d` or `<f`."""
    return encode_varint(field << 3 | (1 if form == "<d" else 5)) + struct.pack(form, value)
