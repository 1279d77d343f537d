"""Reading a plan: each piece's sources, merged where keys may repeat, then packaged.

The order is fixed: visibility first (the merge, or a deletion vector), then the predicate, then the
limit (traps T1 and T6). A split can be read alone, anywhere, with nothing but the plan and a store.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa

from rowsieve.executor.merge import Stream, merge
from rowsieve.executor.package import Packaging, take_first
from rowsieve.executor.sources import row_batches, tombstone_batches
from rowsieve.metrics import ScanMetrics
from rowsieve.objects import ObjectStore
from rowsieve.planner.plan import Piece, PlannedPart, ScanPlan, Split
from rowsieve.storage.part_writer import ROW_GROUP_ROWS
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

    def read(self) -> Iterator[pa.RecordBatch]:
        """All rows of the plan, split after split, up to its limit."""
        return self.read_splits(self._plan.splits)

    def read_splits(self, splits: tuple[Split, ...]) -> Iterator[pa.RecordBatch]:
        """The rows of these splits, up to the plan's limit; batches are never empty."""
        batches = (batch for split in splits for batch in self._split(split))
        wall, cpu = time.perf_counter(), time.process_time()
        for batch in take_first(batches, self._plan.limit):
            self.metrics.rows_returned += batch.num_rows
            yield batch
        self.metrics.reading_s += time.perf_counter() - wall
        self.metrics.cpu_s += time.process_time() - cpu

    def count(self) -> int:
        """How many rows the plan returns; exact.

        A piece without residual that needs no merge is counted from the manifest: every row its
        part has and no deletion vector hides is visible and matches (invariant 26).
        """
        total = 0
        for split in self._plan.splits:
            for piece in split.pieces:
                known = None if piece.residual else _known_count(piece)
                if known is None:
                    known = sum(rows.num_rows for rows in self._piece(piece, output=False))
                total += known
        limit = self._plan.limit
        return total if limit is None else min(total, limit)

    def _split(self, split: Split) -> Iterator[pa.RecordBatch]:
        for piece in split.pieces:
            yield from self._piece(piece, output=True)

    def _piece(self, piece: Piece, *, output: bool) -> Iterator[pa.RecordBatch]:
        """Shaped batches of one piece; without `output` only their row counts mean anything."""
        wanted = self._packaging.columns_to_read(
            self._schema, filtered=piece.residual, output=output
        )
        for rows in self._live_rows(piece, wanted):
            shaped = self._packaging.shape(rows, filtered=piece.residual, output=output)
            if shaped.num_rows:
                yield shaped

    def _live_rows(self, piece: Piece, names: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        if not piece.needs_merge or self._order is None:
            for part in piece.parts:
                yield from self._rows(part, self._schema.select(names))
            return
        key = self._schema.select(self._order.names)
        columns = self._schema.select((*names, *(n for n in self._order.names if n not in names)))
        streams = []
        for part in piece.parts:
            if part.deletes is not None:
                deleted = tombstone_batches(
                    self._store, part, key, self.metrics, threads=self._threads
                )
                streams.append(Stream(deleted, deletes=True))
            if part.data is not None:
                streams.append(Stream(self._rows(part, columns), deletes=False))
        yield from merge(streams, self._order)

    def _rows(self, part: PlannedPart, columns: Schema) -> Iterator[pa.RecordBatch]:
        return row_batches(self._store, part, columns, self.metrics, threads=self._threads)


def _known_count(piece: Piece) -> int | None:
    if piece.needs_merge:
        return None
    (part,) = piece.parts
    if part.data is None:
        return 0
    if part.row_groups is None:
        return part.data.rows - (0 if part.dv is None else part.dv.rows)
    if part.dv is not None:
        return None
    start, stop = (min(group * ROW_GROUP_ROWS, part.data.rows) for group in part.row_groups)
    return stop - start
