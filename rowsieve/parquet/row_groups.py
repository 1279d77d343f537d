"""What the interpreter may assume of the row groups of a file, from the statistics in its footer.

Only for files that our writer marked (`rowsieve.format`): of others nothing is known here. What
that mark promises and is relied upon:

- a float column with bounds holds no NaN, because a column in which NaN occurs is written without
  statistics (invariant 32); without bounds it may hold NaN;
- bounds are never truncated: values too long for statistics have none.

Soundness: missing statistics, those that cannot be decoded and counts that exceed the rows say
"unknown". -0.0 and 0.0 are one value to the interpreter, so either may be a bound.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.parquet.columns import FileColumn, file_columns, holds_all_of
from rowsieve.predicate.abstract import AbstractColumn
from rowsieve.predicate.arrays import Mask, without
from rowsieve.predicate.ir import BoundColumn
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Field, LogicalType, is_ordered
from rowsieve.types.schema import Schema

FORMAT_KEY: Final = b"rowsieve.format"
FORMAT: Final = b"1"

_INTEGERS: Final[dict[str, type[np.signedinteger[Any]]]] = {"INT32": np.int32, "INT64": np.int64}
_DECIMAL_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class _Footer:
    """What is known of one footer: its columns, and those decoded, by field id and type."""

    columns: dict[int, FileColumn]
    decoded: dict[tuple[int, LogicalType], AbstractColumn | None]


_FOOTERS: WeakKeyDictionary[pq.FileMetaData, _Footer] = WeakKeyDictionary()


def _footer_of(metadata: pq.FileMetaData) -> _Footer:
    if (known := _FOOTERS.get(metadata)) is None:
        marked = (metadata.metadata or {}).get(FORMAT_KEY) == FORMAT
        known = _FOOTERS[metadata] = _Footer(file_columns(metadata) if marked else {}, {})
    return known


class RowGroupStatistics:
    """`AbstractColumns` over the row groups of one file; a column is decoded at its first use.

    `known` are the field ids that may be used; None is all of them. What is decoded of a footer is
    remembered as long as the footer is. 80 row groups of one column take about 0.15 ms.
    """

    def __init__(
        self, metadata: pq.FileMetaData, schema: Schema, known: Collection[int] | None = None
    ) -> None:
        self.part_count = int(metadata.num_row_groups)
        self._metadata = metadata
        self._schema = schema
        self._known = None if known is None else frozenset(known)
        self._footer = _footer_of(metadata)

    def column(self, column: BoundColumn) -> AbstractColumn | None:
        """What every row group says of a column; None if nothing is known."""
        field_id = column.field_id
        field = next((field for field in self._schema if field.id == field_id), None)
        if field is None or self.file_column(field_id) is None:
            return None
        decoded = self._footer.decoded
        if (field_id, field.type) not in decoded:
            decoded[field_id, field.type] = self._decode(field)
        return decoded[field_id, field.type]

    def file_column(self, field_id: int) -> FileColumn | None:
        """Where the column is in the file; None if it may not be used or is no flat column."""
        if self._known is not None and field_id not in self._known:
            return None
        return self._footer.columns.get(field_id)

    def _decode(self, field: Field) -> AbstractColumn | None:
        column = self.file_column(field.id)
        if column is None or not is_ordered(field.type):
            return None
        target = arrow_type(field.type)
        if not holds_all_of(target, column.type):
            return None
        chunks = _read_chunks(self._metadata, column)
        sane = (chunks.nulls >= 0) & (chunks.nulls <= chunks.rows)
        empty = sane & (chunks.nulls == chunks.rows)
        bounded = chunks.bounded & ~(chunks.nulls > chunks.rows) & ~empty
        try:
            lower = _bound(chunks.lower, bounded, column).cast(target)
            upper = _bound(chunks.upper, bounded, column).cast(target)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return None  # not what the type promises: unknown, as if there were none
        may_be_nan = None
        if pa.types.is_floating(target):
            may_be_nan = ~(bounded | empty)
        return AbstractColumn(lower, upper, empty, ~(sane & (chunks.nulls == 0)), may_be_nan)


class JoinedStatistics:
    """`AbstractColumns` over the row groups of several files, one file after another."""

    def __init__(self, files: Sequence[RowGroupStatistics]) -> None:
        self._files = files
        self.part_count = sum(file.part_count for file in files)

    def column(self, column: BoundColumn) -> AbstractColumn | None:
        """What every row group says of a column; None if no file says anything."""
        found = [file.column(column) for file in self._files]
        if all(one is None for one in found):
            return None
        type_ = arrow_type(column.type)
        known = [
            _unknown(file.part_count, type_) if one is None else one
            for one, file in zip(found, self._files, strict=True)
        ]
        nan = [_all(one) if one.may_be_nan is None else one.may_be_nan for one in known]
        return AbstractColumn(
            pa.concat_arrays([one.lower for one in known]),
            pa.concat_arrays([one.upper for one in known]),
            np.concatenate([one.empty for one in known]),
            np.concatenate([one.may_be_null for one in known]),
            np.concatenate(nan) if pa.types.is_floating(type_) else None,
        )


def _unknown(count: int, type_: pa.DataType) -> AbstractColumn:
    nothing = pa.nulls(count, type_)
    unsure = np.ones(count, dtype=np.bool_)
    return AbstractColumn(nothing, nothing, ~unsure, unsure, unsure)


def _all(column: AbstractColumn) -> Mask:
    return np.ones(len(column.empty), dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class _Chunks:
    """One column's statistics as the footer holds them; `nulls` is -1 where it is not known."""

    rows: npt.NDArray[np.int64]
    nulls: npt.NDArray[np.int64]
    bounded: Mask
    lower: list[Any]
    upper: list[Any]


