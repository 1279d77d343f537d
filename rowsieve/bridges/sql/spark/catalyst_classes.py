"""Spark's classes of expressions, and what they are called in its SQL.

Columns, pushed filters and resolved plans are trees of these classes. `Depends` says what the
meaning of one depends on beside its operands; whoever reads a tree checks that, or refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from rowsieve.predicate.ir import ComparisonOp

COMPARISONS: Final[Mapping[str, ComparisonOp]] = {
    "EqualTo": ComparisonOp.EQ,
    "EqualNullSafe": ComparisonOp.NOT_DISTINCT,
    "LessThan": ComparisonOp.LT,
    "LessThanOrEqual": ComparisonOp.LE,
    "GreaterThan": ComparisonOp.GT,
    "GreaterThanOrEqual": ComparisonOp.GE,
}
TEXT_TESTS: Final[Mapping[str, str]] = {
    "StartsWith": "starts_with",
    "EndsWith": "ends_with",
    "Contains": "contains",
}
"""Functions of ours; the class of a pushed filter has the word String in front."""


class Depends(Enum):
    """A setting of an expression, other than its operands, that changes its value."""

    NOTHING = "nothing"
    ZONE = "its time zone"
    MODE = "its mode of evaluation: ANSI, legacy or try"
    FAILING = "whether it fails on overflow"


_NOTHING, _ZONE, _MODE, _FAILING = Depends.NOTHING, Depends.ZONE, Depends.MODE, Depends.FAILING
OPERATORS: Final[Mapping[str, tuple[str, Depends]]] = {
    "And": ("and", _NOTHING),
    "Or": ("or", _NOTHING),
    "Not": ("not", _NOTHING),
    **{
        name: ("<=>" if op.is_null_safe else op.value, _NOTHING) for name, op in COMPARISONS.items()
    },
    "IsNull": ("isnull", _NOTHING),
    "IsNotNull": ("isnotnull", _NOTHING),
    "In": ("in", _NOTHING),
    "RLike": ("rlike", _NOTHING),
    "Substring": ("substring", _NOTHING),
    "Concat": ("concat", _NOTHING),
    "Add": ("+", _MODE),
    "Subtract": ("-", _MODE),
    "Multiply": ("*", _MODE),
    "Remainder": ("%", _MODE),
    "UnaryMinus": ("negative", _FAILING),
}
"""Classes that both a column and a resolved plan have, with their word."""

OF_COLUMNS: Final[Mapping[str, str]] = {
    **{name: word for name, (word, _) in OPERATORS.items()},
    "Divide": "/",
    "IntegralDivide": "div",
    "UnaryPositive": "positive",
    "BitwiseAnd": "&",
    "BitwiseOr": "|",
    "BitwiseXor": "^",
    "ShiftLeft": "shiftleft",
    "ShiftRight": "shiftright",
    "IsUnknown$$anon$1": "isnull",
    "IsNotUnknown$$anon$2": "isnotnull",
    "StringLocate": "locate",
}
"""The operators of a classic column; it has its functions by name."""
TRIMS: Final[Mapping[str, str]] = {
    "StringTrim": "trim",
    "StringTrimLeft": "ltrim",
    "StringTrimRight": "rtrim",
}
"""Classes of a classic column whose operands are in another order."""

FUNCTIONS: Final[Mapping[str, tuple[str, Depends]]] = {
    "StartsWith": ("startswith", _NOTHING),
    "EndsWith": ("endswith", _NOTHING),
    "Contains": ("contains", _NOTHING),
    "Length": ("length", _NOTHING),
    "GetJsonObject": ("get_json_object", _NOTHING),
    "If": ("if", _NOTHING),
    "Coalesce": ("coalesce", _NOTHING),
    "Greatest": ("greatest", _NOTHING),
    "Least": ("least", _NOTHING),
    "Year": ("year", _NOTHING),
    "Quarter": ("quarter", _NOTHING),
    "Month": ("month", _NOTHING),
    "DayOfMonth": ("day", _NOTHING),
    "DayOfYear": ("dayofyear", _NOTHING),
    "DayOfWeek": ("dayofweek", _NOTHING),
    "WeekDay": ("weekday", _NOTHING),
    "WeekOfYear": ("weekofyear", _NOTHING),
    "LastDay": ("last_day", _NOTHING),
    "DateAdd": ("date_add", _NOTHING),
    "DateSub": ("date_sub", _NOTHING),
    "DateDiff": ("datediff", _NOTHING),
    "TruncDate": ("trunc", _NOTHING),
    "AddMonths": ("add_months", _NOTHING),
    "Hour": ("hour", _ZONE),
    "Minute": ("minute", _ZONE),
    "Second": ("second", _ZONE),
    "TruncTimestamp": ("date_trunc", _ZONE),
    "Abs": ("abs", _FAILING),
    "Floor": ("floor", _FAILING),
    "Ceil": ("ceil", _FAILING),
}
"""Classes of resolved functions; a column calls these by their name in SQL."""
