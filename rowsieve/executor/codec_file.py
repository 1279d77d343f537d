"""A file whose rows are read from the bytes of a codec, or from both of its forms.

It is read as any open file: its columns have field ids, and those that were dropped, added, renamed
or widened since are adapted as columns of files are. The index columns (the key, and the sequence
of an event order) are always read as columns: they order versions. All others are decoded together.

Soundness: the codec is the one that the footer and the list of parts name. A shadow read returns
what the codec holds, and compares each row that it decodes with the columns of the file. Where the
columns, encoded by a proven codec, are the very bytes of the file, only a sample of about a
thousand rows of a batch is decoded, other rows in each read; if one of them has other values, the
decoder has a fault, and all rows are decoded and compared.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

import numpy as np
import pyarrow as pa

from rowsieve.encodings.codecs import Codec, codec_to_read
from rowsieve.encodings.comparing import differing_rows
from rowsieve.encodings.file_encoding import FileEncoding
from rowsieve.errors import CorruptData, InvalidData
from rowsieve.executor.open_file import OpenFile
from rowsieve.metrics import Difference, ScanMetrics
from rowsieve.objects import ObjectStore
from rowsieve.parquet.codec_columns import codec_columns
from rowsieve.parquet.leaf_columns import schema_id_of
from rowsieve.parquet.nested_columns import nested_column
from rowsieve.predicate.arrays import as_type
from rowsieve.storage.manifests.manifest import FileRef
from rowsieve.storage.parts.encoded_rows import shown
from rowsieve.storage.parts.reading_views import SHADOW, SHADOW_RAISE
from rowsieve.types.encodings import arrow_field, arrow_schema, arrow_type
from rowsieve.types.logical import Field, is_nested
from rowsieve.types.ordering.keys import flat
from rowsieve.types.schema import Schema
from rowsieve.types.widening import WIDE_TYPES, widened

_SAMPLED_ROWS: Final = 1_000  # of a batch of equal bytes that are decoded


class CodecFile(OpenFile):
    """An open file whose values come from its codec; see `OpenFile` for the methods."""

    at_once = True
    __slots__ = ("_compares", "_hidden", "_metrics", "_raises", "_stored_names", "_where")

    def __init__(
        self, store: ObjectStore, ref: FileRef, commit_ts: int | None, metrics: ScanMetrics
    ) -> None:
        super().__init__(store, ref, commit_ts)
        hidden = codec_columns(self._metadata)
        assert ref.encoding is not None
        encoding = FileEncoding.parse(ref.encoding)
        if hidden is None or (encoding.codec, encoding.version, encoding.batch) != (
            hidden.codec, hidden.codec_version, hidden.batch,
        ):  # fmt: skip
            raise CorruptData(
                f"{ref.path} does not have the rows of codec {encoding.codec} version "
                f"{encoding.version} that the list of parts names; restore the file from a copy"
            )
        self._where = ref.path
        self._hidden = hidden
        self._compares = ref.reading in (SHADOW, SHADOW_RAISE) and encoding.halves == "both"
        self._raises = ref.reading == SHADOW_RAISE
        self._metrics = metrics
        self._stored_names = self._names
        decoded = {field_id: field.name for field_id, field in hidden.decoded.items()}
        self._names = {**self._names, **decoded}

    def as_now(self, column: pa.ChunkedArray, field: Field) -> pa.ChunkedArray:
        """Convert a decoded column to the table's type."""
        written = self._hidden.decoded.get(field.id)
        if written is None:
            return super().as_now(column, field)
        if is_nested(field.type):
            schema_id = schema_id_of(self._metadata)
            stored = arrow_field(written)
            return nested_column(stored, field, schema_id, self._where).adapted(column)
        if isinstance(field.type, WIDE_TYPES):
            return widened(column, arrow_type(field.type))
        return column

    def physical(self, fields: Iterable[Field]) -> list[str]:
        """The columns of the file to read for these columns of the table."""
        fields = [field for field in fields if field.id in self._names]
        decoded = self._hidden.decoded
        names = [self._names[field.id] for field in fields if field.id not in decoded]
        if len(names) < len(fields):
            names.append(self._hidden.row_column)
            if self._compares:
                stored = (self._stored_names.get(field.id) for field in self._hidden.schema)
                names += [*self._hidden.columns, *(name for name in stored if name is not None)]
        return list(dict.fromkeys(names))

    def finished(
        self, table: pa.Table, fields: Iterable[Field], runs: Sequence[tuple[int, int]]
    ) -> pa.Table:
        """The columns of the table from those of the file; `runs` are the numbers of the rows."""
        fields = [field for field in fields if field.id in self._names]
        decoded = self._hidden.decoded
        if all(field.id not in decoded for field in fields):
            return table
        stored = self._stored(table, of_key=False) if self._compares else None
        rows = self._rows_of(table, stored, of_key=False)
        if self._compares:
            self._compare(table, (stored, rows), runs)
        columns = {
            self._names[field.id]: rows.column(decoded[field.id].name)
            if field.id in decoded
            else table.column(self._names[field.id])
            for field in fields
        }
        return pa.table(columns)

    def _leaves_of(self, fields: Iterable[Field]) -> list[int]:
        return [leaf for name in self.physical(fields) for leaf in self._leaves[name]]

    def _rows_of(
        self, table: pa.Table, stored: pa.RecordBatch | None, *, of_key: bool
    ) -> pa.RecordBatch:
        """What the codec holds; the batch of stored columns itself where that is the same.

        That is where they encode to the bytes of the file, and a sample of these decodes to them.
        """
        fields = self._hidden.encoded_fields(of_key=of_key)
        name = self._hidden.key_column if of_key else self._hidden.row_column
        encoded = flat(table.column(name)).cast(pa.binary())
        codec = codec_to_read(self._hidden.codec, self._hidden.codec_version, self._where)
        if stored is not None and codec.is_proven:
            with suppress(InvalidData):  # such as more than 2 GiB: decoded then
                same = codec.encoded(stored, self._where).equals(encoded)
                if same and self._decodes_to(stored, encoded, codec, fields):
                    return stored
        return codec.decoded(encoded, fields, self._where)

    def _decodes_to(
        self, stored: pa.RecordBatch, encoded: pa.Array, codec: Codec, fields: Schema
    ) -> bool:
        """Return whether a sample of the rows, decoded, has the values of the columns."""
        every = max(len(encoded) // _SAMPLED_ROWS, 1)
        first = random.randrange(every)  # noqa: S311 - other rows in each read, no secret
        places = pa.array(range(first, len(encoded), every), pa.int64())
        decoded = codec.decoded(encoded.take(places), fields, self._where)
        sample = stored.take(places)
        return not any(map(len, map(differing_rows, sample.columns, decoded.columns)))

    def _stored(self, table: pa.Table, *, of_key: bool) -> pa.RecordBatch | None:
        """The columns of the file in the form that was encoded; None if it lacks one of them."""
        fields = self._hidden.encoded_fields(of_key=of_key)
        arrays = []
        for field in fields:
            name = self._stored_names.get(field.id)
            if name is None:
                return None
            column = flat(OpenFile.as_now(self, table.column(name), field))
            arrays.append(as_type(column, arrow_type(field.type)))
            if column.null_count and not field.nullable:
                return None
        schema = arrow_schema(fields)
        return pa.RecordBatch.from_arrays(arrays, schema=schema) if arrays else None

    def _compare(
        self,
        table: pa.Table,
        rows: tuple[pa.RecordBatch | None, pa.RecordBatch],
        runs: Sequence[tuple[int, int]],
    ) -> None:
        """Compare both forms of rows that this read has not compared yet."""
        numbers = np.concatenate([np.arange(first, first + count) for first, count in runs])
        fresh = self._metrics.note_compared(self._where, self._ref.rows, numbers)
        if not fresh.any():
            return
        halves = [(*rows, self._hidden.row_fields)]
        if self._hidden.key_column:
            stored = self._stored(table, of_key=True)
            decoded = self._rows_of(table, stored, of_key=True)
            halves.insert(0, (stored, decoded, self._hidden.key_fields))
        differences = [
            difference
            for stored, decoded, fields in halves
            if stored is not decoded
            for difference in self._differences(table, decoded, fields, numbers, fresh)
        ]
        self._metrics.note_differences(differences, raises=self._raises)

    def _differences(
        self,
        table: pa.Table,
        batch: pa.RecordBatch,
        fields: Schema,
        numbers: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
        fresh: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
    ) -> Iterator[Difference]:
        for field in fields:
            name = self._stored_names.get(field.id)
            if name is None:
                continue
            column = flat(OpenFile.as_now(self, table.column(name), field))
            stored = as_type(column, arrow_type(field.type))
            answer = batch.column(field.name)
            for row in differing_rows(stored, answer).tolist():
                if fresh[row]:
                    yield Difference(
                        self._where, int(numbers[row]), self._key_of(table, row), field.name,
                        shown(stored[row]), shown(answer[row]),
                    )  # fmt: skip

    def _key_of(self, table: pa.Table, row: int) -> str:
        """The key of a row, as the columns have it."""
        names = [field.name for field in self._hidden.key_fields]
        return ", ".join(f"{name}={shown(table.column(name)[row])}" for name in names)
