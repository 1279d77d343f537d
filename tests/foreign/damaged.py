"""Parquet files whose footers say something else than their rows, as some writers make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rowsieve.parquet.thrift import I64, encoded_value, join_fields, raw_fields, read_list_head

Fields = dict[int, tuple[int, bytes]]
"""The fields of an encoded struct: kind and bytes by number."""

ROW_GROUPS, CREATED_BY, ORDERS = 4, 6, 7  # of a footer
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


def set_statistics(
    path: Path, column: int, values: Mapping[int, Any] | None, *, only: int | None = None
) -> None:
    """Replace the statistics of one leaf column; None removes them.

    `only`: the number of the row group; all of them without it.
    """

    def of_chunk(number: int, chunk: Fields) -> None:
        if number != column:
            return
        kind, data = chunk[METADATA]
        metadata = fields_of(data)
        metadata.pop(STATISTICS, None)
        if values is not None:
            encoded = {number: encoded_value(value) for number, value in values.items()}
            metadata[STATISTICS] = (12, struct_of(encoded))
        chunk[METADATA] = kind, struct_of(metadata)

    def of_group(place: int, group: Fields) -> None:
        if only is not None and place != only:
            return
        kind, data = group[COLUMNS]
        group[COLUMNS] = kind, edit_list(data, of_chunk)

    def of_footer(footer: Fields) -> None:
        kind, data = footer[ROW_GROUPS]
        footer[ROW_GROUPS] = kind, edit_list(data, of_group)

    edit_footer(path, of_footer)


def without_orders(path: Path, created_by: str = "somebody") -> None:
    """Remove the declared orders of columns, as writers before 2018 did."""

    def change(footer: Fields) -> None:
        footer.pop(ORDERS, None)
        footer[CREATED_BY] = encoded_value(created_by.encode())

    edit_footer(path, change)


def nulls(count: int) -> I64:
    return I64(count)
