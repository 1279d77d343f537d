"""Where a table's columns are in one Parquet file: its flat leaves by field id.

A column is found by its id, never by its name, which may have changed since the file was written.
Soundness: a leaf that is nested, repeated or without an id is not found, and so nothing is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.parquet.footer_memo import per_footer
from rowsieve.types.encodings import FIELD_ID_KEY


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A flat column of a file: its leaf number, its Arrow type there and how values are stored.

    `physical` is Parquet's name of the physical type; `width` the bytes of a fixed-length value.
    """

    index: int
    name: str
    type: pa.DataType
    physical: str
    width: int


def file_columns(metadata: pq.FileMetaData) -> dict[int, FileColumn]:
    """The flat top-level columns by field id."""
    found: dict[int, FileColumn] = {}
    schema = metadata.schema
    fields = list(schema.to_arrow_schema())
    counts = [_leaf_count(field.type) for field in fields]
    if sum(counts) != metadata.num_columns:
        return found
    for field, end in zip(fields, accumulate(counts), strict=True):
        field_id = (field.metadata or {}).get(FIELD_ID_KEY)
        leaf = schema.column(end - 1)
        if field_id is None or leaf.path != field.name:  # the path of a nested leaf goes on
            continue
        found[int(field_id)] = FileColumn(
            end - 1, field.name, field.type, str(leaf.physical_type), int(leaf.length)
        )
    return found


def leaves_by_name(schema: pa.Schema) -> dict[str, list[int]]:
    """The leaf numbers of each top-level column of a file with this Arrow schema."""
    ends = list(accumulate(_leaf_count(field.type) for field in schema))
    starts = [0, *ends[:-1]]
    return {
        field.name: list(range(start, end))
        for field, start, end in zip(schema, starts, ends, strict=True)
    }


@per_footer
def leaves_of(metadata: pq.FileMetaData) -> dict[str, list[int]]:
    """The leaf numbers of each top-level column of a file; remembered as its metadata is."""
    return leaves_by_name(metadata.schema.to_arrow_schema())


def holds_all_of(wide: pa.DataType, narrow: pa.DataType) -> bool:
    """Whether every value of `narrow` is one of `wide`, in the same order."""
    if wide == narrow:
        return True
    if pa.types.is_integer(wide) and pa.types.is_integer(narrow):
        outer, inner = (np.iinfo(type_.to_pandas_dtype()) for type_ in (wide, narrow))
        return bool(outer.min <= inner.min and inner.max <= outer.max)
    if pa.types.is_decimal(wide) and pa.types.is_decimal(narrow):
        more_places = int(wide.scale - narrow.scale)
        return 0 <= more_places <= int(wide.precision - narrow.precision)
    return bool(pa.types.is_float64(wide) and pa.types.is_float32(narrow))


@per_footer
def dictionary_columns(metadata: pq.FileMetaData) -> list[str]:
    """The columns to read as dictionaries: a hint, since any column may be, at some cost."""
    if not metadata.num_row_groups:
        return []
    group = metadata.row_group(0)
    chunks = (group.column(i) for i in range(group.num_columns))
    return [
        chunk.path_in_schema
        for chunk in chunks
        if chunk.physical_type == "BYTE_ARRAY"
        and chunk.has_dictionary_page
        and "." not in chunk.path_in_schema
    ]


def _leaf_count(type_: pa.DataType) -> int:
    if not type_.num_fields:
        return 1
    return sum(_leaf_count(type_.field(i).type) for i in range(type_.num_fields))
