"""Reading a plan: what is visible of each piece, then the predicate, then packaging and limit.

That order is fixed (traps T1 and T6). Where parts overlap, a read that needs no order resolves
visibility from the keys and then reads every part by itself; a read in key order merges them. A
split can be read alone, anywhere, with nothing but the plan and a store.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pyarrow as pa

from rowsieve.executor.live_rows import LiveRows
from rowsieve.executor.package import Packaging, take_first
from rowsieve.executor.sources import PartSource
from rowsieve.metrics import ScanMetrics
from rowsieve.objects import ObjectStore
from rowsieve.planner.plan import Piece, ScanPlan, Split
from rowsieve.predicate.bind import BoundPredicate
from rowsieve.predicate.rowset import RowSet
from rowsieve.types.keys import KeyOrder
from rowsieve.types.schema import Schema


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

    @property
    def predicate(self) -> BoundPredicate | None:
        """What every returned row satisfies; None when nothing was asked."""
        return self._packaging.filter

    def visible_parts(self) -> Iterator[tuple[PartSource, RowSet | None]]:
        """Every part that is read, with its visible rows; None where all of them are."""
        for split in self._plan.splits:
            for piece in split.pieces:
                live = self._live(piece)
                for read in piece.reads:
                    yield live.source(read), live.rows(read)

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
            yield self._packaging.project(batch)
        self.metrics.reading_s += time.perf_counter() - wall
        self.metrics.cpu_s += time.process_time() - cpu

    def count(self) -> int:
        """How many rows the plan returns; exact.

        Rows that need no residual are counted, not read: |visible|, which for a part that overlaps
        no other is in the manifest (invariant 26).
        """
        pieces = [piece for split in self._plan.splits for piece in split.pieces]
        limit, total = self._plan.limit, 0
        for piece in pieces:
            if limit is not None and total >= limit:
                return limit
            total += self._count(piece)
        return total if limit is None else min(total, limit)

    def _piece(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        live = self._live(piece)
        if self._plan.ordered and piece.needs_merge:
            assert self._order is not None
            columns = self._columns(filtered=piece.residual, also=self._order.names)
            yield from self._matching(live.merged(columns), filtered=piece.residual)
            return
        for read in piece.reads:
            columns = self._columns(filtered=read.residual)
            yield from self._matching(live.batches(read, columns), filtered=read.residual)

    def _count(self, piece: Piece) -> int:
        live = self._live(piece)
        total = 0
        for read in piece.reads:
            if read.residual:
                columns = self._columns(filtered=True, output=False)
                total += sum(self._packaging.count(b) for b in live.batches(read, columns))
            else:
                total += live.count(read)
        return total

    def _matching(
        self, batches: Iterator[pa.RecordBatch], *, filtered: bool
    ) -> Iterator[pa.RecordBatch]:
        for rows in batches:
            kept = self._packaging.select(rows, filtered=filtered)
            if kept.num_rows:
                yield kept

    def _columns(
        self, *, filtered: bool, output: bool = True, also: tuple[str, ...] = ()
    ) -> Schema:
        """The columns that rows must have for the predicate and the output."""
        names = self._packaging.columns_to_read(self._schema, filtered=filtered, output=output)
        return self._schema.select((*names, *(name for name in also if name not in names)))

    def _live(self, piece: Piece) -> LiveRows:
        sources = [
            PartSource(self._store, part, self._schema, self.metrics, threads=self._threads)
            for part in piece.parts
        ]
        return LiveRows(
            self._plan.table_uuid,
            piece,
            sources,
            self._schema,
            self._order,
            self._packaging.filter if self._plan.pruning else None,
        )
