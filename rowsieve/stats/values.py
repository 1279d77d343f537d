"""Collects counts and bounds of values of one type, batch by batch, with Arrow's kernels.

Soundness: every value of every batch lies within the bounds. NaN is counted, and ignored by the
bounds. Zero becomes -0.0 as a lower bound and 0.0 as an upper bound, because the two are equal and
rows may have either. Keys of tombstones widen the bounds of key columns (trap T4) but are not rows:
a bound that only a tombstone has is not exact. Types without an order have counts only.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import plain_numbers
from rowsieve.stats.bounds import LIMIT_BYTES, lower_bytes, lower_text, upper_bytes, upper_text
from rowsieve.stats.model import ColumnStatistics
from rowsieve.types.logical import Binary, Float, LogicalType, String, is_ordered

Extremes: TypeAlias = tuple[pa.Scalar | None, pa.Scalar | None]
Values: TypeAlias = pa.Array | pa.ChunkedArray

SHORT_ROWS: Final = 1_024  # longer columns are not worth a copy
_CUT_SCALARS: Final = (pa.StringScalar, pa.BinaryScalar)


class ValueCollector:
    """Collects the statistics of one subject; `repeated`: also counts its values."""

    def __init__(self, type_: LogicalType, *, repeated: bool = False) -> None:
        self._ordered = is_ordered(type_)
        self._is_cut = isinstance(type_, String | Binary)
        self._value_count: int | None = 0 if repeated else None
        self._null_count = 0
        self._nan_count: int | None = 0 if isinstance(type_, Float) else None
        self._of_rows: Extremes = (None, None)
        self._of_tombstones: Extremes = (None, None)

    def add(self, values: Values, known: Extremes | None = None) -> None:
        """Account for the values of a batch; `known` are their extremes, if the caller has them."""
        self._null_count += int(values.null_count)
        if self._value_count is not None:
            self._value_count += len(values)
        if not self._ordered:
            return
        if self._nan_count is not None:
            values, nan_count = without_nan(values)
            self._nan_count += nan_count
        batch = known or extremes(values)
        self._of_rows = batch if self._of_rows[0] is None else _joined(self._of_rows, batch)

    def add_bounds(self, values: Values) -> None:
        """Widen the bounds by these values, without counting them."""
        self._of_rows = _joined(self._of_rows, extremes(values))

    def add_nulls(self, count: int) -> None:
        """Account for NULLs."""
        self._null_count += count

    def widen(self, values: Values) -> None:
        """Widen the bounds by deleted keys, which are not rows."""
        if self._nan_count is not None:
            values, nan_count = without_nan(values)
            self._nan_count += nan_count  # a NaN key among the tombstones is a NaN in the range
        self._of_tombstones = _joined(self._of_tombstones, extremes(values))

    def finish(self) -> ColumnStatistics:
        """The statistics of all values so far."""
        low, high = self._of_rows
        if self._of_tombstones[0] is not None:
            low, high = _joined(self._of_rows, self._of_tombstones)
        lower, upper = (lower_bound(low), upper_bound(high)) if self._is_cut else (low, high)
        return ColumnStatistics(
            null_count=self._null_count,
            nan_count=self._nan_count,
            lower=lower,
            upper=upper,
            lower_exact=_is_exact(lower, self._of_rows[0]),
            upper_exact=_is_exact(upper, self._of_rows[1]),
            value_count=self._value_count,
        )


def without_nan(values: Any) -> tuple[Any, int]:
    """The values except NaN (NULLs stay), and the number of NaNs."""
    plain = _plain_floats(values)
    if plain and not np.isnan([numbers.max() for numbers in plain]).any():
        return values, 0  # numpy's maximum of NaN and anything is NaN
    nan = pc.is_nan(values)
    count = int(pc.sum(nan).as_py() or 0)
    return (values.filter(pc.invert(nan)) if count else values), count


def extremes(values: Any) -> Extremes:
    """The least and greatest value; no value is NaN. None, None if all are NULL."""
    plain = _plain_floats(values) if pa.types.is_floating(values.type) else ()
    if plain:
        low = pa.scalar(min(numbers.min() for numbers in plain), values.type)
        high = pa.scalar(max(numbers.max() for numbers in plain), values.type)
    else:
        ends = pc.min_max(values)
        low, high = ends["min"], ends["max"]
    if not low.is_valid:
        return None, None
    if pa.types.is_floating(low.type):
        low = pa.scalar(-0.0, low.type) if low.as_py() == 0 else low
        high = pa.scalar(0.0, high.type) if high.as_py() == 0 else high
    return low, high


def extremes_together(columns: Sequence[Values]) -> list[Extremes | None]:
    """Return the extremes of short columns of one length; None where `extremes` must find them.

    A kernel takes longer to call than to run over a few rows. Therefore whole numbers, dates and
    times without NULLs are concatenated by type, and numpy finds the extremes of all at once.
    """
    bounds: list[Extremes | None] = [None] * len(columns)
    row_count = len(columns[0]) if columns else 0
    if not 0 < row_count <= SHORT_ROWS:
        return bounds
    alike: dict[pa.DataType, list[int]] = {}
    for place, values in enumerate(columns):
        if pa.types.is_primitive(values.type) and not values.null_count:
            alike.setdefault(values.type, []).append(place)
    for type_, places in alike.items():
        if pa.types.is_floating(type_) or pa.types.is_boolean(type_) or len(places) == 1:
            continue
        chunks = chain.from_iterable(map(_chunks, map(columns.__getitem__, places)))
        plain = plain_numbers(pa.concat_arrays(chunks))
        numbers = plain.to_numpy(zero_copy_only=False).reshape(len(places), row_count)
        lowest = pa.array(numbers.min(axis=1), plain.type).view(type_)
        highest = pa.array(numbers.max(axis=1), plain.type).view(type_)
        for place, low, high in zip(places, lowest, highest, strict=True):
            bounds[place] = low, high
    return bounds


def _chunks(values: Values) -> list[pa.Array]:
    return values.chunks if isinstance(values, pa.ChunkedArray) else [values]


def _plain_floats(values: Any) -> list[npt.NDArray[Any]]:
    """Floats without NULLs as numpy arrays; their extremes take a tenth of Arrow's time."""
    if values.null_count:
        return []
    return [chunk.to_numpy(zero_copy_only=False) for chunk in _chunks(values) if len(chunk)]


