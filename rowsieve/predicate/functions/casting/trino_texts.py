"""Casts from text by Trino's rules: no spaces around integers; `NaN` and `Infinity` as in Java.

Soundness: each text either has the value that Trino gives it, or is invalid (an error; NULL for
TRY_CAST), or raises `UnreadText`. Text that raises: spaces and letters of other scripts around
numbers, on which releases differ; suffixes and hexadecimal floats of Java; times that no row of
`time_formats` has.

Source: `VarcharOperators`, `DecimalCasts`, `DateTimes`, `DateTimeUtils` and
`VarcharToTimestampCast` of trino-main; not tested against a running Trino.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from rowsieve.predicate.arrays import Computed, null_mask, without
from rowsieve.predicate.functions.casting import text_casts
from rowsieve.predicate.functions.casting.datafusion_texts import too_large
from rowsieve.predicate.functions.casting.formats_of_times import times_of
from rowsieve.predicate.functions.casting.text_casts import checked, trimmed, words_to_bool
from rowsieve.predicate.functions.casting.text_shapes import decimals, matches, or_else, refuse
from rowsieve.predicate.semantics import Semantics, TextReading
from rowsieve.types.logical import (
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    Timestamp,
    Uuid,
)

_READING = TextReading.TRINO
_OTHER_SCRIPTS = r"[^\x00-\x7f]"
_ODD_NUMBER = rf"{_OTHER_SCRIPTS}|^[\x00-\x20].*[0-9]|[0-9].*[\x00-\x20]$"
_JAVA_SPACE = "".join(map(chr, range(0x21)))
_NAMED = "^[+-]?(?:NaN|Infinity)$"
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_ODD_FLOAT = r"[0-9.][fFdD]$|0[xX]|(?:NaN|Infinity)[fFdD]$"
_MAX_SCALED_DIGITS = 36


def to_int(
    values: pa.Array, source: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    """Parse digits with an optional sign."""
    refuse(values, matches(values, _ODD_NUMBER), target, _READING)
    return text_casts.to_int(values, source, target, semantics)


def to_float(
    values: pa.Array, source: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    """Parse a decimal number, infinity on overflow; `NaN` and `Infinity` in this case only."""
    text = trimmed(values, _JAVA_SPACE)
    refuse(text, matches(text, f"{_ODD_FLOAT}|{_OTHER_SCRIPTS}"), target, _READING)
    known = without(text, ~(matches(text, _NUMBER) | matches(text, _NAMED)))
    parsed = text_casts.to_float(known, source, target, semantics)
    read = or_else(parsed, text, lambda texts: too_large(texts, target, _READING))
    return checked(read.values, ~null_mask(read.values), null_mask(values))


def to_decimal(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    """Parse a number with an optional exponent, rounded half away from zero to the scale."""
    assert isinstance(target, Decimal)
    refuse(values, matches(values, _ODD_NUMBER), target, _READING)
    number = without(values, matches(values, "_"))
    parsed = decimals(number, target, _MAX_SCALED_DIGITS, target, _READING)
    return checked(parsed, ~null_mask(parsed), null_mask(values))


def to_uuid(
    values: pa.Array, source: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    """Parse groups of 8-4-4-4-12 hexadecimal digits."""
    is_uuid = matches(values, "^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
    refuse(values, ~is_uuid & matches(values, "-|[0-9a-fA-F]{32}"), target, _READING)
    parsed = text_casts.to_uuid(without(values, ~is_uuid), source, target, semantics)
    return checked(parsed.values, is_uuid, null_mask(values))


# Types for which no text raises UnreadText.
TOTAL: frozenset[type[LogicalType]] = frozenset({Bool})
READERS: Mapping[type[LogicalType], text_casts.Reader] = {
    Bool: words_to_bool(("t", "true", "1"), ("f", "false", "0"), spaces=""),
    Int: to_int,
    Float: to_float,
    Decimal: to_decimal,
    Date: times_of(_READING),
    Timestamp: times_of(_READING),
    Uuid: to_uuid,
}
