"""The wire format of protocol buffers: numbered fields of a message, read and written.

Damage is `InvalidPredicate`, never a value: what is cut off, or of a wire type that protocol
buffers lack, is refused. Messages inside messages are read when they are asked for.
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
    """The fields of a message by their numbers, repeated ones in order."""
    if not isinstance(data, bytes):
        raise InvalidPredicate("a Substrait message holds a number where a message is expected")
    found: Message = {}
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
            found.setdefault(tag >> 3, []).append(value)
    except (IndexError, OverflowError) as error:
        raise InvalidPredicate("a Substrait message ends too early") from error
    return found


def one(message: Message, at: int, default: Value | None = None) -> Value:
    """The value of a field that is not repeated; engines differ about which of two they take."""
    values = message.get(at, [] if default is None else [default])
    if len(values) != 1:
        raise InvalidPredicate(
            f"a Substrait message holds {len(values)} values of the field {at}, where one is wanted"
        )
    return values[0]


def signed(value: Value) -> int:
    """A varint as a number with a sign; protocol buffers write them in 64 bits."""
    if not isinstance(value, int):
        raise InvalidPredicate("a Substrait message holds bytes where a number is expected")
    return value - (1 << 64) if value >= 1 << 63 else value


def raw(value: Value) -> bytes:
    """The bytes of a field."""
    if not isinstance(value, bytes):
        raise InvalidPredicate("a Substrait message holds a number where bytes are expected")
    return value


def text(value: Value) -> str:
    """Bytes as text."""
    try:
        return raw(value).decode()
    except UnicodeDecodeError as error:
        raise InvalidPredicate(f"a Substrait message holds damaged text: {error}") from error


def real(value: Value, form: str) -> float:
    """The eight or four bytes of a float."""
    if len(raw(value)) != struct.calcsize(form):
        raise InvalidPredicate("a Substrait message holds a float of another size")
    found: float = struct.unpack(form, raw(value))[0]
    return found


def number(field: int, value: int) -> bytes:
    """A field that is a varint; zero is written too."""
    return encode_varint(field << 3) + encode_varint(value & _BITS)


def numbers(field: int) -> Callable[[int], bytes]:
    """`number` of one field, for many values."""
    tag = encode_varint(field << 3)
    return lambda value: tag + encode_varint(value & _BITS)


def part(field: int, *content: bytes) -> bytes:
    """A field that is a message, text or bytes."""
    whole = b"".join(content)
    return encode_varint(field << 3 | 2) + encode_varint(len(whole)) + whole


def each_part(field: int, contents: Iterable[bytes]) -> Iterator[bytes]:
    """The items of a repeated field; there may be a million."""
    tag = encode_varint(field << 3 | 2)
    for content in contents:
        size = len(content)
        yield tag + (_SHORT[size] if size < len(_SHORT) else encode_varint(size)) + content


def parts(field: int, contents: Iterable[bytes]) -> bytes:
    """A repeated field."""
    return b"".join(each_part(field, contents))


def fixed(field: int, form: str, value: float) -> bytes:
    """A field that is a float, `<d` or `<f`."""
    return encode_varint(field << 3 | (1 if form == "<d" else 5)) + struct.pack(form, value)
