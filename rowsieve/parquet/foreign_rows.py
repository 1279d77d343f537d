"""Reads all rows of a Parquet file that are to be copied into a table, or returned as they are.

Files in place are read by `rowsieve.executor`. Soundness: that of `foreign_values`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.parquet.file_mapping import FileMapping, adapted_tail
from rowsieve.parquet.footer import read_footer
from rowsieve.parquet.foreign_values import as_declared
from rowsieve.parquet.leaf_columns import leaves_by_name
from rowsieve.parquet.shredded_columns import without_shredded
from rowsieve.types.encodings import logical_type
from rowsieve.types.logical import LogicalType


class ForeignRows:
    """An open Parquet file; `types`: those of the table's columns, by name, as far as known.

    `source` is a path or a file object. SchemaMismatch for a value that does not fit its type.
    """

    def __init__(self, source: Any, types: Mapping[str, LogicalType]) -> None:
        self._file = pq.ParquetFile(source)
        self._metadata = self._file.metadata
        self._types = {name.lower(): type_ for name, type_ in types.items()} | dict(types)
        if columns := _with_int96(self._metadata):
            self._types = {field.name: _own_type(field) for field in columns} | self._types
            self._file = pq.ParquetFile(source, metadata=_adapted(self._metadata))

    def batches(self, row_count: int) -> Iterator[pa.RecordBatch]:
        """The rows in batches of at most `row_count`."""
        for batch in self._file.iter_batches(row_count):
            yield self._declared(batch)

    def read(self) -> pa.Table:
        """All rows."""
        table = self._file.read()
        batches = [self._declared(each) for each in table.to_batches()]
        return pa.Table.from_batches(batches or [self._declared(_no_rows(table.schema))])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _declared(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = without_shredded(batch, self._metadata)
        columns = [
            column if (type_ := self._type(name)) is None else as_declared(column, type_, name)
            for name, column in zip(rows.schema.names, rows.columns, strict=True)
        ]
        fields = [
            each.with_type(column.type) for each, column in zip(rows.schema, columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))

    def _type(self, name: str) -> LogicalType | None:
        return self._types.get(name) or self._types.get(name.lower())


def _with_int96(metadata: pq.FileMetaData) -> list[pa.Field]:
    """The columns with INT96 at any depth."""
    schema = metadata.schema.to_arrow_schema()
    leaves = leaves_by_name(schema)
    physical = [metadata.schema.column(i).physical_type for i in range(metadata.num_columns)]
    return [field for field in schema if "INT96" in {physical[i] for i in leaves[field.name]}]


def _own_type(field: pa.Field) -> LogicalType:
    return logical_type(field, lambda: 0)


def _adapted(metadata: pq.FileMetaData) -> pq.FileMetaData:
    encoded = pa.BufferOutputStream()
    metadata.write_metadata_file(encoded)
    return read_footer(adapted_tail(encoded.getvalue(), FileMapping({}), "the file"))


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], each.type) for each in schema], schema=schema)
