"""The key-ordered streams of overlapping parts, within the memory that a read may use.

Tombstones, then rows, of each part, newest part first; those of one part share no key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest

from rowsieve.executor.memory import Footprint, rows_at_once
from rowsieve.executor.read_ahead import ReadAhead
from rowsieve.executor.sources import PartSource
from rowsieve.executor.windows import Numbered, Stream
from rowsieve.objects import ObjectStore
from rowsieve.predicate.rowset import RowSet
from rowsieve.types.keys import KeyOrder
from rowsieve.types.schema import Schema

EXPECTED = 64  # row groups of each stream that are fetched early, as memory lasts

Kept = Sequence[tuple[RowSet | None, RowSet | None]]
"""Of each part the tombstones and the rows that matter; None for all."""


@dataclass(frozen=True, slots=True)
class Streams:
    """The parts that are merged; what a read holds of them at once is `memory_bytes`."""

    store: ObjectStore
    sources: Sequence[PartSource]
    order: KeyOrder
    keys: Schema
    memory_bytes: int
    ahead: ReadAhead

    @property
    def row_counts(self) -> list[int]:
        """How many rows each stream has."""
        return [
            count for source in self.sources for count in (source.tombstone_count, source.row_count)
        ]

    def open(
        self, columns: Schema, kept: Kept | None = None, *, stored: bool = True
    ) -> list[Stream]:
        """Streams of row groups with a kept row; nothing is decoded yet.

        `columns` hold the key. Unless `stored`, only key columns come in the table's storage types
        and the others as they decode.
        """
        matter = kept or [(None, None)] * len(self.sources)
        wanted = [rows for both in matter for rows in both]
        self._expect(columns, wanted)
        footprints = [self.footprint(i, columns, rows) for i, rows in enumerate(wanted)]
        batch_rows = rows_at_once(footprints, self.memory_bytes)
        return [
            self._stream(i, columns, rows, batch_rows[i], stored, footprint)
            for i, (rows, footprint) in enumerate(zip(wanted, footprints, strict=True))
        ]

    def read(self, columns: Schema, kept: Kept) -> list[Iterator[Numbered]]:
        """The same as plain batches of whole row groups or pages, when little is kept."""
        self._expect(columns, [rows for both in kept for rows in both])
        return [
            batches
            for source, (deleted, rows) in zip(self.sources, kept, strict=True)
            for batches in (source.tombstones(self.keys, deleted), source.rows(columns, rows))
        ]

    def footprint(self, stream: int, columns: Schema, wanted: RowSet | None = None) -> Footprint:
        """What one stream takes while it is open; of a part's two, the second has the rows."""
        part, rows = divmod(stream, 2)
        source, deletes = self.sources[part], not rows
        if self.row_counts[stream] == 0 or (wanted is not None and wanted.is_empty):
            return Footprint(1, 0)
        batch = source.largest_batch(self.keys if deletes else columns, deletes=deletes)
        bounds = source.key_bounds(self.order, deletes=deletes)
        return Footprint(*batch, *(bounds or ()))

    def _expect(self, columns: Schema, wanted: Sequence[RowSet | None]) -> None:
        """Say what the streams will read: of all streams the first row groups, then the second."""
        if not self.store.overlaps:
            return
        streams = [
            self.sources[stream // 2].places(
                columns if stream % 2 else self.keys, rows, deletes=not stream % 2
            )
            for stream, rows in enumerate(wanted)
        ]
        for groups in islice(zip_longest(*streams, fillvalue=()), EXPECTED):
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
            batches = self.ahead.of(batches)  # there is more than one
        return Stream(batches, deletes, footprint.first)
