"""What DataFusion's expressions consist of, and what each part is here: every one is listed.

`reads` is from `datafusion.Expr` to our tree, `writes` the way back. Soundness: a row is EXACT only
where rows of awkward data come out the same in the engine; the note says under which condition, and
the reader and the writer refuse outside it. What is not in a table is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping

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


_QUERY = "a filter over one table holds no query"
_NO_ROW = "it is no value of one row"
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
    _both("Cast", "Cast", "between the types in CASTS"),
    _read("TryCast", "Cast(try_)", "never written: it may fail on other values than ours"),
    _read("IsNotNull", "Not(IsNull)", "written as NOT … IS NULL"),
    _read("IsTrue", "IS NOT DISTINCT FROM TRUE", "written as COALESCE"),
    _read("IsFalse", "IS NOT DISTINCT FROM FALSE", "written as COALESCE"),
    _read("IsNotTrue", "IS DISTINCT FROM TRUE", "written as COALESCE"),
    _read("IsNotFalse", "IS DISTINCT FROM FALSE", "written as COALESCE"),
    _read("IsUnknown", "IsNull", "written as IS NULL"),
    _read("IsNotUnknown", "Not(IsNull)", "written as NOT … IS NULL"),
    _read("Between", "And of two comparisons", "written as the two comparisons"),
    _read("Like", "Like", "a constant pattern; written as regexp_like, Python has no LIKE"),
    _read("Negative", "negate", "not of floats, where the sign of NaN shows; written as 0 - x"),
    _none("RLike", "regular expressions have no counterpart here"),
    _none("SimilarTo", "regular expressions have no counterpart here"),
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

_RANK = "equal types, whole numbers, decimals, dates and timestamps, or a constant that fits"
_NAN = (
    "of floats: read only beside a finite constant other than 0, because NaN of either sign may "
    "come out; written with nanvl around it"
)
_SHIFTS = "shifts have no counterpart here: the width of their result hangs on literals"
_BITS = "of signed numbers; never written: Python's operators are taken by AND and OR"
_REGEX = "regular expressions have no counterpart here"
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
BITS: Mapping[str, str] = {"&": "bit_and", "|": "bit_or", "BIT_XOR": "bit_xor"}
OPERATORS: tuple[Row, ...] = (
    *(_both(name, op.value, _RANK) for name, op in COMPARISONS.items()),
    _both("AND", "And"),
    _both("OR", "Or"),
    *(_both(name, ours, _NAN) for name, ours in ARITHMETIC.items()),
    _both("||", "concat_strict", "of text"),
    *(_none(name, _REGEX) for name in ("~", "~*", "!~", "!~*")),
    *(_none(name, "written as the variant Like") for name in ("~~", "~~*", "!~~", "!~~*")),
    *(_read(name, ours, _BITS) for name, ours in BITS.items()),
    *(_none(name, _SHIFTS) for name in ("<<", ">>")),
    *(_none(name, _ARRAYS) for name in ("@>", "<@", "?", "?|", "?&", "@?", "#-", "@@")),
    *(_none(name, "JSON has no counterpart in DataFusion") for name in ("->", "->>", "#>", "#>>")),
    *(_none(name, _NO_NODE) for name in ("DIV", ":")),
)

_TEXT = "of text"
_COUNTED = "of text, with constants"
_DOUBLES = "of float64"
_SAME = "arguments of one type"
FUNCTIONS: tuple[Row, ...] = (
    _both("abs", "abs", "of floats; the least whole number has none"),
    _both("floor", "floor", "of floats"),
    _both("ceil", "ceil", "of floats"),
    _both("round", "round", "of floats, without digits"),
    _both("sqrt", "sqrt", f"{_DOUBLES}; a negative number fails"),
    _both("degrees", "degrees", _DOUBLES),
    _both("radians", "radians", _DOUBLES),
    _both("signum", "sign", _DOUBLES),
    _both("isnan", "is_nan", "of floats"),
    _both("octet_length", "octet_length", _TEXT),
    _both("bit_length", "bit_length", _TEXT),
    _both("ascii", "ascii", _TEXT),
    _both("md5", "md5", _TEXT),
    _both("translate", "translate", _TEXT),
    _both("repeat", "repeat", _COUNTED),
    _both("lpad", "lpad", _COUNTED),
    _both("rpad", "rpad", _COUNTED),
    _both("split_part", "split_part", _COUNTED),
    _both("concat_ws", "concat_ws", "of text, with a constant separator"),
    _both("lower", "lower", _TEXT),
    _both("upper", "upper", _TEXT),
    _both("character_length", "length", _TEXT),
    _both("starts_with", "starts_with", _TEXT),
    _both("ends_with", "ends_with", _TEXT),
    _both("contains", "contains", _TEXT),
    _both("concat", "concat", _TEXT),
    _both("replace", "replace", _TEXT),
    _both("strpos", "position", _TEXT),
    _both("reverse", "reverse", _TEXT),
    _both("substr", "substr", "a constant start of 1 or more, a constant count of 0 or more"),
    _both("left", "left", "with a constant count"),
    _both("right", "right", "with a constant count"),
    _both("btrim", "trim", _TEXT),
    _both("ltrim", "ltrim", _TEXT),
    _both("rtrim", "rtrim", _TEXT),
    _both("coalesce", "coalesce", _SAME),
    _both("nullif", "nullif", f"{_SAME}, not floats"),
    _both("greatest", "greatest", f"{_SAME}, not floats"),
    _both("least", "least", f"{_SAME}, not floats"),
    _both("cardinality", "list_length", "of a list"),
    _both("array_element", "list_element", "a constant place from 1"),
    _both("get_field", "FieldAccess", "a constant name; written with a guard for a NULL struct"),
    _both("array_has", "InList", "a constant list without NULL; long lists are written so"),
    _both("date_trunc", "date_trunc", "of timestamps; the units in UNITS"),
    _both("date_part", "extract", "the parts in PARTS"),
    _both("now", "Now"),
    _read("current_date", "CAST(Now AS date)", "written as the cast"),
)
UNITS = frozenset({"second", "minute", "hour", "day", "week", "month", "quarter", "year"})
PARTS = frozenset(
    {"year", "quarter", "month", "day", "hour", "minute", "doy", "week"}
    | {"dow", "isodow", "isoyear"}
)
REALS = frozenset({"sqrt", "degrees", "radians", "sign"})
COUNTED = frozenset(row.ours for row in FUNCTIONS if row.note == _COUNTED)
TEXT_FUNCTIONS = frozenset(row.ours for row in FUNCTIONS if row.note == _TEXT) | {"substr"}
FLOAT_FUNCTIONS = frozenset({"floor", "ceil", "round"})
SAME_TYPES = frozenset({"coalesce", "nullif", "greatest", "least"})
NO_FLOATS = frozenset({"nullif", "greatest", "least"})
VARIANT_ROWS: Mapping[str, Row] = {row.foreign: row for row in VARIANTS}
OPERATOR_ROWS: Mapping[str, Row] = {row.foreign: row for row in OPERATORS}
FUNCTION_ROWS: Mapping[str, Row] = {row.foreign: row for row in FUNCTIONS}
FUNCTION_NAMES: Mapping[str, str] = {row.ours: row.foreign for row in FUNCTIONS}
# Kinds of types between which a cast gives the same value or fails alike.
CASTS = frozenset(
    {
        ("Int", "Int"),
        ("Int", "Float"),
        ("Int", "Decimal"),
        ("Int", "String"),
        ("Float", "Float"),
        ("Date", "String"),
        ("Date", "Timestamp"),
        ("Timestamp", "Date"),
        ("Timestamp", "Timestamp"),
    }
)
