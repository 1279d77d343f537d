"""The rows of one version of a table without a key, each with its place among them.

A table without a key has nothing else that identifies a row, so changes whose rows DataFusion finds
read them with this column.

Soundness: places count all rows of all parts in the order of the version's manifest, hidden ones
included, so they mean the same rows in every read of the version.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from datafusion.catalog import Table as CatalogTable

from rowsieve import clock
from rowsieve.changes.hiding import part_starts
from rowsieve.executor.execute import Execution
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.ir import TRUE, Predicate
from rowsieve.predicate.rowset import RowSet
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.datafusion.pushdown_dataset import RowsDataset
from rowsieve.storage.snapshot import Snapshot
from rowsieve.table import Table
from rowsieve.types.encodings import arrow_schema, zoned_schema

PLACE: Final = "_rowsieve_place"
_PLACE_FIELD: Final = pa.field(PLACE, pa.int64(), nullable=False)
"""Not nullable, so that no rule of the optimiser pushes `IS NOT NULL` into the scan."""


def numbered_rows(table: Table, snapshot: Snapshot) -> Any:
    """A provider of the rows of a version and their places, for DataFusion."""
    return CatalogTable(_NumberedRows(table, snapshot))


class _NumberedRows(RowsDataset):
    """A Dataset with the places behind the columns of the table."""

    def __init__(self, table: Table, snapshot: Snapshot) -> None:
        super().__init__(table, zoned_schema(snapshot.schema).append(_PLACE_FIELD))
        self._snapshot = snapshot

    def rows(self, names: Sequence[str], where: Predicate) -> Iterator[pa.RecordBatch]:
        """Read the rows that match a condition on the columns of the table."""
        columns = [name for name in names if name != PLACE]
        for places, batch in _numbered(self.table, self._snapshot, where, columns):
            yield batch.append_column(PLACE, places)


def _numbered(
    table: Table, snapshot: Snapshot, predicate: Predicate, names: Sequence[str]
) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
    """The visible rows that match, with at least these columns, and their places."""
    starts = part_starts(snapshot)
    plan = plan_scan(
        snapshot,
        table.uri,
        predicate=predicate,
        semantics=Semantics.DATAFUSION,
        now_us=clock.now_us(),
    )
    execution = Execution(plan, table.handle.store, threads=1)
    bound = execution.predicate
    needed = set(names) | ({column.name for column in bound.columns} if bound else set())
    columns = plan.schema.select(tuple(n for n in plan.schema.names if n in needed))
    for source, visible, batches in execution.visible_rows(columns):
        start = starts[source.part.part_id]
        for first, batch in batches:
            chosen = visible.slice(first, first + batch.num_rows).to_mask()
            if bound is not None:  # hidden rows are not evaluated, so they cannot fail
                chosen[chosen] = matching(bound, batch.filter(pa.array(chosen)))
            places = pa.array(np.flatnonzero(chosen) + start + first, pa.int64())
            yield places, batch.filter(pa.array(chosen))


def rows_at(
    table: Table, snapshot: Snapshot, places: np.ndarray, names: Sequence[str]
) -> tuple[np.ndarray, pa.Table]:
    """The rows at these places with these columns, in any order, and the place of each."""
    ends = np.cumsum(snapshot.parts.data_rows())
    starts = part_starts(snapshot)
    touched = np.unique(np.searchsorted(ends, places, side="right"))
    chosen = replace(snapshot, parts=snapshot.parts.take(touched.tolist()))
    plan = plan_scan(chosen, table.uri, predicate=TRUE, semantics=Semantics.SQL, now_us=0)
    columns = plan.schema.select(tuple(names))
    numbers = [np.empty(0, dtype=np.int64)]
    batches: list[pa.RecordBatch] = []
    for source, _ in Execution(plan, table.handle.store).visible_parts():
        start = starts[source.part.part_id]
        wanted = np.zeros(source.row_count, dtype=bool)
        inside = places[(places >= start) & (places < start + source.row_count)]
        wanted[inside - start] = True
        for first, batch in source.rows_ahead(columns, RowSet.from_mask(wanted)):
            is_wanted = wanted[first : first + batch.num_rows]
            numbers.append(np.flatnonzero(is_wanted) + start + first)
            batches.append(batch.filter(pa.array(is_wanted)))
    return np.concatenate(numbers), pa.Table.from_batches(batches, arrow_schema(columns))
