"""Rows and values in messages: of every type, also values that Python's types cannot hold.

A table stores years up to 292,277 and text is whatever bytes another program wrote, while Python's
`datetime` ends in 9999. Showing a value never fails, as the message would be lost with it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

import pyarrow as pa

from rowsieve.types import interval_bytes, logical, numeric_bytes

_PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY_S: Final = 86_400
_INTERVAL_BYTES: Final = 16
_MAX_CHARACTERS: Final = 200  # characters of one value


class Typed(Protocol):
    """A column of a table or predicate."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def type(self) -> logical.LogicalType:
        """Its type."""


class ValueText(str):
    """The text of a value that Python cannot hold; in a dict or list it is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Show the text itself."""
        return str(self)


def shown_row(
    rows: pa.Table | pa.RecordBatch, row: int, columns: Iterable[Typed] = ()
) -> dict[str, Any]:
    """Return one row whose text, as that of a dict, is for messages: no value is very long.

    `columns` have the types of the table, in which UUIDs, intervals and unbounded numbers are bytes
    that no user could write.
    """
    types = {column.name: type(column.type) for column in columns}
    return {
        name: _short(_known(python_value(rows.column(name)[row]), types.get(name)))
        for name in rows.schema.names
    }


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return the Python values of a column, and a `ValueText` of what Python cannot hold."""
    try:
        return list(column.to_pylist())
    except Exception:  # pyarrow and Python have many errors for such values
        return [python_value(value) for value in column]


def python_value(value: pa.Scalar) -> Any:
    """Return the Python value of a scalar, or its `ValueText`."""
    if not value.is_valid:
        return None
    try:
        return value.as_py()
    except Exception:  # see `python_values`
        return _beyond(value)


def _known(value: Any, type_: type[logical.LogicalType] | None) -> Any:
    """The value, or its text if its type is stored as bytes; damaged bytes stay bytes."""
    spelled = None if type_ is None else _SPELLED.get(type_)
    if value is None or spelled is None:
        return value
    try:
        return ValueText(spelled(value))
    except (KeyError, TypeError, ValueError):
        return value


def _short(value: Any) -> Any:
    """The value, or the start of its text if that is long."""
    if not isinstance(value, str | bytes | list | dict):
        return value
    text = repr(value)
    return value if len(text) <= _MAX_CHARACTERS else ValueText(f"{text[:_MAX_CHARACTERS]}…")


def _beyond(value: pa.Scalar) -> Any:
    type_ = value.type
    if isinstance(value, pa.ExtensionScalar):
        return python_value(value.value)
    if pa.types.is_timestamp(type_):
        return _moment(value.value, type_.unit, zoned=type_.tz is not None)
    if pa.types.is_date(type_):
        days = value.value if pa.types.is_date32(type_) else value.value // (_DAY_S * 1_000)
        return ValueText(_day(days))
    if pa.types.is_struct(type_):
        return {field.name: python_value(value[i]) for i, field in enumerate(type_)}
    if pa.types.is_map(type_):
        return [tuple(map(python_value, pair.values())) for pair in value.values]
    if _is_list(type_):
        return [python_value(item) for item in value.values]
    if pa.types.is_duration(type_) or pa.types.is_time(type_):
        return ValueText(f"{value.value} {type_.unit}")
    if hasattr(value, "as_buffer"):  # text that is not UTF-8
        return bytes(value.as_buffer())
    return ValueText(f"<a value of the type {type_}>")


def _is_list(type_: pa.DataType) -> bool:
    is_any = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(is_one(type_) for is_one in is_any)


def _moment(value: int, unit: str, *, zoned: bool) -> ValueText:
    """A time of any year; an instant in UTC, as the zone's rules end before."""
    seconds, rest = divmod(value, _PER_SECOND[unit])
    days, second = divmod(seconds, _DAY_S)
    hour, minute = second // 3600, second // 60 % 60
    digits = len(str(_PER_SECOND[unit])) - 1
    fraction = f".{rest:0{digits}}" if digits and rest else ""
    zone = "+00:00" if zoned else ""
    return ValueText(f"{_day(days)} {hour:02}:{minute:02}:{second % 60:02}{fraction}{zone}")


def _day(days: int) -> str:
    """The date of a day, counted from 1970-01-01, in the Gregorian calendar.

    Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
    """
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    month += 3 if month < 10 else -9
    year = year_of_era + era * 400 + (month <= 2)
    return f"{year:04}-{month:02}-{day:02}"


def _interval(value: bytes) -> str:
    if len(value) != _INTERVAL_BYTES:
        raise ValueError("not an interval")
    return interval_bytes.spelled(value)


_SPELLED: Final[Mapping[type[logical.LogicalType], Callable[[Any], str]]] = {
    logical.Uuid: lambda value: str(uuid.UUID(bytes=getattr(value, "bytes", value))),
    logical.Interval: _interval,
    logical.Numeric: lambda value: numeric_bytes.spelled(value["exact"]),
}
"""Types whose stored values are not what users write."""
