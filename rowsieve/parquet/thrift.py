"""Reads and writes the subset of Thrift's compact protocol that Parquet's headers use.

`read_struct` returns plain Python values: bools, ints, bytes, lists, and structs as dicts by field
number. Malformed bytes raise `MalformedThrift`, never an IndexError, and the depth of recursion is
limited. `write_struct` takes integers as `I32` or `I64`, because readers skip fields of another
width.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from struct import unpack_from
from typing import Any, Final, NamedTuple, TypeAlias

from rowsieve.varints import decode_varint, encode_varint

ThriftStruct: TypeAlias = dict[int, Any]
Wanted: TypeAlias = Mapping[int, "Wanted | None"]
"""The fields of a struct to read; for a nested struct or list of structs, its fields; None: all."""


class I32(int):
    """An integer that is written as 32 bits."""


class I64(int):
    """An integer that is written as 64 bits."""


class EncodedStruct(bytes):
    """The bytes of an encoded struct."""


class PartialStruct(NamedTuple):
    """The encoded first fields of a struct, and the number of the last of them."""

    data: bytes
    last: int


EMPTY: Final = PartialStruct(b"", 0)
_MAX_DEPTH: Final = 16
_INTEGERS: Final = (4, 5, 6)
_STRUCT: Final = 12
_TEXT: Final = 8
_TRUE, _FALSE = 1, 2  # kinds of a bool field in a struct, which needs no further byte


class MalformedThrift(ValueError):
    """The bytes are not valid compact thrift; the caller adds the file's name to the error."""


def read_struct(data: bytes | memoryview, position: int = 0) -> tuple[ThriftStruct, int]:
    """Read the struct at `position`; also returns its end."""
    try:
        return _struct(memoryview(data), position, 0)
    except IndexError as error:
        raise MalformedThrift("the bytes end within a struct") from error
    except OverflowError as error:
        raise MalformedThrift(str(error)) from error


def read_fields(data: bytes, position: int, wanted: Wanted) -> ThriftStruct:
    """Read the wanted fields of the struct at `position`, and skip the others."""
    try:
        return _fields(data, position, wanted, 0)[0]
    except IndexError as error:
        raise MalformedThrift("the bytes end within a struct") from error
    except OverflowError as error:
        raise MalformedThrift(str(error)) from error


class RawField(NamedTuple):
    """A field of an encoded struct: its number, its kind, and the place of its value."""

    number: int
    kind: int
    start: int
    stop: int


def decoded_fields(data: bytes, position: int) -> tuple[ThriftStruct, list[RawField], int]:
    """Decode the struct at `position`, with the place of each of its fields; also returns its end.

    A field that occurs twice has its last value.
    """
    view, fields, places, number = memoryview(data), {}, [], 0
    try:
        while head := data[position]:
            position += 1
            kind = head & 15
            number, start = field_number(data, position, number, head)
            if kind in (_TRUE, _FALSE):
                fields[number], position = kind == _TRUE, start
            else:
                fields[number], position = _value(view, start, kind, 0)
            places.append(RawField(number, kind, start, position))
        if position >= len(data):
            raise MalformedThrift("the bytes end within a struct")
    except IndexError as error:
        raise MalformedThrift("the bytes end within a struct") from error
    except OverflowError as error:
        raise MalformedThrift(str(error)) from error
    return fields, places, position + 1


def raw_fields(data: bytes, position: int) -> tuple[list[RawField], int]:
    """Find the fields of the struct at `position` without decoding them; also returns its end."""
    fields: list[RawField] = []
    number = 0
    try:
        while head := data[position]:
            position += 1
            kind = head & 15
            number, position = field_number(data, position, number, head)
            if kind == _STRUCT:
                stop = _skip_struct(data, position, 1)
            else:
                stop = _skip_value(data, position, kind, 0)
            fields.append(RawField(number, kind, position, stop))
            position = stop
        if position >= len(data):
            raise MalformedThrift("the bytes end within a struct")
    except IndexError as error:
        raise MalformedThrift("the bytes end within a struct") from error
    except OverflowError as error:
        raise MalformedThrift(str(error)) from error
    return fields, position + 1


def field_number(
    data: bytes | memoryview, position: int, before: int, head: int
) -> tuple[int, int]:
    """The number of the field with this header after the field `before`, and its value's start.

    Numbers have 16 bits: readers drop the others, so 65537 is 1.
    """
    if head >> 4:
        return before + (head >> 4), position
    number, position = _signed(data, position)
    return (number + 2**15) % 2**16 - 2**15, position


