"""Casts from text by PostgreSQL's rules: `0x1F`, `1_000`, `1e3` as a decimal, `tru`, `20240703`.

Soundness: each text either has the value that PostgreSQL gives it, or is invalid (an error; NULL
for TRY_CAST), or raises `UnreadText`. Text that raises: `infinity`, `today` and other named times,
named months, times of 24:00 or 60 seconds, fractions beyond microseconds, named zones, hexadecimal
floats.

Source: PostgreSQL 18 on random texts, see `tests/predicate/functions/test_engine_texts.py`;
releases before 16 do not accept underscores and other bases.
"""

from __future__ import annotations

import decimal
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, Mask, as_mask, null_mask, without
from rowsieve.predicate.functions.casting import text_casts
from rowsieve.predicate.functions.casting.far_texts import with_far_years
from rowsieve.predicate.functions.casting.text_casts import checked, trimmed, words_to_bool
from rowsieve.predicate.functions.casting.text_shapes import (
    decimals,
    in_base,
    matches,
    or_else,
    refuse,
    within,
)
from rowsieve.predicate.literal_values import int_range
from rowsieve.predicate.semantics import Semantics, TextReading
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import (
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    Numeric,
    Time,
    Timestamp,
    Uuid,
)

_READING = TextReading.POSTGRES
TRUE = ("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1")
FALSE = ("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0")
_WHOLE = r"^[+-]?[0-9]+(?:_[0-9]+)*$"
_BASES = {
    4: r"^0[xX]_?[0-9a-fA-F]+(?:_[0-9a-fA-F]+)*$",
    3: r"^0[oO]_?[0-7]+(?:_[0-7]+)*$",
    1: r"^0[bB]_?[01]+(?:_[01]+)*$",
}
_ODD_FLOAT = r"^[+-]?(?:0[xX]|(?i:nan)\()|[eE][+-]?[0-9]{7}"
_NOT_ZERO = r"^[+-]?[0-9]*\.?[0-9]*[1-9]"
_MAX_SCALED_DIGITS = 36
_YEAR = "(?P<year>[0-9]{4})"
_DATE = rf"{_YEAR}-(?P<month>[0-9]{{1,2}})-(?P<day>[0-9]{{1,2}})"
_CLOCK = (
    "(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2})"
    r"(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]{0,6}))?)?"
)
_MOMENT = rf"^{_DATE}(?:(?:[Tt]| +){_CLOCK}{text_casts.ZONE})?$"
_OTHER_DATES = r"^([0-9]{4})(?:/([0-9]{1,2})/([0-9]{1,2})|([0-9]{2})([0-9]{2}))(?:$|([ Tt]))"
_SHORT_NUMBER = r"^[+-]?(?:[0-9]{1,5}|[0-9]{1,3}\.[0-9]*)$"
_NO_MOMENT = r"(?i)[0-9]|\b(?:inf|infinity|epoch|now|today|tomorrow|yesterday|allballs|zulu|z)\b"


