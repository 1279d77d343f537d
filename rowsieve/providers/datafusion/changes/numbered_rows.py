"""The rows of one version of a table without a key, each with its place among them.

A table without a key has nothing else that identifies a row, so changes whose rows DataFusion finds
read them with this column.

Soundness: places count all rows of all parts in the order of the version's manifest, hidden ones
included, so they mean the same rows in every read of the version.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
from datafusion.catalog import Table as CatalogTable

from rowsieve import clock
from rowsieve.changes.hiding import part_starts
from rowsieve.errors import RowsieveError
from rowsieve.executor.execute import Execution
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.datafusion.pushdown_dataset import (
    PushdownDataset,
    PushdownFragment,
    pushed_filter,
)
from rowsieve.storage.snapshot import Snapshot
from rowsieve.table import Table
from rowsieve.types.encodings import relabelled, zoned_schema

PLACE: Final = "_rowsieve_place"


def numbered_rows(table: Table, snapshot: Snapshot) -> Any:
    """A provider of the rows of a version and their places, for DataFusion."""
    return CatalogTable(_NumberedRows(table, snapshot))


class _NumberedRows(PushdownDataset):
    """A Dataset with one partition."""

    def __init__(self, table: Table, snapshot: Snapshot) -> None:
        super().__init__(zoned_schema(snapshot.schema).append(pa.field(PLACE, pa.int64())))
        self._table = table
        self._snapshot = snapshot

    def get_fragments(self, filter: Any = None) -> list[_NumberedRead]:  # noqa: A002
        """Return the only fragment."""
        return [_NumberedRead(self._table, self._snapshot, pushed_filter(filter))]


class _NumberedRead(PushdownFragment):
    """All rows that match a predicate on the columns of the table."""

    __slots__ = ("_predicate", "_snapshot", "_table")

    def __init__(self, table: Table, snapshot: Snapshot, predicate: Predicate) -> None:
        super().__init__()
        self._table = table
        self._snapshot = snapshot
        self._predicate = predicate

    def _read(self, output: pa.Schema) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._batches(output)
        except RowsieveError as error:
            self._table.engine_error = error
            raise

    def _batches(self, output: pa.Schema) -> Iterator[pa.RecordBatch]:
        snapshot = self._snapshot
        starts = part_starts(snapshot)
        plan = plan_scan(
            snapshot,
            self._table.uri,
            predicate=self._predicate,
            semantics=Semantics.DATAFUSION,
            now_us=clock.now_us(),
        )
        execution = Execution(plan, self._table.store, threads=1)
        predicate = execution.predicate
        needed = set(output.names)
        if predicate is not None:
            needed |= {column.name for column in predicate.columns}
        columns = plan.schema.select(tuple(n for n in plan.schema.names if n in needed))
        for source, visible, batches in execution.visible_rows(columns):
            start = starts[source.part.part_id]
            for first, batch in batches:
                kept = visible.slice(first, first + batch.num_rows).to_mask()
                if predicate is not None:  # hidden rows are not evaluated, so they cannot fail
                    kept[kept] = matching(predicate, batch.filter(pa.array(kept)))
                rows = batch.filter(pa.array(kept))
                places = pa.array(np.flatnonzero(kept) + start + first, pa.int64())
                found = [
                    places if name == PLACE else rows.column(rows.schema.get_field_index(name))
                    for name in output.names
                ]
                batch_of = pa.RecordBatch.from_arrays(found, output.names)
                yield relabelled(batch_of, output)
