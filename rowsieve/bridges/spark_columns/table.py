"""What a Spark column resolves to, and what each class of it is here: every one is listed.

The classes are Catalyst's, as Spark's analyser leaves them; those that only stand for others are
read as what Spark has put below them. `reads` is from a column to our tree, `writes` the way back,
by the function or method that the note names where it is not the obvious one. Soundness: a row is
EXACT only where rows of awkward data come out the same in the engine, under the conditions of the
note; the reader and the writer refuse outside them.
"""

from __future__ import annotations

from collections.abc import Mapping

from rowsieve.bridges.spark_columns.refused import REFUSED
from rowsieve.bridges.translation import Exactness, Row
from rowsieve.predicate.ir import ComparisonOp

_EXACT, _NO = Exactness.EXACT, Exactness.UNSUPPORTED


def _both(foreign: str, ours: str, note: str = "") -> Row:
    return Row(foreign, ours, _EXACT, _EXACT, note)


def _read(foreign: str, ours: str, note: str) -> Row:
    """Never written: another spelling of the same is."""
    return Row(foreign, ours, _EXACT, _NO, note)


def _stands_for(foreign: str, note: str = "") -> Row:
    return Row(foreign, "what Spark puts for it", _EXACT, _NO, note)


_CASE = "of the letters that Unicode 15 has; written where case is meant in full"
_DOUBLES = "of doubles"
_ERRORS = "where ANSI mode is on; with it off overflow wraps around"
_ZERO = "off ANSI mode, with a guard: division by zero gives NULL"
_AS_TEXT = "written in SQL text"
_CONSTANT = "what follows the text is constant"
_ZONED = "of instants: read in any session, written for the time zone of the session that runs it"
_COUNT = "by a constant number, of dates that stay within five million years"
_NO_ERROR = "only where a place beyond the list gives NULL"
_DIGITS = "; decimals of up to 38 digits in the result"

_SIGNED = "; decimals of up to 34 digits, all that Spark keeps"

