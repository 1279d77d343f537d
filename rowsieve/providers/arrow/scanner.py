"""One read of a dataset with the pushed filter and columns.

It has the methods of `pyarrow.dataset.Scanner` but is not an instance: pyarrow's Scanner over
Python batches reads ahead on threads that outlive the interpreter and abort it if a reader stops
early (LIMIT). Nothing is read until a method returns rows, and each method reads again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from rowsieve.bridges.pyarrow_exprs import names_in
from rowsieve.providers.arrow.filters import PushedFilter
from rowsieve.scan import Scan
from rowsieve.types.encodings import relabelled

Columns: TypeAlias = list[str] | dict[str, pc.Expression] | None
OpenScan: TypeAlias = Callable[[PushedFilter, Sequence[str], int | None], Scan]
"""Opens a scan of a filter, columns and a limit."""


class DatasetScanner:
    """Reads the rows of one version that pass a filter, with the requested columns."""

    def __init__(
        self,
        schema: pa.Schema,
        open_scan: OpenScan,
        pushed: PushedFilter,
        expression: pc.Expression | None,
        columns: Columns,
        batch_size: int | None,
    ) -> None:
        # pyarrow itself checks names and types, and computes the output schema.
        shape = pads.InMemoryDataset(schema.empty_table()).scanner(
            columns=columns, filter=expression
        )
        self._schema = schema
        self._projected: pa.Schema = shape.projected_schema
        self._open_scan = open_scan
        self._pushed = pushed
        self._expression = None if pushed.is_exact else expression
        self._columns = columns
        self._batch_size = batch_size

    @property
    def dataset_schema(self) -> pa.Schema:
        """All columns of the dataset."""
        return self._schema

    @property
    def projected_schema(self) -> pa.Schema:
        """The output columns."""
        return self._projected

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch."""
        return self._batches(None)

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream, which reads as it is consumed."""
        return pa.RecordBatchReader.from_batches(self._projected, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_table(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(list(self.to_batches()), self._projected)

    def head(self, num_rows: int) -> pa.Table:
        """The first `num_rows` rows; stops reading once it has them."""
        slices, missing = [], num_rows
        with closing(self._batches(num_rows)) as batches:
            while missing > 0 and (batch := next(batches, None)) is not None:
                slices.append(batch.slice(0, missing))
                missing -= slices[-1].num_rows
        return pa.Table.from_batches(slices, self._projected)

    def take(self, indices: Any) -> pa.Table:
        """The rows of `to_table` at these indices."""
        return self.to_table().take(indices)

    def count_rows(self) -> int:
        """Count the rows; from the manifest alone where possible."""
        if self._expression is None:
            return self._open_scan(self._pushed, (), None).count()
        return sum(batch.num_rows for batch in self.to_batches())

    def _batches(self, limit: int | None) -> Generator[pa.RecordBatch, None, None]:
        is_plain = self._expression is None and _is_names_of(self._columns, self._schema)
        names = self._needed()
        scan = self._open_scan(self._pushed, names, limit if self._expression is None else None)
        # The plain schema: fields without the table's field ids.
        read_schema = pa.schema([self._schema.field(name) for name in names])
        for read in scan.to_batches():
            batch = relabelled(read, read_schema) if names else read
            if is_plain:
                yield from self._resized(batch)
                continue
            rows = pads.InMemoryDataset(batch).to_table(
                columns=self._columns, filter=self._expression, use_threads=False
            )
            for piece in rows.to_batches():
                yield from self._resized(piece)

    def _resized(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        size = self._batch_size or batch.num_rows
        for start in range(0, batch.num_rows, size):
            yield batch if size >= batch.num_rows else batch.slice(start, size)

    def _needed(self) -> list[str]:
        """The columns to read, in output order for plain columns."""
        if self._columns is None:
            return list(self._schema.names)
        if isinstance(self._columns, Mapping):
            wanted = set().union(*map(names_in, self._columns.values()))
        elif set(self._schema.names).issuperset(self._columns):
            wanted = set(self._columns)
        else:  # paths into structs, which pyarrow resolves
            wanted = set(self._schema.names)
        if self._expression is None and _is_names_of(self._columns, self._schema):
            return list(self._columns)
        if self._expression is not None:
            wanted |= names_in(self._expression)
        names = [name for name in self._schema.names if name in wanted]
        return names or list(self._schema.names[:1])  # without columns, a row count is lost


def _is_names_of(columns: Columns, schema: pa.Schema) -> bool:
    """Return whether the columns are distinct names of table columns."""
    if columns is None:
        return True
    names = set(schema.names)
    return (
        not isinstance(columns, Mapping)
        and len(set(columns)) == len(columns)
        and all(name in names for name in columns)
    )
