"""Reads all rows of a Parquet file that are to be copied into a table, or returned as they are.

Files in place are read by `rowsieve.executor`. Soundness: that of `foreign_values`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.errors import UnsupportedOperation
from rowsieve.parquet.codec_columns import hidden_names
from rowsieve.parquet.file_mapping import as_tail
from rowsieve.parquet.footer import read_footer
from rowsieve.parquet.foreign_footer.checked_footer import CheckedFooter
from rowsieve.parquet.foreign_footer.chunk_checks import UnreadableFooter
from rowsieve.parquet.foreign_footer.footer_fields import ENCRYPTED_MAGIC, MAGIC
from rowsieve.parquet.foreign_footer.read_footer import check_footer
from rowsieve.parquet.foreign_footer.schema_tree import INT96, Leaf
from rowsieve.parquet.foreign_values import as_declared, typed_leaves
from rowsieve.parquet.leaf_columns import leaves_by_name
from rowsieve.parquet.shredded_columns import without_shredded
from rowsieve.parquet.thrift import MalformedThrift
from rowsieve.types.encodings import logical_type
from rowsieve.types.logical import LogicalType

_AFTER_FOOTER: Final = 8  # its length and the magic number


class ForeignRows:
    """An open Parquet file; `types`: those of the table's columns, by name, as far as known.

    `source` is a path or a file object. SchemaMismatch for a value that does not fit its type.
    """

    def __init__(self, source: Any, types: Mapping[str, LogicalType]) -> None:
        checked = _checked(source)
        elements = [(each, each.field_id) for each in checked.elements]
        self._metadata = read_footer(as_tail(checked.sanitised(elements, checked.pairs)))
        self._types = {name.lower(): type_ for name, type_ in types.items()} | dict(types)
        fields = _with_int96(self._metadata.schema.to_arrow_schema(), checked.leaves)
        self._types = {field.name: _own_type(field) for field in fields} | self._types
        self._file = pq.ParquetFile(source, metadata=self._metadata)

    def batches(self, row_count: int) -> Iterator[pa.RecordBatch]:
        """The rows in batches of at most `row_count`."""
        for batch in self._file.iter_batches(row_count):
            yield self._declared(batch)

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows, of these columns or of all."""
        table = self._file.read(None if columns is None else list(columns))
        batches = [self._declared(each) for each in table.to_batches()]
        return pa.Table.from_batches(batches or [self._declared(_no_rows(table.schema))])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _declared(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = without_shredded(batch, self._metadata)
        if hidden := hidden_names(self._metadata.metadata or {}, "the file"):
            rows = rows.select([name for name in rows.schema.names if name not in hidden])
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


def _checked(source: Any) -> CheckedFooter:
    """The footer of a file; ArrowInvalid for bytes that are none, as the decoder raises."""
    opened = pa.OSFile(os.fspath(source), "rb") if isinstance(source, str | os.PathLike) else source
    try:
        size = opened.seek(0, os.SEEK_END)
        opened.seek(max(0, size - _AFTER_FOOTER))
        end = opened.read(_AFTER_FOOTER)
        length = int.from_bytes(end[:4], "little")
        if end[4:] not in (MAGIC, ENCRYPTED_MAGIC) or length > size - _AFTER_FOOTER:
            raise pa.ArrowInvalid("it does not end with a footer and PAR1")
        if end[4:] == ENCRYPTED_MAGIC:
            raise UnsupportedOperation("an encrypted Parquet file is not supported; decrypt it")
        opened.seek(size - _AFTER_FOOTER - length)
        return check_footer(bytes(opened.read(length)))
    except MalformedThrift as error:
        raise pa.ArrowInvalid(f"its footer is not valid: {error}") from error
    except UnreadableFooter as error:
        raise UnsupportedOperation(f"a Parquet file cannot be read: {error}") from error
    finally:
        if opened is source:
            opened.seek(0)
        else:
            opened.close()


def _with_int96(schema: pa.Schema, stored: Sequence[Leaf]) -> Iterator[pa.Field]:
    """The columns with INT96 at any depth, which have times there."""
    leaves = leaves_by_name(schema)
    for field in typed_leaves(schema, stored):
        if any(stored[i].physical == INT96 for i in leaves[field.name]):
            yield field


def _own_type(field: pa.Field) -> LogicalType:
    return logical_type(field, lambda: 0)


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], each.type) for each in schema], schema=schema)