def lower_bound(value: pa.Scalar | None, limit: int = LIMIT_BYTES) -> pa.Scalar | None:
    """The lower bound of a column from its least value, truncated to a manifest's limit."""
    if value is None or not isinstance(value, _CUT_SCALARS) or len(value.as_buffer()) <= limit:
        return value
    shorten = lower_text if pa.types.is_string(value.type) else lower_bytes
    return pa.scalar(shorten(value.as_py(), limit), value.type)


def upper_bound(value: pa.Scalar | None, limit: int = LIMIT_BYTES) -> pa.Scalar | None:
    """The upper bound of a column from its greatest value; None if no short bound exists."""
    if value is None or not isinstance(value, _CUT_SCALARS) or len(value.as_buffer()) <= limit:
        return value
    shorten = upper_text if pa.types.is_string(value.type) else upper_bytes
    short = shorten(value.as_py(), limit)
    return None if short is None else pa.scalar(short, value.type)


def _joined(left: Extremes, right: Extremes) -> Extremes:
    if right[0] is None:
        return left
    if left[0] is None:
        return right
    return extremes(pa.concat_arrays([pa.repeat(value, 1) for value in (*left, *right)]))


def _is_exact(bound: pa.Scalar | None, of_rows: pa.Scalar | None) -> bool:
    if bound is None or of_rows is None or not (bound is of_rows or bound.equals(of_rows)):
        return False
    return not (pa.types.is_floating(bound.type) and bound.as_py() == 0)
