"""Spark's names of units, its casts in both ANSI modes, and its result types of decimals.

Soundness: a unit or a pair of types is listed only if Spark gives the same values and failures.
"""

from __future__ import annotations

from collections.abc import Mapping

from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.semantics import DigitRounding
from rowsieve.types.logical import Decimal, LogicalType, String, Timestamp

UNITS: Mapping[str, str] = {
    **{name: name for name in ("quarter", "week", "hour", "minute", "second")},
    **{name: name for name in ("millisecond", "microsecond")},
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    **dict.fromkeys(("day", "dd"), "day"),
}
# Rules of rounding to digits that agree with Spark's for float64.
DIGITS_BY_TEXT = (DigitRounding.DECIMAL, DigitRounding.WIDE_DECIMAL)
DATE_UNITS = frozenset({"year", "quarter", "month", "week"})
# Casts that give the same value, or fail, whatever the mode.
CAST_ANY_MODE = frozenset(
    {
        ("Bool", "Int"),
        ("Bool", "String"),
        ("Int", "Bool"),
        ("Int", "Float"),
        ("Int", "String"),
        ("Float", "Float"),
        ("Decimal", "Float"),
        ("Date", "String"),
        ("Date", "Timestamp"),
        ("Timestamp", "Date"),
        ("Timestamp", "Timestamp"),
        ("Timestamp", "String"),
    }
)


def check_cast(source: LogicalType, target: LogicalType) -> None:
    """Raise for a pair of types that differs although its kinds are listed."""
    match source, target:
        case Timestamp(utc=True), String():
            raise UnsupportedOperation("Spark writes an instant without its offset")


def decimal_result(name: str, a: Decimal, b: Decimal) -> Decimal | None:
    """Return the type of `a name b` in Spark; None if it needs more than 38 digits."""
    scale = max(a.scale, b.scale)
    whole_a, whole_b = a.precision - a.scale, b.precision - b.scale
    match name:
        case "add" | "subtract":
            result = Decimal(max(whole_a, whole_b) + scale + 1, scale)
        case "multiply":
            result = Decimal(a.precision + b.precision + 1, a.scale + b.scale)
        case "divide":
            scale = max(6, a.scale + b.precision + 1)
            result = Decimal(whole_a + b.scale + scale, scale)
        case _:
            result = Decimal(max(1, min(whole_a, whole_b) + scale), scale)
    return result if result.precision <= 38 else None
