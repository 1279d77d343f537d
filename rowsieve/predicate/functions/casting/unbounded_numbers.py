"""Unbounded numbers: their exact bytes, their floats, and casts from and to other types.

Comparisons of numbers are comparisons of `numeric_bytes`, which sort like the numbers; of a number
with a float, of `numeric_approx`, which is infinite beyond float64. Parts have statistics of both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, as_mask, null_mask, without
from rowsieve.predicate.functions.casting import float_decimals, postgres_texts, text_casts
from rowsieve.predicate.functions.casting.text_shapes import within
from rowsieve.predicate.functions.row import (
    Argument,
    Function,
    NullRule,
    Signature,
    never_fails,
)
from rowsieve.predicate.literal_values import int_range
from rowsieve.predicate.semantics import DigitRounding, OnFailure, Semantics, TextReading
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import (
    Binary,
    Decimal,
    Field,
    Float,
    Int,
    LogicalType,
    Numeric,
    Struct,
)
from rowsieve.types.numeric_bytes import approx_of, exact_of, from_numbers, parsed, to_text

EXACT_TYPE: Final = Binary()
APPROX_TYPE: Final = Float(64)
NUMERIC_PARTS: Final = Struct((Field(0, "approx", APPROX_TYPE), Field(0, "exact", EXACT_TYPE)))
"""The type as which engines see unbounded numbers."""


def to_numeric(values: pa.Array, _: LogicalType, __: LogicalType, ___: Semantics) -> Computed:
    """Convert integers and decimals."""
    return Computed(from_numbers(values))


def text_to_numeric(
    values: pa.Array, _: LogicalType, __: LogicalType, semantics: Semantics
) -> Computed:
    """Parse digits with a point and an exponent, `NaN` or `Infinity`, and what the engine adds."""
    numbers, fine = parsed(values)
    if not fine.all() and semantics.text_reading is TextReading.POSTGRES:
        numbers, fine = parsed(postgres_texts.plain_numbers(values))
    return Computed(numbers, None if fine.all() else ~fine)


def from_float(values: pa.Array, _: LogicalType, __: LogicalType, semantics: Semantics) -> Computed:
    """Convert floats by their shortest text, or by 15 digits (6 for float32) as PostgreSQL does."""
    if semantics.digit_rounding is DigitRounding.SHORT_DECIMAL:
        return Computed(parsed(float_decimals.short_texts(values))[0])
    return Computed(parsed(values.cast(pa.string()))[0])


def to_int(
    values: pa.Array, source: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    """Round half away from zero; NaN, the infinities and numbers beyond the type's range fail."""
    whole = to_decimal(values, source, Decimal(38, 0), semantics)
    assert isinstance(target, Int)
    good = within(whole.values, *int_range(target))
    failed = ~good & ~null_mask(values)
    integers = without(whole.values, failed).cast(arrow_type(target))
    return Computed(integers, failed if failed.any() else None)


def to_float(
    values: pa.Array, _: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    """Convert to the nearest float; a finite number beyond the type's range fails."""
    floats = approx_of(values).cast(arrow_type(target), safe=False)
    beyond = as_mask(pc.is_inf(floats))
    if semantics.float_range is OnFailure.ERROR:
        beyond |= as_mask(pc.equal(floats, 0.0))
    failed = beyond & as_mask(pc.greater(pc.binary_length(exact_of(values)), 1))
    return Computed(without(floats, failed | null_mask(values)), failed if failed.any() else None)


def to_string(values: pa.Array, _: LogicalType, __: LogicalType, ___: Semantics) -> Computed:
    """Write all digits, without an exponent."""
    return Computed(to_text(values))


def to_decimal(
    values: pa.Array, source: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    """Round half away from zero to the scale; fails beyond the type's range."""
    return text_casts.to_decimal(to_text(values), source, target, semantics)


def _row(name: str, result: LogicalType, kernel: Callable[[pa.Array], pa.Array]) -> Function:
    def resolve(arguments: Sequence[Argument]) -> Signature | None:
        if len(arguments) != 1 or not isinstance(arguments[0].type, Numeric):
            return None
        return Signature((Numeric(),), result)

    def evaluate(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
        return Computed(kernel(arguments[0]))

    return Function(
        f"{name}(numeric)",
        resolve,
        evaluate,
        can_fail=never_fails,
        nulls=NullRule.STRICT,
    )


ROWS = (_row("numeric_bytes", EXACT_TYPE, exact_of), _row("numeric_approx", APPROX_TYPE, approx_of))
