"""Parquet files whose footers say something else than their rows, as some writers make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rowsieve.parquet.thrift import (
    I64,
    encoded_value,
    join_fields,
    raw_fields,
    read_list_head,
    zigzag,
)
from rowsieve.varints import decode_varint

Fields = dict[int, tuple[int, bytes]]
"""The fields of an encoded struct: kind and bytes by number."""

SCHEMA, ROW_GROUPS, CREATED_BY, ORDERS = 2, 4, 6, 7  # of a footer
COLUMNS, SORTING = 1, 4  # of a row group
METADATA = 3  # of a column chunk
STATISTICS = 12  # of a column's metadata
OLD_MAX, OLD_MIN, NULLS, MAX, MIN = 1, 2, 3, 5, 6  # of statistics


def fields_of(data: bytes) -> Fields:
    found, _ = raw_fields(data, 0)
    return {each.number: (each.kind, data[each.start : each.stop]) for each in found}


def struct_of(fields: Fields) -> bytes:
    return bytes(join_fields([(number, *fields[number]) for number in sorted(fields)]))


def edit_list(data: bytes, change: Callable[[int, Fields], None]) -> bytes:
    """Change every struct of an encoded list."""
    count, position = read_list_head(data, 0)
    written = data[:position]
    for number in range(count):
        _, stop = raw_fields(data, position)
        fields = fields_of(data[position:stop])
        change(number, fields)
        written += struct_of(fields)
        position = stop
    return written


def edit_footer(path: Path, change: Callable[[Fields], None]) -> None:
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    fields = fields_of(data[start:-8])
    change(fields)
    footer = struct_of(fields)
    path.write_bytes(data[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def edit_schema(path: Path, change: Callable[[int, Fields], None]) -> None:
    """Change the elements of a schema: called with the place of each, from 0 for the root."""

    def of_footer(footer: Fields) -> None:
        kind, data = footer[SCHEMA]
        footer[SCHEMA] = kind, edit_list(data, change)

    edit_footer(path, of_footer)


def edit_chunks(path: Path, change: Callable[[int, int, Fields], None]) -> None:
    """Change the column chunks of a file: called with the row group, the leaf and the chunk."""

    def of_group(place: int, group: Fields) -> None:
        kind, data = group[COLUMNS]
        group[COLUMNS] = kind, edit_list(data, lambda leaf, chunk: change(place, leaf, chunk))

    def of_footer(footer: Fields) -> None:
        kind, data = footer[ROW_GROUPS]
        footer[ROW_GROUPS] = kind, edit_list(data, of_group)

    edit_footer(path, of_footer)


def edit_metadata(path: Path, change: Callable[[int, int, Fields], None]) -> None:
    """Change the metadata of the column chunks of a file, as `edit_chunks` does."""

    def of_chunk(place: int, leaf: int, chunk: Fields) -> None:
        kind, data = chunk[METADATA]
        metadata = fields_of(data)
        change(place, leaf, metadata)
        chunk[METADATA] = kind, struct_of(metadata)

    edit_chunks(path, of_chunk)


def set_created_by(path: Path, created_by: str | None) -> None:
    """Set the writer that a footer names; None removes it."""

    def change(footer: Fields) -> None:
        footer.pop(CREATED_BY, None)
        if created_by is not None:
            footer[CREATED_BY] = encoded_value(created_by.encode())

    edit_footer(path, change)


def set_statistics(
    path: Path, column: int, values: Mapping[int, Any] | None, *, only: int | None = None
) -> None:
    """Replace the statistics of one leaf column; None removes them.

    `only`: the number of the row group; all of them without it.
    """

    def of_chunk(place: int, leaf: int, metadata: Fields) -> None:
        if leaf != column or (only is not None and place != only):
            return
        metadata.pop(STATISTICS, None)
        if values is not None:
            encoded = {number: encoded_value(value) for number, value in values.items()}
            metadata[STATISTICS] = (12, struct_of(encoded))

    edit_metadata(path, of_chunk)


def without_orders(path: Path, created_by: str = "somebody") -> None:
    """Remove the declared orders of columns, as writers before 2018 did."""

    def change(footer: Fields) -> None:
        footer.pop(ORDERS, None)
        footer[CREATED_BY] = encoded_value(created_by.encode())

    edit_footer(path, change)


def nulls(count: int) -> I64:
    return I64(count)


def column_index(path: Path, leaf: int) -> tuple[int, int]:
    """The byte range of the column index of a leaf in the first row group."""
    found: list[tuple[int, int]] = []

    def of_chunk(place: int, number: int, chunk: Fields) -> None:
        if place == 0 and number == leaf:
            start, size = (read_number(chunk[field][1]) for field in (6, 7))
            found.append((start, start + size))

    edit_chunks(path, of_chunk)
    return found[0]


def read_number(data: bytes) -> int:
    return zigzag(decode_varint(data, 0)[0])


def texts_of(data: bytes) -> list[bytes]:
    """The texts of an encoded list."""
    count, position = read_list_head(data, 0)
    found = []
    for _ in range(count):
        length, position = decode_varint(data, position)
        found.append(data[position : position + length])
        position += length
    return found
