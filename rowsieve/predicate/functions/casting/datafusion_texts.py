"""Casts from text by DataFusion's rules: ` 7 `, `1e400`, `20240703`, an offset of a local time.

Soundness: each text either has the value that DataFusion gives it, or is invalid (an error; NULL
for TRY_CAST), or raises `UnreadText`. Text that raises: times that no row of `time_formats` has.

Source: DataFusion 55 on random texts, see `tests/predicate/functions/test_engine_texts.py`, and
`arrow-cast/src/parse.rs` of arrow-rs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, Mask, as_mask, null_mask, without
from rowsieve.predicate.functions.casting import text_casts
from rowsieve.predicate.functions.casting.far_texts import with_far_years
from rowsieve.predicate.functions.casting.formats_of_times import times_of
from rowsieve.predicate.functions.casting.postgres_texts import FALSE, TRUE
from rowsieve.predicate.functions.casting.text_casts import checked, trimmed, words_to_bool
from rowsieve.predicate.functions.casting.text_shapes import (
    PLAIN,
    decimals,
    matches,
    or_else,
    refuse,
)
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
)

_READING = TextReading.DATAFUSION
_ASCII_SPACE = " \t\n\f\r"
_SPACE = f"{_ASCII_SPACE}\v\x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B)))
_SPACE += "\u2028\u2029\u202f\u205f\u3000"
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_LONG_EXPONENT = r"[eE][+-]?0*[1-9][0-9]{6}"


def to_int(
    values: pa.Array, source: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    """Parse digits with an optional sign."""
    text = _without_vertical_tabs(values)
    return text_casts.to_int(text, source, target, semantics)


def to_float(
    values: pa.Array, source: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    """Parse a decimal number, infinity on overflow; `nan`, `inf`, `infinity` in any case."""
    text = _without_vertical_tabs(values)
    parsed = text_casts.to_float(text, source, target, semantics)
    return or_else(parsed, text, lambda texts: too_large(texts, target, _READING))


def too_large(values: pa.Array, target: LogicalType, reading: TextReading) -> Computed:
    """Return infinity for numbers that overflow the float type, and 0 for those that underflow."""
    text = trimmed(values)
    number = matches(text, _NUMBER)
    distant = number & matches(text, _LONG_EXPONENT)
    refuse(text, distant & ~_short(text), target, reading)
    near = distant & (matches(text, "[eE]-") | ~matches(text, r"^[+-]?[0-9]*\.?[0-9]*[1-9]"))
    ends = pa.array([math.inf, -math.inf, 0.0, -0.0], arrow_type(target))
    negative = matches(text, "^-")
    bare = pc.replace_substring_regex(text, "([eE][+-]?)0+([0-9])", r"\1\2")
    padded = text_casts.to_float(bare, target, target, Semantics.SQL).values
    floats = pc.coalesce(padded, ends.take(pa.array(negative + 2 * near)))
    return checked(floats, number, null_mask(values))


def _short(text: pa.Array) -> Mask:
    """Return where the exponent has so many digits that it alone decides."""
    return as_mask(pc.less(pc.binary_length(text), 500_000))


def to_decimal(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    """Parse a decimal number without exponent, rounded half away from zero to the scale."""
    assert isinstance(target, Decimal)
    text = trimmed(values, _SPACE)
    plain = without(text, ~matches(text, PLAIN) | matches(text, "_"))
    numbers = decimals(plain, target, 0, target, _READING)
    return checked(numbers, ~null_mask(numbers), null_mask(values))


def _without_vertical_tabs(values: pa.Array) -> pa.Array:
    """Blank the texts with a vertical tab at an end, which DataFusion does not trim."""
    tabbed = matches(values, r"^[ \t\n\f\r]*\v|\v[ \t\n\f\r]*$")
    return pc.if_else(pa.array(tabbed), "", values) if tabbed.any() else values


# Types for which no text raises UnreadText.
TOTAL: frozenset[type[LogicalType]] = frozenset({Bool, Int, Float})
READERS: Mapping[type[LogicalType], text_casts.Reader] = {
    Bool: words_to_bool(TRUE, FALSE, spaces=_SPACE),
    Int: to_int,
    Float: to_float,
    Decimal: to_decimal,
    Date: with_far_years(times_of(_READING), _READING),
    Timestamp: times_of(_READING),
    Time: times_of(_READING),
}
