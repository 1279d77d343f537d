"""Bounds of Delta's log: the JSON text `stats` of `add` actions.

Soundness: times are cut to milliseconds by the format, so the upper bound becomes the last
microsecond of it. Numbers that a writer may have passed through a float, and texts that do not fit
the type, are unknown. Text is cut by the format in a way that keeps it a bound.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from rowsieve.errors import InvalidInput
from rowsieve.predicate.pruning.file_bounds import FileBounds, leaves
from rowsieve.types import logical
from rowsieve.types.logical import LogicalType
from rowsieve.types.schema import Schema

_EPOCH: Final = dt.datetime(1970, 1, 1)
_MICRO: Final = dt.timedelta(microseconds=1)
_MILLI: Final = 1_000
_EXACT_DIGITS: Final = 15  # of a decimal number that a float64 gives back


def delta_bounds(
    stats: Iterable[str | Mapping[str, Any] | None],
    schema: Schema | pa.Schema,
    *,
    physical: Mapping[str, str] | None = None,
) -> FileBounds:
    """Return the facts of the files of Delta's `add` actions, in their order.

    `stats`: the member `stats` of each, JSON text or what `json.loads` makes of it, or the action
    itself; None is unknown. `physical`: the names of columns in the files, where the table maps
    columns. Values of partitions are not among them. InvalidInput for text that is not JSON.
    """
    files = [_parsed(each, number) for number, each in enumerate(stats)]
    bounds = FileBounds(min={}, max={}, nulls={}, nans={}, rows=_counts(files, ("numRecords",)))
    for name, (logical_path, field) in leaves(schema).items():
        type_, stored = field.type, (physical or {}).get(name)
        path = logical_path if stored is None else tuple(stored.split("."))
        if (read := _READERS.get(type(type_))) is not None:
            for side, member in (("min", "minValues"), ("max", "maxValues")):
                values = [_at(file, (member, *path)) for file in files]
                if any(value is not None for value in values):
                    bounds[side][name] = _bounds(values, type_, read, side)  # type: ignore[literal-required]
        nulls = _counts(files, ("nullCount", *path))
        if any(count is not None for count in nulls):
            bounds["nulls"][name] = nulls  # type: ignore[index]
    return bounds


def _parsed(stats: str | Mapping[str, Any] | None, number: int) -> Mapping[str, Any]:
    for member in ("add", "stats"):  # of a line of the log, of its action
        if isinstance(stats, Mapping) and member in stats:
            stats = stats[member]
    if not isinstance(stats, str):
        return stats or {}
    try:
        parsed = json.loads(stats, parse_float=decimal.Decimal)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"delta_bounds: the stats of file {number} are not JSON: {error}"
        ) from error
    return parsed if isinstance(parsed, dict) else {}


def _at(node: Any, path: Sequence[str]) -> Any:
    for step in path:
        node = node.get(step) if isinstance(node, Mapping) else None
    return None if isinstance(node, Mapping) else node


def _counts(files: list[Mapping[str, Any]], path: Sequence[str]) -> list[int | None]:
    counts = [_at(file, path) for file in files]
    return [count if type(count) is int and 0 <= count < 2**63 else None for count in counts]


def _bounds(
    values: list[Any], type_: LogicalType, read: Callable[[Any, LogicalType, int], Any], side: str
) -> pa.Array:
    widened = _MILLI - 1 if side == "max" else 0
    read_values = [None if value is None else read(value, type_, widened) for value in values]
    return pa.array(read_values, _storage(type_))


def _storage(type_: LogicalType) -> pa.DataType:
    """Return the type of the stored bounds, which `prune` converts to the column's type."""
    match type_:
        case logical.Int(signed=False, bits=64):
            return pa.uint64()
        case logical.Int():
            return pa.int64()
        case logical.Float():
            return pa.float64()
        case logical.Decimal():
            return pa.decimal256(76, 38)
        case logical.Date():
            return pa.date32()
        case logical.Timestamp(utc=utc) | logical.Nanos(utc=utc):
            return pa.timestamp("us", "UTC" if utc else None)
        case logical.Bool():
            return pa.bool_()
        case _:
            return pa.string()


def _int(value: Any, type_: LogicalType, widened: int) -> int | None:
    del widened
    assert isinstance(type_, logical.Int)
    low = -(2 ** (type_.bits - 1)) if type_.signed else 0
    high = 2 ** (type_.bits - type_.signed)
    return value if type(value) is int and low <= value < high else None


def _float(value: Any, type_: LogicalType, widened: int) -> float | None:
    del type_, widened
    if isinstance(value, str):
        return {"Infinity": float("inf"), "-Infinity": float("-inf")}.get(value)
    if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer
        return None


def _decimal(value: Any, type_: LogicalType, widened: int) -> decimal.Decimal | None:
    del widened
    assert isinstance(type_, logical.Decimal)
    if isinstance(value, bool) or not isinstance(value, int | decimal.Decimal | str | float):
        return None
    try:
        number = decimal.Decimal(repr(value) if isinstance(value, float) else value)
    except decimal.InvalidOperation:
        return None
    if not number.is_finite() or number.adjusted() >= type_.precision:
        return None
    digits = len(number.as_tuple().digits)
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return number if digits <= _EXACT_DIGITS and exponent >= -38 else None


def _text(value: Any, type_: LogicalType, widened: int) -> str | None:
    del type_, widened
    return value if isinstance(value, str) else None


def _bool(value: Any, type_: LogicalType, widened: int) -> bool | None:
    del type_, widened
    return value if isinstance(value, bool) else None


def _date(value: Any, type_: LogicalType, widened: int) -> dt.date | None:
    del type_, widened
    try:
        return dt.date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _timestamp(value: Any, type_: LogicalType, widened: int) -> int | None:
    """Return microseconds, of an upper bound the last of its millisecond."""
    assert isinstance(type_, logical.Timestamp | logical.Nanos)
    try:
        moment = dt.datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    if moment is None:
        return None
    offset = moment.utcoffset()
    if type_.utc is (offset is None):
        return None
    local = moment.replace(tzinfo=None)
    micros = (local - _EPOCH) // _MICRO - ((offset or dt.timedelta()) // _MICRO)
    finer = isinstance(type_, logical.Nanos) and widened > 0  # nanoseconds of the last microsecond
    return micros + widened + finer


_READERS: Final[Mapping[type[LogicalType], Callable[[Any, LogicalType, int], Any]]] = {
    logical.Bool: _bool,
    logical.Int: _int,
    logical.Float: _float,
    logical.Decimal: _decimal,
    logical.String: _text,
    logical.Date: _date,
    logical.Timestamp: _timestamp,
    logical.Nanos: _timestamp,
}
