"""All constructs of DataFusion's expressions, with their counterparts here.

`reads` is from `datafusion.Expr` to our tree, `writes` the reverse; both go through text of the SQL
dialect, which defines the rules. Functions come from the shared table of functions.

Soundness: a construct that is not in a table is rejected by name, or by the parser of the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rowsieve.bridges.functions import TABLE
from rowsieve.bridges.rows import both, reads, refused, refused_all
from rowsieve.bridges.translation import Exactness, Row
from rowsieve.predicate.ir import ComparisonOp


def _cases(name: str) -> str:
    """Return the condition on the arguments, as in the table of functions."""
    spelling = TABLE[name].spelling("datafusion")
    assert spelling is not None
    return "; ".join(case.text for case in spelling.cases) or spelling.reason


def _functions() -> Iterator[Row]:
    """Return the functions with a spelling of their own in the table."""
    for name, row in TABLE.items():
        spelling = row.spelling("datafusion")
        if spelling is None or name in {**BITS, **ARITHMETIC}.values() or not spelling.templates:
            continue
        exact = Exactness.EXACT if spelling.cases else Exactness.UNSUPPORTED
        read = Exactness.UNSUPPORTED if spelling.write_only else exact
        note = "; ".join(filter(None, (_cases(name), spelling.write_only)))
        yield Row(spelling.templates[0], name, read, exact, note)


_QUERY = "a filter cannot contain a subquery"
_NO_ROW = "it does not compute a value for each row"
_SIMILAR = "a regular expression in DataFusion, and SQL's own pattern elsewhere; write ~"
_NO_NODE = "Rowsieve has no such operation"

VARIANTS: tuple[Row, ...] = (
    both("Column", "Column", "a qualifier is dropped, because there is one table"),
    both("Literal", "Literal", "of the types that columns may have"),
    reads("Alias", "the expression itself", "a name changes nothing"),
    both("BinaryExpr", "", "by its operator"),
    both("ScalarFunction", "", "by its name"),
    both("Not", "Not"),
    both("IsNull", "IsNull"),
    both("InList", "InList", "a list of constants; zeros of floats get a guard"),
    both("Case", "Case"),
    both("Cast", "Cast", "as in SQL text; to a named zone as AT TIME ZONE"),
    reads("TryCast", "Cast(try_)", "text; other types where no value can fail"),
    both("IsNotNull", "Not(IsNull)"),
    both("IsTrue", "IS NOT DISTINCT FROM TRUE"),
    both("IsFalse", "IS NOT DISTINCT FROM FALSE"),
    both("IsNotTrue", "IS DISTINCT FROM TRUE"),
    both("IsNotFalse", "IS DISTINCT FROM FALSE"),
    reads("IsUnknown", "IsNull", "written as IS NULL"),
    reads("IsNotUnknown", "Not(IsNull)", "written as IS NOT NULL"),
    reads("Between", "And of two comparisons", "written as the two comparisons"),
    both("Like", "Like", "a constant pattern"),
    both("Negative", "negate", "not bitwise; floats only where the sign of NaN cannot matter"),
    refused("RLike", _SIMILAR),
    refused("SimilarTo", _SIMILAR),
    refused("ILike", "never produced: ILIKE is a Like with another operator"),
    refused("HigherOrderFunction", "higher-order functions have no counterpart in Rowsieve"),
    refused("Lambda", "higher-order functions have no counterpart in Rowsieve"),
    refused("LambdaVariable", "higher-order functions have no counterpart in Rowsieve"),
    refused("Placeholder", "a parameter has no value yet; pass the value"),
    refused("ScalarVariable", "a session's variable is unknown to Rowsieve; pass the value"),
    refused("Exists", _QUERY),
    refused("InSubquery", _QUERY),
    refused("ScalarSubquery", _QUERY),
    *refused_all(
        "AggregateFunction WindowExpr GroupingSet Unnest UnnestExpr Distinct SortExpr", _NO_ROW
    ),
)

_PATTERNS = "constant patterns that RE2 shares"
_RANK = "equal types, whole numbers, decimals, dates and timestamps, or a constant that fits"
_NAN = "floats are wrapped in nanvl, because the result may be a NaN of either sign"
_ARRAYS = "containment of lists and JSON has no counterpart in Rowsieve"

COMPARISONS: Mapping[str, ComparisonOp] = {
    "=": ComparisonOp.EQ,
    "!=": ComparisonOp.NE,
    "<": ComparisonOp.LT,
    "<=": ComparisonOp.LE,
    ">": ComparisonOp.GT,
    ">=": ComparisonOp.GE,
    "IS DISTINCT FROM": ComparisonOp.DISTINCT,
    "IS NOT DISTINCT FROM": ComparisonOp.NOT_DISTINCT,
}
ARITHMETIC: Mapping[str, str] = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "%": "modulo",
}
BITS: Mapping[str, str] = {
    "&": "bit_and",
    "|": "bit_or",
    "BIT_XOR": "bit_xor",
    "<<": "shift_left",
    ">>": "shift_right",
}
OPERATORS: tuple[Row, ...] = (
    *(both(name, op.value, _RANK) for name, op in COMPARISONS.items()),
    both("AND", "And"),
    both("OR", "Or"),
    *(both(name, ours, _NAN) for name, ours in ARITHMETIC.items()),
    both("||", "concat_strict", "of text"),
    both("~", "regex_matches", _PATTERNS),
    *(reads(name, "regex_matches", _PATTERNS) for name in ("~*", "!~", "!~*")),
    *(refused(name, "written as the variant Like") for name in ("~~", "~~*", "!~~", "!~~*")),
    *(both(name, ours, _cases(ours)) for name, ours in BITS.items()),
    *(refused(name, _ARRAYS) for name in ("@>", "<@", "?", "?|", "?&", "@?", "#-", "@@")),
    *(
        refused(name, "JSON has no counterpart in DataFusion")
        for name in ("->", "->>", "#>", "#>>")
    ),
    *(refused(name, _NO_NODE) for name in ("DIV", ":")),
)

FUNCTIONS: tuple[Row, ...] = (
    *_functions(),
    both("date_trunc", "date_trunc", _cases("date_trunc")),
    both("date_part", "extract", _cases("extract")),
    both("to_local_time", "local_time", "of AT TIME ZONE 'Area/City'"),
    both("get_field", "FieldAccess", "a constant name; written with a guard for a NULL struct"),
    both("array_element", "list_element", _cases("list_element")),
    both(
        "array_has", "InList", "a constant list without NULL; long lists are written in this form"
    ),
    both("now", "Now"),
    reads("current_date", "CAST(Now AS date)", "written as the cast"),
)
VARIANT_ROWS: Mapping[str, Row] = {row.foreign: row for row in VARIANTS}
OPERATOR_ROWS: Mapping[str, Row] = {row.foreign: row for row in OPERATORS}
