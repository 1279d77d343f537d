"""Builds a Parquet file in memory from a few pages of some row groups, for a decoder to read.

Dictionaries and pages are copied unchanged; only the footer is new, for these columns and rows. The
schema is that of the file, reduced to some top-level columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pyarrow.parquet as pq

from rowsieve.parquet.footer import Tail
from rowsieve.parquet.footer_cache import cached_per_footer
from rowsieve.parquet.foreign_footer.footer_fields import CODECS, PHYSICAL
from rowsieve.parquet.pages import ChunkPages
from rowsieve.parquet.thrift import (
    I32,
    EncodedStruct,
    MalformedThrift,
    PartialStruct,
    ThriftStruct,
    begin_struct,
    read_list_head,
    read_struct,
    write_struct,
)
from rowsieve.varints import encode_varint

_MAGIC: Final = b"PAR1"
_NAME: Final = 4  # field numbers of a schema element
_CHILDREN: Final = 5
_VERSION_FIELD: Final = 0x15  # field 1, 32 bits
_LIST_FIELD: Final = 0x19  # the field after it, a list
_CACHED_LEAVES: Final = 4_096
_CACHED_SCHEMAS: Final = 16  # per file
# A chunk in Thrift: field 2, then field 3, a struct that begins with four known fields.
_CHUNK: Final = b"\x26\x00\x1c"
_I64: Final = b"\x16"  # the next field number, 64 bits
_LIST: Final = b"\x19"  # the next field number, a list
_LIST_FIRST: Final = b"\x19"  # field 1, a list
_STRUCT: Final = 12  # the kind of values in a list
_FIRST_PAGE: Final = b"\x26"  # the next field number but one
_DICTIONARY: Final = b"\x26"
_END: Final = b"\x00"
_ENCODINGS: Final = (I32(0), I32(3), I32(5), I32(8))  # plain, run lengths, deltas, dictionary
_PHYSICAL: Final = {name: I32(number) for number, name in enumerate(PHYSICAL)}
_CODECS: Final = {name: I32(number) for number, name in enumerate(CODECS)}


@dataclass(frozen=True, slots=True)
class ColumnPages:
    """The copied pages of one leaf column, in file order, and its dictionary, b"" for none."""

    chunk: ChunkPages
    dictionary: memoryview | bytes
    pages: Sequence[memoryview | bytes]


@dataclass(frozen=True, slots=True)
class GroupPages:
    """The copied pages of one row group's leaf columns; together they have `row_count` rows."""

    columns: Sequence[ColumnPages]
    row_count: int


def mini_file(prefix: PartialStruct, groups: Sequence[GroupPages]) -> bytes:
    """Encode the file; `prefix` is the beginning of its footer, with its columns in order."""
    pieces: list[memoryview | bytes] = [_MAGIC]
    position = len(_MAGIC)
    written = []
    for group in groups:
        about, position = _row_group(group, pieces, position)
        written.append(about)
    rows = sum(group.row_count for group in groups)
    footer = b"".join([prefix.data, _I64, _signed(rows), _LIST, *_structs(written), _END])
    return b"".join([*pieces, footer, len(footer).to_bytes(4, "little"), _MAGIC])


def _row_group(
    group: GroupPages, pieces: list[memoryview | bytes], position: int
) -> tuple[bytes, int]:
    """Add the pages of a row group at `position`; returns its metadata and its end position."""
    chunks = []
    first = position
    for column in group.columns:
        start, first_page = position, position + len(column.dictionary)
        pieces += [column.dictionary, *column.pages]
        position = first_page + sum(map(len, column.pages))
        chunk = column.chunk
        size = _signed(position - start)
        about = [
            _CHUNK,
            _leaf_metadata(chunk.physical, chunk.path, chunk.codec),
            _I64,
            _signed(_value_count(column, group.row_count)),
            *(_I64, size, _I64, size, _FIRST_PAGE, _signed(first_page)),
        ]
        if len(column.dictionary):
            about += [_DICTIONARY, _signed(start)]
        chunks.append(b"".join([*about, _END, _END]))
    size = _signed(position - first)
    about = [_LIST_FIRST, *_structs(chunks), _I64, size, _I64, _signed(group.row_count), _END]
    return b"".join(about), position