def to_int(
    values: pa.Array, source: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    """Parse digits with an optional sign and with underscores between them, in four bases."""
    parsed = text_casts.to_int(values, source, target, semantics)
    return or_else(parsed, values, lambda texts: _spelled_int(texts, target))


def _spelled_int(values: pa.Array, target: LogicalType) -> Computed:
    assert isinstance(target, Int)
    text = trimmed(values)
    plain = pc.replace_substring(without(text, ~matches(text, _WHOLE)), "_", "")
    wide = pc.coalesce(
        text_casts.to_decimal(plain, target, Decimal(38, 0), Semantics.SQL).values, _based(text)
    )
    good = within(wide, *int_range(target))
    return checked(without(wide, ~good).cast(arrow_type(target)), good, null_mask(values))


def _based(text: pa.Array) -> pa.Array:
    """Convert signed numbers in other bases to decimals; NULL for other texts."""
    bare = pc.replace_substring_regex(text, "^[+-]", "")
    magnitudes = pc.coalesce(*(in_base(bare, bits, pattern) for bits, pattern in _BASES.items()))
    return pc.if_else(pc.starts_with(text, "-"), pc.negate(magnitudes), magnitudes)


def to_float(
    values: pa.Array, source: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    """Parse a decimal number, `nan`, `inf` or `infinity`; overflow and underflow are invalid."""
    parsed = text_casts.to_float(values, source, target, semantics)
    if parsed.failed is not None:
        odd = values.filter(pa.array(parsed.failed))
        refuse(odd, matches(trimmed(odd), _ODD_FLOAT), target, _READING)
    zero = as_mask(pc.equal(parsed.values, pa.scalar(0.0, parsed.values.type)))
    if not zero.any():
        return parsed
    lost = zero & matches(trimmed(values), _NOT_ZERO)
    failed = lost if parsed.failed is None else lost | parsed.failed
    return checked(parsed.values, ~failed, null_mask(values))


def to_decimal(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    """Parse a number with an optional exponent or base, rounded half away from zero."""
    assert isinstance(target, Decimal)
    numbers = decimals(trimmed(values), target, _MAX_SCALED_DIGITS, target, _READING)
    computed = checked(numbers, ~null_mask(numbers), null_mask(values))
    return or_else(computed, values, lambda texts: _spelled_decimal(texts, target))


def _spelled_decimal(values: pa.Array, target: Decimal) -> Computed:
    text = trimmed(values)
    refuse(text, matches(text, "^[+-]?(?i:nan)$"), target, _READING)
    whole = _based(text)
    many = matches(text, r"^[+-]?0[xXoObB]_?[0-9a-fA-F_]+$") & null_mask(whole)
    refuse(text, many, target, _READING)
    room = decimal.Decimal(10) ** (target.precision - target.scale)
    good = within(whole, -int(room) + 1, int(room) - 1)
    wide = without(whole, ~good).cast(pa.decimal256(76, target.scale))
    return checked(wide.cast(arrow_type(target)), good, null_mask(values))


def plain_numbers(values: pa.Array) -> pa.Array:
    """Write numbers with underscores or in another base as plain digits; other texts unchanged."""
    text = trimmed(values)
    many = matches(text, r"^[+-]?0[xXoObB]_?[0-9a-fA-F_]+$")
    whole = _based(text)
    refuse(text, many & null_mask(whole), Numeric(), _READING)
    bare = pc.replace_substring_regex(text, "([0-9])_([0-9])", r"\1\2")
    bare = pc.replace_substring_regex(bare, "([0-9])_([0-9])", r"\1\2")  # 1_2_3
    return pc.coalesce(whole.cast(pa.string()), bare)


def to_date(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    """Parse a date, or the date of a timestamp, ignoring its offset."""
    parts, micros, good = _moments(values, target)
    return text_casts.days_of(micros, good & text_casts.offset_micros(parts)[1], values, target)


def to_timestamp(
    values: pa.Array, _: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    """Parse a date with an optional time; an offset is applied only if the type is an instant."""
    assert isinstance(target, Timestamp)
    parts, micros, good = _moments(values, target)
    if target.utc:
        micros, good = text_casts.instants(parts, micros, good, semantics)
    else:
        good = good & text_casts.offset_micros(parts)[1]
    return text_casts.moments(micros, good, values, target)


def to_time(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    """Parse `HH:MM[:SS[.ffffff]]`."""
    text = trimmed(values)
    parts = pc.extract_regex(text, pattern=f"^{_CLOCK}$")
    _check_moments(text, parts, target)
    return text_casts.moments(*text_casts.clock_micros(parts), values, target)


def to_uuid(
    values: pa.Array, source: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    """Parse 32 hexadecimal digits, with optional hyphens after each fourth and optional braces."""
    groups = r"(?:[0-9a-fA-F]{4}-?){7}[0-9a-fA-F]{4}"
    is_uuid = matches(values, rf"^(?:{groups}|\{{{groups}\}})$")
    bare = pc.replace_substring_regex(without(values, ~is_uuid), "[{}-]", "")
    parsed = text_casts.to_uuid(bare, source, target, semantics)
    return checked(parsed.values, is_uuid, null_mask(values))


def _moments(values: pa.Array, target: LogicalType) -> tuple[pa.Array, text_casts.Micros, Mask]:
    """Return the matched parts, the microseconds of the local time, and the mask of valid times."""
    text = trimmed(values)
    parts = pc.extract_regex(text, pattern=_MOMENT)
    if parts.null_count > text.null_count:
        text = pc.replace_substring_regex(text, _OTHER_DATES, r"\1-\2\4-\3\5\6")
        parts = pc.extract_regex(text, pattern=_MOMENT)
    _check_moments(text, parts, target)
    micros, good = text_casts.local_micros(parts)
    return parts, micros, good


def _check_moments(text: pa.Array, parts: pa.Array, target: LogicalType) -> None:
    """Raise UnreadText for other spellings, 24:00 and 60 seconds; unknown words are invalid."""
    unknown = null_mask(parts) & matches(text, _NO_MOMENT)
    if not isinstance(target, Time):  # PostgreSQL reads 1234 as a time of day
        unknown &= ~matches(text, _SHORT_NUMBER)
    late = as_mask(pc.equal(parts.field("hour"), "24")) | as_mask(
        pc.equal(parts.field("second"), "60")
    )
    refuse(text, unknown | late, target, _READING)


# Types for which no text raises UnreadText.
TOTAL: frozenset[type[LogicalType]] = frozenset({Bool, Int, Uuid})
READERS: Mapping[type[LogicalType], text_casts.Reader] = {
    Bool: words_to_bool(TRUE, FALSE),
    Int: to_int,
    Float: to_float,
    Decimal: to_decimal,
    Date: with_far_years(to_date, _READING),
    Timestamp: with_far_years(to_timestamp, _READING),
    Time: to_time,
    Uuid: to_uuid,
}
