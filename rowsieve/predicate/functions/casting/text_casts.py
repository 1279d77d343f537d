"""Casts from and to text. Parsing is strict and agrees with `literal_values.parse_text`.

Parsing is not monotone, nor is formatting numbers: '10' sorts before '9'. Formatting dates, times
and UUIDs is monotone, because their digits come in order of significance.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, Mask, as_mask, filled, null_mask, without
from rowsieve.predicate.functions.calendar_days import first_days
from rowsieve.predicate.functions.casting import far_years
from rowsieve.predicate.functions.numbers.decimals import narrowed
from rowsieve.predicate.literal_values import UUID_TEXT, int_range
from rowsieve.predicate.semantics import FarYears, NanOrder, Semantics, TimestampText
from rowsieve.types.days import DAY_US, FIRST_DAY, LAST_DAY
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import (
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    Time,
    Timestamp,
    Uuid,
)
from rowsieve.types.time_zones import zone

Micros: TypeAlias = npt.NDArray[np.int64]
Reader: TypeAlias = Callable[[pa.Array, LogicalType, LogicalType, Semantics], Computed]

SPACE = " \t\n\r\f\v"
_SECONDS = r"(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,6}))?)?"
CLOCK = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})" + _SECONDS
DATE = r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
ZONE = r"\s*(?P<zone>Z|(?P<sign>[+-])(?P<zone_hour>[0-9]{2})(?::?(?P<zone_minute>[0-9]{2}))?)?"
_UUID = f"^({UUID_TEXT}|\\{{({UUID_TEXT})\\}})$"
_DATE_LENGTH = len("1970-01-01")
_IN_UTC = {TimestampText.LOCAL: "", TimestampText.RFC_3339: "Z"}


def trimmed(values: pa.Array, characters: str = SPACE) -> pa.Array:
    """Trim the characters from both ends."""
    return pc.utf8_trim(values, characters=characters)


def checked(array: pa.Array, good: Mask, nulls: Mask) -> Computed:
    """Set values to NULL and failed where they are not good."""
    failed = ~good & ~nulls
    return Computed(without(array, ~good | nulls), failed if failed.any() else None)


def words_to_bool(true: Sequence[str], false: Sequence[str], *, spaces: str = SPACE) -> Reader:
    """Return a reader of these words in any case, with any of `spaces` around them."""

    def to_bool(values: pa.Array, _: LogicalType, __: LogicalType, ___: Semantics) -> Computed:
        text = pc.ascii_lower(trimmed(values, spaces) if spaces else values)
        is_true, is_false = (pc.is_in(text, value_set=pa.array(each)) for each in (true, false))
        return checked(is_true, as_mask(pc.or_(is_true, is_false)), null_mask(values))

    return to_bool


def to_int(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    """Parse digits with an optional sign, within the type's range."""
    assert isinstance(target, Int)
    text = trimmed(values)
    good = as_mask(pc.match_substring_regex(text, r"^[+-]?[0-9]+$"))
    bare = pc.replace_substring_regex(text, r"^([+-]?)0*([0-9])", r"\1\2")
    good &= as_mask(pc.less(pc.utf8_length(bare), 30))
    wide = _as_decimal(without(bare, ~good), pa.decimal256(40, 0))
    low, high = (
        pa.scalar(decimal.Decimal(bound), pa.decimal256(40, 0)) for bound in int_range(target)
    )
    good &= as_mask(pc.and_(pc.greater_equal(wide, low), pc.less_equal(wide, high)))
    return checked(without(wide, ~good).cast(arrow_type(target)), good, null_mask(values))


def to_float(
    values: pa.Array, _: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    """Parse a decimal number, `nan`, `inf` or `infinity`; overflow is invalid.

    `-nan` keeps its sign if the semantics order NaN by it.
    """
    text = pc.utf8_lower(trimmed(values))
    number = as_mask(
        pc.match_substring_regex(text, r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]{1,6})?$")
    )
    named = as_mask(pc.match_substring_regex(text, r"^[+-]?(nan|inf|infinity)$"))
    bare = pc.replace_substring_regex(without(text, ~(number | named)), r"^\+", "")
    signed = pc.equal(bare, "-nan")
    result = pc.replace_substring_regex(bare, r"^-nan$", "nan").cast(arrow_type(target))
    if semantics.nan is NanOrder.SIGNED:
        result = pc.if_else(signed, pc.negate(result), result)
    good = named | (number & ~as_mask(pc.is_inf(result)))
    return checked(result, good, null_mask(values))