COMPARISONS: Mapping[str, ComparisonOp] = {
    "EqualTo": ComparisonOp.EQ,
    "EqualNullSafe": ComparisonOp.NOT_DISTINCT,
    "LessThan": ComparisonOp.LT,
    "LessThanOrEqual": ComparisonOp.LE,
    "GreaterThan": ComparisonOp.GT,
    "GreaterThanOrEqual": ComparisonOp.GE,
}
ARITHMETIC: Mapping[str, str] = {
    "Add": "add",
    "Subtract": "subtract",
    "Multiply": "multiply",
    "Divide": "divide",
    "Remainder": "modulo",
    "IntegralDivide": "divide",
}
EXPRESSIONS: tuple[Row, ...] = (
    _both("AttributeReference", "Column", "as Spark holds it: a UUID and JSON are text there"),
    _both("Literal", "Literal", "of the types that columns may have"),
    _read("Alias", "the expression itself", "a name changes nothing"),
    _both("GetStructField", "FieldAccess"),
    _both("And", "And"),
    _both("Or", "Or"),
    _both("Not", "Not"),
    *(_both(name, op.value) for name, op in COMPARISONS.items()),
    _both("In", "InList", "an empty list is FALSE, even for NULL where ANSI mode is on"),
    _both(
        "InSet",
        "InList",
        "long lists; of a Connect client those of text, float64, dates and whole numbers",
    ),
    _both("IsNull", "IsNull"),
    _read("IsNotNull", "Not(IsNull)", "written as NOT … IS NULL"),
    _both("Like", "Like", "with a constant pattern"),
    _read("ILike", "Like of lower", "with a constant pattern; written as LIKE in lower case"),
    _read("LikeAny", "Or of Like", "written as the LIKEs"),
    _both(
        "Cast",
        "Cast",
        "between the types in CASTS; TRY_CAST too",
    ),
    _both("CaseWhen", "Case"),
    _read("If", "Case", "written as CASE"),
    _read("IsNaN", "IS NOT DISTINCT FROM NaN", "written as <=>"),
    _read("NaNvl", "Case", "written as CASE"),
    _both("Add", "add", _ERRORS + _DIGITS),
    _both("Subtract", "subtract", _ERRORS + _DIGITS),
    _both("Multiply", "multiply", _ERRORS + _DIGITS),
    _both("Divide", "divide", f"of floats and decimals; {_ZERO}"),
    _both("IntegralDivide", "divide", f"of whole numbers; {_ERRORS}"),
    _both("Remainder", "modulo", _ZERO),
    _both("UnaryMinus", "negate", _ERRORS + _SIGNED),
    _both("Abs", "abs", _ERRORS + _SIGNED),
    _both("Floor", "floor", "floats become bigints there, NaN becomes 0; ANSI mode"),
    _both("Ceil", "ceil", "floats become bigints there, NaN becomes 0; ANSI mode"),
    _both("Round", "round", "to 0 or more digits; floats to 15 at most, float32 to none"),
    _both("Coalesce", "coalesce"),
    _both("Greatest", "greatest"),
    _both("Least", "least"),
    _read("NullIfResult", "nullif", "what NULLIF resolves to"),
    _both("Lower", "lower", _CASE),
    _both("Upper", "upper", _CASE),
    _both("Length", "length", "of text and bytes"),
    _both("Concat", "concat_strict", "of text"),
    _both("Substring", "substr", "a constant start from 0 and a constant count"),
    _both("Left", "left", "with a constant count"),
    _both("Right", "right", "with a constant count"),
    _both("StringTrim", "trim", _CONSTANT),
    _both("StringTrimLeft", "ltrim", _CONSTANT),
    _both("StringTrimRight", "rtrim", _CONSTANT),
    _both("StringReplace", "replace", _CONSTANT),
    _both("StringInstr", "position", _CONSTANT),
    _read("StringLocate", "position", "from the start; written as instr"),
    _both("Reverse", "reverse", "of text"),
    _both("StartsWith", "starts_with", "of text"),
    _both("EndsWith", "ends_with", _CONSTANT),
    _both("Contains", "contains", _CONSTANT),
    _both("OctetLength", "octet_length", "of text"),
    _both("BitLength", "bit_length", "of text"),
    _both("Ascii", "ascii"),
    _both("Md5", "md5", "of text"),
    _both("Sha2", "sha256_hex", "of text, with 256 bits"),
    _both("Hex", "hex_digits", "of whole numbers"),
    _both("StringRepeat", "repeat", _CONSTANT),
    _both("StringLPad", "lpad", _CONSTANT),
    _both("StringRPad", "rpad", _CONSTANT),
    _both("SplitPart", "split_part", _CONSTANT),
    _both("ConcatWs", "concat_ws", "a constant separator"),
    _both("StringTranslate", "translate", _CONSTANT),
    _both("Sqrt", "sqrt", _DOUBLES),
    _both("ToDegrees", "degrees", _DOUBLES),
    _both("ToRadians", "radians", _DOUBLES),
    _both("Signum", "sign", _DOUBLES),
    _both("BitwiseAnd", "bit_and"),
    _both("BitwiseOr", "bit_or"),
    _both("BitwiseXor", "bit_xor"),
    _both("ShiftRight", "shift_right", "by a constant count below the bits of the type"),
    _both("ShiftLeft", "shift_left", "of bigints, by a constant count below 64"),
    _both("LastDay", "last_day", "of dates"),
    _both("DateDiff", "days_between", "of dates"),
    _both("UnixMicros", "epoch_us", "of instants"),
    _both("SecondsToTimestamp", "timestamp_seconds", "of whole numbers"),
    _both("MakeDate", "make_date", "where ANSI mode is on"),
    _both("YearOfWeek", "extract isoyear", _ZONED),
    _both("Year", "extract year", _ZONED),
    _both("Quarter", "extract quarter", _ZONED),
    _both("Month", "extract month", _ZONED),
    _both("WeekOfYear", "extract week", _ZONED),
    _both("DayOfMonth", "extract day", _ZONED),
    _both("DayOfYear", "extract doy", _ZONED),
    _both("DayOfWeek", "extract dow", f"1 is Sunday there, 0 here; {_ZONED}"),
    _both("WeekDay", "extract isodow", f"0 is Monday there, 1 here; {_ZONED}"),
    _both("Hour", "extract hour", _ZONED),
    _both("Minute", "extract minute", _ZONED),
    _both("Second", "extract whole_second", _ZONED),
    _both("SecondWithFraction", "extract second", _ZONED),
    _both("TruncTimestamp", "date_trunc", f"a constant unit; {_ZONED}"),
    _read("TruncDate", "date_trunc", "a constant unit from week on; written as date_trunc"),
    _both("DateAdd", "shift", _COUNT),
    _read("DateSub", "shift", _COUNT),
    _both("AddMonths", "shift", _COUNT),
    _read("DateAddYMInterval", "shift", "a constant interval; written as add_months"),
    _both("TimestampAddYMInterval", "shift_timestamp", f"a constant interval; {_ZONED}"),
    _both("TimestampAddInterval", "shift_timestamp", f"a constant interval; {_ZONED}"),
    _both("CurrentTimestamp", "Now"),
    _read("Now", "Now", "written as current_timestamp"),
    _read("CurrentDate", "CAST(Now AS date)", f"written as the cast; {_ZONED}"),
    _read("FromUTCTimestamp", "instant", f"a constant zone; {_AS_TEXT}"),
    _read("ToUTCTimestamp", "instant", f"a constant zone; {_AS_TEXT}"),
    _read("ConvertTimezone", "local_time", f"constant zones, of local times; {_AS_TEXT}"),
    _read("LocalTimestamp", "CAST(Now AS timestamp)", f"written as the cast; {_ZONED}"),
    _both("ArraySize", "list_length", "of lists"),
    _both("Size", "list_length", "of lists and maps; written of maps"),
    _both("Get", "list_element", "a constant place from 0"),
    _read("GetArrayItem", "list_element", f"a constant place from 0; {_NO_ERROR}"),
    _read("ElementAt", "list_element, map_value", f"a constant place from 1; {_NO_ERROR}"),
    _both("GetMapValue", "map_value", "a constant key"),
    _read("UnaryPositive", "the expression itself", "a sign that changes nothing"),
    _stands_for("With", "expressions that are named once"),
    _stands_for("CommonExpressionRef"),
    _stands_for("NullIf"),
    _stands_for("NullIfZero"),
    _stands_for("ZeroIfNull"),
    _stands_for("Nvl"),
    _stands_for("Nvl2"),
    _stands_for("EqualNull"),
    _stands_for("Between"),
    _stands_for("TryAdd", "whole numbers that overflow give NULL there: refused"),
    _stands_for("TrySubtract", "whole numbers that overflow give NULL there: refused"),
    _stands_for("TryMultiply", "whole numbers that overflow give NULL there: refused"),
    _stands_for("TryDivide"),
    _stands_for("TryMod"),
    _stands_for("Extract"),
    _stands_for("StringTrimBoth"),
    _stands_for("TryElementAt"),
    _stands_for("DatetimeSub"),
    *(Row(name, "", _NO, _NO, reason) for reason, names in REFUSED.items() for name in names),
)
ROWS: Mapping[str, Row] = {row.foreign: row for row in EXPRESSIONS}
UTC = frozenset({"UTC", "Z", "ETC/UTC", "GMT", "+00:00", "UTC+00:00"})
