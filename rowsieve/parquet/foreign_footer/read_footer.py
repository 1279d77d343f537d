"""Reads and checks a footer: one walk over its fields, and numpy over the chunks.

Soundness: an error is `MalformedThrift` or `UnreadableFooter`, whatever the bytes are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow.parquet as pq

from rowsieve.byte_cache import ByteCache
from rowsieve.checksums import checksum
from rowsieve.parquet.footer_cache import cached_per_footer
from rowsieve.parquet.foreign_footer.checked_footer import TYPE_ORDER, CheckedFooter, ordered_list
from rowsieve.parquet.foreign_footer.chunk_checks import (
    contradictions,
    refuse,
    refuse_contradicting,
)
from rowsieve.parquet.foreign_footer.footer_fields import (
    COLUMNS,
    CREATED_BY,
    GROUP_ROWS,
    I32_KIND,
    I64_KIND,
    LARGEST_VALUE,
    ORDERS,
    PAIRS,
    ROW_GROUPS,
    ROWS,
    SCHEMA,
    VERSION,
    WANTED,
)
from rowsieve.parquet.foreign_footer.many_structs import ManyStructs
from rowsieve.parquet.foreign_footer.schema_tree import Element, leaves_in, read_schema
from rowsieve.parquet.foreign_footer.struct_shapes import BINARY, INTEGERS, LIST, STRUCT
from rowsieve.parquet.spans import Span
from rowsieve.parquet.thrift import (
    MalformedThrift,
    RawField,
    field_number,
    read_list_head,
    read_struct,
    skip_value,
    zigzag,
)
from rowsieve.varints import decode_varint

_LAST_BYTE: Final = 127  # a greater byte of a number is followed by another
CACHE_BYTES: Final = 64 * 1024 * 1024


_CACHE: Final[ByteCache[str, CheckedFooter]] = ByteCache(CACHE_BYTES, "footers of other writers")
"""Checked footers by checksum: a file is opened and then read."""


def check_footer(footer: bytes) -> CheckedFooter:
    """Parse and check the bytes of a footer; cached.

    MalformedThrift if they are not valid, UnreadableFooter for what is not supported.
    """
    key = checksum(footer)
    if (checked := _CACHE.get(key)) is None:
        try:
            checked = _FooterReader(footer).read()
        except (IndexError, OverflowError) as error:
            raise MalformedThrift(str(error) or "the bytes end within a struct") from error
        fields = len(WANTED)
        _CACHE.put(key, checked, len(footer) + 16 * fields * len(checked.chunks))
    return checked


@cached_per_footer
def foreign_footer(
    _: pq.FileMetaData, checked: CheckedFooter | None = None
) -> CheckedFooter | None:
    """The checked footer that a decoder's footer was made from; None in a file of our writer.

    Called first with it, where the decoder's footer is made.
    """
    return checked


class _FooterReader:
    """Reads one footer."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._groups: list[Span] = []
        self._group_rows: list[int] = []
        self._counts: list[int] = []
        self._elements: list[Element] = []
        self._structs = ManyStructs(data, WANTED)
        self._rows: list[int] = []

    def read(self) -> CheckedFooter:
        fields = self._fields()
        elements = self._elements
        pairs = dict(self._pairs(fields.get(PAIRS)))
        created_by = self._text(fields.get(CREATED_BY))
        leaves = leaves_in(elements, created_by, pairs)
        if any(count != len(leaves) for count in self._counts):
            raise MalformedThrift(f"a row group has not the {len(leaves)} columns of the schema")
        chunks = self._structs.structs(self._rows)
        rows = np.array(self._group_rows, np.int64)
        if (rows < 0).any() or rows.astype(np.float64).sum() > LARGEST_VALUE:
            raise MalformedThrift("a row group has a negative or impossible number of rows")
        refuse(chunks, leaves)
        refuse_contradicting(self._data, chunks, leaves, rows)
        suspicious, unfit = contradictions(chunks, leaves, rows)
        return CheckedFooter(
            self._data,
            fields,
            elements,
            leaves,
            pairs,
            created_by,
            self._is_ordered(fields.get(ORDERS), len(leaves)),
            zigzag(decode_varint(self._data, fields[ROWS].start)[0]),
            rows,
            chunks,
            suspicious,
            self._groups,
            suspicious | unfit,
        )

    def _fields(self) -> dict[int, RawField]:
        """The known fields of the footer; reads the schema and the row groups on the way."""
        kinds = {VERSION: I32_KIND, SCHEMA: LIST, ROWS: I64_KIND, ROW_GROUPS: LIST, PAIRS: LIST,
                 CREATED_BY: BINARY, ORDERS: LIST}  # fmt: skip
        fields = {}
        number = position = 0
        while (head := self._data[position]) != 0:
            number, kind, start = _header(self._data, position, number, head)
            wanted = kinds.get(number) == kind
            if wanted and number == ROW_GROUPS:
                position = self._read_groups(start)
            elif wanted and number == SCHEMA:
                self._elements, position = read_schema(self._data, start)
            elif wanted and number == ORDERS:
                position = self._end_of_orders(start)
            else:
                position = skip_value(self._data, start, kind)
            if position > len(self._data):
                raise MalformedThrift("a value exceeds the data")
            if wanted:
                fields[number] = RawField(number, kind, start, position)
        if missing := [each for each in (VERSION, SCHEMA, ROWS, ROW_GROUPS) if each not in fields]:
            raise MalformedThrift(f"it lacks its field {missing[0]}")
        return fields

    def _read_groups(self, start: int) -> int:
        count, position = read_list_head(self._data, start)
        self._groups, self._group_rows, self._counts, self._rows = [], [], [], []
        if count and self._data[start] & 15 != STRUCT:
            raise MalformedThrift("its row groups are not structs")
        for _ in range(count):
            position = self._read_group(position)
        return position

    def _read_group(self, first: int) -> int:
        data, number, position = self._data, 0, first
        rows, before, has_columns = None, len(self._rows), False
        while (head := data[position]) != 0:
            position += 1
            kind = head & 15
            if head >> 4:
                number += head >> 4
            else:
                number, position = field_number(data, position, number, head)
            if number == COLUMNS and kind == LIST:
                has_columns = True
                del self._rows[before:]  # the last one of two counts
                count, start = read_list_head(data, position)
                if count and data[position] & 15 != STRUCT:
                    raise MalformedThrift("the columns of a row group are not structs")
                position = self._structs.walk(start, count, self._rows)
            elif number == GROUP_ROWS and kind == I64_KIND:
                value, position = decode_varint(data, position)
                rows = zigzag(value)
            elif kind in INTEGERS:
                while data[position] > _LAST_BYTE:
                    position += 1
                position += 1
            else:
                position = skip_value(data, position, kind)
        if rows is None or not has_columns:
            raise MalformedThrift("a row group lacks its columns or its number of rows")
        self._groups.append((first, position + 1))
        self._group_rows.append(rows)
        self._counts.append(len(self._rows) - before)
        return position + 1

    def _pairs(self, field: RawField | None) -> Iterator[tuple[bytes, bytes]]:
        if field is None:
            return
        count, position = read_list_head(self._data, field.start)
        for _ in range(count):
            pair, position = read_struct(self._data, position)
            if isinstance(key := pair.get(1), bytes) and isinstance(
                value := pair.get(2, b""), bytes
            ):
                yield key, value

    def _text(self, field: RawField | None) -> str:
        if field is None:
            return ""
        length, start = decode_varint(self._data, field.start)
        return self._data[start : start + length].decode("utf-8", "replace")

    def _end_of_orders(self, start: int) -> int:
        """The end of the orders of columns, which are mostly all that of the type."""
        count, first = read_list_head(self._data, start)
        stop = first + len(TYPE_ORDER) * count
        is_short = self._data[start] & 15 == STRUCT and stop < len(self._data)
        if is_short and self._data[first:stop] == TYPE_ORDER * count:
            return stop
        return skip_value(self._data, start, LIST)

    def _is_ordered(self, field: RawField | None, leaf_count: int) -> bool:
        if field is None:
            return False
        if self._data[field.start : field.stop] == ordered_list(leaf_count):
            return True
        count, position = read_list_head(self._data, field.start)
        for _ in range(count):
            order, position = read_struct(self._data, position)
            if list(order) != [1]:
                return False
        return count == leaf_count


def _header(data: bytes, position: int, number: int, head: int) -> tuple[int, int, int]:
    """The number and kind of the field whose header begins at `position`, and its value's start."""
    number, position = field_number(data, position + 1, number, head)
    return number, head & 15, position
