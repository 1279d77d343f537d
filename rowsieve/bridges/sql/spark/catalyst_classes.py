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
    """What the meaning of a class depends on, beside its operands."""

    NOTHING = "nothing"
    ZONE = "its time zone"
    MODE = "its mode of evaluation: ANSI, legacy or try"
    FAILING = "whether it fails on overflow"


OPERATORS: Final[Mapping[str, tuple[str, Depends]]] = {
    **{
        kind: (word, Depends.NOTHING)
        for kind, word in {
            "And": "and",
            "Or": "or",
            "Not": "not",
            "EqualTo": "=",
            "EqualNullSafe": "<=>",
            "LessThan": "<",
            "LessThanOrEqual": "<=",
            "GreaterThan": ">",
            "GreaterThanOrEqual": ">=",
            "IsNull": "isnull",
            "IsNotNull": "isnotnull",
            "In": "in",
            "RLike": "rlike",
            "Substring": "substring",
            "Concat": "concat",
        }.items()
    },
    **{
        kind: (word, Depends.MODE)
        for kind, word in {
            "Add": "+",
            "Subtract": "-",
            "Multiply": "*",
            "Remainder": "%",
        }.items()
    },
    "UnaryMinus": ("negative", Depends.FAILING),
}
"""Classes that both a column and a resolved plan have, with their word."""

FUNCTIONS: Final[Mapping[str, tuple[str, Depends]]] = {
    **{
        kind: (word, Depends.NOTHING)
        for kind, word in {
            "StartsWith": "startswith",
            "EndsWith": "endswith",
            "Contains": "contains",
            "Length": "length",
            "GetJsonObject": "get_json_object",
            "If": "if",
            "Coalesce": "coalesce",
            "Greatest": "greatest",
            "Least": "least",
            "Year": "year",
            "Quarter": "quarter",
            "Month": "month",
            "DayOfMonth": "day",
            "DayOfYear": "dayofyear",
            "DayOfWeek": "dayofweek",
            "WeekDay": "weekday",
            "WeekOfYear": "weekofyear",
            "LastDay": "last_day",
            "DateAdd": "date_add",
            "DateSub": "date_sub",
            "DateDiff": "datediff",
            "TruncDate": "trunc",
            "AddMonths": "add_months",
        }.items()
    },
    **{
        kind: (word, Depends.ZONE)
        for kind, word in {
            "Hour": "hour",
            "Minute": "minute",
            "Second": "second",
            "TruncTimestamp": "date_trunc",
        }.items()
    },
    **{kind: (kind.lower(), Depends.FAILING) for kind in ("Abs", "Floor", "Ceil")},
}
"""Classes of resolved functions; a column calls these by their name in SQL."""
