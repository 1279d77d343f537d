"""Integer arithmetic with the mask of rows that overflowed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rowsieve.predicate.arrays import Mask

Integers = npt.NDArray[Any]


def add(a: Integers, b: Integers) -> tuple[Integers, Mask]:
    """Return the sum modulo 2^bits, and the overflow mask."""
    with np.errstate(over="ignore"):
        total = a + b
    if total.dtype.kind == "u":
        return total, total < a
    return total, ((a ^ total) & (b ^ total)) < 0


def subtract(a: Integers, b: Integers) -> tuple[Integers, Mask]:
    """Return the difference modulo 2^bits, and the overflow mask."""
    with np.errstate(over="ignore"):
        difference = a - b
    if difference.dtype.kind == "u":
        return difference, a < b
    return difference, ((a ^ b) & (a ^ difference)) < 0


def multiply(a: Integers, b: Integers) -> tuple[Integers, Mask]:
    """Return the product modulo 2^bits, and the overflow mask."""
    with np.errstate(over="ignore"):
        product = a * b
    signed = product.dtype.kind == "i"
    trivial = (a == 0) | (a == -1) if signed else a == 0
    divisor = np.where(trivial, a.dtype.type(1), a)
    with np.errstate(over="ignore"):
        overflowed = (product // divisor != b) & ~trivial
    if signed:
        overflowed |= (a == -1) & (b == np.iinfo(b.dtype).min)
    return product, overflowed


def divide(a: Integers, b: Integers) -> tuple[Integers, Mask]:
    """Return the truncated quotient, and the overflow mask; no divisor may be 0."""
    if a.dtype.kind == "u":
        return a // b, np.zeros(len(a), dtype=np.bool_)
    overflowed: Mask = (a == np.iinfo(a.dtype).min) & (b == -1)
    safe = np.where(overflowed, a.dtype.type(1), b)
    quotient = a // safe
    remainder = a - quotient * safe
    towards_zero = quotient + ((remainder != 0) & ((a < 0) != (safe < 0)))
    return towards_zero.astype(a.dtype), overflowed


def modulo(a: Integers, b: Integers) -> tuple[Integers, Mask]:
    """Return the remainder with the dividend's sign, and the overflow mask; no divisor may be 0."""
    if a.dtype.kind == "u":
        return a % b, np.zeros(len(a), dtype=np.bool_)
    remainder: Integers = np.fmod(a, np.where(b == -1, a.dtype.type(1), b))
    return remainder, (a == np.iinfo(a.dtype).min) & (b == -1)
