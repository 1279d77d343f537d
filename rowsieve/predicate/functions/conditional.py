"""Functions that return one of their arguments, or NULL: coalesce, nullif, greatest, least."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, as_mask, compare, filled, null_mask, without
from rowsieve.predicate.functions.numbers.numeric import wider
from rowsieve.predicate.functions.row import (
    Argument,
    BoundsRule,
    Function,
    NullRule,
    Range,
    Signature,
    never_fails,
)
from rowsieve.predicate.interpretation.abstract import AbstractValue
from rowsieve.predicate.ir import ComparisonOp
from rowsieve.predicate.semantics import NanOrder, Semantics
from rowsieve.types.logical import (
    Date,
    Decimal,
    Enum,
    Int,
    LogicalType,
    Numeric,
    String,
    Timestamp,
    is_ordered,
)
from rowsieve.types.numeric_bytes import exact_of


def common_type(types: Sequence[LogicalType | None]) -> LogicalType | None:
    """Return the type that holds all values without loss of order; None if there is none.

    A None among the types adapts to the others; text if all are None.
    """
    known = [type_ for type_ in types if type_ is not None]
    if not known:
        return String()
    common = known[0]
    for type_ in known[1:]:
        joined = _join(common, type_)
        if joined is None:
            return None
        common = joined
    return common


def _join(left: LogicalType, right: LogicalType) -> LogicalType | None:
    if left == right:
        return left
    match left, right:
        case (Date(), Timestamp()):
            return right
        case (Timestamp(), Date()):
            return left
        case (Timestamp(), Timestamp()):
            return Timestamp(utc=True)
        case (Decimal() | Int(), Decimal() | Int()):
            joined = wider(left, right)
            return joined if isinstance(joined, Int) else _join_decimals(left, right)
    return wider(left, right)


def _join_decimals(left: Decimal | Int, right: Decimal | Int) -> Decimal | None:
    from rowsieve.predicate.functions.numbers.decimals import int_as_decimal  # noqa: PLC0415

    a = int_as_decimal(left) if isinstance(left, Int) else left
    b = int_as_decimal(right) if isinstance(right, Int) else right
    scale = max(a.scale, b.scale)
    precision = max(a.precision - a.scale, b.precision - b.scale) + scale
    return Decimal(precision, scale) if precision <= 38 else None


def _resolve_many(least: int, most: int | None = None) -> Callable[..., Signature | None]:
    def resolve(arguments: Sequence[Argument]) -> Signature | None:
        if len(arguments) < least or (most is not None and len(arguments) > most):
            return None
        common = common_type([argument.type for argument in arguments])
        return None if common is None else Signature((common,) * len(arguments), common)

    return resolve


def _resolve_ordered(arguments: Sequence[Argument]) -> Signature | None:
    signature = _resolve_many(1)(arguments)
    if signature is None or isinstance(signature.result, Enum):  # its text has another order
        return None
    return signature if _compares(signature.result) else None


def _resolve_nullif(arguments: Sequence[Argument]) -> Signature | None:
    signature = _resolve_many(2, 2)(arguments)
    return signature if signature and _compares(signature.result) else None


def _compares(type_: LogicalType) -> bool:
    return is_ordered(type_) or isinstance(type_, Numeric)


def _comparable(values: pa.Array) -> pa.Array:
    """Return the bytes of unbounded numbers, which sort like them, and other values unchanged."""
    return exact_of(values) if pa.types.is_struct(values.type) else values


def _coalesce(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    return Computed(arguments[0] if len(arguments) == 1 else pc.coalesce(*arguments))


def _nullif(arguments: Sequence[pa.Array], _: Signature, semantics: Semantics) -> Computed:
    left, right = arguments
    sides = _comparable(left), _comparable(right)
    equal = as_mask(compare(ComparisonOp.EQ, *sides, semantics.nan))
    equal &= _zero_order(left, right, semantics) == 0
    return Computed(pc.if_else(pa.array(equal), pa.scalar(None, left.type), left))


def _zero_order(left: pa.Array, right: pa.Array, semantics: Semantics) -> npt.NDArray[np.int8]:
    """Order zeros of different signs as -1 or 1, if the engine does; 0 elsewhere."""
    if not semantics.nested_zeros_differ or not pa.types.is_floating(left.type):
        return np.zeros(len(left), np.int8)
    one, other = filled(left), filled(right)
    zeros = (one == 0) & (other == 0) & ~null_mask(left) & ~null_mask(right)
    signs = np.signbit(other).astype(np.int8) - np.signbit(one).astype(np.int8)
    return np.where(zeros, signs, np.int8(0))


def _extreme(op: ComparisonOp) -> Callable[..., Computed]:
    def evaluate(arguments: Sequence[pa.Array], _: Signature, semantics: Semantics) -> Computed:
        best = arguments[0]
        for other in arguments[1:]:
            sides = _comparable(other), _comparable(best)
            better = as_mask(compare(op, *sides, semantics.nan)) | null_mask(best)
            zeros = _zero_order(other, best, semantics)
            better |= zeros > 0 if op is ComparisonOp.GT else zeros < 0
            best = pc.if_else(pa.array(better), other, best)
        return Computed(best)

    return evaluate


def _extreme_range(*, greatest: bool) -> BoundsRule:
    """Bound the result from one side, by the arguments that are never NULL.

    NULL arguments are skipped. An argument that may be NULL or NaN gives no bound.
    """

    def bounds(arguments: Sequence[AbstractValue], _: Signature, __: Semantics) -> Range:
        ends = [
            without(value.lower if greatest else value.upper, value.null | value.nan)
            for value in arguments
        ]
        order = ComparisonOp.GE if greatest else ComparisonOp.LE
        best = ends[0]
        for end in ends[1:]:
            better = pc.if_else(compare(order, end, best, NanOrder.GREATEST), end, best)
            best = pc.coalesce(better, best, end)
        free = pa.nulls(len(best), best.type)
        return Range(best, free) if greatest else Range(free, best)

    return bounds


ROWS = (
    Function(
        "coalesce(value, …)",
        _resolve_many(1),
        _coalesce,
        can_fail=never_fails,
        nulls=NullRule.ALL,
        lazy=True,
    ),
    Function(
        "nullif(value, value)",
        _resolve_nullif,
        _nullif,
        can_fail=never_fails,
        nulls=NullRule.FIRST,
    ),
    Function(
        "greatest(value, …)",
        _resolve_ordered,
        _extreme(ComparisonOp.GT),
        bounds=_extreme_range(greatest=True),
        can_fail=never_fails,
        nulls=NullRule.ALL,
    ),
    Function(
        "least(value, …)",
        _resolve_ordered,
        _extreme(ComparisonOp.LT),
        bounds=_extreme_range(greatest=False),
        can_fail=never_fails,
        nulls=NullRule.ALL,
    ),
)
