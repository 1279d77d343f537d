"""Casts from text as DuckDB 2.0 reads it: `1_000`, `0x1F`, `1.5` as a whole number, `infinity`.

Soundness: a text has DuckDB's value, is no value (an error, NULL where it is tried), or raises
`UnsupportedOperation`. The last is for texts that DuckDB reads by rules that are not repeated
here: an exponent with many digits, a far or short date, another spelling of a UUID.
Source: DuckDB 2.0 on random texts, see `tests/predicate/test_duckdb_texts.py`.
"""

from __future__ import annotations

import decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.arrays import Computed, Mask, any_of, as_mask, null_mask, without
from rowsieve.predicate.functions import text_casts
from rowsieve.predicate.functions.decimals import narrowed
from rowsieve.predicate.literals import UUID_TEXT, int_range
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Decimal, Int, LogicalType, Time, Timestamp, type_name

_SPACE = " \t\n\r\f\v"
_DIGITS = "[0-9]+(?:_[0-9]+)*"
_NUMBER = rf"(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})"
_PLAIN = rf"^[+-]?{_NUMBER}$"
_SCALED = rf"^[+-]?{_NUMBER}[eE][+-]?{_DIGITS}\.?$"
_TOO_LARGE = rf"^[+-]?0*[1-9][0-9_]*(?:\.(?:{_DIGITS})?)?[eE]\+?0*(?:[4-9][0-9]|[1-9][0-9]{{2,8}})$"
_SHORT_EXPONENT = r"[eE][+-]?0*1?[0-9]$"
_MOST_SCALED_DIGITS = 18  # so many, and an exponent of up to 19: 64 bits hold all that lies between
_FLOAT = rf"^\+?-?(?:{_DIGITS}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?{_DIGITS})?$"
_FAR_EXPONENT = r"[eE][+-]?0*[0-9]{5}"
_ODD_FLOAT = rf"^\+?-?{_NUMBER}(?:[eE][+-]?{_DIGITS}\.?)?$|^\+?-?(?i:nan)\("
_SAFE_SCALE = 35  # fractions are cut after 37 digits
_LONG_FRACTION = r"\.[0-9_]{36}"
_HEX = "^0[xX]([0-9a-fA-F]+(?:_[0-9a-fA-F]+)*)$"
_BITS = "^0[bB]([01]+(?:_[01]+)*)$"
_NAMED_MOMENT = r"^\s*[+-]?(?i:inf|epoch)"
_SPACED = r"^\s.*[0-9]|[0-9]\s+$"  # it may end a time, and may not end a date
_DATE = r"(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})-[0-9]{2}-[0-9]{2}"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"


def to_bool(values: pa.Array, _: LogicalType, __: LogicalType, ___: Semantics) -> Computed:
    """`true`, `t`, `yes`, `y`, `1` and their opposites, in any case, without spaces."""
    text = pc.ascii_lower(values)
    true = pc.is_in(text, value_set=pa.array(["t", "true", "y", "yes", "1"]))
    false = pc.is_in(text, value_set=pa.array(["f", "false", "n", "no", "0"]))
    return _checked(true, as_mask(pc.or_(true, false)), null_mask(values))


