"""Write the digests of a finished file's chunks, pages and bloom filters into its footer.

Only the finished footer has the positions of what is digested. So the writer adds blank key-value
pairs before it closes the file, and `sealed_tail` overwrites the blanks with digests (xxh3_64, 16
hexadecimal digits each) or other entries of 16 characters. The checksum of the tail covers the
footer itself. A blank of the wrong size stays blank: the file then has no such digests. Without the
expected page boundaries there is no page directory (see `rowsieve.parquet.pages`).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from itertools import pairwise, starmap
from operator import itemgetter
from typing import Final, TypeAlias

import numpy as np
import xxhash

from rowsieve.parquet.pages import BEFORE_PAGES, NOWHERE, PAGE_ENTRY, PAGES_KEY, ROWS_KEY
from rowsieve.parquet.seals import BLANK, BLOOMS_KEY, CHUNKS_KEY
from rowsieve.parquet.spans import Span
from rowsieve.parquet.thrift import ThriftStruct, Wanted, read_fields
from rowsieve.varints import encode_varint

ReadSpan: TypeAlias = Callable[[int, int], memoryview]
"""Returns bytes [start, stop) of a file that is being written."""

_AFTER_FOOTER: Final = 8  # its length and the magic number
_MAGIC_BYTES: Final = 4
_READ_BYTES: Final = 8 * 1024 * 1024  # of a chunk at once while its digests are computed
# The footer's row groups; the chunks and row count of each; of each chunk the positions of its
# column data, bloom filter, offset index and column index.
_SIZE, _DATA, _DICTIONARY, _FILTER, _FILTER_BYTES = 7, 9, 11, 14, 15
_PLACES: Final[Wanted] = dict.fromkeys((_SIZE, _DATA, _DICTIONARY, _FILTER, _FILTER_BYTES))
_ROW_GROUPS: Final[Wanted] = {4: {1: {3: _PLACES, 4: None, 6: None}, 3: None}}
_LOCATIONS: Final[Wanted] = {1: {1: None, 2: None}}


def blank(key: str, count: int) -> dict[str, str]:
    """A blank key-value pair for `count` entries, to add before the file is closed."""
    return {key: BLANK * count} if count else {}


def blank_seals(
    row_counts: Sequence[int], leaves: int, blooms: int, page_rows: int
) -> dict[str, str]:
    """Blank key-value pairs of a file: the rows, leaves and filters of each of its row groups."""
    entries = 0
    for rows in row_counts:
        entries += BEFORE_PAGES - (-rows // page_rows)
    return {
        **blank(BLOOMS_KEY, len(row_counts) * blooms),
        **blank(CHUNKS_KEY, len(row_counts) * leaves),
        ROWS_KEY: str(page_rows),
        **blank(PAGES_KEY, entries * leaves),
    }


def sealed_tail(size_bytes: int, read: ReadSpan, page_rows: int) -> tuple[int, bytearray]:
    """Return where the tail of a complete file begins, and the tail with digests in its blanks.

    The tail is what follows data and bloom filters. Reads each chunk and filter once.
    """
    length = int.from_bytes(read(size_bytes - _AFTER_FOOTER, size_bytes - 4), "little")
    footer = bytes(read(size_bytes - _AFTER_FOOTER - length, size_bytes))
    groups = read_fields(footer, 0, _ROW_GROUPS).get(4, ())
    start, filters = _MAGIC_BYTES, []
    for group in groups:
        for chunk in group[1]:
            start = max(start, _span_of(chunk[3])[1])
            if _FILTER in chunk[3] and (filter_bytes := chunk[3].get(_FILTER_BYTES)):
                first = chunk[3][_FILTER]
                filters.append((first, first + filter_bytes))
                start = max(start, first + filter_bytes)
    tail = bytearray(read(start, size_bytes))
    of_filters = map(xxhash.xxh3_64_hexdigest, starmap(read, filters))
    _fill(tail, len(footer), BLOOMS_KEY, "".join(of_filters))
    of_chunks, of_pages = _digests(bytes(tail), start, groups, read, page_rows)
    _fill(tail, len(footer), CHUNKS_KEY, of_chunks)
    _fill(tail, len(footer), PAGES_KEY, of_pages)
    return start, tail


def _span_of(places: ThriftStruct) -> Span:
    """The byte range of a chunk, from its dictionary or first page on."""
    start = places[_DATA]
    if dictionary := places.get(_DICTIONARY):
        start = min(start, dictionary)
    return start, start + places[_SIZE]


def _digests(
    tail: bytes, tail_start: int, groups: Sequence[ThriftStruct], read: ReadSpan, page_rows: int
) -> tuple[str, str]:
    """The entries of all chunks, and of all pages; none of pages where a boundary is another."""
    is_whole = True
    of_chunks: list[str] = []
    of_pages: list[tuple[int, int]] = []
    for group in groups:
        entries = BEFORE_PAGES - (-group[3] // page_rows)
        for chunk in group[1]:
            span = _span_of(chunk[3])
            starts = _starts_of(tail, chunk, span, tail_start)
            if starts is not None and len(starts) != entries:
                starts = None
            of_chunk, of_each = _digests_of_chunk(read, span, starts)
            of_chunks.append(of_chunk)
            if starts is None:
                is_whole = False
                continue
            of_pages.append((chunk[6] - tail_start if 6 in chunk else NOWHERE, 0))
            of_pages += zip(map((-span[0]).__add__, starts[:-1]), of_each, strict=True)
    offsets = list(map(itemgetter(0), of_pages))
    if not is_whole or not 0 <= min(offsets, default=0) <= max(offsets, default=0) <= NOWHERE:
        return "".join(of_chunks), ""
    encoded = base64.b64encode(np.array(of_pages, PAGE_ENTRY).tobytes())
    return "".join(of_chunks), encoded.decode()


def _starts_of(tail: bytes, chunk: ThriftStruct, span: Span, tail_start: int) -> list[int] | None:
    """The start of a chunk's dictionary and pages, and its end; None if there are gaps."""
    start, stop = span
    if chunk.get(4, 0) < tail_start or stop - start >= NOWHERE:
        return None
    starts, end = [start], None
    for location in read_fields(tail, chunk[4] - tail_start, _LOCATIONS)[1]:
        if end not in (None, location[1]):
            return None
        starts.append(location[1])
        end = location[1] + location[2]
    return [*starts, stop] if end == stop else None