def _structs(written: Sequence[bytes]) -> Iterator[bytes]:
    """A list of structs: its head, then the structs."""
    count = len(written)
    yield (
        bytes((count << 4 | _STRUCT,))
        if count < 15
        else bytes((0xF0 | _STRUCT,)) + encode_varint(count)
    )
    yield from written


def _signed(value: int) -> bytes:
    """Encode a non-negative number as a signed (zigzag) varint."""
    return encode_varint(value << 1)


@lru_cache(_CACHED_LEAVES)
def _leaf_metadata(physical: str, path: str, codec: str) -> bytes:
    """The first metadata fields of a leaf's chunks, which are the same in every row group."""
    names = [part.encode() for part in path.split(".")]
    first = {1: _PHYSICAL[physical], 2: _ENCODINGS, 3: names, 4: _CODECS[codec]}
    return begin_struct(first).data


class FileSchema:
    """The schema elements of a file's footer, by top-level column; `stop` is where they end."""

    __slots__ = ("_columns", "_name", "_prefixes", "stop")

    def __init__(self, footer: bytes | memoryview) -> None:
        elements, self.stop = _schema_elements(footer)
        self._name: bytes = elements[0][0][_NAME]
        self._columns: dict[str, list[EncodedStruct]] = {}
        self._prefixes: dict[tuple[str, ...], PartialStruct] = {}  # footers, by column names
        position = 1
        while position < len(elements):
            stop = _end_of_subtree(elements, position)
            name = elements[position][0][_NAME].decode()
            self._columns[name] = [raw for _, raw in elements[position:stop]]
            position = stop

    @classmethod
    def of(cls, tail: Tail) -> FileSchema:
        """The schema in a file's footer; cached with its metadata."""
        return _schema_of(tail.metadata, tail)

    def begin(self, names: Sequence[str]) -> PartialStruct:
        """The beginning of a footer, with a schema of only these top-level columns."""
        wanted = tuple(names)
        if (prefix := self._prefixes.get(wanted)) is None:
            root = write_struct({_NAME: self._name, _CHILDREN: I32(len(names))})
            schema = [root, *(raw for name in names for raw in self._columns[name])]
            prefix = begin_struct({1: I32(2), 2: schema})
            if len(self._prefixes) >= _CACHED_SCHEMAS:
                self._prefixes.clear()
            self._prefixes[wanted] = prefix
        return prefix


@cached_per_footer
def _schema_of(_: pq.FileMetaData, tail: Tail) -> FileSchema:
    return FileSchema(tail.footer)


def _schema_elements(
    footer: bytes | memoryview,
) -> tuple[list[tuple[ThriftStruct, EncodedStruct]], int]:
    """Each schema element, parsed and as bytes, and where they end.

    A footer begins with its version and schema.
    """
    if footer[0] != _VERSION_FIELD or footer[2] != _LIST_FIELD:
        raise MalformedThrift("a footer does not begin with a version and a schema")
    count, position = read_list_head(footer, 3)
    elements = []
    for _ in range(count):
        fields, stop = read_struct(footer, position)
        elements.append((fields, EncodedStruct(footer[position:stop])))
        position = stop
    return elements, position


def _end_of_subtree(elements: Sequence[tuple[ThriftStruct, EncodedStruct]], position: int) -> int:
    open_elements = 1
    while open_elements:
        open_elements += elements[position][0].get(_CHILDREN, 0) - 1
        position += 1
    return position


def _value_count(column: ColumnPages, row_count: int) -> int:
    """The number of values and NULLs: one per row, unless the column is repeated."""
    if not column.chunk.repeats:
        return row_count
    return sum(int(read_struct(page)[0][5][1]) for page in column.pages)
