"""All constructs of Substrait expressions, with their counterparts here.

Functions are those that pyarrow reads and writes.

Soundness: a function has the NULL rule of its definition and the NaN rule of pyarrow (IEEE 754); a
call whose options say otherwise is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from rowsieve.bridges.functions.substrait import (
    ARITHMETIC,
    BOOLEAN,
    COMPARISON,
    DATETIME,
    ROWS,
    STRING,
)
from rowsieve.bridges.rows import both, reads, refused, refused_all
from rowsieve.bridges.translation import Row
from rowsieve.predicate.ir import ComparisonOp

_QUERY = "a filter cannot contain a subquery"
_LAMBDA = "higher-order functions have no counterpart in Rowsieve"
# The numbers of the fields of `Expression`.
EXPRESSIONS: Mapping[int, Row] = {
    1: both("literal", "Literal", "by its type"),
    2: both("selection", "Column, FieldAccess", "fields of the input by position"),
    3: both("scalar_function", "", "by its name"),
    6: both("if_then", "Case", "branches of one type, conditions that are never NULL (coalesce)"),
    8: both("singular_or_list", "InList", "constants of one type"),
    5: refused("window_function", "it does not compute a value for each row"),
    7: refused("switch_expression", "write if_then"),
    9: refused("multi_or_list", "write OR of comparisons"),
    10: refused("enum", "an argument without a value"),
    11: refused("cast", "its result for values out of range depends on the engine"),
    12: refused("subquery", _QUERY),
    13: refused("nested", "structs, lists and maps cannot be constructed here"),
    14: refused("dynamic_parameter", "a parameter has no value yet; pass the value"),
    15: refused("lambda", _LAMBDA),
    16: refused("lambda_invocation", _LAMBDA),
    17: refused("execution_context_variable", "a session's variable is unknown to Rowsieve"),
    18: refused("detached_expression_ordinal", "the expression is outside of this message"),
    19: refused("named_lambda_reference", _LAMBDA),
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
_ROW, _MATH = "it does not compute a value for each row", "it has no counterpart in Rowsieve"
_ROUNDED = "its digits and the rounding of halves depend on the engine"
# The components of `extract`, and those that count from 1 with the option ONE.
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


def _named(file: str, *rows: Row) -> dict[tuple[str, str], Row]:
    return {(file, row.foreign): row for row in rows}


def _of(file: str) -> list[Row]:
    """Return the rows of the table of functions."""
    return [both(row.name, row.name, row.text) for row in ROWS.values() if row.file == file]


FUNCTIONS: Mapping[tuple[str, str], Row] = {
    **_named(
        COMPARISON,
        *(both(name, op.value, f"sides of one type; {_NAN}") for name, op in COMPARISONS.items()),
        both("is_null", "IsNull"),
        reads("is_not_null", "Not(IsNull)", "written as not(is_null)"),
        both("is_nan", "x <> x, by the rules of IEEE"),
        reads("is_finite", "And of two comparisons", "written as the comparisons"),
        *_of(COMPARISON),
    ),
    **_named(
        BOOLEAN,
        both("and", "And"),
        both("or", "Or"),
        both("not", "Not"),
        reads("xor", "<>", "written as not_equal"),
    ),
    **_named(
        DATETIME,
        *(
            reads(name, COMPARISONS[name].value, "written as a comparison of any type")
            for name in _ORDERED
        ),
        both("extract", "extract", _EXTRACTED),
        both("local_timestamp", "local_time", "a named time zone; pyarrow lacks it"),
        refused("assume_timezone", "local times that a zone skips or repeats depend on the engine"),
    ),
    **_named(
        STRING,
        *_of(STRING),
        refused("concat", "its result for NULL depends on the engine"),
    ),
    **_named(
        ARITHMETIC,
        *_of(ARITHMETIC),
        refused("divide", "its result for zero depends on the engine"),
        refused("negate", "written as 0 - x"),
        *refused_all("sum avg min max std_dev variance", _ROW),
        *refused_all(
            "bitwise_and bitwise_or bitwise_xor bitwise_not",
            "results of bitwise functions depend on the engine",
        ),
        *refused_all("abs sign sqrt exp power sin cos tan asin acos atan atan2", _MATH),
        *refused_all("sinh cosh tanh asinh acosh atanh", _MATH),
    ),
    **_named("functions_rounding", *refused_all("ceil floor round", _ROUNDED)),
    **_named("functions_logarithmic", *refused_all("ln log10 log1p log2 logb", _MATH)),
    **_named("functions_aggregate_generic", *refused_all("count", _ROW)),
    **_named("arrow:substrait_simple_extension_function", *refused_all("first last", _ROW)),
}
