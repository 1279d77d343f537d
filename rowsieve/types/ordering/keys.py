"""Sort, bisect and compare the keys of a table.

`KeyOrder` converts key columns to *sort forms*: Arrow arrays whose natural order is the key's order
and whose equality is equality of the stored values (invariant I5). Times and dates become integers,
floats become order-preserving integers with NaN last, other types are unchanged. Key columns hold
no NULL. Keys of different sources are always compared in sort form, never as raw bytes (trap T5).
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import InvalidInput
from rowsieve.types import logical
from rowsieve.types.schema import Schema

_NAME: Final = attrgetter("name")

KeyPart: TypeAlias = int | str | bytes | decimal.Decimal
Key: TypeAlias = tuple[KeyPart, ...]
"""One key: comparable Python values in key order."""

Rows: TypeAlias = Any
"""A `pa.Table` or `pa.RecordBatch`."""


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """The sort forms of n rows, one array per key column, with search and sort methods."""

    arrays: tuple[pa.Array, ...]

    def __len__(self) -> int:
        return len(self.arrays[0])

    def key(self, row: int) -> Key:
        """Return the key of one row as comparable Python values."""
        return tuple(array[row].as_py() for array in self.arrays)

    def slice(self, start: int, stop: int) -> KeyColumns:
        """Return rows [start, stop), zero-copy."""
        return KeyColumns(tuple(array.slice(start, stop - start) for array in self.arrays))

    def count_up_to(self, key: Key) -> int:
        """Return the number of rows <= `key`; the columns must be sorted. O(log n)."""
        if self.key(len(self) - 1) <= key:
            return len(self)
        if len(self.arrays) == 1 and _is_integer(self.arrays[0]):
            values = self.arrays[0].to_numpy(zero_copy_only=False)
            return int(np.searchsorted(values, values.dtype.type(key[0]), side="right"))
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.key(middle) <= key:
                low = middle + 1
            else:
                high = middle
        return low

    def sort(self) -> npt.NDArray[np.int64]:
        """Return the indices of a stable ascending sort of the rows."""
        if all(_is_integer(array) for array in self.arrays):
            columns = [array.to_numpy(zero_copy_only=False) for array in self.arrays]
            if len(columns) == 1:
                return np.argsort(columns[0], kind="stable")
            return np.lexsort(columns[::-1])
        names = [f"k{i}" for i in range(len(self.arrays))]
        table = pa.table(list(self.arrays), names=names)
        indices = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names])
        return np.asarray(indices.to_numpy(), dtype=np.int64)

    def is_sorted(self) -> bool:
        """Return whether no row is below the one before it."""
        if len(self) < 2:
            return True
        undecided = np.ones(len(self) - 1, dtype=bool)
        for array in self.arrays:
            before, after = array[:-1], array[1:]
            if np.any(undecided & _mask(pc.greater(before, after))):
                return False
            undecided &= _mask(pc.equal(before, after))
        return True

    def rises(self) -> npt.NDArray[np.bool_]:
        """(n,) whether a row's key is above that of the row before it; True for the first row."""
        above = np.zeros(max(len(self) - 1, 0), dtype=bool)
        undecided = ~above
        for array in self.arrays if len(above) else ():
            before, after = array[:-1], array[1:]
            above |= undecided & _mask(pc.greater(after, before))
            undecided &= _mask(pc.equal(before, after))
        return np.concatenate([np.ones(min(len(self), 1), dtype=bool), above])

    def repeats(self, order: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.bool_]:
        """(n,) whether a row, in the order of `order`, has the same key as the row before it.

        `order` may leave out rows.
        """
        same = np.zeros(len(self) if order is None else len(order), dtype=bool)
        if len(same) < 2:
            return same
        same[1:] = True
        for array in self.arrays:
            taken = array if order is None else array.take(pa.array(order))
            same[1:] &= _mask(pc.equal(taken[:-1], taken[1:]))
        return same


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """The key columns of a table, in key order."""

    fields: tuple[logical.Field, ...]

    @classmethod
    def of(cls, schema: Schema, key: Sequence[str]) -> KeyOrder:
        """Return the order of the named columns; InvalidInput for a type that cannot be a key."""
        fields = tuple(map(schema.field, key))
        if len(set(fields)) < len(fields):
            raise InvalidInput(
                f"the key ({', '.join(key)}) names a column twice; remove the duplicate"
            )
        for field in fields:
            if not logical.is_ordered(field.type):
                raise InvalidInput(
                    f"column {field.name!r} of type {logical.type_name(field.type)} cannot be part "
                    "of a key: its values have no canonical order; choose another key"
                )
        return cls(fields)

    @property
    def names(self) -> tuple[str, ...]:
        """The key's column names, in key order."""
        return tuple(map(_NAME, self.fields))

    @property
    def first(self) -> KeyOrder:
        """The order of only the first key column."""
        return KeyOrder(self.fields[:1])

    def columns(self, rows: Rows) -> KeyColumns:
        """Return the sort forms of a table's or batch's key columns."""
        return KeyColumns(
            tuple(sort_form(flat(rows.column(field.name)), field.type) for field in self.fields)
        )


def sort_form(array: pa.Array, type_: logical.LogicalType) -> pa.Array:
    """Convert an array to a form that sorts and compares like its values; NULLs stay NULL."""
    match type_:
        case logical.Bool():
            return array.cast(pa.uint8())
        case logical.Int():
            return array
        case logical.Float():
            return _float_form(array)
        case logical.Date():
            return array.cast(pa.int32())
        case logical.Time() | logical.Timestamp() | logical.Nanos():
            return array.cast(pa.int64())
        case _:
            return array


def concat_columns(pieces: Sequence[KeyColumns]) -> KeyColumns:
    """Concatenate the rows of all pieces in order."""
    if len(pieces) == 1:
        return pieces[0]
    width = len(pieces[0].arrays)
    return KeyColumns(
        tuple(pa.concat_arrays([piece.arrays[i] for piece in pieces]) for i in range(width))
    )


def _float_form(array: pa.Array) -> pa.Array:
    wide = array.cast(pa.float64())
    values = wide.fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0  # -0.0 becomes 0.0
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    ordered = bits ^ ((bits >> 63) & np.int64(0x7FFF_FFFF_FFFF_FFFF))
    missing = wide.is_null().to_numpy(zero_copy_only=False) if wide.null_count else None
    return pa.array(ordered, mask=missing)


def flat(column: Any) -> pa.Array:
    """Return a column as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    combined = column.combine_chunks()
    if isinstance(combined, pa.ChunkedArray):
        return (
            pa.concat_arrays(combined.chunks)
            if combined.num_chunks
            else pa.array([], combined.type)
        )
    return combined


def _is_integer(array: pa.Array) -> bool:
    return bool(pa.types.is_integer(array.type))


def _mask(array: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=bool)
