"""Finds a table's columns in a Parquet file: leaves with one value per row, by field id.

A column is looked up by its id, never by its name, which may have changed since the file was
written. Fields of structs are columns too. Soundness: repeated leaves and leaves without an id
are left out, so their statistics are unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.parquet.file_mapping import SCHEMA_KEY, mapping_of
from rowsieve.parquet.footer_cache import cached_per_footer
from rowsieve.types.aliases import is_opaque
from rowsieve.types.encodings import FIELD_ID_KEY, alias_name
from rowsieve.types.logical import LogicalType, Struct
from rowsieve.types.schema import Schema

_MAX_SHARED: Final = 1_024


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A column of a file: its leaf number, its Arrow type in the file and its physical type.

    `name` is the name of the column, or of the field of a struct. `physical` is Parquet's name of
    the physical type; `width` is the number of bytes of a fixed-length value.
    """

    index: int
    name: str
    type: pa.DataType
    physical: str
    width: int


def file_columns(metadata: pq.FileMetaData) -> dict[int, FileColumn]:
    """The columns and fields of structs at any depth, by field id."""
    columns: dict[int, FileColumn] = {}
    schema = metadata.schema
    fields = list(schema.to_arrow_schema())
    counts = [leaf_count(field.type) for field in fields]
    if sum(counts) != metadata.num_columns:
        return columns
    for field, end in zip(fields, accumulate(counts), strict=True):
        for index, path, member in _single_leaves(field, end - leaf_count(field.type)):
            field_id = (member.metadata or {}).get(FIELD_ID_KEY)
            leaf = schema.column(index)
            if field_id is None or leaf.path != path:  # the path of a repeated leaf is longer
                continue
            if is_opaque(alias_name(member)):  # its bounds are those of bytes, not of its values
                continue
            column = FileColumn(
                index, member.name, member.type, str(leaf.physical_type), int(leaf.length)
            )
            columns[int(field_id)] = _shared(column)
    return columns


@lru_cache(_MAX_SHARED)
def _shared(column: FileColumn) -> FileColumn:
    """The same object for equal columns of several files, which are then compared quickly."""
    return column


def _single_leaves(field: pa.Field, first: int) -> Iterator[tuple[int, str, pa.Field]]:
    """The leaves of a column outside of lists and maps: number, path, field."""
    if not pa.types.is_struct(field.type):
        yield first, field.name, field
        return
    for member in field.type:
        for index, path, leaf in _single_leaves(member, first):
            yield index, f"{field.name}.{path}", leaf
        first += leaf_count(member.type)


def as_text(column: FileColumn, target: pa.DataType) -> FileColumn:
    """Return a column of bytes without the annotation UTF8 as text, if the table has text.

    Both have the same bytes in the same order; bounds that are not UTF-8 cannot be decoded.
    """
    is_unmarked = column.physical == "BYTE_ARRAY" and pa.types.is_binary(column.type)
    return replace(column, type=target) if is_unmarked and target == pa.string() else column


def leaves_by_name(schema: pa.Schema) -> dict[str, list[int]]:
    """The leaf numbers of each top-level column of a file with this Arrow schema."""
    ends = accumulate((leaf_count(field.type) for field in schema), initial=0)
    return {
        field.name: list(range(start, end))
        for field, (start, end) in zip(schema, pairwise(ends), strict=True)
    }


@cached_per_footer
def names_by_id(metadata: pq.FileMetaData) -> dict[int, str]:
    """The names in the file of its top-level columns, by field id; cached with its metadata."""
    return {field_id: field.name for field_id, field in fields_by_id(metadata).items()}


@cached_per_footer
def fields_by_id(metadata: pq.FileMetaData) -> dict[int, pa.Field]:
    """The top-level columns of a file, by field id; cached with its metadata."""
    return {
        int(field_id): field
        for field in metadata.schema.to_arrow_schema()
        if (field_id := (field.metadata or {}).get(FIELD_ID_KEY)) is not None
    }


def schema_id_of(metadata: pq.FileMetaData) -> int | None:
    """The id of the schema that a file of our writer was written with; None if unknown."""
    text = (metadata.metadata or {}).get(SCHEMA_KEY, b"")
    return int(text) if text.isdigit() else None


@cached_per_footer
def leaves_of(metadata: pq.FileMetaData) -> dict[str, list[int]]:
    """The leaf numbers of each top-level column of a file; cached with its metadata."""
    return leaves_by_name(metadata.schema.to_arrow_schema())


@cached_per_footer
def dictionary_columns(metadata: pq.FileMetaData) -> list[str]:
    """The columns to read as dictionary arrays; a hint for speed, which no result depends on.

    None in a foreign file, because other types than text may be stored as bytes there.
    """
    if not metadata.num_row_groups or mapping_of(metadata) is not None:
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


def leaf_count(type_: pa.DataType) -> int:
    """The number of leaves of a type."""
    if not type_.num_fields and not pa.types.is_struct(type_):  # a group may be empty
        return 1
    return sum(leaf_count(type_.field(i).type) for i in range(type_.num_fields))


def member_paths(schema: Schema) -> Iterator[tuple[tuple[str, ...], LogicalType]]:
    """Yield the path and type of all fields of structs that are not structs themselves."""
    for column in schema:
        if isinstance(column.type, Struct):
            yield from _members(column.type, (column.name,))


def _members(
    struct: Struct, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], LogicalType]]:
    for member in struct.fields:
        here = (*path, member.name)
        if isinstance(member.type, Struct):
            yield from _members(member.type, here)
        else:
            yield here, member.type
