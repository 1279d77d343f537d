"""Intervals of months, days and microseconds in 16 bytes, and their total length.

The bytes are months (int32), days (int32) and microseconds (int64), big-endian, each with its sign
bit inverted: they sort as (months, days, microseconds). SQL orders intervals by their total length
instead, with months of 30 days and days of 24 hours: 1 month equals 30 days. Soundness: therefore
the order of the bytes is never used for values; `total_us` is.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

STORAGE: Final = pa.binary(16)
TOTAL: Final = pa.decimal128(23, 0)
"""Holds the total of every interval, in microseconds."""

_NS_PER_US: Final = 1_000
_US_PER_S: Final = 1_000_000
_DAY_S: Final = 86_400
_MONTH_DAYS: Final = 30
_ARROW: Final = np.dtype([("months", "<i4"), ("days", "<i4"), ("ns", "<i8")])
_STORED: Final = np.dtype([("months", ">u4"), ("days", ">u4"), ("us", ">u8")])
_SIGN_32: Final = np.uint32(1 << 31)
_SIGN_64: Final = np.uint64(1 << 63)
_ZERO: Final = (1 << 31, 1 << 31, 1 << 63)
_LOW_32: Final = (1 << 32) - 1


def from_arrow(values: pa.Array) -> pa.Array:
    """Encode Arrow's intervals or durations; ValueError for a fraction of a microsecond."""
    parts = np.zeros(len(values), _ARROW)
    if pa.types.is_duration(values.type):
        micros = _filled(values.cast(pa.duration("us")), np.dtype("<i8"))
    else:
        parts = _filled(values, _ARROW)
        micros, rest = np.divmod(parts["ns"], _NS_PER_US)
        if rest.any():
            wrong = values[int(np.argmax(rest != 0))]
            raise ValueError(f"{wrong} is not a whole number of microseconds")
    return of_parts(parts["months"], parts["days"], micros, values)


def to_arrow(values: pa.Array) -> pa.Array:
    """Decode to Arrow's intervals; OverflowError beyond 292 years of nanoseconds."""
    months, days, micros = _parts(values)
    limit = np.iinfo(np.int64).max // _NS_PER_US
    if len(micros) and (micros.max() > limit or micros.min() < -limit):
        raise OverflowError(
            "an interval has more than 292 years of microseconds, which Arrow's type cannot hold; "
            "read the 16 bytes"
        )
    parts = np.empty(len(values), _ARROW)
    parts["months"], parts["days"], parts["ns"] = months, days, micros * _NS_PER_US
    return _with_nulls(pa.month_day_nano_interval(), parts, values)


def total_us(values: pa.Array) -> pa.Array:
    """Return the lengths in microseconds, as `TOTAL`: what SQL compares."""
    months, days, micros = _parts(values)
    whole, rest = np.divmod(micros, _US_PER_S)
    seconds = (months.astype(np.int64) * _MONTH_DAYS + days) * _DAY_S + whole
    # 128 bits from two halves of the seconds; neither product overflows.
    low = (seconds & _LOW_32) * _US_PER_S + rest
    high = (seconds >> 32) * _US_PER_S + (low >> 32)
    halves = np.empty((len(values), 2), np.int64)
    halves[:, 0] = ((high & _LOW_32) << 32) | (low & _LOW_32)
    halves[:, 1] = high >> 32
    return _with_nulls(TOTAL, halves, values)


def encoded(months: int, days: int, micros: int) -> bytes:
    """Return the 16 bytes of one interval; OverflowError if a part does not fit."""
    parts = ((months, 4), (days, 4), (micros, 8))
    return b"".join((part + (1 << 8 * size - 1)).to_bytes(size, "big") for part, size in parts)


def decoded(value: bytes) -> tuple[int, int, int]:
    """Return months, days and microseconds of 16 bytes."""
    ends = ((0, 4), (4, 8), (8, 16))
    months, days, micros = (
        int.from_bytes(value[start:stop], "big") - (1 << 8 * (stop - start) - 1)
        for start, stop in ends
    )
    return months, days, micros


def total_of(value: bytes) -> int:
    """Return the total length of one interval in microseconds."""
    months, days, micros = decoded(value)
    return (months * _MONTH_DAYS + days) * _DAY_S * _US_PER_S + micros


def spelled(value: bytes) -> str:
    """Write an interval as `1 months 2 days 3.000004 seconds`."""
    months, days, micros = decoded(value)
    seconds = Fraction(abs(micros), _US_PER_S)
    whole, rest = divmod(seconds.numerator * (_US_PER_S // seconds.denominator), _US_PER_S)
    fraction = f".{rest:06d}".rstrip("0") if rest else ""
    named = [f"{months} months"] if months else []
    named += [f"{days} days"] if days else []
    named += [f"{'-' if micros < 0 else ''}{whole}{fraction} seconds"] if micros else []
    return " ".join(named) or "0 days"


def _parts(
    values: pa.Array,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    stored = _filled(values, _STORED, _ZERO)
    months = (stored["months"].astype(np.uint32) ^ _SIGN_32).view(np.int32)
    days = (stored["days"].astype(np.uint32) ^ _SIGN_32).view(np.int32)
    return months, days, (stored["us"].astype(np.uint64) ^ _SIGN_64).view(np.int64)


def of_parts(
    months: npt.NDArray[Any], days: npt.NDArray[Any], micros: npt.NDArray[Any], like: pa.Array
) -> pa.Array:
    """Encode months, days and microseconds, which fit; NULL where `like` is."""
    stored = np.empty(len(like), _STORED)
    stored["months"] = months.astype(np.int32).view(np.uint32) ^ _SIGN_32
    stored["days"] = days.astype(np.int32).view(np.uint32) ^ _SIGN_32
    stored["us"] = micros.astype(np.int64).view(np.uint64) ^ _SIGN_64
    return _with_nulls(STORAGE, stored, like)


def _filled(values: pa.Array, layout: npt.DTypeLike, null: Any = 0) -> npt.NDArray[Any]:
    """Return the fixed-size values; NULLs are `null`, because their bytes may be anything."""
    layout = np.dtype(layout)
    buffer = values.buffers()[1]
    if buffer is None:
        return np.full(len(values), null, layout)
    values_read = np.frombuffer(buffer, layout, len(values), values.offset * layout.itemsize)
    if not values.null_count:
        return values_read
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    return np.where(valid, values_read, np.array(null, layout))


def _with_nulls(type_: pa.DataType, data: npt.NDArray[Any], like: pa.Array) -> pa.Array:
    """Return an array of fixed-size values with the NULLs of another."""
    bits = None
    if like.null_count:
        valid = like.is_valid().to_numpy(zero_copy_only=False)
        bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(type_, len(like), [bits, pa.py_buffer(data)])
