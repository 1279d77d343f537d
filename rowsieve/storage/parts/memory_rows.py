"""The bytes of a part in memory: rows or tombstones as an Arrow IPC stream, without a file.

The manifest holds these bytes in `data.content` and `deletes.content`, so a part in memory goes
wherever its manifest entry goes: into log entries, checkpoints, plans and splits. Columns are
read by field id, as in files; the stream's metadata names the schema that they were written with.

Soundness: the bytes are checked by the checksum of their entry before they are decoded. A column
that the rows lack is a constant only if it was added later (trap T20).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from rowsieve.byte_cache import ByteCache
from rowsieve.checksums import checksum
from rowsieve.errors import CorruptData
from rowsieve.parquet.file_mapping import SCHEMA_KEY
from rowsieve.parquet.nested_columns import nested_column
from rowsieve.storage.manifests.manifest import FileRef
from rowsieve.types.encodings import FIELD_ID_KEY, arrow_schema, arrow_type
from rowsieve.types.logical import Field, is_nested
from rowsieve.types.schema import Schema
from rowsieve.types.schema_cache import cached_by_schema
from rowsieve.types.stored_defaults import constant
from rowsieve.types.stored_names import tagged, tagged_rows
from rowsieve.types.widening import widened

_CACHE_BYTES: Final = 64 * 1024 * 1024
_PART_BYTES: Final = 1_500
_COLUMN_BYTES: Final = 1_000
"""What the objects around the values of a decoded part and of each of its columns take: most of the
memory of a part with one row, as measured with 3 to 101 columns."""
_IPC_LEVELS: Final = 60
"""Levels of a column's type, itself included; pyarrow writes and reads streams with up to 64."""


@dataclass(frozen=True, slots=True)
class MemoryRows:
    """The decoded rows of a part in memory; `schema_id` is the schema they were written with."""

    path: str
    table: pa.Table
    schema_id: int
    by_id: Mapping[int, pa.Field]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def column(self, field: Field) -> pa.ChunkedArray | pa.Scalar:
        """The column in the type that it has now, or its value in all rows if it was added later.

        CorruptData if the rows lack another column.
        """
        if (stored := self.by_id.get(field.id)) is None:
            return self._fill(field)
        return self.as_now(self.table.column(stored.name), field)

    def as_now(self, column: pa.ChunkedArray, field: Field) -> pa.ChunkedArray:
        """Convert a stored column, or rows of it, to the type that it has now."""
        if is_nested(field.type):
            stored = self.by_id[field.id]
            return nested_column(stored, field, self.schema_id, self.path).adapted(column)
        type_ = arrow_type(field.type)
        return column if column.type == type_ else widened(column, type_)

    def _fill(self, field: Field) -> pa.Scalar:
        if self.schema_id >= field.added:
            raise CorruptData(
                f"{self.path} lacks column {field.name!r} (field id {field.id}), which the schema "
                f"{self.schema_id} that it was written with has; restore the log from a copy"
            )
        return constant(field.fill, field.type)


@cached_by_schema
def fits_in_memory(schema: Schema) -> bool:
    """Return whether Arrow IPC can hold the columns: files may have types with more levels."""
    pending = [(field.type, 1) for field in arrow_schema(schema)]
    while pending:
        type_, level = pending.pop()
        if level > _IPC_LEVELS:
            return False
        pending.extend((type_.field(i).type, level + 1) for i in range(type_.num_fields))
    return True


def rows_in_memory(path: str, rows: pa.Table, schema: Schema, *, tags: bool) -> FileRef:
    """Encode rows or tombstones, in the schema's storage types, as a part's bytes in memory.

    `tags`: columns and nested fields have tags of their ids instead of their names, as in files.
    """
    if tags:
        rows, schema = tagged_rows(rows, schema), tagged(schema)
    stored = arrow_schema(schema).with_metadata({SCHEMA_KEY: str(schema.id).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, stored) as writer:
        writer.write_table(pa.Table.from_arrays(rows.combine_chunks().columns, schema=stored))
    content = sink.getvalue().to_pybytes()
    digest = checksum(content)
    size = len(content)
    return FileRef(path, rows.num_rows, size, digest, size, digest, content=content)


def read_memory(ref: FileRef) -> MemoryRows:
    """Decode the bytes of a part in memory; CorruptData if they are not those of its entry."""
    assert ref.content is not None
    key = (ref.path, ref.checksum)
    if (rows := _CACHE.get(key)) is None:
        rows = _decoded(ref, ref.content)
        around = _PART_BYTES + _COLUMN_BYTES * rows.table.num_columns
        _CACHE.put(key, rows, around + int(rows.table.nbytes) + len(ref.content))
    return rows


def _decoded(ref: FileRef, content: bytes) -> MemoryRows:
    if checksum(content) != ref.checksum:
        raise _damaged(ref, "their checksum is not that of the manifest")
    try:
        with pa.ipc.open_stream(pa.py_buffer(content)) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(ref, str(error)) from error
    schema_id = (table.schema.metadata or {}).get(SCHEMA_KEY, b"")
    if table.num_rows != ref.rows or not schema_id.isdigit():
        raise _damaged(ref, f"they are {table.num_rows} rows of schema {schema_id!r}")
    fields = [(each, (each.metadata or {}).get(FIELD_ID_KEY)) for each in table.schema]
    by_id = {int(field_id): each for each, field_id in fields if field_id is not None}
    return MemoryRows(ref.path, table, int(schema_id), by_id)


def _damaged(ref: FileRef, why: str) -> CorruptData:
    return CorruptData(
        f"the {ref.size_bytes:,} bytes of {ref.path}, a part in memory of {ref.rows:,} rows, are "
        f"damaged: {why}; restore the log from a copy"
    )


_CACHE: Final[ByteCache[tuple[str, str], MemoryRows]] = ByteCache(_CACHE_BYTES, "rows in memory")
"""Decoded rows by path and checksum."""
