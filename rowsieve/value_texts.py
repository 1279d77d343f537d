"""Writes stored values of our own types as people know them: UUIDs, intervals, unbounded numbers.

DataFusion drops the extension's name, so a column of unbounded numbers is known by its type, and
UUIDs and intervals of its results stay bytes. Soundness: a struct of the type of numbers whose
bytes are not numbers is written like any struct, and bytes that are no interval as bytes.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import pyarrow as pa

from rowsieve.types.cell_text import cell
from rowsieve.types.encodings import EXTENSION_KEY, INTERVAL_EXTENSION, UUID_EXTENSION
from rowsieve.types.interval_bytes import spelled
from rowsieve.types.numeric_bytes import exact_of, is_stored, of_exact, to_text

Texts = Callable[[pa.Array], pa.Array]


def with_value_texts(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the rows with text in place of UUIDs, intervals and unbounded numbers."""
    texts = {i: each for i, field in enumerate(schema) if (each := _texts_of(field)) is not None}
    if not texts:
        return schema, batches
    for i in texts:
        schema = schema.set(i, schema.field(i).with_type(pa.string()))
    return schema, (_with_texts(batch, texts, schema) for batch in batches)


def type_words(field: pa.Field) -> str:
    """The name of a column's type for people: `uuid`, not that of its bytes."""
    extension = (field.metadata or {}).get(EXTENSION_KEY)
    if extension is not None and extension.startswith(_OWN):
        return str(extension.split(b".")[1].decode("utf-8", "replace"))
    return str(field.type)


def _with_texts(
    batch: pa.RecordBatch, texts: Mapping[int, Texts], schema: pa.Schema
) -> pa.RecordBatch:
    columns = list(batch.columns)
    for i, text_of in texts.items():
        columns[i] = text_of(columns[i])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _texts_of(field: pa.Field) -> Texts | None:
    if is_stored(field.type):
        return _numbers
    if isinstance(field.type, pa.UuidType):
        return lambda values: _each(values.storage, lambda value: str(uuid.UUID(bytes=value)))
    extension = (field.metadata or {}).get(EXTENSION_KEY)
    if extension is not None and extension in _BYTES and field.type == pa.binary(16):
        text_of = _BYTES[extension]
        return lambda values: _each(values, text_of)
    return None


def _numbers(values: pa.Array) -> pa.Array:
    try:
        return to_text(of_exact(exact_of(values)))
    except ValueError:
        return _each(values, cell)


def _each(values: pa.Array, text_of: Callable[[bytes], str]) -> pa.Array:
    texts = [None if value is None else text_of(value) for value in values.to_pylist()]
    return pa.array(texts, pa.string())


def _interval(value: bytes) -> str:
    try:
        return spelled(value)
    except ValueError:
        return cell(value)


_OWN: Final = b"rowsieve."
_BYTES: Final[Mapping[bytes, Callable[[bytes], str]]] = {
    UUID_EXTENSION: lambda value: str(uuid.UUID(bytes=value)),
    INTERVAL_EXTENSION: _interval,
}
