"""Reads the statistics in foreign footers, and keeps the well-formed ones (trap T32).

pyarrow must not see them first: it stops the process at a bound that is shorter than its type.
Soundness: a bound of the wrong length is unknown, and so is a negative count. Bounds of text,
bytes, fixed-length values and unsigned numbers count only if the footer declares for all columns
that bounds are in the order of the type: in older files they are ordered by signed bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from rowsieve.parquet.thrift import (
    I32,
    I64,
    EncodedStruct,
    RawField,
    ThriftStruct,
    encoded_value,
    join_fields,
    raw_fields,
    read_fields,
    read_list_head,
    read_struct,
)
from rowsieve.varints import encode_varint

SCHEMA, ROW_GROUPS, PAIRS, ORDERS = 2, 4, 5, 7  # field numbers of a footer
NAME, CHILDREN, FIELD_ID = 4, 5, 9  # of a schema element
_TYPE, _WIDTH, _REPETITION, _CONVERTED, _LOGICAL = 1, 2, 3, 6, 10
_UNSIGNED: Final = range(11, 15)  # converted types
_NO_ORDER: Final = 21  # the converted type of intervals
_INTEGER, _IS_SIGNED = 10, 2  # a logical type, and its field
_WITHOUT_ORDER: Final = (15, 16, 17, 18)  # half floats, variants, geometry, geography
_INT96_BYTES: Final = 12
_COLUMNS, _ROWS = 1, 3  # of a row group
_METADATA: Final = 3  # of a column chunk
_CHUNK_TYPE, _STATISTICS = 1, 12  # of its metadata
_OLD_MAX, _OLD_MIN, _NULLS, _MAX, _MIN = 1, 2, 3, 5, 6
_BOOLEAN, _INT32, _INT64, _INT96, _FLOAT, _DOUBLE, _BYTES, _FIXED = range(8)
_LENGTHS: Final = {_BOOLEAN: 1, _INT32: 4, _INT64: 8, _FLOAT: 4, _DOUBLE: 8}
_STRUCT: Final = 12
_VERSION: Final = b"\x15"  # the first field, 32 bits
_LIST_AFTER_VERSION: Final = b"\x19"
_LIST_AFTER_CREATOR: Final = b"\x19"  # the list in the field after the writer's name
_BY_TYPE: Final = b"\x1c\0\0"
_WANTED: Final = {ROW_GROUPS: {_COLUMNS: {_METADATA: {_STATISTICS: None}}, _ROWS: None}}


_Changes: TypeAlias = dict[int, Callable[[RawField], bytes]]


class Leaf(NamedTuple):
    """A leaf column: its physical type, the bytes of a fixed-length value, and what orders it."""

    physical: int
    width: int
    is_signed: bool
    has_order: bool


class ChunkStatistics(NamedTuple):
    """The well-formed statistics of a column chunk; None is unknown."""

    nulls: int | None = None
    lower: bytes | None = None
    upper: bytes | None = None


UNKNOWN: Final = ChunkStatistics()


def leaves_in(footer: bytes) -> list[Leaf]:
    """The leaf columns of a footer, in their order."""
    if footer[:1] == _VERSION and footer[2:3] == _LIST_AFTER_VERSION:  # skips nothing
        count, position = read_list_head(footer, 3)
        elements = []
        for _ in range(count):
            element, position = read_struct(footer, position)
            elements.append(element)
    else:
        wanted = dict.fromkeys((_TYPE, _WIDTH, CHILDREN, _CONVERTED, _LOGICAL))
        elements = read_fields(footer, 0, {SCHEMA: wanted})[SCHEMA]
    return [_leaf(each) for each in elements if _TYPE in each and not each.get(CHILDREN)]


def orders_by_type(footer: bytes, leaf_count: int) -> bool:
    """Return whether a footer declares for all columns that bounds are in the order of the type.

    A footer usually ends with this list, so its end is compared before the footer is walked.
    """
    if footer.endswith(_LIST_AFTER_CREATOR + ordered_list(leaf_count) + b"\0"):
        return True
    fields, _ = raw_fields(footer, 0)
    return any(each.number == ORDERS and _are_by_type(footer, each) for each in fields)


def ordered_list(leaf_count: int) -> bytes:
    """The encoded orders of columns: that of the type for each."""
    short = leaf_count < 15
    head = bytes([leaf_count << 4 | _STRUCT]) if short else b"\xfc" + encode_varint(leaf_count)
    return head + _BY_TYPE * leaf_count


def row_group_statistics(
    footer: bytes, leaves: Sequence[Leaf]
) -> Iterator[tuple[int, list[ChunkStatistics]]]:
    """Yield for each row group its rows, and the statistics of each leaf column."""
    by_type = orders_by_type(footer, len(leaves))
    for group in read_fields(footer, 0, _WANTED).get(ROW_GROUPS, []):
        chunks = group.get(_COLUMNS, [])
        found = [
            checked(chunk.get(_METADATA, {}).get(_STATISTICS), leaf, by_type=by_type)
            for chunk, leaf in zip(chunks, leaves, strict=True)
        ]
        yield int(group[_ROWS]), found


def checked(statistics: ThriftStruct | None, leaf: Leaf, *, by_type: bool) -> ChunkStatistics:
    """Keep the statistics that are well formed and in the order of the type."""
    if not isinstance(statistics, dict):
        return UNKNOWN
    nulls = statistics.get(_NULLS)
    nulls = nulls if isinstance(nulls, int) and nulls >= 0 else None
    lower = upper = None
    if leaf.has_order and (by_type or leaf.is_signed):
        older = not by_type
        lower = statistics.get(_MIN, statistics.get(_OLD_MIN) if older else None)
        upper = statistics.get(_MAX, statistics.get(_OLD_MAX) if older else None)
    if not (is_bound(lower, leaf) and is_bound(upper, leaf)):
        lower = upper = None
    return ChunkStatistics(nulls, lower, upper)


def value_in(bound: bytes, leaf: Leaf) -> Any:
    """Decode a bound of the right length to a value for `StoredBounds`."""
    match leaf.physical:
        case 0:
            return bound != b"\0"
        case 1 | 2:
            return int.from_bytes(bound, "little", signed=True)
        case 4:
            return struct.unpack("<f", bound)[0]
        case 5:
            return struct.unpack("<d", bound)[0]
        case _:
            return bound


def sound_row_groups(footer: bytes, field: RawField) -> bytes:
    """Re-encode the row groups of a footer with the well-formed statistics only."""
    leaves = leaves_in(footer)
    by_type = orders_by_type(footer, len(leaves))
    count, position = read_list_head(footer, field.start)
    written = [footer[field.start : position]]
    for _ in range(count):
        fields, position = raw_fields(footer, position)
        columns = {_COLUMNS: lambda raw: _chunks(footer, raw, leaves, by_type)}
        written.append(_changed(footer, fields, columns))
    return b"".join(written)


def _chunks(footer: bytes, field: RawField, leaves: Sequence[Leaf], by_type: bool) -> bytes:
    _, position = read_list_head(footer, field.start)
    written = [footer[field.start : position]]
    for leaf in leaves:
        fields, position = raw_fields(footer, position)

        def metadata(raw: RawField, leaf: Leaf = leaf) -> bytes:
            inner, _ = raw_fields(footer, raw.start)
            changes: _Changes = {_STATISTICS: lambda own: _statistics(footer, own, leaf, by_type)}
            if leaf.physical == _INT96:
                changes[_CHUNK_TYPE] = lambda _: encoded_value(I32(_FIXED))[1]
            return _changed(footer, inner, changes)

        written.append(_changed(footer, fields, {_METADATA: metadata}))
    return b"".join(written)


def _statistics(footer: bytes, field: RawField, leaf: Leaf, by_type: bool) -> bytes:
    found = checked(read_struct(footer, field.start)[0], leaf, by_type=by_type)
    values = {_NULLS: found.nulls, _MAX: found.upper, _MIN: found.lower}
    return join_fields(
        (number, *encoded_value(I64(value) if isinstance(value, int) else value))
        for number, value in values.items()
        if value is not None
    )


def _changed(data: bytes, fields: Sequence[RawField], changes: _Changes) -> EncodedStruct:
    """Re-encode a struct with the values of some fields changed."""
    return join_fields(
        (
            each.number,
            each.kind,
            changes[each.number](each) if each.number in changes else data[each.start : each.stop],
        )
        for each in sorted(fields)
    )


def readable_element(data: bytes, fields: Sequence[RawField]) -> list[tuple[int, int, bytes]]:
    """The fields of a schema element without its id, with INT96 as fixed bytes (`int96`)."""
    values = [
        (each.number, each.kind, data[each.start : each.stop])
        for each in fields
        if each.number != FIELD_ID
    ]
    if (_TYPE, *encoded_value(I32(_INT96))) not in values:
        return values
    kept = [each for each in values if each[0] in (_REPETITION, NAME)]
    fixed = {_TYPE: I32(_FIXED), _WIDTH: I32(_INT96_BYTES)}
    return [*kept, *((number, *encoded_value(value)) for number, value in fixed.items())]


def is_bound(bound: Any, leaf: Leaf) -> bool:
    """Return whether the bytes have the length of a bound of this column."""
    if not isinstance(bound, bytes):
        return False
    wanted = leaf.width if leaf.physical == _FIXED else _LENGTHS.get(leaf.physical, len(bound))
    return len(bound) == wanted


def _leaf(element: ThriftStruct) -> Leaf:
    physical, converted = int(element[_TYPE]), element.get(_CONVERTED)
    logical = element.get(_LOGICAL, {})
    integer = logical.get(_INTEGER, {})
    unsigned = converted in _UNSIGNED or integer.get(_IS_SIGNED) is False
    ordered = physical != _INT96 and converted != _NO_ORDER
    return Leaf(
        physical,
        int(element.get(_WIDTH, 0)),
        physical not in (_BYTES, _FIXED) and not unsigned,
        ordered and not any(kind in logical for kind in _WITHOUT_ORDER),
    )


def _are_by_type(footer: bytes, field: RawField) -> bool:
    count, position = read_list_head(footer, field.start)
    for _ in range(count):
        order, position = read_struct(footer, position)
        if list(order) != [1]:
            return False
    return True
