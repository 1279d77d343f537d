"""What a Substrait expression may consist of, and what each part is here.

Functions are those that pyarrow takes and makes. Soundness: a function means here what its
definition says of NULL, and what pyarrow makes of NaN (IEEE's rules); one whose options say
otherwise is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from rowsieve.bridges.translation import Exactness, Row
from rowsieve.predicate.ir import ComparisonOp

_EXACT, _NO = Exactness.EXACT, Exactness.UNSUPPORTED


def _both(foreign: str, ours: str, note: str = "") -> Row:
    return Row(foreign, ours, _EXACT, _EXACT, note)


def _none(foreign: str, note: str) -> Row:
    return Row(foreign, "", _NO, _NO, note)


def _nones(names: str, note: str) -> list[Row]:
    return [_none(name, note) for name in names.split()]


_QUERY = "a filter over one table holds no query"
_LAMBDA = "functions of functions have no counterpart here"
# The numbers of the fields of `Expression`.
EXPRESSIONS: Mapping[int, Row] = {
    1: _both("literal", "Literal", "by its type"),
    2: _both("selection", "Column, FieldAccess", "fields of the input by their places"),
    3: _both("scalar_function", "", "by its name"),
    6: _both("if_then", "Case", "branches of one type, conditions that are never NULL (coalesce)"),
    8: _both("singular_or_list", "InList", "constants of one type"),
    5: _none("window_function", "it is no value of one row"),
    7: _none("switch_expression", "write if_then"),
    9: _none("multi_or_list", "write OR of comparisons"),
    10: _none("enum", "an argument without a value"),
    11: _none("cast", "what it does with values that do not fit is left to the engine"),
    12: _none("subquery", _QUERY),
    13: _none("nested", "structs, lists and maps are not made here"),
    14: _none("dynamic_parameter", "a parameter has no value yet; pass the value"),
    15: _none("lambda", _LAMBDA),
    16: _none("lambda_invocation", _LAMBDA),
    17: _none("execution_context_variable", "a session's variable is unknown here"),
    18: _none("detached_expression_ordinal", "the expression lies outside of this message"),
    19: _none("named_lambda_reference", _LAMBDA),
}
_NAN = "floats by IEEE's rules; written with is_nan where engines differ"
COMPARISONS: Mapping[str, ComparisonOp] = {
    "equal": ComparisonOp.EQ,
    "not_equal": ComparisonOp.NE,
    "lt": ComparisonOp.LT,
    "lte": ComparisonOp.LE,
    "gt": ComparisonOp.GT,
    "gte": ComparisonOp.GE,
}
_ORDERED = ("lt", "lte", "gt", "gte")
_ERROR = "whole numbers of one type, overflow an ERROR"
_CASE = "CASE_SENSITIVE"
_ROW, _MATH = "it is no value of one row", "it has no counterpart here"
_ROUNDED = "its digits and its halves are left to the engine"
# The components of `extract`, and those that count from 1 where the message says ONE.
PARTS: Mapping[str, str] = {
    "YEAR": "year",
    "ISO_YEAR": "isoyear",
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "whole_second",
}
COUNTED: Mapping[str, str] = {
    "QUARTER": "quarter",
    "MONTH": "month",
    "DAY": "day",
    "DAY_OF_YEAR": "doy",
    "MONDAY_DAY_OF_WEEK": "isodow",
    "ISO_WEEK": "week",
}
WRITTEN_PARTS = {PARTS[name]: name for name in ("YEAR", "SECOND")}
ZONED_PARTS = {ours: name for name, ours in (*PARTS.items(), *COUNTED.items())}
_EXTRACTED = (
    f"{', '.join(PARTS)}; counted from ONE: {', '.join(COUNTED)}; of dates and local times only "
    f"{' and '.join(WRITTEN_PARTS.values())} are written, which pyarrow reads"
)

COMPARISON, BOOLEAN = "functions_comparison", "functions_boolean"
ARITHMETIC, STRING, DATETIME = "functions_arithmetic", "functions_string", "functions_datetime"


def _named(file: str, *rows: Row) -> dict[tuple[str, str], Row]:
    return {(file, row.foreign): row for row in rows}


FUNCTIONS: Mapping[tuple[str, str], Row] = {
    **_named(
        COMPARISON,
        *(_both(name, op.value, f"sides of one type; {_NAN}") for name, op in COMPARISONS.items()),
        _both("is_null", "IsNull"),
        Row("is_not_null", "Not(IsNull)", _EXACT, _NO, "written as not(is_null)"),
        _both("is_nan", "x <> x, by the rules of IEEE"),
        Row("is_finite", "And of two comparisons", _EXACT, _NO, "written as the comparisons"),
        _both("coalesce", "coalesce", "arguments of one type"),
    ),
    **_named(
        BOOLEAN,
        _both("and", "And"),
        _both("or", "Or"),
        _both("not", "Not"),
        Row("xor", "<>", _EXACT, _NO, "written as not_equal"),
    ),
    **_named(
        DATETIME,
        *(
            Row(name, COMPARISONS[name].value, _EXACT, _NO, "written as a comparison of any type")
            for name in _ORDERED
        ),
        _both("extract", "extract", _EXTRACTED),
        _both("local_timestamp", "local_time", "a named time zone; pyarrow lacks it"),
        _none("assume_timezone", "times that a zone skips or repeats are left to the engine"),
    ),
    **_named(
        STRING,
        _both("starts_with", "starts_with", f"a constant part, {_CASE}"),
        _both("ends_with", "ends_with", f"a constant part, {_CASE}"),
        _both("contains", "contains", f"a constant part, {_CASE}"),
        _none("concat", "what it makes of NULL is left to the engine"),
    ),
    **_named(
        ARITHMETIC,
        *(_both(name, name, _ERROR) for name in ("add", "subtract", "multiply")),
        _none("divide", "what it makes of zero is left to the engine"),
        _none("negate", "written as 0 less the number"),
        *_nones("sum avg min max std_dev variance", _ROW),
        *_nones("bitwise_and bitwise_or bitwise_xor bitwise_not", "bits are left to the engine"),
        *_nones("abs sign sqrt exp power sin cos tan asin acos atan atan2", _MATH),
        *_nones("sinh cosh tanh asinh acosh atanh", _MATH),
    ),
    **_named("functions_rounding", *_nones("ceil floor round", _ROUNDED)),
    **_named("functions_logarithmic", *_nones("ln log10 log1p log2 logb", _MATH)),
    **_named("functions_aggregate_generic", *_nones("count", _ROW)),
    **_named("arrow:substrait_simple_extension_function", *_nones("first last", _ROW)),
}
