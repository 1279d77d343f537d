"""The greatest common divisor and the least common multiple of whole numbers, as 64-bit numbers.

Both are 0 or more, whatever the signs; `gcd(0, 0)` and `lcm(x, 0)` are 0. A result beyond 64 bits
is an overflow, by the rules of `Semantics`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.predicate.arrays import Computed, Mask, filled, null_mask, with_nulls
from rowsieve.predicate.functions.row import Argument, Function, NullRule, Signature
from rowsieve.predicate.functions.texts.text_ranges import from_zero
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Int

_INT64_MAX = np.uint64(2**63 - 1)
_Magnitudes = npt.NDArray[np.uint64]


def _resolve(arguments: Sequence[Argument]) -> Signature | None:
    types = [argument.type for argument in arguments]
    if len(types) != 2 or not all(isinstance(type_, Int | None) for type_ in types):
        return None
    if types == [None, None] or Int(64, signed=False) in types:
        return None
    return Signature((Int(64), Int(64)), Int(64))


def _divisor(left: _Magnitudes, right: _Magnitudes) -> tuple[_Magnitudes, Mask]:
    divisors = np.gcd(left, right)
    return divisors, divisors > _INT64_MAX


def _multiple(left: _Magnitudes, right: _Magnitudes) -> tuple[_Magnitudes, Mask]:
    divisor = np.maximum(np.gcd(left, right), np.uint64(1))
    times = left // divisor
    overflows = (times != 0) & (right > _INT64_MAX // np.maximum(times, np.uint64(1)))
    return np.where(overflows, np.uint64(0), times * right), overflows


def _of_pairs(
    compute: Callable[[_Magnitudes, _Magnitudes], tuple[_Magnitudes, Mask]],
) -> Callable[..., Computed]:
    def evaluate(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
        left, right = (np.abs(filled(side)).view(np.uint64) for side in arguments)
        nulls = null_mask(arguments[0]) | null_mask(arguments[1])
        magnitudes, overflows = compute(left, right)
        failed = overflows & ~nulls
        values: npt.NDArray[Any] = np.where(overflows, np.uint64(0), magnitudes).view(np.int64)
        array = with_nulls(values, nulls | failed, pa.int64())
        return Computed(array, failed if failed.any() else None)

    return evaluate


ROWS = tuple(
    Function(
        f"{name}(whole number, whole number)",
        _resolve,
        _of_pairs(compute),
        bounds=from_zero,
        nulls=NullRule.STRICT,
    )
    for name, compute in (("gcd", _divisor), ("lcm", _multiple))
)
