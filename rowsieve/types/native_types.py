"""Rows of a scan with Arrow's own types for UUIDs, JSON, intervals and enums, text for numerics.

Scans give these as bytes, text or structs with the name of an extension in the field's metadata.
Engines know Arrow's types instead: DuckDB reads them as UUID, JSON and INTERVAL.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from rowsieve.arguments.checking import checked
from rowsieve.types.encodings import (
    ENUM_EXTENSION,
    EXTENSION_KEY,
    INTERVAL_EXTENSION,
    JSON_EXTENSION,
    NUMERIC_EXTENSION,
    SIZE_KEY,
    UUID_EXTENSION,
)
from rowsieve.types.enums import as_dictionary, declared, polars_metadata
from rowsieve.types.interval_bytes import to_arrow
from rowsieve.types.numeric_bytes import to_text


@checked
def to_native(rows: pa.Table | pa.RecordBatch) -> pa.Table:
    """Return the rows with `arrow.uuid`, `arrow.json` and `month_day_nano_interval` columns.

    Unbounded numbers become text: no other Arrow type holds them. An enum becomes an ordered
    dictionary of its labels: an Enum in Polars, a Categorical in pandas. Bytes and lists of a fixed
    size get Arrow's types for them. Columns inside lists, structs and maps stay as they are.
    OverflowError for an interval whose microseconds span more than 292 years, which Arrow's type
    cannot hold. The result can be written to a table again.
    """
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    for place, field in enumerate(table.schema):
        extension = (field.metadata or {}).get(EXTENSION_KEY)
        if extension == ENUM_EXTENSION:
            table = _with_codes(table, place, field)
        if (sized := _sized_type(field)) is not None:
            table = table.set_column(place, field.with_type(sized), table.column(place).cast(sized))
        if extension not in _EXTENSIONS:
            continue
        chunks = table.column(place).chunks or [pa.array([], field.type)]
        column = pa.chunked_array([_native(chunk, extension) for chunk in chunks])
        # Only the name says that the text is a number.
        metadata = {EXTENSION_KEY: extension} if extension == NUMERIC_EXTENSION else None
        named = pa.field(field.name, column.type, field.nullable, metadata)
        table = table.set_column(place, named, column)
    return table


def _sized_type(field: pa.Field) -> pa.DataType | None:
    """The fixed-size type of a column whose metadata names the size of its values."""
    size = (field.metadata or {}).get(SIZE_KEY)
    if size is None or not size.isdigit():
        return None
    if pa.types.is_binary(field.type):
        return pa.binary(int(size))
    return pa.list_(field.type.value_field, int(size)) if pa.types.is_list(field.type) else None


def _with_codes(table: pa.Table, place: int, field: pa.Field) -> pa.Table:
    enum = declared(field.metadata, ENUM_EXTENSION, field.name)
    assert enum is not None
    chunks = table.column(place).chunks or [pa.array([], pa.string())]
    column = pa.chunked_array([as_dictionary(chunk, enum) for chunk in chunks])
    named = pa.field(field.name, column.type, field.nullable, polars_metadata(enum))
    return table.set_column(place, named, column)


_EXTENSIONS = (UUID_EXTENSION, JSON_EXTENSION, INTERVAL_EXTENSION, NUMERIC_EXTENSION)


def _native(values: pa.Array, extension: bytes) -> Any:
    if extension == INTERVAL_EXTENSION:
        return to_arrow(values)
    if extension == NUMERIC_EXTENSION:
        return to_text(values)
    storage = pa.uuid() if extension == UUID_EXTENSION else pa.json_()
    return pa.ExtensionArray.from_storage(storage, values)
