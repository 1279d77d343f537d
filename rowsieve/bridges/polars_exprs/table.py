"""What polars' expressions consist of, and what each part is here.

`reads` is from `polars.Expr` to our tree, `writes` the way back. Soundness: a row is EXACT only
where rows of awkward data come out the same in the engine; the note says under which condition, and
the reader and the writer refuse outside it. What is not in a table is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rowsieve.bridges.functions import polars
from rowsieve.bridges.translation import Exactness, Row
from rowsieve.predicate.ir import ComparisonOp

_EXACT, _NO = Exactness.EXACT, Exactness.UNSUPPORTED


def _both(foreign: str, ours: str, note: str = "") -> Row:
    return Row(foreign, ours, _EXACT, _EXACT, note)


def _read(foreign: str, ours: str, note: str) -> Row:
    """Never written: another spelling of the same is."""
    return Row(foreign, ours, _EXACT, _NO, note)


def _none(foreign: str, note: str) -> Row:
    return Row(foreign, "", _NO, _NO, note)


def _nones(names: str, note: str) -> list[Row]:
    return [_none(name, note) for name in names.split()]


_NO_ROW = "it is no value of one row"
_PYTHON = "a function of Python's is unknown here, and pickled code is never loaded"

NODES: tuple[Row, ...] = (
    _both("Column", "Column"),
    _both("Literal", "Literal", "of the types that columns may have; a Series only in is_in"),
    _read("Alias", "the expression itself", "a name changes nothing"),
    _both("BinaryExpr", "", "by its operator"),
    _both("Function", "", "by its name"),
    _both("Cast", "Cast", "between the types in CASTS; one that wraps around is refused"),
    _both("Ternary", "Case", "when, then, otherwise; the branches of one type"),
    _none("AnonymousFunction", _PYTHON),
    _none("Selector", "it may be several columns; name one"),
    *_nones("Agg Over Rolling Explode Filter Gather Len Slice", _NO_ROW),
    *_nones("Sort SortBy Eval Element", _NO_ROW),
    _none("DataTypeFunction", "it is a type, not a value"),
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
        _both(name, op.value, f"{_RANK}; `{method}`")
        for (name, op), method in zip(
            COMPARISONS.items(),
            ("==", "!=", "<", "<=", ">", ">=", "eq_missing", "ne_missing"),
            strict=True,
        )
    ),
    _both("And", "And", "of booleans; of numbers it is of bits, which have no counterpart"),
    _both("Or", "Or", "of booleans; of numbers it is of bits, which have no counterpart"),
    _read("Xor", "<>", "of booleans; written as `!=`"),
    _both("Plus", "add", f"{_NUMBERS}; of text concat_strict; with a duration shift"),
    _both("Minus", "subtract", f"{_NUMBERS}; with a duration shift"),
    _both("Multiply", "multiply", _NUMBERS),
    _both("TrueDivide", "divide", f"of floats; {_DIVISOR}"),
    _both("TruncDivide", "divide", "of whole numbers of one type"),
    _read("FloorDivide", "divide", f"{_FLOORED}; written as truncdiv"),
    _read("Modulus", "modulo", f"{_FLOORED}; written with truncdiv"),
    *_nones("Divide LogicalAnd LogicalOr", "never shown by an expression"),
)

_FLOATS = "of floats"
_ENDED = "zones have no rules after 2100 there"
# The names inside polars: those of `Boolean` and of other families, and the method of each.
BOOLEANS: Mapping[str, Row] = {
    "Not": _both("not_", "Not", "`~`, of booleans"),
    "IsNull": _both("is_null", "IsNull"),
    "IsNotNull": _read("is_not_null", "Not(IsNull)", "written as `~` of is_null"),
    "IsNan": _read("is_nan", "= NaN", f"{_FLOATS}; written as `==`, NaN is equal to itself there"),
    "IsNotNan": _read("is_not_nan", "<> NaN", f"{_FLOATS}; written as `!=`"),
    "IsFinite": _read("is_finite", "And of two comparisons", _FLOATS),
    "IsInfinite": _read("is_infinite", "Or of two comparisons", _FLOATS),
    "IsIn": _both("is_in", "InList", f"a list of constants; {_GUARD}"),
    "IsBetween": _read("is_between", "And of two comparisons", "both bounds of one type"),
    "AnyHorizontal": _read("any_horizontal", "Or", "written as `|`"),
    "AllHorizontal": _read("all_horizontal", "And", "written as `&`"),
    "IsClose": _none("is_close", "its tolerance grows with the values; write a range"),
    **{
        name.title().replace("_", ""): _none(name, _NO_ROW)
        for name in (
            *("is_empty", "has_nulls", "any", "all", "is_duplicated", "is_unique"),
            *("is_first_distinct", "is_last_distinct", "is_sorted"),
        )
    },
}


def _function(rows: Sequence[polars.Method]) -> Row:
    """The row of a node: the first function by that name, and when each is meant."""
    part = next(iter(rows[0].first), "") if rows[0].function == "extract" else ""
    others = {row.function: row.text for row in reversed(rows)} | {rows[0].function: rows[0].text}
    note = "; ".join(
        f"only {text}" if function == rows[0].function else f"{function}: {text}"
        for function, text in reversed(others.items())
    )
    if rows[0].instead:
        return _read(rows[0].name, rows[0].function, f"{note}; written as {rows[0].instead}")
    return _both(rows[0].name, f"{rows[0].function} {part}".strip(), note)


FUNCTIONS: Mapping[str, Row] = {
    **{node: _function(rows) for node, rows in polars.BY_NODE.items()},
    "StringExpr.Contains": _both(
        "str.contains",
        "contains",
        "plain text; a pattern means `regex_matches`, where Rust's and RE2's agree",
    ),
    "StringExpr.Reverse": _none("str.reverse", "polars turns what belongs to one sign as one"),
    "StructExpr.FieldByName": _both("struct.field", "FieldAccess"),
    "TemporalExpr.OffsetBy": _both("dt.offset_by", "shift", "months, days, microseconds"),
    "TemporalExpr.Date": _read("dt.date", "CAST(… AS date)", "written as a cast"),
    "TemporalExpr.ConvertTimeZone": _both(
        "dt.convert_time_zone", "local_time", f"before a part, dt.date or without a zone; {_ENDED}"
    ),
    "TemporalExpr.ReplaceTimeZone": _both(
        "dt.replace_time_zone", "instant", f"before dt.convert_time_zone('UTC'); {_ENDED}"
    ),
}
# Functions of more families that give booleans, by their methods: none of them is a value here.
OTHERS: tuple[Row, ...] = (
    *_nones("is_sorted peak_max peak_min", _NO_ROW),
    *_nones("list.contains arr.contains list.any list.all arr.any arr.all", "it looks into lists"),
    *_nones("bin.contains bin.starts_with bin.ends_with", "of bytes"),
    _none("str.contains_any", "many patterns at once; write OR of contains"),
    *_nones("cat.starts_with cat.ends_with", "categories have no type here"),
    _none("dt.is_leap_year", "write the year's arithmetic"),
    _none("dt.is_business_day", "it wants a calendar"),
)
NODE_ROWS: Mapping[str, Row] = {row.foreign: row for row in NODES}
OPERATOR_ROWS: Mapping[str, Row] = {row.foreign: row for row in OPERATORS}
# Kinds of types between which a cast gives the same value or fails alike.
CASTS = frozenset(
    {
        ("Int", "Int"),
        ("Int", "Float"),
        ("Int", "Decimal"),
        ("Int", "String"),
        ("Float", "Float"),
        ("Float", "Int"),
        ("Decimal", "Int"),
        ("Bool", "Int"),
        ("Date", "String"),
        ("Date", "Timestamp"),
        ("Timestamp", "Date"),
        ("Timestamp", "Timestamp"),
    }
)
