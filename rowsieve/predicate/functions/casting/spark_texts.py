"""Casts from text to booleans and numbers by Spark's rules: `1.9` as 1, `1e3`, `.5`, `2d`, `+inf`.

Without ANSI mode, an integer may have a fraction, which is dropped.

Soundness: each text either has the value that Spark gives it, or is invalid (an error, or NULL), or
raises `UnreadText`. Text that raises, because Java's rules for it are not implemented here:
hexadecimal floats, digits of other scripts, numbers with thousands of digits.

Source: `UTF8String.toLong`, `Cast`, `Decimal` and `StringUtils` of Spark 4.3, and Java's
`Double.valueOf` and `BigDecimal`; compared with Spark by
`tests/predicate/functions/test_spark_texts.py`.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import UnreadText
from rowsieve.predicate.arrays import Computed, Mask, as_mask, null_mask, without
from rowsieve.predicate.functions.casting import text_casts
from rowsieve.predicate.functions.casting.text_casts import checked, words_to_bool
from rowsieve.predicate.functions.casting.text_shapes import matches
from rowsieve.predicate.literal_values import int_range
from rowsieve.predicate.semantics import OnFailure, Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Bool, Decimal, Float, Int, LogicalType, type_name

JAVA_SPACE = "".join(map(chr, range(0x21)))  # characters that `String.trim` removes
SPACE = JAVA_SPACE + "\x7f"  # characters that Spark's parsers trim
_NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
_FLOAT = rf"^[+-]?{_NUMBER}(?:[eE][+-]?[0-9]+)?[fFdD]?$"
_HEX_FLOAT = r"^[+-]?0[xX][0-9a-fA-F.]+[pP]"
_PLAIN = rf"^[+-]?{_NUMBER}$"
_SCALED = rf"^[+-]?{_NUMBER}[eE][+-]?[0-9]+$"
_LONG_FRACTION = r"\.[0-9]{36}"  # too many digits for the fast path
_DIGITS_OF_ANY_SCRIPT = r"^[+-]?[\p{Nd}.eE+-]+$"
_PARTS = re.compile(r"([+-]?)([0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]+))?", re.ASCII)
_MAX_CHARACTERS = 4_000
_MAX_DIGITS = 38
_MAX_INT = 2**31 - 1


def to_int(values: pa.Array, _: LogicalType, target: LogicalType, semantics: Semantics) -> Computed:
    """Parse digits with an optional sign; without ANSI mode, a fraction is dropped."""
    assert isinstance(target, Int)
    text = trimmed(values)
    cuts = semantics.failed_cast is OnFailure.NULL
    good = matches(text, r"^[+-]?(?:[0-9]+|[0-9]*\.[0-9]*)$" if cuts else r"^[+-]?[0-9]+$")
    whole = pc.replace_substring_regex(text, r"\.[0-9]*$", "") if cuts else text
    bare = pc.replace_substring_regex(whole, r"^\+?(-?)0*", r"\1")
    good &= as_mask(pc.less(pc.utf8_length(bare), 30))
    digits = pc.replace_substring_regex(without(bare, ~good), "^-?$", "0")
    wide = digits.cast(pa.decimal256(40, 0))
    low, high = (
        pa.scalar(decimal.Decimal(bound), pa.decimal256(40, 0)) for bound in int_range(target)
    )
    good &= as_mask(pc.and_(pc.greater_equal(wide, low), pc.less_equal(wide, high)))
    return checked(without(wide, ~good).cast(arrow_type(target)), good, null_mask(values))


def to_float(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    """Parse a number, infinity on overflow; `inf`, `infinity` and `nan` in any case."""
    text = pc.utf8_trim(values, characters=JAVA_SPACE)
    _refuse(text, matches(text, _HEX_FLOAT), target)
    number = matches(text, _FLOAT)
    _refuse(text, number & _is_long(text), target)
    named = matches(text, r"^[+-]?NaN$|^[+-]?(?i:inf|infinity)$|^(?i:nan)$")
    bare = pc.utf8_lower(without(text, ~(number | named)))
    bare = pc.replace_substring_regex(bare, r"^\+|([0-9.])[fd]$", r"\1")
    bare = pc.replace_substring_regex(bare, r"e([+-]?)0*([0-9])", r"e\1\2")
    bare = pc.replace_substring_regex(bare, r"e\+?[0-9]{6,}$", "e99999")
    bare = pc.replace_substring_regex(bare, r"e-[0-9]{6,}$", "e-99999")
    bare = pc.replace_substring_regex(bare, "^[+-]?nan$", "nan")
    return checked(bare.cast(arrow_type(target)), number | named, null_mask(values))


def to_decimal(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    """Parse a number with an optional exponent, rounded half away from zero to the scale."""
    assert isinstance(target, Decimal)
    text = pc.utf8_trim(values, characters=JAVA_SPACE)
    foreign = matches(text, _DIGITS_OF_ANY_SCRIPT) & ~as_mask(pc.string_is_ascii(text))
    _refuse(text, foreign, target)
    plain = matches(text, _PLAIN)
    odd = matches(text, _SCALED) | (plain & matches(text, _LONG_FRACTION))
    _refuse(text, odd & _is_long(text), target)
    computed = text_casts.to_decimal(without(text, ~plain | odd), target, target, Semantics.SQL)
    numbers = computed.values
    if odd.any():
        numbers = pc.coalesce(numbers, _one_by_one(without(text, ~odd), target))
    return checked(numbers, ~null_mask(numbers), null_mask(values))


def _one_by_one(texts: pa.Array, target: Decimal) -> pa.Array:
    """Parse distinct texts one by one like Java's `BigDecimal`; NULL if invalid."""
    coded = texts.dictionary_encode()
    type_ = arrow_type(target)
    parsed = pa.array([_java_decimal(text, target) for text in coded.dictionary.to_pylist()], type_)
    return parsed.take(coded.indices)