def _read_chunks(metadata: pq.FileMetaData, column: FileColumn) -> _Chunks:
    count = metadata.num_row_groups
    rows, nulls = np.zeros(count, dtype=np.int64), np.full(count, -1, dtype=np.int64)
    bounded = np.zeros(count, dtype=np.bool_)
    lower: list[Any] = [None] * count
    upper: list[Any] = [None] * count
    for i in range(count):
        group = metadata.row_group(i)
        rows[i] = group.num_rows
        found = group.column(column.index).statistics
        if found is None:
            continue
        if found.has_null_count:
            nulls[i] = found.null_count
        if found.has_min_max:
            bounded[i] = True
            lower[i], upper[i] = found.min_raw, found.max_raw
    return _Chunks(rows, nulls, bounded, lower, upper)


def _bound(raw: list[Any], bounded: Mask, column: FileColumn) -> pa.Array:
    """Physical values as the file's Arrow type, NULL where there is no bound."""
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
    """INT32 and INT64: numbers, days, microseconds and the digits of decimals."""
    type_ = column.type
    values = np.array(raw, dtype=_INTEGERS[column.physical])
    if pa.types.is_unsigned_integer(type_):
        unsigned = values.view(np.dtype(f"u{values.itemsize}"))
        return pa.array(unsigned).cast(type_)
    if pa.types.is_signed_integer(type_):
        return pa.array(values).cast(type_)
    if pa.types.is_decimal128(type_):
        halves = np.empty((len(values), 2), dtype="<i8")
        halves[:, 0], halves[:, 1] = values, values.astype(np.int64) >> 63
        return pa.Array.from_buffers(type_, len(values), [None, pa.py_buffer(halves)])
    days = pa.types.is_date32(type_) and column.physical == "INT32"
    microseconds = type_.id in (pa.timestamp("us").id, pa.time64("us").id) and type_.unit == "us"
    if days or (microseconds and column.physical == "INT64"):
        return pa.array(values).view(type_)
    raise ValueError(f"{column.physical} does not store {type_}")


def _decimals(raw: list[bytes | None], bounded: Mask, column: FileColumn) -> pa.Array:
    """Big-endian two's complement of `width` bytes as 16 little-endian ones."""
    width = column.width
    stored = np.frombuffer(b"".join(value or bytes(width) for value in raw), dtype=np.uint8)
    stored = stored.reshape(len(raw), width)
    if width > _DECIMAL_BYTES:
        raise ValueError(f"{width} bytes are more than a decimal of 38 digits has")
    words = np.where(stored[:, :1] >= 128, np.uint8(255), np.uint8(0))
    words = np.repeat(words, _DECIMAL_BYTES, axis=1)
    words[:, :width] = stored[:, ::-1]
    values = pa.Array.from_buffers(
        column.type, len(raw), [None, pa.py_buffer(np.ascontiguousarray(words))]
    )
    return without(values, ~bounded)
