"""A part as a source: which of its row groups can matter, its rows, its tombstones' keys.

A batch holds the rows of one row group (65,536), in the table's storage types, with the columns
asked for and no others, and is numbered by the row it starts at. Row groups of which no row is
wanted are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.executor.windows import Numbered
from rowsieve.metrics import ScanMetrics
from rowsieve.objects import ObjectStore
from rowsieve.parquet.bloom_reader import BloomReader
from rowsieve.parquet.footer import open_parquet, read_row_group
from rowsieve.planner.plan import PlannedPart
from rowsieve.planner.prune_row_groups import prune_row_groups
from rowsieve.predicate.bind import BoundPredicate
from rowsieve.predicate.interpret import Verdict
from rowsieve.predicate.rowset import RowSet
from rowsieve.storage.deletion_vectors import read_deletion_vector
from rowsieve.storage.manifest import FileRef
from rowsieve.storage.part_writer import ROW_GROUP_ROWS
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.schema import Schema


class PartSource:
    """One part, read through one store; `schema` is the table's."""

    __slots__ = ("_metrics", "_schema", "_store", "_threads", "part")

    def __init__(
        self,
        store: ObjectStore,
        part: PlannedPart,
        schema: Schema,
        metrics: ScanMetrics | None = None,
        *,
        threads: bool = False,
    ) -> None:
        self.part = part
        self._store = store
        self._schema = schema
        self._metrics = ScanMetrics() if metrics is None else metrics
        self._threads = threads

    @property
    def row_count(self) -> int:
        """Rows of the file, hidden ones included."""
        return 0 if self.part.data is None else self.part.data.rows

    @property
    def tombstone_count(self) -> int:
        """Deleted keys."""
        return 0 if self.part.deletes is None else self.part.deletes.rows

    def shown(self) -> RowSet | None:
        """The rows that its deletion vector leaves; None if it has none."""
        if self.part.dv is None:
            return None
        return read_deletion_vector(self._store, self.part.dv, self.row_count).complement()

    def candidates(self, predicate: BoundPredicate, only: frozenset[int] | None = None) -> RowSet:
        """Rows of the row groups that the predicate may keep, or that may fail.

        `only`: the columns that may prune, the key's as long as versions elsewhere matter (trap
        T1).
        """
        if self.part.data is None:
            return RowSet.empty(0)
        return self._candidates(self.part.data, predicate, only)

    def tombstone_candidates(self, predicate: BoundPredicate, key: frozenset[int]) -> RowSet:
        """The tombstones of the row groups whose keys the predicate may keep."""
        if self.part.deletes is None:
            return RowSet.empty(0)
        return self._candidates(self.part.deletes, predicate, key)

    def columns_of(self, predicate: BoundPredicate) -> Schema:
        """The columns that the predicate reads."""
        return self._schema.select(tuple(column.name for column in predicate.columns))

    def rows(self, columns: Schema, wanted: RowSet | None = None) -> Iterator[Numbered]:
        """Whole row groups, those with a wanted row, in file order."""
        if self.part.data is not None:
            yield from self._stored(self.part.data, columns, wanted)

    def tombstones(self, key: Schema, wanted: RowSet | None = None) -> Iterator[Numbered]:
        """The deleted keys in key order, row groups with a wanted one."""
        if self.part.deletes is not None:
            yield from self._stored(self.part.deletes, key, wanted)

    def selected(self, columns: Schema, wanted: RowSet | None) -> Iterator[pa.RecordBatch]:
        """The wanted rows, in file order; None for all."""
        if self.part.data is None:
            return
        target = arrow_schema(columns)
        for start, batch in self._decoded(self.part.data, columns, wanted):
            here = None if wanted is None else wanted.slice(start, start + batch.num_rows)
            if here is not None and not here.is_full:
                # before text leaves its dictionary: indices are cheaper to move than text
                batch = batch.filter(pa.array(here.to_mask()))  # noqa: PLW2901
            yield _as_stored(batch, target)

    def _candidates(
        self, ref: FileRef, predicate: BoundPredicate, only: frozenset[int] | None
    ) -> RowSet:
        with open_parquet(self._store, ref) as file:
            metadata = file.metadata
        blooms = BloomReader(self._store, ref, metadata)
        verdicts = prune_row_groups(predicate, metadata, self._schema, only=only, blooms=blooms)
        kept: npt.NDArray[np.bool_] = verdicts != Verdict.NONE
        self._metrics.row_groups_considered += len(kept)
        self._metrics.row_groups_pruned += int((~kept).sum())
        return RowSet.from_row_groups(kept, ROW_GROUP_ROWS, ref.rows)

    def _stored(self, ref: FileRef, columns: Schema, wanted: RowSet | None) -> Iterator[Numbered]:
        target = arrow_schema(columns)
        for start, batch in self._decoded(ref, columns, wanted):
            yield start, _as_stored(batch, target)

    def _decoded(self, ref: FileRef, columns: Schema, wanted: RowSet | None) -> Iterator[Numbered]:
        """Row groups with a wanted row, as they decode: text may still be dictionaries."""
        if wanted is not None and wanted.is_empty:
            return
        names = list(columns.names)
        self._metrics.note_read(self.part.part_id)
        with open_parquet(self._store, ref, keep_dictionaries=True) as file:
            for group in _groups_with(wanted, ref.rows):
                table = read_row_group(file, ref.path, group, names, use_threads=self._threads)
                self._metrics.row_groups_read += 1
                self._metrics.rows_decoded += table.num_rows
                stored = _stored_bytes(file.metadata.row_group(group), frozenset(names))
                self._metrics.bytes_read += stored
                yield group * ROW_GROUP_ROWS, _as_batch(table.select(names))


def _groups_with(wanted: RowSet | None, row_count: int) -> Iterable[int]:
    groups = range(-(-row_count // ROW_GROUP_ROWS))
    if wanted is None:
        return groups
    return [
        group
        for group in groups
        if not wanted.slice(
            group * ROW_GROUP_ROWS, min((group + 1) * ROW_GROUP_ROWS, row_count)
        ).is_empty
    ]


def _as_batch(table: pa.Table) -> pa.RecordBatch:
    """One batch; a table without columns keeps its row count."""
    if not table.column_names:
        return pa.RecordBatch.from_arrays([pa.nulls(table.num_rows)], ["row"]).select([])
    columns = [
        column.chunk(0) if column.num_chunks == 1 else _joined(column) for column in table.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=table.column_names)


def _as_stored(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch in exactly these types."""
    if not schema.names:
        return batch
    columns = [
        array if array.type == field.type else array.cast(field.type)
        for array, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _joined(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _stored_bytes(group: object, names: frozenset[str]) -> int:
    columns = (group.column(i) for i in range(group.num_columns))  # type: ignore[attr-defined]
    return sum(
        column.total_compressed_size
        for column in columns
        if column.path_in_schema.split(".", 1)[0] in names or column.path_in_schema in names
    )
