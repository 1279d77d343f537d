"""Converts Arrow rows to pandas DataFrames without changing a value."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import MissingExtra

if TYPE_CHECKING:
    import pandas


def frame_of(data: pa.Table) -> pandas.DataFrame:
    """Convert Arrow rows to a pandas DataFrame.

    An integer column with NULLs becomes Int64 if a float cannot represent one of its integers.
    Lists, structs and maps with such integers stay Arrow types.
    """
    try:
        frame = data.to_pandas()
    except ImportError as error:
        raise MissingExtra("reading into pandas needs pandas: pip install pandas") from error
    pandas = sys.modules["pandas"]  # imported by pyarrow
    nullable = {pa.int64(): pandas.Int64Dtype(), pa.uint64(): pandas.UInt64Dtype()}
    for place, field in enumerate(data.schema):
        if field.type in nullable and _is_changed_by_floats(data.column(place)):
            column = data.select([place]).to_pandas(types_mapper=nullable.get)
            frame.isetitem(place, column.iloc[:, 0])
        elif pa.types.is_nested(field.type) and _has_changed_items(data.column(place)):
            column = data.select([place]).to_pandas(types_mapper=pandas.ArrowDtype)
            frame.isetitem(place, column.iloc[:, 0])
    return frame


def _has_changed_items(values: pa.ChunkedArray) -> bool:
    """Return whether pandas would change an integer inside lists, structs or maps, at any depth."""
    types, type_ = pa.types, values.type
    if type_ in (pa.int64(), pa.uint64()):
        return _is_changed_by_floats(values)
    if types.is_map(type_):
        key = pa.field("key", type_.key_type, nullable=False)
        pairs = pa.list_(pa.struct([key, pa.field("value", type_.item_type)]))
        return _has_changed_items(values.cast(pairs))
    if types.is_list(type_):
        return _has_changed_items(pc.list_flatten(values))
    return types.is_struct(type_) and any(map(_has_changed_items, values.flatten()))


def _is_changed_by_floats(column: pa.ChunkedArray) -> bool:
    """Return whether pandas, which converts integers with NULLs to floats, would change one."""
    if not column.null_count or column.null_count == len(column):
        return False
    bounds = pc.min_max(column)
    return bool(bounds["min"].as_py() < -(2**53) or bounds["max"].as_py() > 2**53)
