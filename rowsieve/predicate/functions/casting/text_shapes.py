"""Shared code of text casts: numbers of an engine's grammar, and `UnreadText`.

Soundness: text that an engine parses by rules that are not implemented here raises `UnreadText`; it
never becomes NULL or a value.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import UnreadText
from rowsieve.predicate.arrays import Computed, Mask, as_mask, without
from rowsieve.predicate.functions.casting import text_casts
from rowsieve.predicate.functions.numbers.decimals import narrowed
from rowsieve.predicate.semantics import Semantics, TextReading
from rowsieve.types.logical import Decimal, LogicalType, type_name

DIGITS = "[0-9]+(?:_[0-9]+)*"
NUMBER = rf"(?:{DIGITS}(?:\.(?:{DIGITS})?)?|\.{DIGITS})"
PLAIN = rf"^[+-]?{NUMBER}$"
SCALED = rf"^[+-]?{NUMBER}[eE][+-]?{DIGITS}$"
_TOO_LARGE = rf"^[+-]?0*[1-9][0-9_]*(?:\.(?:{DIGITS})?)?[eE]\+?0*(?:[4-9][0-9]|[1-9][0-9]{{2,8}})$"
MAX_FRACTION = 38  # digits after the point that are parsed
_SHORT_EXPONENT = r"[eE][+-]?0*1?[0-9]$"
_LENGTHS = {4: 16, 3: 22, 1: 64}  # number of digits in 64 bits, by the bits of a digit


def refuse(
    texts: pa.Array, which: Mask, target: LogicalType, reading: TextReading, *, form: str = ""
) -> None:
    """Raise `UnreadText` if any text is marked, naming the first one and its format."""
    if which.any():
        text = texts[int(np.flatnonzero(which)[0])].as_py()
        wanted = f"{type_name(target)} of the format {form!r}" if form else type_name(target)
        raise UnreadText(
            f"the text {text!r} as {wanted}: {reading.value} has rules of its own for it, which "
            "are unknown to Rowsieve; write the value in full, or leave such texts out by another "
            "condition of the AND or by CASE",
            texts=texts.filter(pa.array(which)),
        )


def matches(text: pa.Array, pattern: str) -> Mask:
    """Return the mask of texts in which the pattern occurs; false for NULL."""
    return as_mask(pc.match_substring_regex(text, pattern))


def or_else(first: Computed, values: pa.Array, read: Callable[[pa.Array], Computed]) -> Computed:
    """Return `first`, with `read` applied to the texts that have no value in it."""
    if first.failed is None:
        return first
    rows = np.flatnonzero(first.failed)
    others = read(values.take(pa.array(rows)))
    places = np.arange(len(values))
    places[rows] = len(values) + np.arange(len(rows))
    merged = pa.concat_arrays([first.values, others.values]).take(pa.array(places))
    failed = np.zeros(len(values), dtype=np.bool_)
    failed[rows] = False if others.failed is None else others.failed
    return Computed(merged, failed if failed.any() else None)


def decimals(
    text: pa.Array,
    type_: Decimal,
    most_digits: int,
    target: LogicalType,
    reading: TextReading,
    scaled: str = SCALED,
    fraction: int = MAX_FRACTION,
) -> pa.Array:
    """Parse numbers as decimals; NULL if the text is invalid or overflows the type.

    With an exponent, the digits before and after it are limited to `most_digits`; longer texts
    raise UnreadText, because DuckDB multiplies and divides step by step, and fails or loses digits.
    """
    plain = matches(text, PLAIN)
    far = matches(text, scaled) & ~matches(text, _TOO_LARGE)
    if type_.scale >= fraction:  # digits that might round the last one are dropped
        refuse(text, plain & matches(text, rf"\.[0-9_]{{{type_.scale + 1}}}"), target, reading)
    bare = pc.replace_substring(text, "_", "")
    computed = text_casts.to_decimal(without(bare, ~plain), type_, type_, Semantics.SQL)
    if not far.any():
        return computed.values
    where = pa.array(np.flatnonzero(far))
    few = _scales_within(bare.take(where), most_digits)
    refuse(text.take(where), ~few, target, reading)
    exact = pc.replace_substring_regex(without(bare, ~far), r"^\+", "").cast(pa.decimal256(76, 38))
    return pc.coalesce(computed.values, narrowed(exact, type_))


def _scales_within(scaled: pa.Array, most_digits: int) -> Mask:
    """Whether all steps of scaling by the exponent stay within `most_digits` digits."""
    parts = pc.extract_regex(scaled, r"^[+-]?(?P<digits>[0-9.]*)[eE](?P<exponent>[+-]?[0-9]+)$")
    digits = pc.utf8_length(pc.replace_substring(parts.field("digits"), ".", ""))
    short = matches(scaled, _SHORT_EXPONENT)
    exponents = pc.replace_substring_regex(parts.field("exponent"), r"^\+", "")
    steps = pc.abs(pc.fill_null(without(exponents, ~short), "0").cast(pa.int32()))
    return short & as_mask(pc.less_equal(pc.add(digits, steps), most_digits))


def in_base(text: pa.Array, bits: int, pattern: str) -> pa.Array:
    """Parse digits after `0x`, `0o` or `0b` as decimals; NULL for other texts."""
    readable = matches(text, pattern)
    digits = pc.replace_substring_regex(pc.utf8_lower(text), "^0[xob][0_]*|_", "")
    length = _LENGTHS[bits]
    readable &= as_mask(pc.less_equal(pc.utf8_length(digits), length))
    if bits == 3:
        readable &= ~matches(digits, f"^[2-7][0-7]{{{length - 1}}}$")
    if not readable.any():
        return pa.nulls(len(text), pa.decimal128(38, 0))
    padded = pc.utf8_lpad(pc.fill_null(without(digits, ~readable), ""), length, "0")
    fixed = padded.cast(pa.binary()).cast(pa.binary(length))
    codes = np.frombuffer(fixed.buffers()[1], np.uint8)[: len(text) * length].reshape(-1, length)
    values = np.where(codes >= ord("a"), codes - ord("a") + 10, codes - ord("0"))
    shifts = np.arange(length - 1, -1, -1, dtype=np.uint64) * np.uint64(bits)
    numbers: npt.NDArray[np.uint64] = (values.astype(np.uint64) << shifts).sum(
        axis=1, dtype=np.uint64
    )
    return without(pa.array(numbers).cast(pa.decimal128(38, 0)), ~readable)


def within(wide: pa.Array, low: int, high: int) -> Mask:
    """Return the mask of decimals within the range."""
    ends = [pa.scalar(decimal.Decimal(end), wide.type) for end in (low, high)]
    return as_mask(pc.and_(pc.greater_equal(wide, ends[0]), pc.less_equal(wide, ends[1])))