def _digests_of_chunk(
    read: ReadSpan, span: Span, starts: Sequence[int] | None
) -> tuple[str, list[int]]:
    """Return the digest of a chunk, and of its pages; without `starts`, of pieces of it.

    A long chunk is read page by page, so that memory does not grow with it.
    """
    start, stop = span
    bounds = starts or [*range(start, stop, _READ_BYTES), stop]
    whole = read(start, stop) if stop - start <= _READ_BYTES else None
    chunk, of_each = xxhash.xxh3_64(), []
    for first, last in pairwise(bounds):
        piece = read(first, last) if whole is None else whole[first - start : last - start]
        chunk.update(piece)
        of_each.append(xxhash.xxh3_64_intdigest(piece))
    return str(chunk.hexdigest()), of_each


def _fill(tail: bytearray, footer_bytes: int, key: str, text: str) -> None:
    """Write the joined entries into their blank in the footer at the end of the tail, in place."""
    footer, name = len(tail) - footer_bytes, key.encode()
    # a key-value pair is two binary fields of a thrift struct
    head = b"\x18" + encode_varint(len(name)) + name + b"\x18" + encode_varint(len(text))
    empty = head + b"-" * len(text)
    if text and tail.count(empty, footer) == 1:
        start = tail.index(empty, footer) + len(head)
        tail[start : start + len(text)] = text.encode()