def to_decimal(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    """Parse a decimal number without exponent, rounded half away from zero to the scale."""
    assert isinstance(target, Decimal)
    text = trimmed(values)
    good = as_mask(pc.match_substring_regex(text, r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)$"))
    bare = pc.replace_substring_regex(text, r"^([+-]?)0*([0-9])", r"\1\2")
    bare = pc.replace_substring_regex(bare, r"(\.[0-9]{38})[0-9]+$", r"\1")
    good &= as_mask(pc.match_substring_regex(bare, r"^[+-]?[0-9]{0,38}(\.[0-9]*)?$"))
    wide = _as_decimal(without(bare, ~good), pa.decimal256(76, 38))
    narrow = narrowed(wide, target)
    return checked(narrow, good & ~null_mask(narrow), null_mask(values))


def to_date(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    """Parse `YYYY-MM-DD`."""
    parts = pc.extract_regex(trimmed(values), pattern=f"^{DATE}$")
    days, good = matched_days(parts)
    array = pa.array(days.astype(np.int32)).view(arrow_type(target))
    return checked(array, good, null_mask(values))


def to_timestamp(
    values: pa.Array, _: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    """Parse `YYYY-MM-DD[ HH:MM[:SS[.ffffff]]]`, with an offset only if the type is an instant.

    An instant without an offset is a local time of the session's zone.
    """
    assert isinstance(target, Timestamp)
    pattern = f"^{DATE}(?:[ T]{CLOCK})?{ZONE if target.utc else ''}$"
    parts = pc.extract_regex(trimmed(values), pattern=pattern)
    micros, good = local_micros(parts)
    if target.utc:
        micros, good = instants(parts, micros, good, semantics)
    return moments(micros, good, values, target)


def with_parts(parts: pa.Array, names: Sequence[str]) -> pa.Array:
    """The matched groups with these names; those that the pattern lacks are empty."""
    known = {field.name for field in parts.type}
    empty = pa.repeat("", len(parts))
    columns = [parts.field(name) if name in known else empty for name in names]
    return pa.StructArray.from_arrays(columns, list(names), mask=pa.array(null_mask(parts)))


def matched_days(parts: pa.Array) -> tuple[Micros, Mask]:
    """Return days since 1970 of matched dates, and the mask of dates that exist."""
    year, month, day = (_part(parts, name) for name in ("year", "month", "day"))
    good = ~null_mask(parts) & (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    months = np.where(good, (year - 1970) * 12 + month - 1, 0)
    first = first_days(months)
    good &= day <= first_days(months + 1) - first
    return first + day - 1, good


def local_micros(parts: pa.Array) -> tuple[Micros, Mask]:
    """Return microseconds since 1970 of matched dates and times, and the mask of valid ones."""
    days, good = matched_days(parts)
    clock, there = clock_micros(parts)
    return days * DAY_US + clock, good & there


def clock_micros(parts: pa.Array) -> tuple[Micros, Mask]:
    """Return microseconds since midnight of matched times, and the mask of valid ones."""
    hour, minute, second = (_part(parts, name) for name in ("hour", "minute", "second"))
    good = ~null_mask(parts) & (hour < 24) & (minute < 60) & (second < 60)
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + _fraction(parts), good


def offset_micros(parts: pa.Array, hours: int = 16) -> tuple[Micros, Mask]:
    """Return microseconds east of UTC of matched offsets, and the mask of those below `hours`."""
    zone_hour, zone_minute = _part(parts, "zone_hour"), _part(parts, "zone_minute")
    east = as_mask(pc.equal(parts.field("sign"), "+"))
    offset = np.where(east, 1, -1) * (zone_hour * 60 + zone_minute) * 60_000_000
    return offset, (zone_hour < hours) & (zone_minute < 60)


def instants(
    parts: pa.Array, micros: Micros, good: Mask, semantics: Semantics
) -> tuple[Micros, Mask]:
    """Convert local times to instants by their offsets, or else in the session's zone."""
    offset, there = offset_micros(parts)
    micros, good = micros - offset, good & there
    bare = as_mask(pc.equal(parts.field("zone"), "")) & good
    return in_session(micros, good, bare, semantics)


def in_session(
    micros: Micros, good: Mask, local: Mask, semantics: Semantics
) -> tuple[Micros, Mask]:
    """Convert the local times among the values to instants in the session's zone."""
    session_zone = zone(semantics.time_zone)
    if session_zone.is_utc:
        return micros, good
    converted, failed, null = session_zone.instants(
        np.where(local, micros, 0), semantics.repeated_time, semantics.skipped_time
    )
    return np.where(local, converted, micros), good & ~(local & (failed | null))


def moments(micros: Micros, good: Mask, values: pa.Array, target: LogicalType) -> Computed:
    """Build an array of the type; NULL and failed where the times are not good."""
    return checked(pa.array(micros).view(arrow_type(target)), good, null_mask(values))


def days_of(micros: Micros, good: Mask, values: pa.Array, target: LogicalType) -> Computed:
    """Build an array of the days of the times; NULL and failed where they are not good."""
    days = (micros // DAY_US).astype(np.int32)
    return checked(pa.array(days).view(arrow_type(target)), good, null_mask(values))


def to_time(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    """Parse `HH:MM[:SS[.ffffff]]`."""
    parts = pc.extract_regex(trimmed(values), pattern=f"^{CLOCK}$")
    return moments(*clock_micros(parts), values, target)


def to_uuid(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    """Parse 32 hexadecimal digits, in groups of 8-4-4-4-12 or without hyphens, optional braces."""
    text = pc.utf8_lower(trimmed(values))
    good = as_mask(pc.match_substring_regex(text, _UUID))
    bare = pc.replace_substring_regex(text, r"[{}-]", "")
    digits = pc.fill_null(without(bare, ~good), "0" * 32)
    codes = _fixed_bytes(digits.cast(pa.binary()).cast(pa.binary(32)))
    nibbles = np.where(codes >= ord("a"), codes - ord("a") + 10, codes - ord("0"))
    packed = (nibbles[0::2] << 4 | nibbles[1::2]).astype(np.uint8)
    array = pa.Array.from_buffers(arrow_type(target), len(text), [None, pa.py_buffer(packed)])
    return checked(array, good, null_mask(values))


def from_uuid(values: pa.Array, _: LogicalType, __: LogicalType, ___: Semantics) -> Computed:
    """Format in lower case, in groups of 8-4-4-4-12."""
    nulls = null_mask(values)
    packed = _fixed_bytes(values).reshape(-1, 16)
    text = np.full((len(values), 36), ord("-"), np.uint8)
    places = [i for i in range(36) if i not in (8, 13, 18, 23)]
    nibbles = np.stack([packed >> 4, packed & 15], axis=2).reshape(-1, 32)
    text[:, places] = np.where(nibbles > 9, nibbles + (ord("a") - 10), nibbles + ord("0"))
    offsets = pa.py_buffer(np.arange(len(values) + 1, dtype=np.int32) * 36)
    buffers = [None, offsets, pa.py_buffer(text.tobytes())]
    return Computed(without(pa.Array.from_buffers(pa.string(), len(values), buffers), nulls))


def from_time(values: pa.Array, _: LogicalType, __: LogicalType, ___: Semantics) -> Computed:
    """Format `HH:MM:SS[.f…]`."""
    text = values.cast(pa.string())
    return Computed(_without_trailing_zeros(text))


def from_decimal(values: pa.Array, _: LogicalType, __: LogicalType, ___: Semantics) -> Computed:
    """Format all digits of the scale, never with an exponent."""
    scale = values.type.scale
    if scale <= 0:
        return Computed(values.cast(pa.decimal128(38, 0)).cast(pa.string()))
    digits = pc.abs(values.view(pa.decimal128(38, 0))).cast(pa.string())
    padded = pc.utf8_lpad(digits, scale + 1, "0")
    head = pc.utf8_slice_codeunits(padded, start=0, stop=-scale)
    tail = pc.utf8_slice_codeunits(padded, start=-scale)
    negative = pc.less(values, pa.scalar(decimal.Decimal(0), values.type))
    sign = pc.if_else(negative, "-", "")
    return Computed(pc.binary_join_element_wise(sign, head, ".", tail, ""))


def from_date(values: pa.Array, _: LogicalType, __: LogicalType, semantics: Semantics) -> Computed:
    """Format `YYYY-MM-DD`; years outside 1 to 9999 as the semantics say."""
    days, nulls, years = filled(values).astype(np.int64), null_mask(values), semantics.far_years
    is_far = ~far_years.near(days) & ~nulls
    text = without(values, is_far).cast(pa.string())
    if not is_far.any():
        return Computed(text)
    far = days[is_far]
    spelt = far_years.far_dates(far, pa.repeat("", len(far)), years)
    spelt = _with_infinity(spelt, far, far_years.infinite_days(far, years))
    spelt = without(spelt, far_years.lacks_text(far, years))
    return _without_failed(pc.replace_with_mask(text, pa.array(is_far), spelt), nulls)


def from_timestamp(
    values: pa.Array, source: LogicalType, _: LogicalType, semantics: Semantics
) -> Computed:
    """Format `YYYY-MM-DD HH:MM:SS[.f…]` in UTC, in the style of the semantics.

    If an engine formats instants differently, binding replaces the cast by a call.
    """
    assert isinstance(source, Timestamp)
    suffix = _IN_UTC.get(semantics.timestamp_text, "+00") if source.utc else ""
    suffixes = pa.repeat(suffix, len(values))
    text = text_of_any_year(values, suffixes, semantics.timestamp_text, semantics.far_years)
    return _without_failed(text, null_mask(values))


def text_of_any_year(
    values: pa.Array, suffixes: pa.Array, style: TimestampText, years: FarYears
) -> pa.Array:
    """Format local times, each with its suffix; NULL where the engine has no text for a time."""
    near = timestamp_text(values, style)
    text = pc.binary_join_element_wise(near, suffixes, "")
    is_far = null_mask(near) & ~null_mask(values)
    if not is_far.any():
        return text
    micros = filled(values).view(np.int64)[is_far]
    days, clock = np.divmod(micros, DAY_US)
    on_first_day = pa.array(clock).view(pa.timestamp("us"))  # of 1 January 1970
    rest = pc.binary_replace_slice(timestamp_text(on_first_day, style), 0, _DATE_LENGTH, "")
    rest = pc.binary_join_element_wise(rest, suffixes.filter(pa.array(is_far)), "")
    spelt = far_years.far_dates(days, rest, years)
    spelt = _with_infinity(spelt, micros, far_years.infinite_times(micros, years))
    missing = far_years.lacks_text(days, years) | far_years.lacks_time(micros, years)
    return pc.replace_with_mask(text, pa.array(is_far), without(spelt, missing))


def _with_infinity(text: pa.Array, values: npt.NDArray[np.int64], infinite: Mask) -> pa.Array:
    if not infinite.any():
        return text
    return pc.if_else(pa.array(infinite), far_years.infinity(values), text)


def _without_failed(text: pa.Array, nulls: Mask) -> Computed:
    """Return texts, failed where a non-NULL value has none."""
    failed = null_mask(text) & ~nulls
    return Computed(text, failed if failed.any() else None)


def timestamp_text(values: pa.Array, style: TimestampText) -> pa.Array:
    """Format times without a zone in the style; NULL outside the years 1 to 9999."""
    micros = filled(values)
    good = (micros >= FIRST_DAY * DAY_US) & (micros < (LAST_DAY + 1) * DAY_US)
    text = without(values, ~good).cast(pa.timestamp("us")).cast(pa.string())
    if style is not TimestampText.RFC_3339:
        return _without_trailing_zeros(text)
    whole = pc.replace_substring_regex(text, r"\.000000$", "")
    short = pc.replace_substring_regex(whole, r"(\.[0-9]{3})000$", r"\1")
    return pc.replace_substring(short, " ", "T")


def offset_text(offset_us: int, style: TimestampText = TimestampText.OFFSET) -> str:
    """Format an offset east of UTC: `+HH[:MM[:SS]]`, or as the style says."""
    if style is TimestampText.RFC_3339 and not offset_us:
        return "Z"
    minutes, seconds = divmod(abs(offset_us) // 1_000_000, 60)
    if style is not TimestampText.OFFSET:
        seconds = 0
    parts = [minutes // 60, minutes % 60, seconds]
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return ("-" if offset_us < 0 else "+") + ":".join(f"{part:02}" for part in parts)


def shortest_as_decimal(values: pa.Array) -> pa.Array:
    """Convert finite floats below 1e38 to the decimals of their shortest text, with 38 digits."""
    return values.cast(pa.string()).cast(pa.decimal256(76, 38))


def _without_trailing_zeros(text: pa.Array) -> pa.Array:
    """Remove zeros at the end of the fraction."""
    return pc.replace_substring_regex(text, r"\.?0*$", "")


def _fraction(parts: pa.Array) -> Micros:
    """Return the microseconds of a second."""
    padded = pc.utf8_rpad(pc.fill_null(parts.field("fraction"), ""), 6, "0")
    micros: Micros = padded.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return micros


def _fixed_bytes(values: pa.Array) -> npt.NDArray[np.uint8]:
    """Return the bytes of all values, concatenated; undefined for NULL."""
    width = values.type.byte_width
    if not len(values):
        return np.zeros(0, np.uint8)
    content = np.frombuffer(values.buffers()[1], np.uint8)
    return content[values.offset * width : (values.offset + len(values)) * width]


def _as_decimal(text: pa.Array, type_: pa.DataType) -> pa.Array:
    return pc.replace_substring_regex(text, r"^\+", "").cast(type_)


def _part(parts: pa.Array, name: str) -> Micros:
    """Convert a group of digits to numbers; 0 if the group or the match is missing."""
    digits = pc.fill_null(parts.field(name), "")
    present = pc.if_else(pc.equal(digits, ""), "0", digits)
    result: Micros = present.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return result


READERS: Mapping[type[LogicalType], Reader] = {
    Bool: words_to_bool(
        ("t", "true", "y", "yes", "on", "1"), ("f", "false", "n", "no", "off", "0")
    ),
    Int: to_int,
    Float: to_float,
    Decimal: to_decimal,
    Date: to_date,
    Timestamp: to_timestamp,
    Time: to_time,
    Uuid: to_uuid,
}
