"""Results of floats that are out of range, on which PostgreSQL fails: `Semantics.float_range`.

A result overflows if it is infinite although both operands are finite, and underflows if it is 0
although no operand is. Soundness: where the bounds of the operands do not exclude either, a part
may hold a row that fails. The corners of monotone bounds have the largest results, so an overflow
shows there; the smallest ones lie at operands next to 0, which are no corners of a range around it.

Source: `float8_pl`, `float8_mul` and `float8_div` in PostgreSQL's float.h, `dtof` in its float.c.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.predicate.arrays import Mask
from rowsieve.predicate.interpretation.abstract import AbstractValue, known
from rowsieve.predicate.ir import ComparisonOp
from rowsieve.predicate.semantics import OnFailure, Semantics

_GE, _GT, _LE, _LT = ComparisonOp.GE, ComparisonOp.GT, ComparisonOp.LE, ComparisonOp.LT

Floats = npt.NDArray[Any]
_OPERATIONS = frozenset({"add", "subtract", "multiply", "divide"})


def fails_out_of_range(name: str, semantics: Semantics) -> bool:
    """Whether an operation on floats fails if its result is out of range."""
    return semantics.float_range is OnFailure.ERROR and name in _OPERATIONS


def out_of_range(name: str, left: Floats, right: Floats, values: Floats) -> Mask:
    """Return where a sum, product or quotient is out of range; NULL operands may be anything."""
    beyond: Mask = np.isinf(values) & np.isfinite(left) & np.isfinite(right)
    if name == "multiply":
        beyond |= (values == 0) & (left != 0) & (right != 0)
    elif name == "divide":
        beyond &= right != 0
        beyond |= (values == 0) & (left != 0) & ~np.isinf(right)
    return beyond


def may_underflow(name: str, arguments: Sequence[AbstractValue]) -> Mask:
    """Return where a result may become 0 that no corner of the bounds shows."""
    if name == "multiply":
        left, right = arguments
        small = ~(excludes_zero(left) & excludes_zero(right))
        return small & ~_is_large(left) & ~_is_large(right)
    if name == "divide":
        left, right = arguments
        return ~excludes_zero(left) & ~(_at_least(right, -1) & _at_most(right, 1))
    return np.zeros(len(arguments[0].present), np.bool_)


def excludes_zero(value: AbstractValue) -> Mask:
    """Return where the bounds exclude 0, and so what is next to it on one side."""
    zero = _constant(value, 0)
    return known(_GT, value.lower, zero) | known(_LT, value.upper, zero)


def _is_large(value: AbstractValue) -> Mask:
    return _at_least(value, 1) | _at_most(value, -1)


def _at_least(value: AbstractValue, bound: int) -> Mask:
    return known(_GE, value.lower, _constant(value, bound))


def _at_most(value: AbstractValue, bound: int) -> Mask:
    return known(_LE, value.upper, _constant(value, bound))


def _constant(value: AbstractValue, number: int) -> pa.Array:
    return pa.array(np.full(len(value.present), number), value.lower.type)