def zigzag(value: int) -> int:
    """Decode a signed number from an unsigned one."""
    return (value >> 1) ^ -(value & 1)


def skip_value(data: bytes, position: int, kind: int) -> int:
    """The end of a field's value; IndexError or a position after the data if it is cut off."""
    return _skip_value(data, position, kind, 0)


def join_fields(values: Iterable[tuple[int, int, bytes]]) -> EncodedStruct:
    """Encode a struct of encoded values: (number, kind, bytes), by ascending number."""
    out, before = bytearray(), 0
    for number, kind, data in values:
        delta = number - before
        out += (
            bytes([delta << 4 | kind]) if delta < 16 else bytes([kind]) + encode_varint(2 * number)
        )
        out += data
        before = number
    return EncodedStruct(bytes(out) + b"\0")


def encoded_value(value: Any) -> tuple[int, bytes]:
    """Encode a value as `write_struct` does; returns its kind and bytes."""
    return _encoded(value)


def read_list_head(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Read the number of values of a list, and the position of the first."""
    try:
        count, position = data[position] >> 4, position + 1
        return decode_varint(memoryview(data), position) if count == 15 else (count, position)
    except IndexError as error:
        raise MalformedThrift("the bytes end within a list") from error
    except OverflowError as error:
        raise MalformedThrift(str(error)) from error


def write_struct(fields: Mapping[int, Any], prefix: PartialStruct = EMPTY) -> EncodedStruct:
    """Encode a struct of numbers, bytes, lists and structs, by ascending field number."""
    return EncodedStruct(begin_struct(fields, prefix).data + b"\0")


def begin_struct(fields: Mapping[int, Any], prefix: PartialStruct = EMPTY) -> PartialStruct:
    """Encode the first fields of a struct, or the fields after the encoded `prefix`."""
    out, before = bytearray(prefix.data), prefix.last
    for number, value in fields.items():
        kind, data = _encoded(value)
        out.append((number - before) << 4 | kind)
        out += data
        before = number
    return PartialStruct(bytes(out), before)


def _encoded(value: Any) -> tuple[int, bytes]:
    """Encode a value; returns its kind and bytes."""
    match value:
        case I32():
            return 5, encode_varint(value << 1 ^ value >> 31)
        case I64():
            return 6, encode_varint(value << 1 ^ value >> 63)
        case EncodedStruct():
            return 12, value
        case bytes():
            return 8, encode_varint(len(value)) + value
        case Mapping():
            return 12, write_struct(value)
        case Sequence():
            return 9, _written_list(value)
    raise TypeError(f"cannot encode {type(value).__name__} as thrift")


def list_of_structs(structs: Sequence[bytes]) -> bytes:
    """Encode a list of encoded structs."""
    return _list_head(len(structs), _STRUCT) + b"".join(structs)


def _written_list(values: Sequence[Any]) -> bytes:
    written = [_encoded(value) for value in values]
    head = _list_head(len(values), written[0][0] if written else _STRUCT)
    return head + b"".join(data for _, data in written)


def _list_head(count: int, kind: int) -> bytes:
    return bytes([count << 4 | kind]) if count < 15 else bytes([0xF0 | kind]) + encode_varint(count)


def _struct(data: memoryview, position: int, depth: int) -> tuple[ThriftStruct, int]:
    fields: ThriftStruct = {}
    number = 0
    while True:
        head = data[position]
        position += 1
        if head == 0:
            return fields, position
        kind, delta = head & 15, head >> 4
        if delta:
            number += delta
        else:
            number, position = field_number(data, position, number, head)
        if kind in (_TRUE, _FALSE):
            fields[number] = kind == _TRUE
        elif kind in _INTEGERS and data[position] < 128:  # most fields of a footer
            value = data[position]
            fields[number], position = (value >> 1) ^ -(value & 1), position + 1
        else:
            fields[number], position = _value(data, position, kind, depth)


def _value(data: memoryview, position: int, kind: int, depth: int) -> tuple[Any, int]:
    if depth > _MAX_DEPTH:
        raise MalformedThrift(f"values are nested more than {_MAX_DEPTH} deep")
    match kind:
        case 1 | 2:  # in a list
            return data[position] == _TRUE, position + 1
        case 3:
            return int.from_bytes(data[position : position + 1], signed=True), position + 1
        case 4 | 5 | 6:
            return _signed(data, position)
        case 7:  # a double, as in the boxes of geometries
            if len(data) - position < 8:
                raise MalformedThrift("a double exceeds the data")
            return unpack_from("<d", data, position)[0], position + 8
        case 8:
            length, position = decode_varint(data, position)
            if length > len(data) - position:
                raise MalformedThrift(f"a value of {length} bytes exceeds the data")
            return bytes(data[position : position + length]), position + length
        case 9 | 10:
            return _list(data, position, depth)
        case 12:
            return _struct(data, position, depth + 1)
        case _:
            raise MalformedThrift(f"a field of the unexpected kind {kind}")


def _list(data: memoryview, position: int, depth: int) -> tuple[list[Any], int]:
    head = data[position]
    position += 1
    count, kind = head >> 4, head & 15
    if count == 15:
        count, position = decode_varint(data, position)
    if count > len(data) - position:
        raise MalformedThrift(f"a list of {count} values exceeds the data")
    if kind == _TEXT and depth < _MAX_DEPTH:
        return _texts(data, position, count)
    values = []
    for _ in range(count):
        value, position = _value(data, position, kind, depth + 1)
        values.append(value)
    return values, position


def _texts(data: memoryview, position: int, count: int) -> tuple[list[Any], int]:
    """Read `count` texts; the bounds of pages are lists of many."""
    values = []
    for _ in range(count):
        length = data[position]
        position += 1
        if length > 127:
            length, position = decode_varint(data, position - 1)
        end = position + length
        if end > len(data):
            raise MalformedThrift(f"a value of {length} bytes exceeds the data")
        values.append(bytes(data[position:end]))
        position = end
    return values, position


def _signed(data: memoryview | bytes, position: int) -> tuple[int, int]:
    value, position = decode_varint(data, position)
    return zigzag(value), position


def _fields(data: bytes, position: int, wanted: Wanted, depth: int) -> tuple[ThriftStruct, int]:
    fields: ThriftStruct = {}
    number = 0
    while True:
        head = data[position]
        position += 1
        if head == 0:
            return fields, position
        kind, delta = head & 15, head >> 4
        if delta:
            number += delta
        else:
            number, position = field_number(data, position, number, head)
        if number not in wanted:
            if kind == _STRUCT:
                position = _skip_struct(data, position, depth + 1)
            else:
                position = _skip_value(data, position, kind, depth)
        elif kind in _INTEGERS:
            value, position = decode_varint(data, position)
            fields[number] = (value >> 1) ^ -(value & 1)
        elif (inner := wanted[number]) is None:
            if kind in (_TRUE, _FALSE):
                fields[number] = kind == _TRUE
            else:
                fields[number], position = _value(memoryview(data), position, kind, depth)
        elif kind == _STRUCT:
            fields[number], position = _fields(data, position, inner, depth + 1)
        else:
            count, position = read_list_head(data, position)
            fields[number] = structs = []
            for _ in range(count):
                one, position = _fields(data, position, inner, depth + 1)
                structs.append(one)


def _skip_value(data: bytes, position: int, kind: int, depth: int) -> int:
    """The end of a field's value; fast, because reading a footer mostly skips fields."""
    if kind in _INTEGERS:
        while data[position] > 127:
            position += 1
        return position + 1
    match kind:
        case 1 | 2:
            return position
        case 8:
            length, position = decode_varint(data, position)
            return position + length
        case 12:
            return _skip_struct(data, position, depth + 1)
        case 9 | 10:
            kind = data[position] & 15
            count, position = read_list_head(data, position)
            for _ in range(count):
                position = (
                    position + 1 if kind <= _FALSE else _skip_value(data, position, kind, depth + 1)
                )
            return position
        case _:
            return _value(memoryview(data), position, kind, depth)[1]


def _skip_struct(data: bytes, position: int, depth: int) -> int:
    if depth > _MAX_DEPTH:
        raise MalformedThrift(f"values are nested more than {_MAX_DEPTH} deep")
    while head := data[position]:
        position += 1
        kind = head & 15
        if head < 16:  # the field number follows
            position = decode_varint(data, position)[1]
        if kind in _INTEGERS:
            while data[position] > 127:
                position += 1
            position += 1
        elif kind == 8 and data[position] < 128:
            position += 1 + data[position]
        else:
            position = _skip_value(data, position, kind, depth)
    return position + 1
