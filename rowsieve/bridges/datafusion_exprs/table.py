"""All constructs of DataFusion's expressions, with their counterparts here.

`reads` is from `datafusion.Expr` to our tree, `writes` the reverse; both go through text of the SQL
dialect, which defines the rules. Functions come from the shared table of functions.

Soundness: a construct that is not in a table is rejected by name, or by the parser of the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rowsieve.bridges.functions import TABLE
from rowsieve.bridges.translation import Exactness, Row
from rowsieve.predicate.ir import ComparisonOp

_EXACT, _NO = Exactness.EXACT, Exactness.UNSUPPORTED


def _both(foreign: str, ours: str, note: str = "") -> Row:
    return Row(foreign, ours, _EXACT, _EXACT, note)


def _read(foreign: str, ours: str, note: str) -> Row:
    """Add a construct that is read; writing uses another spelling."""
    return Row(foreign, ours, _EXACT, _NO, note)


def _none(foreign: str, note: str) -> Row:
    return Row(foreign, "", _NO, _NO, note)


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
        exact = _EXACT if spelling.cases else _NO
        reads = _NO if spelling.write_only else exact
        note = "; ".join(filter(None, (_cases(name), spelling.write_only)))
        yield Row(spelling.templates[0], name, reads, exact, note)


_QUERY = "a filter over one table holds no query"
_NO_ROW = "it is no value of one row"
_SIMILAR = "a regular expression there, and SQL's own pattern elsewhere; write ~"
_NO_NODE = "there is no such operation here"

VARIANTS: tuple[Row, ...] = (
    _both("Column", "Column", "a qualifier is dropped: there is one table"),
    _both("Literal", "Literal", "of the types that columns may have"),
    _read("Alias", "the expression itself", "a name changes nothing"),
    _both("BinaryExpr", "", "by its operator"),
    _both("ScalarFunction", "", "by its name"),
    _both("Not", "Not"),
    _both("IsNull", "IsNull"),
    _both("InList", "InList", "a list of constants; floats of other signs of zero get a guard"),
    _both("Case", "Case"),
    _both("Cast", "Cast", "as in SQL text; to a named zone as AT TIME ZONE"),
    _read("TryCast", "Cast(try_)", "of text; of others where no value can fail"),
    _both("IsNotNull", "Not(IsNull)"),
    _both("IsTrue", "IS NOT DISTINCT FROM TRUE"),
    _both("IsFalse", "IS NOT DISTINCT FROM FALSE"),
    _both("IsNotTrue", "IS DISTINCT FROM TRUE"),
    _both("IsNotFalse", "IS DISTINCT FROM FALSE"),
    _read("IsUnknown", "IsNull", "written as IS NULL"),
    _read("IsNotUnknown", "Not(IsNull)", "written as IS NOT NULL"),
    _read("Between", "And of two comparisons", "written as the two comparisons"),
    _both("Like", "Like", "a constant pattern"),
    _both("Negative", "negate", "not of bits; of floats where the sign of NaN does not show"),
    _none("RLike", _SIMILAR),
    _none("SimilarTo", _SIMILAR),
    _none("ILike", "never shown: an ILIKE is a Like whose operator says so"),
    _none("HigherOrderFunction", "functions of functions have no counterpart here"),
    _none("Lambda", "functions of functions have no counterpart here"),
    _none("LambdaVariable", "functions of functions have no counterpart here"),
    _none("Placeholder", "a parameter has no value yet; pass the value"),
    _none("ScalarVariable", "a session's variable is unknown here; pass the value"),
    _none("Exists", _QUERY),
    _none("InSubquery", _QUERY),
    _none("ScalarSubquery", _QUERY),
    _none("AggregateFunction", _NO_ROW),
    _none("WindowExpr", _NO_ROW),
    _none("GroupingSet", _NO_ROW),
    _none("Unnest", _NO_ROW),
    _none("UnnestExpr", _NO_ROW),
    _none("Distinct", _NO_ROW),
    _none("SortExpr", _NO_ROW),
)

_PATTERNS = "constant patterns that RE2 shares"
_RANK = "equal types, whole numbers, decimals, dates and timestamps, or a constant that fits"
_NAN = "of floats: written with nanvl around it, because NaN of either sign may come out"
_ARRAYS = "containment of lists and JSON has no counterpart here"

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
    *(_both(name, op.value, _RANK) for name, op in COMPARISONS.items()),
    _both("AND", "And"),
    _both("OR", "Or"),
    *(_both(name, ours, _NAN) for name, ours in ARITHMETIC.items()),
    _both("||", "concat_strict", "of text"),
    _both("~", "regex_matches", _PATTERNS),
    *(_read(name, "regex_matches", _PATTERNS) for name in ("~*", "!~", "!~*")),
    *(_none(name, "written as the variant Like") for name in ("~~", "~~*", "!~~", "!~~*")),
    *(_both(name, ours, _cases(ours)) for name, ours in BITS.items()),
    *(_none(name, _ARRAYS) for name in ("@>", "<@", "?", "?|", "?&", "@?", "#-", "@@")),
    *(_none(name, "JSON has no counterpart in DataFusion") for name in ("->", "->>", "#>", "#>>")),
    *(_none(name, _NO_NODE) for name in ("DIV", ":")),
)

FUNCTIONS: tuple[Row, ...] = (
    *_functions(),
    _both("date_trunc", "date_trunc", _cases("date_trunc")),
    _both("date_part", "extract", _cases("extract")),
    _both("to_local_time", "local_time", "of AT TIME ZONE 'Area/City'"),
    _both("get_field", "FieldAccess", "a constant name; written with a guard for a NULL struct"),
    _both("array_element", "list_element", _cases("list_element")),
    _both("array_has", "InList", "a constant list without NULL; long lists are written so"),
    _both("now", "Now"),
    _read("current_date", "CAST(Now AS date)", "written as the cast"),
)
VARIANT_ROWS: Mapping[str, Row] = {row.foreign: row for row in VARIANTS}
OPERATOR_ROWS: Mapping[str, Row] = {row.foreign: row for row in OPERATORS}
