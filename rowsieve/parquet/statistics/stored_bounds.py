"""Converts a column's statistics in a file, with bounds as physical values, for the interpreter.

Soundness: counts above the row count, and bounds that do not fit the type or cannot be decoded,
mean "unknown". In files of our writer, a float column with bounds has no NaN; without bounds it may
have NaN. A column that the file has as integers has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.parquet.leaf_columns import FileColumn
from rowsieve.predicate.arrays import Mask, as_type, without
from rowsieve.predicate.interpretation.abstract import AbstractColumn
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import LogicalType
from rowsieve.types.widening import holds_all_of

_INTEGERS: Final[dict[str, type[np.signedinteger[Any]]]] = {"INT32": np.int32, "INT64": np.int64}
_DECIMAL_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class StoredBounds:
    """One column's statistics in n row groups or pages, as the file stores them.

    `rows`, `nulls`: (n,) counts, -1 if unknown; `lower`, `upper`: physical values, valid only where
    `bounded`.
    """

    rows: npt.NDArray[np.int64]
    nulls: npt.NDArray[np.int64]
    bounded: Mask
    lower: list[Any]
    upper: list[Any]


def joined_bounds(pages: Sequence[StoredBounds]) -> StoredBounds:
    """The statistics of several runs of row groups or pages, one after another."""
    if len(pages) == 1:
        return pages[0]
    return StoredBounds(
        np.concatenate([each.rows for each in pages]),
        np.concatenate([each.nulls for each in pages]),
        np.concatenate([each.bounded for each in pages]),
        [value for each in pages for value in each.lower],
        [value for each in pages for value in each.upper],
    )


def abstract_column(
    stored: StoredBounds, column: FileColumn, type_: LogicalType
) -> AbstractColumn | None:
    """The statistics in the storage type of the table's column; None if the types do not fit."""
    target = arrow_type(type_)
    if not holds_all_of(target, column.type):
        return None
    sane = (stored.nulls >= 0) & (stored.nulls <= stored.rows)
    empty = sane & (stored.nulls == stored.rows)
    bounded = stored.bounded & ~(stored.nulls > stored.rows) & ~empty
    try:
        lower = as_type(physical_bound(stored.lower, bounded, column), target)
        upper = as_type(physical_bound(stored.upper, bounded, column), target)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None  # values that the type does not allow: unknown
    may_be_nan = None
    if pa.types.is_floating(target):
        may_be_nan = ~(bounded | empty) & pa.types.is_floating(column.type)
    return AbstractColumn(lower, upper, empty, ~(sane & (stored.nulls == 0)), may_be_nan)


def physical_bound(raw: list[Any], bounded: Mask, column: FileColumn) -> pa.Array:
    """Convert physical values to the file's Arrow type; NULL where there is no bound."""
    type_ = column.type
    if not bounded.any():
        return pa.nulls(len(raw), type_)
    if column.physical in _INTEGERS:
        present = [value if there else 0 for value, there in zip(raw, bounded, strict=True)]
        return without(_integers(present, column), ~bounded)
    values = [value if there else None for value, there in zip(raw, bounded, strict=True)]
    match column.physical:
        case "BYTE_ARRAY" if pa.types.is_string(type_):
            return pa.array(values, pa.binary()).cast(type_)
        case "BYTE_ARRAY" if pa.types.is_binary(type_):
            return pa.array(values, type_)
        case "FIXED_LEN_BYTE_ARRAY" if pa.types.is_decimal128(type_):
            return _decimals(values, bounded, column)
        case "FIXED_LEN_BYTE_ARRAY" if type_ == pa.binary(column.width):
            return pa.array(values, type_)
        case "BOOLEAN" if pa.types.is_boolean(type_):
            return pa.array(values, type_)
        case "FLOAT" | "DOUBLE" if pa.types.is_floating(type_):
            return pa.array(values, type_)
        case _:
            raise ValueError(f"{column.physical} does not store {type_}")


def _integers(raw: list[int], column: FileColumn) -> pa.Array:
    """INT32 and INT64: numbers, days, microseconds and unscaled decimals."""
    type_ = column.type
    values = np.array(raw, dtype=_INTEGERS[column.physical])
    if pa.types.is_unsigned_integer(type_):
        unsigned = values.view(np.dtype(f"u{values.itemsize}"))
        return as_type(pa.array(unsigned), type_)
    if pa.types.is_signed_integer(type_):
        return as_type(pa.array(values), type_)
    if pa.types.is_decimal128(type_):
        halves = np.empty((len(values), 2), dtype="<i8")
        halves[:, 0], halves[:, 1] = values, values.astype(np.int64) >> 63
        return pa.Array.from_buffers(type_, len(values), [None, pa.py_buffer(halves)])
    days = pa.types.is_date32(type_) and column.physical == "INT32"
    fine = pa.types.is_timestamp(type_) and type_.unit in ("us", "ns")
    times = fine or type_ == pa.time64("us")
    if days or (times and column.physical == "INT64"):
        return pa.array(values).view(type_)
    raise ValueError(f"{column.physical} does not store {type_}")


def _decimals(raw: list[bytes | None], bounded: Mask, column: FileColumn) -> pa.Array:
    """Convert big-endian two's complement of `width` bytes to 16 little-endian bytes."""
    width = column.width
    stored = np.frombuffer(b"".join(value or bytes(width) for value in raw), dtype=np.uint8)
    stored = stored.reshape(len(raw), width)
    if width > _DECIMAL_BYTES:
        raise ValueError(f"{width} bytes are too many for a decimal of 38 digits")
    words = np.where(stored[:, :1] >= 128, np.uint8(255), np.uint8(0))
    words = np.repeat(words, _DECIMAL_BYTES, axis=1)
    words[:, :width] = stored[:, ::-1]
    values = pa.Array.from_buffers(
        column.type, len(raw), [None, pa.py_buffer(np.ascontiguousarray(words))]
    )
    return without(values, ~bounded)
