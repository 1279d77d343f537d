"""Reading a plan: what is visible of each piece, then the predicate, then packaging and limit.

That order is fixed (traps T1 and T6). Where parts overlap, a read that needs no order resolves
visibility from the keys and then reads every part by itself; a read in key order merges them. A
split can be read alone, anywhere, with nothing but the plan and a store.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pyarrow as pa

from rowsieve.executor.merge import merge
from rowsieve.executor.package import Packaging, take_first
from rowsieve.executor.sources import row_batches, row_range, tombstone_batches
from rowsieve.executor.visibility import VisibilityCache, visible_rows
from rowsieve.executor.windows import Stream
from rowsieve.metrics import ScanMetrics
from rowsieve.objects import ObjectStore
from rowsieve.planner.plan import Piece, PlannedPart, Read, ScanPlan, Split
from rowsieve.predicate.rowset import RowSet
from rowsieve.types.keys import KeyOrder
from rowsieve.types.schema import Schema

_VISIBLE = VisibilityCache()


class Execution:
    """One plan being read through one store; its metrics are complete when all is read."""

    __slots__ = ("_order", "_packaging", "_plan", "_schema", "_store", "_threads", "metrics")

    def __init__(
        self,
        plan: ScanPlan,
        store: ObjectStore,
        metrics: ScanMetrics | None = None,
        *,
        threads: bool = True,
    ) -> None:
        self._plan = plan
        self._store = store
        self._schema = plan.schema
        self._order = KeyOrder.of(self._schema, plan.key) if plan.key else None
        self._packaging = Packaging(plan)
        self._threads = threads
        self.metrics = ScanMetrics() if metrics is None else metrics

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of every batch."""
        return self._packaging.output

    def read(self) -> Iterator[pa.RecordBatch]:
        """All rows of the plan, split after split, up to its limit."""
        return self.read_splits(self._plan.splits)

    def read_splits(self, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
        """The rows of these splits, up to the plan's limit; batches are never empty."""
        pieces = (piece for split in splits for piece in split.pieces)
        batches = (batch for piece in pieces for batch in self._piece(piece))
        wall, cpu = time.perf_counter(), time.process_time()
        for batch in take_first(batches, self._plan.limit):
            self.metrics.rows_returned += batch.num_rows
            yield batch
        self.metrics.reading_s += time.perf_counter() - wall
        self.metrics.cpu_s += time.process_time() - cpu

    def count(self) -> int:
        """How many rows the plan returns; exact.

        Rows that need no residual are counted, not read: |visible|, which for a part that overlaps
        no other is in the manifest (invariant 26).
        """
        pieces = [piece for split in self._plan.splits for piece in split.pieces]
        total = sum(self._count(piece, read) for piece in pieces for read in piece.reads)
        return total if self._plan.limit is None else min(total, self._plan.limit)

    def _piece(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        if self._plan.ordered and piece.needs_merge:
            names = self._packaging.columns_to_read(self._schema, filtered=piece.residual)
            yield from self._shaped(self._merged(piece, names), filtered=piece.residual)
            return
        for read in piece.reads:
            names = self._packaging.columns_to_read(self._schema, filtered=read.residual)
            yield from self._shaped(self._live(piece, read, names), filtered=read.residual)

    def _shaped(
        self, batches: Iterator[pa.RecordBatch], *, filtered: bool
    ) -> Iterator[pa.RecordBatch]:
        for rows in batches:
            shaped = self._packaging.shape(rows, filtered=filtered)
            if shaped.num_rows:
                yield shaped

    def _count(self, piece: Piece, read: Read) -> int:
        if read.residual:
            names = self._packaging.columns_to_read(self._schema, filtered=True, output=False)
            batches = self._live(piece, read, names)
            return sum(self._packaging.count(rows) for rows in batches)
        part = piece.parts[read.part]
        start, stop = row_range(part, read.row_groups)
        visible = self._visible(piece, read)
        if visible is not None:
            return len(visible.slice(start, stop))
        if part.dv is not None and read.row_groups is not None:
            return sum(rows.num_rows for rows in self._live(piece, read, ()))
        return stop - start - (0 if part.dv is None else part.dv.rows)

    def _live(self, piece: Piece, read: Read, names: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        """The visible rows of one part, in file order."""
        return row_batches(
            self._store,
            piece.parts[read.part],
            self._schema.select(names),
            self.metrics,
            row_groups=read.row_groups,
            visible=self._visible(piece, read),
            threads=self._threads,
        )

    def _visible(self, piece: Piece, read: Read) -> RowSet | None:
        """The visible rows of a part among others; None where no other may hide any."""
        if self._order is None or read.part == 0:
            return None
        order = self._order
        parts = (self._plan.table_uuid, *(part.part_id for part in piece.parts))
        return _VISIBLE.get(parts, lambda: self._resolve(piece, order))[read.part]

    def _resolve(self, piece: Piece, order: KeyOrder) -> tuple[RowSet, ...]:
        streams = list(self._streams(piece, self._schema.select(order.names)))
        counts = [_rows_in(part, stream) for part, stream in streams]
        visible = visible_rows([stream for _, stream in streams], counts, order)
        found = {
            part.part_id: rows
            for (part, stream), rows in zip(streams, visible, strict=True)
            if not stream.deletes
        }
        return tuple(found.get(part.part_id, RowSet.empty(0)) for part in piece.parts)

    def _merged(self, piece: Piece, names: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        """The live rows of all parts in key order."""
        assert self._order is not None
        keys = self._order.names
        columns = self._schema.select((*names, *(name for name in keys if name not in names)))
        yield from merge([stream for _, stream in self._streams(piece, columns)], self._order)

    def _streams(self, piece: Piece, columns: Schema) -> Iterator[tuple[PlannedPart, Stream]]:
        """Tombstones and rows of each part, newest first; of one part they share no key."""
        assert self._order is not None
        keys = self._schema.select(self._order.names)
        for part in piece.parts:
            if part.deletes is not None:
                deleted = tombstone_batches(
                    self._store, part, keys, self.metrics, threads=self._threads
                )
                yield part, Stream(deleted, deletes=True)
            if part.data is not None:
                rows = row_batches(self._store, part, columns, self.metrics, threads=self._threads)
                yield part, Stream(rows, deletes=False)


def _rows_in(part: PlannedPart, stream: Stream) -> int:
    ref = part.deletes if stream.deletes else part.data
    assert ref is not None
    return ref.rows
