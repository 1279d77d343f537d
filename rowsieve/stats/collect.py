"""Taking the statistics of a part's columns, batch by batch, with Arrow's kernels.

Soundness: every value of every batch lies within the bounds. NaN is counted and left out of the
bounds; a zero is -0.0 as a lower and 0.0 as an upper bound, because the two are equal and either
may stand in the rows. Tombstones' keys widen the bounds of key columns (trap T4) but are no rows:
a bound that only a tombstone holds is not exact. Types without an order have counts alone, and the
statistics of their members: fields of structs, elements and lengths of lists, keys and values of
maps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.stats.bounds import lower_bytes, lower_text, upper_bytes, upper_text
from rowsieve.stats.model import LENGTH, ColumnStatistics, Derived, Subject
from rowsieve.types.logical import Field, Float, Int, List, LogicalType, Map, Struct, is_ordered

Extremes: TypeAlias = tuple[pa.Scalar | None, pa.Scalar | None]
Values: TypeAlias = pa.Array | pa.ChunkedArray


class StatisticsCollector:
    """Gathers the statistics of the columns of one part, in as many batches as it takes."""

    def __init__(self, fields: Iterable[Field]) -> None:
        self._columns = [_ColumnCollector(field) for field in fields]

    def add(self, rows: Any) -> None:
        """Account for the rows of a table or batch that has all the columns."""
        for column in self._columns:
            column.add(rows.column(column.field.name))

    def add_tombstones(self, keys: Any) -> None:
        """Widen the bounds by deleted keys; columns that `keys` lacks are as they were."""
        names = set(keys.schema.names)
        for column in self._columns:
            if column.field.name in names:
                column.widen(keys.column(column.field.name))

    def finish(self) -> dict[Subject, ColumnStatistics]:
        """Return the statistics by subject."""
        return {
            subject: statistics
            for column in self._columns
            for subject, statistics in column.finish()
        }


class _ColumnCollector:
    """One field, and beneath it those of its members."""

    def __init__(self, field: Field, *, repeated: bool = False) -> None:
        self.field = field
        self._values = _ValueCollector(field.type, repeated=repeated)
        self._lengths: _ValueCollector | None = None
        self._members: list[_ColumnCollector] = []
        match field.type:
            case Struct(fields=fields):
                self._members = [_ColumnCollector(each, repeated=repeated) for each in fields]
            case List(element=element):
                self._lengths = _ValueCollector(Int(), repeated=repeated)
                self._members = [_ColumnCollector(element, repeated=True)]
            case Map(key=key, value=value):
                self._lengths = _ValueCollector(Int(), repeated=repeated)
                self._members = [_ColumnCollector(each, repeated=True) for each in (key, value)]

    def add(self, values: Values) -> None:
        self._values.add(values)
        if not self._members:
            return
        if self._lengths is not None:
            if isinstance(self.field.type, Map):
                values = as_list_of_pairs(values)
            self._lengths.add(pc.list_value_length(values).cast(pa.int64()))
            values = pc.list_flatten(values)
        if isinstance(self.field.type, List):
            self._members[0].add(values)
            return
        for index, member in enumerate(self._members):
            member.add(pc.struct_field(values, [index]))

    def widen(self, values: Values) -> None:
        self._values.widen(values)

    def finish(self) -> Iterator[tuple[Subject, ColumnStatistics]]:
        yield self.field.id, self._values.finish()
        if self._lengths is not None:
            yield Derived(self.field.id, LENGTH), self._lengths.finish()
        for member in self._members:
            yield from member.finish()


class _ValueCollector:
    """Counts and bounds of values of one type."""

    def __init__(self, type_: LogicalType, *, repeated: bool) -> None:
        self._ordered = is_ordered(type_)
        self._value_count: int | None = 0 if repeated else None
        self._null_count = 0
        self._nan_count: int | None = 0 if isinstance(type_, Float) else None
        self._of_rows: Extremes = (None, None)
        self._of_tombstones: Extremes = (None, None)

    def add(self, values: Values) -> None:
        self._null_count += int(values.null_count)
        if self._value_count is not None:
            self._value_count += len(values)
        if not self._ordered:
            return
        if self._nan_count is not None:
            values, nan_count = without_nan(values)
            self._nan_count += nan_count
        self._of_rows = _joined(self._of_rows, extremes(values))

    def widen(self, values: Values) -> None:
        if self._nan_count is not None:
            values, nan_count = without_nan(values)
            self._nan_count += nan_count  # a NaN key among the tombstones is a NaN in the range
        self._of_tombstones = _joined(self._of_tombstones, extremes(values))

    def finish(self) -> ColumnStatistics:
        low, high = _joined(self._of_rows, self._of_tombstones)
        lower, upper = lower_bound(low), upper_bound(high)
        return ColumnStatistics(
            null_count=self._null_count,
            nan_count=self._nan_count,
            lower=lower,
            upper=upper,
            lower_exact=_is_exact(lower, self._of_rows[0]),
            upper_exact=_is_exact(upper, self._of_rows[1]),
            value_count=self._value_count,
        )


def as_list_of_pairs(values: Values) -> Values:
    """Maps as lists of structs, which Arrow can take apart."""
    type_ = values.type
    key = pa.field("key", type_.key_type, nullable=False)
    return values.cast(pa.list_(pa.struct([key, pa.field("value", type_.item_type)])))


def without_nan(values: Any) -> tuple[Any, int]:
    """The values that are not NaN (NULLs stay), and how many were."""
    nan = pc.is_nan(values)
    count = int(pc.sum(nan).as_py() or 0)
    return (values.filter(pc.invert(nan)) if count else values), count


def extremes(values: Any) -> Extremes:
    """The least and greatest of values without NaN; None, None if all are NULL."""
    found = pc.min_max(values)
    low, high = found["min"], found["max"]
    if not low.is_valid:
        return None, None
    if pa.types.is_floating(low.type):
        low = pa.scalar(-0.0, low.type) if low.as_py() == 0 else low
        high = pa.scalar(0.0, high.type) if high.as_py() == 0 else high
    return low, high


def lower_bound(value: pa.Scalar | None) -> pa.Scalar | None:
    """Bound a column from below by its least value, in as many bytes as a manifest may spend."""
    if value is None:
        return None
    if pa.types.is_string(value.type):
        return pa.scalar(lower_text(value.as_py()), value.type)
    if pa.types.is_binary(value.type):
        return pa.scalar(lower_bytes(value.as_py()), value.type)
    return value


def upper_bound(value: pa.Scalar | None) -> pa.Scalar | None:
    """Bound a column from above by its greatest value; None where no short bound exists."""
    if value is None:
        return None
    short: str | bytes | None
    if pa.types.is_string(value.type):
        short = upper_text(value.as_py())
    elif pa.types.is_binary(value.type):
        short = upper_bytes(value.as_py())
    else:
        return value
    return None if short is None else pa.scalar(short, value.type)


def _joined(left: Extremes, right: Extremes) -> Extremes:
    lows = [value for value in (left[0], right[0]) if value is not None]
    highs = [value for value in (left[1], right[1]) if value is not None]
    if not lows:
        return None, None
    if len(lows) == 1:
        return lows[0], highs[0]
    return extremes(pa.concat_arrays([pa.repeat(value, 1) for value in (*lows, *highs)]))


def _is_exact(bound: pa.Scalar | None, of_rows: pa.Scalar | None) -> bool:
    if bound is None or of_rows is None or not bound.equals(of_rows):
        return False
    return not (pa.types.is_floating(bound.type) and bound.as_py() == 0)
