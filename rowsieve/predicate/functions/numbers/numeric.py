"""Arithmetic on integers and floats; see `decimals` for decimals.

Two integers give the wider of their types, as in PostgreSQL; division truncates. If one side is a
float, both become float64 (two float32 stay float32). `Semantics` decides on integer overflow and
division by zero; floats overflow to infinity.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, Mask, any_of, as_mask, filled, null_mask, with_nulls
from rowsieve.predicate.functions.numbers import decimals, integers, unbounded_sums
from rowsieve.predicate.functions.numbers.float_range import fails_out_of_range, out_of_range
from rowsieve.predicate.functions.numbers.numeric_ranges import (
    abs_range,
    quotient_range,
    remainder_range,
)
from rowsieve.predicate.functions.row import (
    Argument,
    Direction,
    Function,
    NullRule,
    Signature,
)
from rowsieve.predicate.semantics import NanOrder, OnFailure, Semantics
from rowsieve.types.logical import Decimal, Float, Int, LogicalType, Numeric

_NUMBER = Int | Float | Decimal | Numeric
_UP, _DOWN, _EITHER, _NONE = (
    Direction.INCREASING,
    Direction.DECREASING,
    Direction.EITHER,
    Direction.NONE,
)


# The result for two NaNs of different signs is undefined; non-commutative operations return the
# first.
UNSETTLED_NAN = frozenset({"add", "multiply"})


def wider(left: LogicalType, right: LogicalType) -> LogicalType | None:
    """Return the common numeric type of two operands; None if one is not a number.

    An integer and a decimal meet as decimals, each with its own scale, see `decimals`.
    """
    match left, right:
        case Int(), Int():
            return wider_int(left, right)
        case (Float(bits=32), Float(bits=32)):
            return Float(32)
        case (Float(), Int() | Float() | Decimal() | Numeric()):
            return Float(64)
        case (Int() | Decimal() | Numeric(), Float()):
            return Float(64)
        case (Numeric(), Int() | Decimal() | Numeric()) | (Int() | Decimal(), Numeric()):
            return Numeric()
        case (Decimal(), Decimal() | Int()) | (Int(), Decimal()):
            return Decimal(38, 0)
    return None


def wider_int(left: Int, right: Int) -> LogicalType:
    """Return the narrowest type that holds the values of both."""
    if left.signed == right.signed:
        return left if left.bits >= right.bits else right
    signed, unsigned = (left, right) if left.signed else (right, left)
    bits = max(signed.bits, unsigned.bits * 2)
    return Int(bits) if bits <= 64 else Decimal(20, 0)


def _resolve_pair(name: str) -> Callable[[Sequence[Argument]], Signature | None]:
    def resolve(arguments: Sequence[Argument]) -> Signature | None:
        if len(arguments) != 2:
            return None
        left, right = (argument.type for argument in arguments)
        left, right = left or right, right or left
        if left is None or right is None:
            return None
        left, right = _adapted(arguments, left, right)
        common = wider(left, right)
        if isinstance(common, Decimal):
            return decimals.resolve(name, left, right)
        if isinstance(common, Numeric) and name == "divide":
            return None  # the digits of a quotient depend on zeros that are not stored
        return None if common is None else Signature((common, common), common)

    return resolve


def _adapted(
    arguments: Sequence[Argument], left: LogicalType, right: LogicalType
) -> tuple[LogicalType, LogicalType]:
    """Give an integer constant next to a uint64 that type if it fits, so both stay integers."""
    if left == right or not isinstance(left, Int) or not isinstance(right, Int):
        return left, right
    unsigned = Int(64, signed=False)
    for here, (operand, other) in enumerate(((left, right), (right, left))):
        value = arguments[here].constant
        if other == unsigned and operand.signed and isinstance(value, int) and value >= 0:
            return unsigned, unsigned
    return left, right


def _resolve_one(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 1 or not isinstance(arguments[0].type, _NUMBER):
        return None
    return Signature((arguments[0].type,), arguments[0].type)


def _settle(
    values: npt.NDArray[Any], nulls: Mask, failed: Mask, rule: OnFailure, type_: pa.DataType
) -> Computed:
    """Apply the rule to failures: an error, NULL, or the wrapped value."""
    failed = failed & ~nulls
    if rule is OnFailure.WRAP or not failed.any():
        return Computed(with_nulls(values, nulls, type_))
    array = with_nulls(values, nulls | failed, type_)
    return Computed(array, failed if rule is OnFailure.ERROR else None)


def _arithmetic(
    whole: Callable[[Any, Any], tuple[Any, Mask]],
    real: Callable[[Any, Any], Any],
    name: str,
) -> Callable[[Sequence[pa.Array], Signature, Semantics], Computed]:
    def evaluate(
        arguments: Sequence[pa.Array], signature: Signature, semantics: Semantics
    ) -> Computed:
        left, right = arguments
        if isinstance(signature.result, Numeric):
            return unbounded_sums.combine(name, left, right)
        if isinstance(signature.result, Decimal):
            computed = decimals.evaluate(name, left, right, signature.result)
            return _settled(computed, semantics.decimal_overflow)
        nulls = null_mask(left) | null_mask(right)
        if isinstance(signature.result, Float):
            numbers = filled(left), filled(right)
            with np.errstate(all="ignore"):
                values = real(*numbers)
            failed = _unsettled(name, *numbers, semantics)
            if fails_out_of_range(name, semantics):
                failed |= out_of_range(name, *numbers, values)
            failed &= ~nulls
            array = with_nulls(values, nulls | failed, left.type)
            return Computed(array, failed if failed.any() else None)
        values, overflowed = whole(filled(left), filled(right))
        return _settle(values, nulls, overflowed, semantics.integer_overflow, left.type)

    return evaluate


def _unsettled(
    name: str, left: npt.NDArray[Any], right: npt.NDArray[Any], semantics: Semantics
) -> Mask:
    """Where NaNs of different signs meet and the sign of the result affects the order.

    IEEE 754 does not define it, and a compiler may swap operands of commutative operations: in
    DataFusion it depends on the position of the row in its batch.
    """
    if semantics.nan is not NanOrder.SIGNED or name not in UNSETTLED_NAN:
        return np.zeros(len(left), np.bool_)
    both: Mask = np.isnan(left) & np.isnan(right) & (np.signbit(left) != np.signbit(right))
    return both


def _settled(computed: Computed, rule: OnFailure) -> Computed:
    """Convert failures to NULL if the rule says so."""
    return Computed(computed.values) if rule is OnFailure.NULL else computed


def _divide(arguments: Sequence[pa.Array], signature: Signature, semantics: Semantics) -> Computed:
    left, right = arguments
    if isinstance(signature.result, Numeric):
        return unbounded_sums.combine(signature.option, left, right)
    nulls = null_mask(left) | null_mask(right)
    zero = _zero(right)
    free = zero | nulls
    if isinstance(signature.result, Decimal):
        computed = decimals.evaluate(signature.option, left, right, signature.result)
        overflowed = None if computed.failed is None else computed.failed & ~zero
        settled = _settled(Computed(computed.values, overflowed), semantics.decimal_overflow)
        if semantics.integer_division_by_zero is OnFailure.NULL or computed.failed is None:
            return settled
        return Computed(settled.values, any_of(settled.failed, computed.failed & zero))
    a, b = filled(left), filled(right)
    if isinstance(signature.result, Float):
        with np.errstate(all="ignore"):
            values = np.fmod(a, b) if signature.option == "modulo" else a / b
        rule = semantics.float_division_by_zero
        if rule is OnFailure.IEEE:
            return Computed(with_nulls(values, nulls, left.type))
        failed = zero & ~np.isnan(a) if semantics.nan_by_zero else zero
        if fails_out_of_range(signature.option, semantics):
            failed = failed | out_of_range(signature.option, a, b, values)
        return _settle(values, nulls, failed, rule, left.type)
    safe = np.where(free, b.dtype.type(1), b)
    if signature.option == "modulo":
        values, overflowed = integers.modulo(a, safe)
        overflowed &= semantics.remainders_overflow
        rule = semantics.integer_overflow
    else:
        values, overflowed = integers.divide(a, safe)
        rule = semantics.quotient_overflow
    done = _settle(values, nulls | zero, overflowed, rule, left.type)
    if semantics.integer_division_by_zero is OnFailure.NULL:
        return done
    failed = zero & ~nulls if done.failed is None else done.failed | (zero & ~nulls)
    return Computed(done.values, failed if failed.any() else None)


def _zero(values: pa.Array) -> Mask:
    """Return the mask of zeros."""
    zero = decimal.Decimal(0) if pa.types.is_decimal(values.type) else 0
    return as_mask(pc.equal(values, pa.scalar(zero, values.type)))


def _resolve_division(name: str) -> Callable[[Sequence[Argument]], Signature | None]:
    pair = _resolve_pair(name)

    def resolve(arguments: Sequence[Argument]) -> Signature | None:
        signature = pair(arguments)
        return signature and Signature(signature.arguments, signature.result, name)

    return resolve


def _negate(arguments: Sequence[pa.Array], signature: Signature, semantics: Semantics) -> Computed:
    (values,) = arguments
    if isinstance(signature.result, Numeric):
        return Computed(unbounded_sums.negated(values))
    if not isinstance(signature.result, Int):
        return Computed(pc.negate(values))
    numbers = filled(values)
    negated, overflowed = integers.subtract(np.zeros_like(numbers), numbers)
    return _settle(negated, null_mask(values), overflowed, semantics.integer_overflow, values.type)


def _abs(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    """Compute the absolute value; it overflows for the least integer, and no engine wraps it."""
    (values,) = arguments
    if isinstance(signature.result, Numeric):
        return Computed(unbounded_sums.magnitude(values))
    if not isinstance(signature.result, Int) or not signature.result.signed:
        return Computed(pc.abs(values))
    numbers = filled(values)
    smallest = numbers == np.iinfo(numbers.dtype).min
    with np.errstate(over="ignore"):
        magnitude = np.abs(numbers)
    return _settle(magnitude, null_mask(values), smallest, OnFailure.ERROR, values.type)


def _whole_can_fail(signature: Signature) -> bool:
    return not isinstance(signature.result, Float)


def _directions(*directions: Direction) -> Callable[[Signature], tuple[Direction, ...]]:
    return lambda _: directions


ROWS = (
    Function(
        "add(number, number)",
        _resolve_pair("add"),
        _arithmetic(integers.add, np.add, "add"),
        direction=_directions(_UP, _UP),
        can_fail=_whole_can_fail,
        nulls=NullRule.STRICT,
    ),
    Function(
        "subtract(number, number)",
        _resolve_pair("subtract"),
        _arithmetic(integers.subtract, np.subtract, "subtract"),
        direction=_directions(_UP, _DOWN),
        can_fail=_whole_can_fail,
        nulls=NullRule.STRICT,
    ),
    Function(
        "multiply(number, number)",
        _resolve_pair("multiply"),
        _arithmetic(integers.multiply, np.multiply, "multiply"),
        direction=_directions(_EITHER, _EITHER),
        can_fail=_whole_can_fail,
        nulls=NullRule.STRICT,
    ),
    Function(
        "divide(number, number)",
        _resolve_division("divide"),
        _divide,
        bounds=quotient_range(_divide),
        direction=_directions(_EITHER, _NONE),  # 1 / x is undefined between -1 and 1
        nulls=NullRule.STRICT,
    ),
    Function(
        "modulo(number, number)",
        _resolve_division("modulo"),
        _divide,
        bounds=remainder_range(_divide),
        nulls=NullRule.STRICT,
    ),
    Function(
        "negate(number)",
        _resolve_one,
        _negate,
        direction=_directions(_DOWN),
        can_fail=lambda signature: isinstance(signature.result, Int),
        nulls=NullRule.STRICT,
    ),
    Function(
        "abs(number)",
        _resolve_one,
        _abs,
        bounds=abs_range(_abs),
        can_fail=lambda signature: isinstance(signature.result, Int),
        nulls=NullRule.STRICT,
    ),
)
