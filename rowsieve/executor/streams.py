"""Opens overlapping parts as key-ordered streams, within the memory limit of a read.

Each part gives two streams, tombstones and then rows, newest part first. The tombstones and rows of
one part have no key in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest

from rowsieve.executor.merging.merge_memory import Footprint, rows_at_once
from rowsieve.executor.merging.windows import Numbered, Stream
from rowsieve.executor.part_sources import PartSource
from rowsieve.executor.read_ahead import ReadAhead
from rowsieve.objects import ObjectStore
from rowsieve.predicate.rowset import RowSet
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema

PREFETCHED = 64  # row groups that each stream prefetches, if memory allows

CandidateRows = Sequence[tuple[RowSet | None, RowSet | None]]
"""The tombstones and rows of each part to read; None for all."""


@dataclass(frozen=True, slots=True)
class Streams:
    """The parts of one merge; the merge buffers at most `memory_bytes` of them."""

    store: ObjectStore
    sources: Sequence[PartSource]
    order: KeyOrder
    keys: Schema
    memory_bytes: int
    ahead: ReadAhead

    @property
    def row_counts(self) -> list[int]:
        """The number of rows of each stream."""
        return [
            count for source in self.sources for count in (source.tombstone_count, source.row_count)
        ]

    def open(
        self, columns: Schema, candidates: CandidateRows | None = None, *, stored: bool = True
    ) -> list[Stream]:
        """Open the streams over row groups with a kept row; decodes nothing yet.

        `columns` include the key. Unless `stored`, only key columns are cast to storage types; the
        others keep the decoder's types.
        """
        wanted = [rows for both in self._all_or(candidates) for rows in both]
        self._expect(columns, wanted)
        footprints = [self.footprint(i, columns, rows) for i, rows in enumerate(wanted)]
        batch_rows = rows_at_once(footprints, self.memory_bytes)
        return [
            self._stream(i, columns, rows, batch_rows[i], stored, footprint)
            for i, (rows, footprint) in enumerate(zip(wanted, footprints, strict=True))
        ]

    def read(
        self, columns: Schema, candidates: CandidateRows | None = None
    ) -> list[Iterator[Numbered]]:
        """The streams as batches of whole row groups or pages, for few kept rows."""
        candidates = self._all_or(candidates)
        self._expect(columns, [rows for both in candidates for rows in both])
        return [
            batches
            for source, (deleted, rows) in zip(self.sources, candidates, strict=True)
            for batches in (source.tombstones(self.keys, deleted), source.rows(columns, rows))
        ]

    def _all_or(self, candidates: CandidateRows | None) -> CandidateRows:
        return [(None, None)] * len(self.sources) if candidates is None else candidates

    def footprint(self, stream: int, columns: Schema, wanted: RowSet | None = None) -> Footprint:
        """The memory that one stream needs while it is open; rows have odd stream numbers."""
        part, rows = divmod(stream, 2)
        source, deletes = self.sources[part], not rows
        count = source.tombstone_count if deletes else source.row_count
        if not count or (wanted is not None and wanted.is_empty):
            return Footprint(1, 0)
        batch = source.largest_batch(self.keys if deletes else columns, deletes=deletes)
        bounds = source.key_bounds(self.order, deletes=deletes)
        return Footprint(*batch, *(bounds or ()))

    def _expect(self, columns: Schema, wanted: Sequence[RowSet | None]) -> None:
        """Prefetch the first row group of every stream, then the second of each, and so on."""
        if not self.store.overlaps:
            return
        streams = [
            self.sources[stream // 2].places(
                columns if stream % 2 else self.keys, rows, deletes=not stream % 2
            )
            for stream, rows in enumerate(wanted)
        ]
        for groups in islice(zip_longest(*streams, fillvalue=()), PREFETCHED):
            self.store.expect(place for group in groups for place in group)

    def _stream(
        self,
        stream: int,
        columns: Schema,
        wanted: RowSet | None,
        batch_rows: int,
        stored: bool,
        footprint: Footprint,
    ) -> Stream:
        part, rows = divmod(stream, 2)
        source, deletes = self.sources[part], not rows
        if deletes:
            batches = source.tombstones(self.keys, wanted, batch_rows)
        else:
            cast = columns if stored else self.keys
            batches = source.rows(columns, wanted, batch_rows, cast=cast)
        if footprint.last and (wanted is None or len(wanted) > footprint.batch_rows):
            batches = self.ahead.of(batches)  # the stream has several batches
        return Stream(batches, deletes, footprint.first)
