"""Casts from text by DuckDB's rules (2.0): `1_000`, `0x1F`, `1.5` as an integer, `infinity`.

Soundness: each text either has the value that DuckDB gives it, or is invalid (an error; NULL for
TRY_CAST), or raises `UnreadText`. Text that raises, because its rules are not implemented here: an
exponent with many digits, another spelling of a UUID, and times that no row of `time_formats` has.

Source: DuckDB 2.0 on random texts, see `tests/predicate/functions/test_engine_texts.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, Mask, null_mask, without
from rowsieve.predicate.functions.casting import text_casts
from rowsieve.predicate.functions.casting.far_texts import with_far_years
from rowsieve.predicate.functions.casting.formats_of_times import times_of
from rowsieve.predicate.functions.casting.text_casts import checked, trimmed, words_to_bool
from rowsieve.predicate.functions.casting.text_shapes import (
    DIGITS,
    NUMBER,
    decimals,
    in_base,
    matches,
    refuse,
    within,
)
from rowsieve.predicate.literal_values import UUID_TEXT, int_range
from rowsieve.predicate.semantics import Semantics, TextReading
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

_READING = TextReading.DUCKDB
_SCALED = rf"^[+-]?{NUMBER}[eE][+-]?{DIGITS}\.?$"
_MAX_SCALED_DIGITS = 18  # with an exponent of up to 19, 64 bits hold all intermediate results
_MAX_FRACTION = 36
_FLOAT = rf"^\+?-?(?:{DIGITS}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?{DIGITS})?$"
_FAR_EXPONENT = r"[eE][+-]?0*[0-9]{5}"
_ODD_FLOAT = rf"^\+?-?{NUMBER}(?:[eE][+-]?{DIGITS}\.?)?$|^\+?-?(?i:nan)\("
_SIGNED_FRACTION = r"^-.*[.eE]"  # DuckDB refuses a sign in an unsigned number, even before zero
_HEX = "^0[xX]([0-9a-fA-F]+(?:_[0-9a-fA-F]+)*)$"
_BITS = "^0[bB]([01]+(?:_[01]+)*)$"


def to_int(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    """Parse a number, rounded half away from zero; hexadecimal and binary after `0x`, `0b`."""
    assert isinstance(target, Int)
    text = trimmed(values)
    number = decimals(
        text, Decimal(38, 0), _MAX_SCALED_DIGITS, target, _READING, _SCALED, _MAX_FRACTION
    )
    digits = pc.utf8_ltrim(values, characters=text_casts.SPACE)  # no space may follow them
    integers = pc.coalesce(number, in_base(digits, 4, _HEX), in_base(digits, 1, _BITS))
    good = within(integers, *int_range(target))
    if not target.signed:
        good &= ~matches(text, _SIGNED_FRACTION)
    return checked(without(integers, ~good).cast(arrow_type(target)), good, null_mask(values))


def to_decimal(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    """Parse a number, rounded half away from zero to the scale."""
    assert isinstance(target, Decimal)
    text = trimmed(values)
    most = target.precision - target.scale - 1
    result = decimals(text, target, most, target, _READING, _SCALED, _MAX_FRACTION)
    return checked(result, ~null_mask(result), null_mask(values))


def to_float(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    """Parse a number, infinity on overflow; `nan`, `inf`, `infinity` in any case."""
    text = trimmed(values)
    number = matches(text, _FLOAT) & ~matches(text, _FAR_EXPONENT)
    named = matches(text, r"^\+?-?(?i:nan|inf|infinity)$")
    _refuse(text, matches(text, _ODD_FLOAT) & ~number & ~named, target)
    bare = pc.replace_substring(without(text, ~(number | named)), "_", "")
    bare = pc.utf8_lower(pc.replace_substring_regex(bare, r"^\+", ""))
    result = pc.replace_substring_regex(bare, "^-nan$", "nan").cast(arrow_type(target))
    return checked(result, number | named, null_mask(values))


def to_uuid(
    values: pa.Array, source: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    """Parse groups of 8-4-4-4-12 hexadecimal digits, or all 32, with optional braces."""
    is_uuid = matches(pc.utf8_lower(values), f"^(?:{UUID_TEXT}|\\{{(?:{UUID_TEXT})\\}})$")
    digits = pc.replace_substring_regex(pc.utf8_trim(values, characters="{}"), "-", "")
    _refuse(values, ~is_uuid & matches(digits, "^[0-9a-fA-F]{32}$"), target)
    parsed = text_casts.to_uuid(without(values, ~is_uuid), source, target, semantics)
    return checked(parsed.values, is_uuid, null_mask(values))


def _refuse(texts: pa.Array, which: Mask, target: LogicalType) -> None:
    refuse(texts, which, target, _READING)


# Types for which no text raises UnreadText.
TOTAL: frozenset[type[LogicalType]] = frozenset({Bool})
READERS: Mapping[type[LogicalType], text_casts.Reader] = {
    Bool: words_to_bool(("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0"), spaces=""),
    Int: to_int,
    Float: to_float,
    Decimal: to_decimal,
    Date: with_far_years(times_of(_READING), _READING),
    Timestamp: with_far_years(times_of(_READING), _READING),
    Time: times_of(_READING),
    Uuid: to_uuid,
}
