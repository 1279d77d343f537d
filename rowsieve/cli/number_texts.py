"""Writes unbounded numbers as numbers: their columns are structs of a float and bytes.

DataFusion drops the extension's name, so such a column is known by its type. Soundness: a struct of
the same type whose bytes are not numbers is written like any struct.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from rowsieve.types.cell_text import cell
from rowsieve.types.numeric_bytes import exact_of, is_stored, of_exact, to_text


def with_number_texts(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the rows with the text of all digits in place of unbounded numbers."""
    places = [i for i, field in enumerate(schema) if is_stored(field.type)]
    if not places:
        return schema, batches
    for i in places:
        schema = schema.set(i, schema.field(i).with_type(pa.string()))
    return schema, (_with_texts(batch, places, schema) for batch in batches)


def _with_texts(batch: pa.RecordBatch, places: list[int], schema: pa.Schema) -> pa.RecordBatch:
    columns = list(batch.columns)
    for i in places:
        columns[i] = _texts(columns[i])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _texts(values: pa.Array) -> pa.Array:
    try:
        return to_text(of_exact(exact_of(values)))
    except ValueError:
        texts = [None if value is None else cell(value) for value in values.to_pylist()]
        return pa.array(texts, pa.string())
