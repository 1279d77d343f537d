"""Adds the rows of a data file as bytes of a codec, or replaces its columns by them.

Soundness: rows are encoded from the table's values, before columns get their names and forms in the
file. Rows that a file holds only as bytes are decoded again and compared first, so that no codec
that fails or lies loses a value: then nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rowsieve.encodings.codecs import Codec, codec_to_write
from rowsieve.encodings.comparing import differing_rows
from rowsieve.encodings.file_encoding import (
    ROW_CODEC,
    FileEncoding,
    batch_version,
    halves_to_write,
    has_encodings,
)
from rowsieve.errors import CorruptData, InvalidData
from rowsieve.parquet.codec_columns import CodecColumns
from rowsieve.storage.differential import fields_of_updates
from rowsieve.storage.parts.row_versions import ROW_VERSION, without_versions
from rowsieve.types.encodings import arrow_schema, relabelled
from rowsieve.types.logical import Field
from rowsieve.types.schema import Schema
from rowsieve.types.stored_names import has_tags, tagged

_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """The codec of a writer, what it encodes, and the columns that files have beside it.

    `schema` are the columns that are encoded, `plain` those that are stored as columns. Equal rows
    of a differential table have equal bytes: their times and differences are columns alone.
    """

    codec: Codec
    columns: CodecColumns
    encoding: FileEncoding
    schema: Schema
    plain: Schema

    @classmethod
    def of(
        cls,
        properties: Mapping[str, str],
        schema: Schema,
        key: Sequence[Field],
        sequence: Sequence[Field],
    ) -> EncodedRows | None:
        """Read the properties; None if files have only columns."""
        halves = halves_to_write(properties)
        if halves == "columns":
            return None
        codec = codec_to_write(properties[ROW_CODEC])
        batch = batch_version(properties)
        update = {field.id for field in fields_of_updates(properties, schema)}
        encoded = (field for field in without_versions(schema) if field.id not in update)
        encoded_schema = Schema(schema.id, tuple(encoded))
        index = {field.id for field in (*key, *sequence)} | update
        encoding = FileEncoding(halves, batch, codec.name, codec.version)
        columns = CodecColumns.choose(
            (codec.name, codec.version),
            batch,
            tagged(encoded_schema) if has_tags(properties) else encoded_schema,
            [field.id for field in key],
            sorted(index),
        )
        plain = schema
        if halves == "codec":
            column_ids = {*index, ROW_VERSION.id}
            fields = tuple(field for field in schema.fields if field.id in column_ids)
            plain = Schema(schema.id, fields)
        return cls(codec, columns, encoding, encoded_schema, plain)

    def add_to(self, stored: pa.Table, rows: pa.Table) -> pa.Table:
        """Append the hidden columns to a row group; `rows` are its rows as written.

        InvalidData if the codec fails, or does not give back the rows that only it would hold.
        """
        for field, fields in zip(self.columns.arrow_fields(), self._parts(), strict=True):
            is_key = field.name == self.columns.key_column
            encoded_fields = self.columns.encoded_fields(of_key=is_key)
            batch = _batch(rows, fields, arrow_schema(encoded_fields))
            encoded = self.codec.encoded(batch, "write")
            if self.encoding.halves == "codec":
                self._check(batch, encoded, fields, encoded_fields)
            stored = stored.append_column(field, encoded)
        return stored

    def _parts(self) -> list[tuple[Field, ...]]:
        """The columns of the table in each hidden column."""
        key: list[Field] = []
        others: list[Field] = []
        for field in self.schema.fields:
            (key if field.id in self.columns.key else others).append(field)
        return [tuple(key), tuple(others)] if self.columns.key_column else [tuple(others)]

    def _check(
        self, batch: pa.RecordBatch, encoded: pa.Array, fields: Sequence[Field], stored: Schema
    ) -> None:
        try:
            again = self.codec.decoded(encoded, stored, "reading back what was encoded")
        except CorruptData as error:
            raise InvalidData(f"write: nothing was written: {error}") from error
        for field, before, after in zip(fields, batch.columns, again.columns, strict=True):
            places = differing_rows(before, after)
            if len(places):
                first = int(places[0])
                raise InvalidData(
                    f"write: codec {self.codec} gives back other values in {len(places):,} of "
                    f"{batch.num_rows:,} rows, first in column {field.name!r}: "
                    f"{shown(before[first])} became {shown(after[first])}; nothing was written. "
                    "Mend the codec, or set write_encoding to 'both' and compare with shadow reads"
                )


def encoding_of_columns(properties: Mapping[str, str]) -> str | None:
    """The encoding of files with only columns; None for tables that never had another one."""
    if not has_encodings(properties):
        return None
    return str(FileEncoding("columns", batch_version(properties)))


def shown(value: pa.Scalar) -> str:
    """A value in a message."""
    try:
        text = repr(value.as_py())
    except (ValueError, OverflowError):
        text = str(value)
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}…"


def _batch(rows: pa.Table, fields: Sequence[Field], schema: pa.Schema) -> pa.RecordBatch:
    """These columns of the rows, under the names of the file."""
    if not fields:
        return pa.RecordBatch.from_arrays([pa.nulls(rows.num_rows)], ["row"]).select([])
    arrow = arrow_schema(Schema(0, tuple(fields)))
    arrays: list[Any] = [_one(rows.column(field.name)) for field in fields]
    if [array.type for array in arrays] != arrow.types:
        arrays = [array.cast(type_) for array, type_ in zip(arrays, arrow.types, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=arrow)
    return relabelled(batch, schema)


def _one(column: pa.ChunkedArray) -> pa.Array:
    if not column.num_chunks:
        return pa.array([], column.type)
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
