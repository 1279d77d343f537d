"""Writes plain columns as rows of a binary format, whole columns at a time.

A format says how single values are written; this module walks the types, so nested values are
written by the same few functions: a struct joins the cells of its members, a list groups those of
its items.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.encodings.cells import SLICE_ROWS, Cells, grouped, joined


class Format(Protocol):
    """How a binary format writes values: as parts, whose cells follow each other in a row."""

    def leaf(self, values: pa.Array) -> list[Any]:
        """Booleans, numbers, texts and bytes; what NULL has does not count."""

    def members(self, members: list[list[Any]], struct: pa.DataType, /) -> list[Any]:
        """Structs whose members have these parts."""

    def items(self, items: Cells, lengths: npt.NDArray[np.int64]) -> list[Any]:
        """Lists of these lengths, whose items have these cells."""

    def nullable(self, parts: list[Any], is_valid: pa.Array | None, count: int) -> list[Any]:
        """Values that may be NULL; without a mask, none is."""


def encoded_rows(
    columns: Sequence[pa.Array], nullable: Sequence[bool], count: int, head: Any, form: Format
) -> Cells:
    """A cell for each of `count` rows: the head, then the values of its plain columns."""
    slices = []
    for start in range(0, count, SLICE_ROWS):
        parts = [head]
        for column, may_be_null in zip(columns, nullable, strict=True):
            parts += column_parts(column.slice(start, SLICE_ROWS), form, nullable=may_be_null)
        slices.append(joined(parts, min(SLICE_ROWS, count - start)))
    return pa.concat_arrays(slices) if slices else pa.array([], pa.binary())


def column_parts(values: pa.Array, form: Format, *, nullable: bool = True) -> list[Any]:
    """The parts of one plain column."""
    type_ = values.type
    if pa.types.is_null(type_):
        parts: list[Any] = []
    elif pa.types.is_struct(type_):
        members = [column_parts(values.field(i), form) for i in range(type_.num_fields)]
        parts = form.members(members, type_)
    elif pa.types.is_list(type_):
        counted = pc.fill_null(pc.list_value_length(values), 0)
        lengths = np.asarray(counted.to_numpy(zero_copy_only=False), dtype=np.int64)
        flat = values.flatten()
        items = grouped(joined(column_parts(flat, form), len(flat)), lengths)
        parts = form.items(items, lengths)
    else:
        parts = form.leaf(values)
    if not nullable:
        return parts
    is_valid = values.is_valid() if values.null_count else None
    return form.nullable(parts, is_valid, len(values))


def numbers_of(values: pa.Array) -> npt.NDArray[Any]:
    """The numbers of a plain array; those of NULL are 0."""
    filled = values.fill_null(0) if values.null_count else values
    return np.asarray(filled.to_numpy(zero_copy_only=False))
