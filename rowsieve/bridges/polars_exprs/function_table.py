"""All constructs of polars' expressions, with their counterparts here.

`reads` is from `polars.Expr` to our tree, `writes` the reverse.

Soundness: a row is EXACT only if polars gives the same rows on awkward data; the note states the
condition, and reader and writer reject everything outside it. A construct without a row is rejected
by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rowsieve.bridges.functions import polars
from rowsieve.bridges.functions.casts import shown
from rowsieve.bridges.rows import both, reads, refused, refused_all
from rowsieve.bridges.translation import Row
from rowsieve.predicate.ir import ComparisonOp

_NO_ROW = "it does not compute a value for each row"
_PYTHON = "Python functions are unknown to Rowsieve, and pickled code is never loaded"

NODES: tuple[Row, ...] = (
    both("Column", "Column"),
    both("Literal", "Literal", "of the types that columns may have; a Series only in is_in"),
    reads("Alias", "the expression itself", "a name changes nothing"),
    both("BinaryExpr", "", "by its operator"),
    both("Function", "", "by its name"),
    both("Cast", "Cast", f"{shown('polars')}; one that wraps around is refused"),
    both("Ternary", "Case", "when, then, otherwise; the branches of one type"),
    refused("AnonymousFunction", _PYTHON),
    refused("Selector", "it can select several columns; name one"),
    *refused_all("Agg Over Rolling Explode Filter Gather Len Slice", _NO_ROW),
    *refused_all("Sort SortBy Eval Element", _NO_ROW),
    refused("DataTypeFunction", "it is a type, not a value"),
)
_RANK = "of one type, whole numbers of any types, decimals, or a constant that fits"
_NUMBERS = "of one type of number, or with a constant that fits it"
_DIVISOR = "whole numbers are cast, as polars does; a constant divisor is a power of 2"
_GUARD = "NULL in it is a guard on either side"
COMPARISONS: Mapping[str, ComparisonOp] = {
    "Eq": ComparisonOp.EQ,
    "NotEq": ComparisonOp.NE,
    "Lt": ComparisonOp.LT,
    "LtEq": ComparisonOp.LE,
    "Gt": ComparisonOp.GT,
    "GtEq": ComparisonOp.GE,
    "EqValidity": ComparisonOp.NOT_DISTINCT,
    "NotEqValidity": ComparisonOp.DISTINCT,
}
ARITHMETIC: Mapping[str, str] = {
    "Plus": "add",
    "Minus": "subtract",
    "Multiply": "multiply",
    "TrueDivide": "divide",
    "TruncDivide": "divide",
    "FloorDivide": "divide",
    "Modulus": "modulo",
}
_FLOORED = "of unsigned numbers, or by a constant above 0"
OPERATORS: tuple[Row, ...] = (
    *(
        both(name, op.value, f"{_RANK}; `{method}`")
        for (name, op), method in zip(
            COMPARISONS.items(),
            ("==", "!=", "<", "<=", ">", ">=", "eq_missing", "ne_missing"),
            strict=True,
        )
    ),
    both("And", "And", "booleans; the bitwise operation on numbers has no counterpart"),
    both("Or", "Or", "booleans; the bitwise operation on numbers has no counterpart"),
    reads("Xor", "<>", "of booleans; written as `!=`"),
    both("Plus", "add", f"{_NUMBERS}; of text concat_strict; with a duration shift"),
    both("Minus", "subtract", f"{_NUMBERS}; with a duration shift"),
    both("Multiply", "multiply", _NUMBERS),
    both("TrueDivide", "divide", f"of floats; {_DIVISOR}"),
    both("TruncDivide", "divide", "of whole numbers of one type"),
    reads("FloorDivide", "divide", f"{_FLOORED}; written as truncdiv"),
    reads("Modulus", "modulo", f"{_FLOORED}; written with truncdiv"),
    *refused_all("Divide LogicalAnd LogicalOr", "expressions never contain it"),
)

_FLOATS = "of floats"
_ENDED = "zones have no rules after 2100 in polars"
# Names in serialised expressions, of `Boolean` functions and others, with the method of each.
BOOLEANS: Mapping[str, Row] = {
    "Not": both("not_", "Not", "`~`, of booleans"),
    "IsNull": both("is_null", "IsNull"),
    "IsNotNull": reads("is_not_null", "Not(IsNull)", "written as `~` of is_null"),
    "IsNan": reads("is_nan", "= NaN", f"{_FLOATS}; written as `==`: NaN equals itself in polars"),
    "IsNotNan": reads("is_not_nan", "<> NaN", f"{_FLOATS}; written as `!=`"),
    "IsFinite": reads("is_finite", "And of two comparisons", _FLOATS),
    "IsInfinite": reads("is_infinite", "Or of two comparisons", _FLOATS),
    "IsIn": both("is_in", "InList", f"a list of constants; {_GUARD}"),
    "IsBetween": reads("is_between", "And of two comparisons", "both bounds of one type"),
    "AnyHorizontal": reads("any_horizontal", "Or", "written as `|`"),
    "AllHorizontal": reads("all_horizontal", "And", "written as `&`"),
    "IsClose": refused("is_close", "its tolerance grows with the values; write a range"),
    **{
        name.title().replace("_", ""): refused(name, _NO_ROW)
        for name in (
            *("is_empty", "has_nulls", "any", "all", "is_duplicated", "is_unique"),
            *("is_first_distinct", "is_last_distinct", "is_sorted"),
        )
    },
}


def _function(rows: Sequence[polars.Method]) -> Row:
    """Return the row of a node: its first function, and the condition of each."""
    part = next(iter(rows[0].first), "") if rows[0].function == "extract" else ""
    others = {row.function: row.text for row in reversed(rows)} | {rows[0].function: rows[0].text}
    note = "; ".join(
        f"only {text}" if function == rows[0].function else f"{function}: {text}"
        for function, text in reversed(others.items())
    )
    if rows[0].instead:
        return reads(rows[0].name, rows[0].function, f"{note}; written as {rows[0].instead}")
    return both(rows[0].name, f"{rows[0].function} {part}".strip(), note)


FUNCTIONS: Mapping[str, Row] = {
    **{node: _function(rows) for node, rows in polars.BY_NODE.items()},
    "StringExpr.Contains": both(
        "str.contains",
        "contains",
        "plain text; a pattern means `regex_matches`, where Rust's and RE2's agree",
    ),
    "StringExpr.Reverse": refused("str.reverse", "polars turns what belongs to one sign as one"),
    "StructExpr.FieldByName": both("struct.field", "FieldAccess"),
    "TemporalExpr.OffsetBy": both("dt.offset_by", "shift", "months, days, microseconds"),
    "TemporalExpr.Date": reads("dt.date", "CAST(… AS date)", "written as a cast"),
    "TemporalExpr.ConvertTimeZone": both(
        "dt.convert_time_zone", "local_time", f"before a part, dt.date or without a zone; {_ENDED}"
    ),
    "TemporalExpr.ReplaceTimeZone": both(
        "dt.replace_time_zone", "instant", f"before dt.convert_time_zone('UTC'); {_ENDED}"
    ),
}
# Methods of other namespaces that return booleans; all are rejected.
OTHERS: tuple[Row, ...] = (
    *refused_all("is_sorted peak_max peak_min", _NO_ROW),
    *refused_all(
        "list.contains arr.contains list.any list.all arr.any arr.all", "it looks into lists"
    ),
    *refused_all("bin.contains bin.starts_with bin.ends_with", "of bytes"),
    refused("str.contains_any", "many patterns at once; write OR of contains"),
    *refused_all("cat.starts_with cat.ends_with", "categories have no type in Rowsieve"),
    refused("dt.is_leap_year", "write the year's arithmetic"),
    refused("dt.is_business_day", "it wants a calendar"),
)
NODE_ROWS: Mapping[str, Row] = {row.foreign: row for row in NODES}
OPERATOR_ROWS: Mapping[str, Row] = {row.foreign: row for row in OPERATORS}
