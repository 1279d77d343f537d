"""Converts text and bytes to Arrow's view types, which engines such as DataFusion use.

A view is 16 bytes that hold a short value, or point to a longer one. An array that is decoded with
a dictionary becomes views into its dictionary, without a copy of the values.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from rowsieve.predicate.arrays import as_type

VIEWS: Final = {pa.string(): pa.string_view(), pa.binary(): pa.binary_view()}


def with_views(schema: pa.Schema) -> pa.Schema:
    """The schema with view types for the columns of text and bytes; nested types stay."""
    return pa.schema([field.with_type(VIEWS.get(field.type, field.type)) for field in schema])


def as_output(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Cast values to a type, which may be a view type."""
    if values.type == type_:
        return values
    if type_ not in VIEWS.values():
        return as_type(values, type_)
    if not pa.types.is_dictionary(values.type):
        return values.cast(type_)
    dictionary = values.dictionary.cast(type_)
    if not len(dictionary) or dictionary.null_count:
        return values.cast(values.type.value_type).cast(type_)
    return _taken(dictionary, values.indices)


def _taken(dictionary: pa.Array, indices: pa.Array) -> pa.Array:
    """The views of a dictionary at these indices; pyarrow has no `take` for them."""
    _, views, *values = dictionary.buffers()
    pairs = np.frombuffer(views, dtype=np.int64).reshape(-1, 2)[dictionary.offset :]
    valid = None
    if indices.null_count:
        valid = indices.is_valid().buffers()[1]
        indices = indices.fill_null(0)
    buffer = pa.py_buffer(pairs.take(indices.to_numpy(), axis=0))
    return pa.Array.from_buffers(dictionary.type, len(indices), [valid, buffer, *values])


def has_views(schema: pa.Schema) -> bool:
    """Return whether a column has a view type."""
    return any(type_ in VIEWS.values() for type_ in schema.types)
