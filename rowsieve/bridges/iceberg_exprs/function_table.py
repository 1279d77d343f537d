"""The classes of pyiceberg's expressions, all of them, and what each is here."""

from __future__ import annotations

from collections.abc import Mapping

from rowsieve.bridges.translation import Exactness, Row
from rowsieve.predicate.ir import ComparisonOp
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Float,
    Int,
    LogicalType,
    String,
    Time,
    Timestamp,
    Uuid,
)

_EXACT, _NO = Exactness.EXACT, Exactness.UNSUPPORTED
_NULL = "TRUE for NULL in the evaluator; written together with NotNull"
_BOUND = "the column by its name; written unbound"

COMPARISONS: Mapping[str, ComparisonOp] = {
    "EqualTo": ComparisonOp.EQ,
    "NotEqualTo": ComparisonOp.NE,
    "LessThan": ComparisonOp.LT,
    "LessThanOrEqual": ComparisonOp.LE,
    "GreaterThan": ComparisonOp.GT,
    "GreaterThanOrEqual": ComparisonOp.GE,
}
JUNCTIONS: tuple[Row, ...] = (
    Row("AlwaysTrue", "TRUE", _EXACT, _EXACT),
    Row("AlwaysFalse", "FALSE", _EXACT, _EXACT),
    Row("And", "And", _EXACT, _EXACT),
    Row("Or", "Or", _EXACT, _EXACT),
    Row("Not", "Not", _EXACT, _NO, "pushed down into the comparisons"),
)
PREDICATES: tuple[Row, ...] = (
    Row("IsNull", "IsNull", _EXACT, _EXACT),
    Row("NotNull", "Not(IsNull)", _EXACT, _EXACT),
    Row("IsNaN", "x <> x, by the rules of IEEE", _EXACT, _EXACT, "FALSE if x is not a float"),
    Row("NotNaN", "x = x, by the rules of IEEE", _EXACT, _EXACT, _NULL),
    *(
        Row(name, op.value, _EXACT, _EXACT, _NULL if op is ComparisonOp.NE else "")
        for name, op in COMPARISONS.items()
    ),
    Row(
        "In",
        "InList",
        _EXACT,
        _EXACT,
        "FALSE for NULL; a scan compares zeros of floats by their bits",
    ),
    Row("NotIn", "Not(InList)", _EXACT, _EXACT, "TRUE for NULL; written together with NotNull"),
    Row("StartsWith", "starts_with", _EXACT, _EXACT, "and LIKE 'text%'"),
    Row("NotStartsWith", "Not(starts_with)", _EXACT, _EXACT, _NULL),
)
BOUND: tuple[Row, ...] = tuple(
    Row(f"Bound{row.foreign}", row.ours, row.reads, _NO, _BOUND) for row in PREDICATES
)
TERMS: tuple[Row, ...] = (
    Row("Reference", "Column, FieldAccess", _EXACT, _EXACT, "members of structs by dots"),
    Row(
        "BoundReference",
        "Column",
        _EXACT,
        _NO,
        "not of a struct field, whose path it does not keep",
    ),
)
_LIMITS = "what lies beyond a type is decided when it is bound"
LITERALS: tuple[Row, ...] = (
    *(
        Row(f"{name}Literal", "Literal", _EXACT, _EXACT)
        for name in ("Boolean", "Long", "Double", "Decimal", "String", "Binary")
    ),
    *(
        Row(f"{name}Literal", "Literal", _EXACT, _EXACT)
        for name in ("Date", "Time", "Timestamp", "UUID")
    ),
    Row(
        "FloatLiteral",
        "Literal",
        _EXACT,
        _NO,
        "written as a DoubleLiteral, which pyiceberg converts",
    ),
    Row("FixedLiteral", "", _NO, _NO, "bytes of fixed length have no type in Rowsieve"),
    *(
        Row(f"{kind}{end}", "TRUE or FALSE", _EXACT, _NO, f"{_LIMITS}; refused in lists")
        for kind in ("Int", "Long", "Float")
        for end in ("AboveMax", "BelowMin")
    ),
)
ROWS: Mapping[str, Row] = {
    row.foreign: row for row in (*JUNCTIONS, *PREDICATES, *BOUND, *TERMS, *LITERALS)
}
# Types of columns by the classes of pyiceberg's; Decimal and Struct have parameters.
TYPES: Mapping[LogicalType, str] = {
    Bool(): "BooleanType",
    **{Int(bits): "IntegerType" for bits in (8, 16, 32)},
    **{Int(bits, signed=False): "IntegerType" for bits in (8, 16)},
    **dict.fromkeys((Int(64), Int(32, signed=False)), "LongType"),
    Float(32): "FloatType",
    Float(64): "DoubleType",
    String(): "StringType",
    Binary(): "BinaryType",
    Date(): "DateType",
    Time(): "TimeType",
    Timestamp(): "TimestampType",
    Timestamp(utc=True): "TimestamptzType",
    Uuid(): "UUIDType",
}
