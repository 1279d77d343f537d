"""Whether the sign bit of a NaN can affect a bound condition.

Engines that order NaN by its sign bit (`NanOrder.SIGNED`) agree with engines for which NaN is the
greatest number as long as no NaN has its sign bit set. Stored values, also nested ones, never have
it set.

Soundness: an operation that is not known to keep NaN positive may make it negative.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.arrays import filled
from rowsieve.predicate.operand_types import type_of
from rowsieve.types.logical import Float, Int

_ORDERING = frozenset({"greatest", "least", "nullif"})
_POSITIVE = frozenset({"abs", "sign"})
# Functions that return NaN only for NaN, with its sign; and functions of nested values.
_KEEPING = _ORDERING | {
    *("floor", "ceil", "round", "degrees", "radians", "sqrt", "coalesce"),
    *("make_list", "make_struct", "list_element", "map_value"),
}
# With a finite constant other than 0, they return NaN for NaN only, with its sign.
_STEADY = frozenset({"add", "subtract", "multiply", "divide"})


def check_nan_signs(root: ir.Predicate) -> None:
    """Raise for a bound condition that may compare a NaN with its sign bit set."""
    for node in ir.walk(root):
        if any(may_be_negative_nan(operand) for operand in _ordered(node)):
            raise UnsupportedOperation(
                "a computed NaN may have its sign bit set, and DataFusion alone orders NaN by it; "
                "exclude NaN by CASE or nullif before the comparison"
            )


def may_be_negative_nan(node: ir.Operand) -> bool:
    """Whether a float operand may be NaN with its sign bit set, or a nested one may contain it."""
    match node:
        case ir.BoundColumn():
            return False
        case ir.Literal(value=value):
            return _holds_negative_nan(value)
        case ir.Case(branches=branches, otherwise=otherwise):
            return any(map(may_be_negative_nan, (*(then for _, then in branches), otherwise)))
        case ir.Cast(operand=operand):
            source = type_of(operand)
            if isinstance(source, Float):
                return may_be_negative_nan(operand)
            return not isinstance(source, Int)
        case ir.FieldAccess(operand=operand):
            return may_be_negative_nan(operand)
        case ir.Call(function=name, arguments=arguments):
            if name in _POSITIVE:
                return False
            if name in _KEEPING or (name in _STEADY and any(map(_is_steady, arguments))):
                return any(map(may_be_negative_nan, arguments))
            return True
        case _:
            return True


def _holds_negative_nan(value: ir.PhysicalValue) -> bool:
    if isinstance(value, tuple):
        return any(map(_holds_negative_nan, value))
    return isinstance(value, float) and math.isnan(value) and math.copysign(1, value) < 0


def _is_steady(node: ir.Operand) -> bool:
    value = node.value if isinstance(node, ir.Literal) else None
    return isinstance(value, float) and value != 0 and math.isfinite(value)


def _ordered(node: ir.Node) -> list[ir.Operand]:
    """Return the float operands that the node compares."""
    match node:
        case ir.Comparison(left=left, right=right):
            operands: tuple[ir.Operand, ...] = (left, right)
        case ir.InList(operand=operand, values=values):
            operands = (operand, *_negative_members(values.array))
        case ir.Call(function=name, arguments=arguments) if name in _ORDERING:
            operands = arguments
        case _:
            return []
    return [operand for operand in operands if isinstance(type_of(operand), Float)]


def _negative_members(members: pa.Array) -> list[ir.Literal]:
    """Return one NaN with its sign bit set, if the members contain one."""
    if not pa.types.is_floating(members.type):
        return []
    numbers = filled(members)
    negative = np.isnan(numbers) & np.signbit(numbers)
    return [ir.Literal(-math.nan, Float(64))] if negative.any() else []
