"""The rows of a piece that are visible and that the predicate may keep.

    rows(part) = asked for ∩ pruned(row groups, blooms) ∩ visible ∩ not hidden by its vector

Where parts overlap, what is visible is resolved from keys. Keys that the predicate refutes are of
no interest, so a predicate that leaves few row groups by their keys has visibility resolved among
those alone; otherwise it is resolved for all readers of these parts. Either answer is remembered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from rowsieve.executor.merge import merge
from rowsieve.executor.sources import PartSource
from rowsieve.executor.visibility import VisibilityCache, visible_rows
from rowsieve.executor.windows import Stream
from rowsieve.planner.plan import Piece, Read
from rowsieve.predicate.bind import BoundPredicate
from rowsieve.predicate.rowset import RowSet
from rowsieve.storage.part_writer import ROW_GROUP_ROWS
from rowsieve.types.keys import KeyOrder
from rowsieve.types.schema import Schema

FEW = 0.5  # of the rows, by their keys: up to here visibility is resolved among them alone

_VISIBLE = VisibilityCache()


class LiveRows:
    """One piece being read. `predicate` is asked of statistics only; rows come out unfiltered."""

    def __init__(
        self,
        table_uuid: str,
        piece: Piece,
        sources: Sequence[PartSource],
        schema: Schema,
        order: KeyOrder | None,
        predicate: BoundPredicate | None,
    ) -> None:
        self._parts = (table_uuid, *(part.part_id for part in piece.parts))
        self._sources = sources
        self._schema = schema
        self._order = order
        self._predicate = predicate

    def batches(self, read: Read, columns: Schema) -> Iterator[pa.RecordBatch]:
        """The live rows of one read, in file order."""
        yield from self._sources[read.part].selected(columns, self.rows(read))

    def count(self, read: Read) -> int:
        """How many live rows a read without residual has, from the manifest where that knows."""
        rows = self.rows(read)
        return self._sources[read.part].row_count if rows is None else len(rows)

    def merged(self, columns: Schema) -> Iterator[pa.RecordBatch]:
        """The live rows of all parts in key order; `columns` hold the key."""
        assert self._order is not None
        kept = None if self._predicate is None else self._kept_by_key(self._predicate)
        yield from merge(self._streams(columns, kept), self._order)

    def source(self, read: Read) -> PartSource:
        """The part of a read."""
        return self._sources[read.part]

    def rows(self, read: Read) -> RowSet | None:
        """The live rows of a read; None for all rows of the part."""
        source = self._sources[read.part]
        found: list[RowSet | None] = []
        if read.row_groups is not None:
            start, stop = (min(g * ROW_GROUP_ROWS, source.row_count) for g in read.row_groups)
            found.append(RowSet.from_ranges([(start, stop)], source.row_count))
        if read.residual and self._predicate is not None:
            found.append(source.candidates(self._predicate))
        rows = _intersection(found)
        if rows is not None and rows.is_empty:
            return rows
        return _intersection([rows, self._visible(read), source.shown()])

    def _visible(self, read: Read) -> RowSet | None:
        """What other parts leave of a read's part; None where none of them can hide any row."""
        if self._order is None or read.part == 0:
            return None
        return self._visible_in_all(self._order)[read.part]

    def _visible_in_all(self, order: KeyOrder) -> tuple[RowSet, ...]:
        predicate = self._predicate
        for known in (self._parts, (self._parts, predicate)):
            if (answer := _VISIBLE.remembered(known)) is not None:
                return answer
        if predicate is not None:
            kept = self._kept_by_key(predicate)
            if _share(kept, self._sources) <= FEW:
                return _VISIBLE.get((self._parts, predicate), lambda: self._resolve(kept, order))
        return _VISIBLE.get(self._parts, lambda: self._resolve(None, order))

    def _kept_by_key(self, predicate: BoundPredicate) -> list[tuple[RowSet, RowSet]]:
        """Of each part, the tombstones and rows whose row groups may hold a key that matters."""
        assert self._order is not None
        key = frozenset(field.id for field in self._order.fields)
        return [
            (source.tombstone_candidates(predicate, key), source.candidates(predicate, key))
            for source in self._sources
        ]

    def _resolve(
        self, kept: list[tuple[RowSet, RowSet]] | None, order: KeyOrder
    ) -> tuple[RowSet, ...]:
        """The visible rows of each part; of parts that are `kept` in part, among those."""
        streams = self._streams(self._schema.select(order.names), kept)
        counts = [
            count
            for source in self._sources
            for count in (source.tombstone_count, source.row_count)
        ]
        visible = visible_rows(streams, counts, order)[1::2]
        if kept is None:
            return tuple(visible)
        return tuple(
            rows.intersect(candidates) for rows, (_, candidates) in zip(visible, kept, strict=True)
        )

    def _streams(self, columns: Schema, kept: list[tuple[RowSet, RowSet]] | None) -> list[Stream]:
        """Tombstones, then rows, of each part, newest first; those of one part share no key."""
        assert self._order is not None
        keys = self._schema.select(self._order.names)
        streams = []
        for i, source in enumerate(self._sources):
            deleted, rows = (None, None) if kept is None else kept[i]
            streams.append(Stream(source.tombstones(keys, deleted), deletes=True))
            streams.append(Stream(source.rows(columns, rows), deletes=False))
        return streams


def _intersection(sets: Sequence[RowSet | None]) -> RowSet | None:
    """Rows of all sets; None stands for every row."""
    result: RowSet | None = None
    for rows in sets:
        if rows is not None:
            result = rows if result is None else result.intersect(rows)
    return result


def _share(kept: Sequence[tuple[RowSet, RowSet]], sources: Sequence[PartSource]) -> float:
    """Which share of all rows and tombstones is kept."""
    total = sum(source.row_count + source.tombstone_count for source in sources)
    return sum(len(deleted) + len(rows) for deleted, rows in kept) / max(total, 1)