def to_int(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    """A number, rounded half away from zero; hexadecimal and binary digits behind `0x`, `0b`."""
    assert isinstance(target, Int)
    text = pc.utf8_trim(values, characters=_SPACE)
    number = _number(text, Decimal(38, 0), _MOST_SCALED_DIGITS, target)
    wide = pc.coalesce(number, *(_in_base(text, bits) for bits in (4, 1)))
    low, high = (pa.scalar(decimal.Decimal(end), wide.type) for end in int_range(target))
    good = as_mask(pc.and_(pc.greater_equal(wide, low), pc.less_equal(wide, high)))
    return _checked(without(wide, ~good).cast(arrow_type(target)), good, null_mask(values))


def to_decimal(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    """A number, rounded half away from zero to the scale."""
    assert isinstance(target, Decimal)
    text = pc.utf8_trim(values, characters=_SPACE)
    result = _number(text, target, target.precision - target.scale - 1, target)
    return _checked(result, ~null_mask(result), null_mask(values))


def to_float(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    """A number, infinity if it is too large; `nan`, `inf`, `infinity` in any case."""
    text = pc.utf8_trim(values, characters=_SPACE)
    number = _matches(text, _FLOAT) & ~_matches(text, _FAR_EXPONENT)
    named = _matches(text, r"^\+?-?(?i:nan|inf|infinity)$")
    _refuse(text, _matches(text, _ODD_FLOAT) & ~number & ~named, target)
    bare = pc.replace_substring(without(text, ~(number | named)), "_", "")
    bare = pc.utf8_lower(pc.replace_substring_regex(bare, r"^\+", ""))
    result = pc.replace_substring_regex(bare, "^-nan$", "nan").cast(arrow_type(target))
    return _checked(result, number | named, null_mask(values))


def to_date(
    values: pa.Array, source: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    """`YYYY-MM-DD`."""
    found = text_casts.to_date(values, source, target, semantics)
    return _only_known(found, values, rf"^\s*{_DATE}\s*$", target)


def to_timestamp(
    values: pa.Array, source: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    """`YYYY-MM-DD[ HH:MM[:SS[.ffffff]]]`, with an offset only where the type is an instant."""
    assert isinstance(target, Timestamp)
    _refuse(values, _matches(values, _SPACED), target)
    found = text_casts.to_timestamp(values, source, target, semantics)
    if target.utc:  # an offset behind a date alone has no value there
        _refuse(values, _matches(values, rf"^\s*{_DATE}\s*(?:Z|[+-].*)$|[0-9]\s+[Z+-]"), target)
    return _only_known(found, values, rf"^{_DATE}(?:[ T]{_CLOCK})?$", target)


def to_time(
    values: pa.Array, source: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    """`HH:MM[:SS[.ffffff]]`."""
    _refuse(values, _matches(values, _SPACED), target)
    found = text_casts.to_time(values, source, target, semantics)
    return _only_known(found, values, rf"^{_CLOCK}$", target)


def to_uuid(
    values: pa.Array, source: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    """Groups of 8-4-4-4-12 hexadecimal digits, or all 32, in braces or without."""
    own = _matches(pc.utf8_lower(values), f"^(?:{UUID_TEXT}|\\{{(?:{UUID_TEXT})\\}})$")
    digits = pc.replace_substring_regex(pc.utf8_trim(values, characters="{}"), "-", "")
    _refuse(values, ~own & _matches(digits, "^[0-9a-fA-F]{32}$"), target)
    found = text_casts.to_uuid(without(values, ~own), source, target, semantics)
    return _checked(found.values, own, null_mask(values))


def _number(text: pa.Array, type_: Decimal, most_digits: int, target: LogicalType) -> pa.Array:
    """The numbers as decimals; NULL where the text is none or the type does not hold it.

    With an exponent the digits before and behind it are few, or the text is refused: DuckDB
    multiplies and divides step by step, and gives up on the way or loses digits.
    """
    plain = _matches(text, _PLAIN)
    scaled = _matches(text, _SCALED) & ~_matches(text, _TOO_LARGE)
    if type_.scale > _SAFE_SCALE:
        _refuse(text, plain & _matches(text, _LONG_FRACTION), target)
    bare = pc.replace_substring(text, "_", "")
    computed = text_casts.to_decimal(without(bare, ~plain), type_, type_, Semantics.SQL)
    if not scaled.any():
        return computed.values
    where = np.flatnonzero(scaled)
    few = _few(bare.take(pa.array(where)), most_digits)
    _refuse(text.take(pa.array(where)), ~few, target)
    wide = pc.replace_substring_regex(without(bare, ~scaled), r"^\+", "")
    exact = wide.cast(pa.decimal256(76, 38))
    return pc.coalesce(computed.values, narrowed(exact, type_))


def _few(scaled: pa.Array, most_digits: int) -> Mask:
    """Whether digits, and exponent beside them, stay within so many digits all the way."""
    parts = pc.extract_regex(scaled, r"^[+-]?(?P<digits>[0-9.]*)[eE](?P<exponent>[+-]?[0-9]+)$")
    digits = pc.utf8_length(pc.replace_substring(parts.field("digits"), ".", ""))
    short = _matches(scaled, _SHORT_EXPONENT)
    exponents = pc.replace_substring_regex(parts.field("exponent"), r"^\+", "")
    steps = pc.abs(pc.fill_null(without(exponents, ~short), "0").cast(pa.int32()))
    return short & as_mask(pc.less_equal(pc.add(digits, steps), most_digits))


def _in_base(text: pa.Array, bits: int) -> pa.Array:
    """Digits of so many bits behind their prefix as a decimal; NULL where there are none."""
    found = _matches(text, _HEX if bits == 4 else _BITS)
    digits = pc.replace_substring_regex(pc.utf8_lower(text), "^0[xb]0*|_", "")
    length = 64 // bits
    found &= as_mask(pc.less_equal(pc.utf8_length(digits), length))
    if not found.any():
        return pa.nulls(len(text), pa.decimal128(38, 0))
    padded = pc.utf8_lpad(pc.fill_null(without(digits, ~found), ""), length, "0")
    fixed = padded.cast(pa.binary()).cast(pa.binary(length))
    codes = np.frombuffer(fixed.buffers()[1], np.uint8)[: len(text) * length].reshape(-1, length)
    values = np.where(codes >= ord("a"), codes - ord("a") + 10, codes - ord("0"))
    shifts = np.arange(length - 1, -1, -1, dtype=np.uint64) * np.uint64(bits)
    numbers: npt.NDArray[np.uint64] = (values.astype(np.uint64) << shifts).sum(
        axis=1, dtype=np.uint64
    )
    return without(pa.array(numbers).cast(pa.decimal128(38, 0)), ~found)


def _only_known(found: Computed, values: pa.Array, shape: str, target: LogicalType) -> Computed:
    """What was read; a text of the shape, and one without separators, is known to have no value."""
    if found.failed is None:
        return found
    failed = values.filter(pa.array(found.failed))
    separated = ":" if isinstance(target, Time) else r"[0-9][-/\\ ][0-9]"
    odd = _matches(failed, separated) & ~_matches(failed, shape)
    _refuse(failed, odd | _matches(failed, _NAMED_MOMENT), target)
    return found


def _refuse(texts: pa.Array, which: Mask, target: LogicalType) -> None:
    if which.any():
        text = texts[int(np.flatnonzero(which)[0])].as_py()
        raise UnsupportedOperation(
            f"the text {text!r} as {type_name(target)}: duckdb has rules of its own for it, which "
            "are not known here; write the value in full, or leave such texts out by a condition "
            "before the cast"
        )


def _matches(text: pa.Array, pattern: str) -> Mask:
    return as_mask(pc.match_substring_regex(text, pattern))


def _checked(array: pa.Array, good: Mask, nulls: Mask) -> Computed:
    failed = ~good & ~nulls
    return Computed(without(array, ~good | nulls), any_of(failed))
