"""Copies array slices that DataFusion cannot import.

DataFusion 55.2 panics (`end <= self.len()`) when it reads a slice of a struct column that has a
struct inside. A copy has offset 0.
"""

from __future__ import annotations

import pyarrow as pa


def without_slices(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the same rows; columns with structs inside structs are copied to offset 0."""
    if not any(_has_nested_struct(type_) for type_ in rows.schema.types):
        return rows
    columns = [
        pa.concat_arrays([column.slice(0, 0), column])
        if _has_nested_struct(column.type)
        else column
        for column in rows.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _has_nested_struct(type_: pa.DataType, *, inside: bool = False) -> bool:
    """Return whether the type has a struct inside a struct, at any depth."""
    is_struct = pa.types.is_struct(type_)
    if is_struct and inside:
        return True
    if not pa.types.is_nested(type_):
        return False
    fields = (type_.field(i) for i in range(type_.num_fields))
    return any(_has_nested_struct(field.type, inside=inside or is_struct) for field in fields)