def _java_decimal(text: str, target: Decimal) -> decimal.Decimal | None:
    parts = _PARTS.fullmatch(text)
    assert parts is not None
    exponent, unscaled = int(parts[4] or 0), int(parts[2] + parts[3])
    scale = len(parts[3]) - exponent
    if not all(-_MAX_INT - 1 <= number <= _MAX_INT for number in (exponent, scale)):
        return None
    digits = len(str(unscaled))
    if unscaled and digits - scale > _MAX_DIGITS:
        return None
    dropped = scale - target.scale
    if dropped > digits:
        unscaled = 0
    elif dropped > 0:
        unscaled = (unscaled + 5 * 10 ** (dropped - 1)) // 10**dropped
    elif unscaled:
        unscaled *= 10**-dropped
    if unscaled >= 10**target.precision:
        return None
    with decimal.localcontext(prec=2 * _MAX_DIGITS):
        number = decimal.Decimal(unscaled).scaleb(-target.scale)
        return number.copy_negate() if parts[1] == "-" else number


def trimmed(values: pa.Array) -> pa.Array:
    """Trim spaces and control characters."""
    return pc.utf8_trim(values, characters=SPACE)


def refuse(texts: pa.Array, which: Mask, target: LogicalType, why: str) -> None:
    """Raise UnreadText for the first of the marked texts."""
    if which.any():
        text = texts[int(np.flatnonzero(which)[0])].as_py()
        raise UnreadText(
            f"the text {text[:60]!r} as {type_name(target)}: {why}; write the value in full, or "
            "leave such texts out by another condition of the AND or by CASE",
            texts=texts.filter(pa.array(which)),
        )


def _refuse(texts: pa.Array, which: Mask, target: LogicalType) -> None:
    refuse(texts, which, target, "java has rules of its own for it, which are unknown to Rowsieve")


def _is_long(text: pa.Array) -> Mask:
    return as_mask(pc.greater(pc.utf8_length(text), _MAX_CHARACTERS))


READERS: Mapping[type[LogicalType], text_casts.Reader] = {
    Bool: words_to_bool(("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")),
    Int: to_int,
    Float: to_float,
    Decimal: to_decimal,
}
