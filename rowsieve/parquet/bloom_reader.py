"""Reads the bloom filters of files, and checks the digests that our writer adds.

One flipped bit in a filter hides rows, and Parquet has no checksum for filters. Soundness: in a
file of our writer, a filter without a digest is ignored, and one that differs from its digest is
`CorruptData`. The filters of foreign files have no digests and are believed, as their data pages
are; one that is malformed, of an unknown kind, of another length than its header says, outside of
the file, without the bounds of its chunk, or of a writer with a known fault is ignored (trap T32,
invariant 45).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow.parquet as pq

from rowsieve.byte_cache import ByteCache
from rowsieve.errors import CorruptData
from rowsieve.objects import ObjectStore
from rowsieve.parquet.bloom import BloomFilter
from rowsieve.parquet.footer import NEAR_BYTES, ParquetRef, expect_tails, reading
from rowsieve.parquet.footer_cache import cached_per_footer
from rowsieve.parquet.foreign_footer.read_footer import foreign_footer
from rowsieve.parquet.leaf_columns import FileColumn
from rowsieve.parquet.seals import BLOOMS_KEY, digest, entry_at, seal_of
from rowsieve.parquet.spans import GAP_BYTES, requests
from rowsieve.parquet.statistics.foreign_chunks import chunk_statistics
from rowsieve.parquet.statistics.known_faults import Claim
from rowsieve.parquet.thrift import MalformedThrift

CACHE_BYTES: Final = 32 * 1024 * 1024
MAX_FOREIGN_BYTES: Final = 16 * 1024 * 1024
"""Larger filters of foreign files are not read."""

_WHOLE_BOUNDS: Final = ("INT32", "INT64")
FilterPlace = tuple[int, int]  # row group, leaf


class BloomReader:
    """Reads the filters of one file on demand, and caches them."""

    def __init__(self, store: ObjectStore, ref: ParquetRef, metadata: pq.FileMetaData) -> None:
        self._store = store
        self._ref = ref
        self._metadata = metadata

    def filters(self, column: FileColumn, row_groups: Sequence[int]) -> list[BloomFilter | None]:
        """The filter of each of these row groups; None if it has none that may be used.

        Neighbouring filters are read together.
        """
        key = self._key(column)
        cached = [_CACHE.get((*key, group)) for group in row_groups]
        if None not in cached:
            return cached
        missing = [
            group
            for group, each in zip(row_groups, cached, strict=True)
            if each is None and (group, column.index) in self._filter_digests()
        ]
        new: dict[int, BloomFilter] = {}
        for group, data in self._read(column, missing) if missing else ():
            if (parsed := self._parse(column, group, data)) is not None:
                new[group] = parsed
                _CACHE.put((*key, group), parsed, len(parsed.blocks))
        return [
            new.get(group) if each is None else each
            for group, each in zip(row_groups, cached, strict=True)
        ]

    def expect(self, column: FileColumn, row_groups: Sequence[int]) -> None:
        """Prefetch these filters; those of a small file with its pages, which rows need next."""
        if self._store.overlaps:
            missing = self._missing(column, row_groups)
            if missing and self._ref.tail_start <= NEAR_BYTES:
                expect_tails(self._store, [self._ref], with_pages=True)
                return
            places = [self._filter_digests()[group, column.index][:2] for group in missing]
            self._store.expect(
                (self._ref.path, start, stop) for start, stop in requests(places, GAP_BYTES)
            )

    def far(self, column: FileColumn, row_groups: Sequence[int]) -> list[int]:
        """Those whose filter needs a round trip of its own: it does not arrive with the tail."""
        if not self._store.overlaps:
            return []
        near, places = self._ref.tail_start - NEAR_BYTES, self._filter_digests()
        missing = self._missing(column, row_groups)
        return [group for group in missing if places[group, column.index][0] < near]

    def _missing(self, column: FileColumn, row_groups: Sequence[int]) -> list[int]:
        """Those that have a filter that is not cached."""
        key = self._key(column)
        return [
            group
            for group in row_groups
            if (group, column.index) in self._filter_digests() and _CACHE.get((*key, group)) is None
        ]

    def _key(self, column: FileColumn) -> tuple[object, ...]:
        return self._store.uri, self._ref.path, self._ref.tail_checksum, column.index

    def _filter_digests(self) -> dict[FilterPlace, tuple[int, int, str]]:
        """The byte range and digest of each filter; the digest is empty for foreign files."""
        return _digests_of(self._metadata, self._ref)

    def _read(self, column: FileColumn, groups: list[int]) -> Iterator[tuple[int, memoryview]]:
        places = {group: self._filter_digests()[group, column.index][:2] for group in groups}
        for start, stop in requests(places.values(), GAP_BYTES):
            with reading(self._ref.path):
                data = memoryview(self._store.get_range(self._ref.path, start, stop))
            for group, (first, last) in places.items():
                if start <= first < stop:
                    yield group, data[first - start : last - start]

    def _parse(self, column: FileColumn, group: int, data: memoryview) -> BloomFilter | None:
        start, stop, written = self._filter_digests()[group, column.index]
        where = f"{self._ref.path}, row group {group}, column {column.name!r}"
        advice = "restore the file from a copy, or the table to a version without it"
        if not written:
            return self._parsed_if_valid(column, group, data)
        if digest(data) != written:
            raise CorruptData(
                f"the bloom filter of {where} is damaged at bytes {start} to {stop}: checksum "
                f"{digest(data)}, but {written} was written; {advice}"
            )
        try:
            return BloomFilter.parse(column, data)
        except MalformedThrift as error:
            raise CorruptData(
                f"the bloom filter of {where} cannot be read: {error}; {advice}"
            ) from error

    def _parsed_if_valid(
        self, column: FileColumn, group: int, data: memoryview
    ) -> BloomFilter | None:
        """Parse a filter without a digest; None if it is malformed, or lacks the chunk's bounds.

        The bounds of integers are stored whole, so they are values of the chunk.
        """
        try:
            bloom = BloomFilter.parse(column, data, exact_length=True)
        except MalformedThrift:
            return None
        if bloom is None or not bloom.blocks.strip(b"\0"):
            return None
        footer = foreign_footer(self._metadata)
        if footer is not None and column.physical in _WHOLE_BOUNDS:
            chunk = chunk_statistics(footer, group, column.index)
            for bound in (chunk.lower, chunk.upper):
                if bound is not None and not bloom.may_contain(bound):
                    return None
        return bloom


_CACHE: ByteCache[tuple[object, ...], BloomFilter] = ByteCache(CACHE_BYTES, "bloom filters")
"""Filters by file, leaf and row group."""


@cached_per_footer
def _digests_of(
    metadata: pq.FileMetaData, ref: ParquetRef
) -> dict[FilterPlace, tuple[int, int, str]]:
    """`BloomReader._filter_digests`: asking a footer for all filters takes longer than a probe."""
    if (checked := foreign_footer(metadata)) is not None:
        return {
            (group, leaf): (start, stop, "")
            for (group, leaf), (start, stop) in checked.filter_spans()
            if 0 < start < stop <= ref.size_bytes
            and stop - start <= MAX_FOREIGN_BYTES
            and not checked.leaves[leaf].doubts & Claim.BLOOMS
        }
    places = list(_filter_ranges(metadata))
    seal = seal_of(metadata, BLOOMS_KEY, len(places))
    return {
        place: (start, stop, entry_at(seal, i))
        for i, (place, (start, stop)) in enumerate(places)
        if seal is not None and 0 < start < stop <= ref.tail_start
    }


def _filter_ranges(metadata: pq.FileMetaData) -> Iterator[tuple[FilterPlace, tuple[int, int]]]:
    """The byte range of each filter, by row group, then by leaf."""
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for leaf in range(metadata.num_columns):
            chunk = row_group.column(leaf)
            if chunk.bloom_filter_offset and chunk.bloom_filter_length:
                start = int(chunk.bloom_filter_offset)
                yield (group, leaf), (start, start + int(chunk.bloom_filter_length))
