"""All classes of pyiceberg's expressions, with their counterparts here."""

from __future__ import annotations

from collections.abc import Mapping

from rowsieve.bridges.rows import both, reads, refused
from rowsieve.bridges.translation import Row
from rowsieve.predicate.ir import ComparisonOp
from rowsieve.types import logical

_NULL = "TRUE for NULL in the evaluator; written together with NotNull"
_NOTES = {"NotEqualTo": _NULL}
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
    both("AlwaysTrue", "TRUE"),
    both("AlwaysFalse", "FALSE"),
    both("And", "And"),
    both("Or", "Or"),
    reads("Not", "Not", "pushed down into the comparisons"),
)
PREDICATES: tuple[Row, ...] = (
    both("IsNull", "IsNull"),
    both("NotNull", "Not(IsNull)"),
    both("IsNaN", "x <> x, by the rules of IEEE", "FALSE if x is not a float"),
    both("NotNaN", "x = x, by the rules of IEEE", _NULL),
    *(both(name, op.value, _NOTES.get(name, "")) for name, op in COMPARISONS.items()),
    both("In", "InList", "FALSE for NULL; a scan compares zeros of floats by their bits"),
    both("NotIn", "Not(InList)", "TRUE for NULL; written together with NotNull"),
    both("StartsWith", "starts_with", "and LIKE 'text%'"),
    both("NotStartsWith", "Not(starts_with)", _NULL),
)
BOUND: tuple[Row, ...] = tuple(reads(f"Bound{row.foreign}", row.ours, _BOUND) for row in PREDICATES)
TERMS: tuple[Row, ...] = (
    both("Reference", "Column, FieldAccess", "members of structs by dots"),
    reads("BoundReference", "Column", "not of a struct field, whose path it does not keep"),
)
_HELD = "Boolean Long Double Decimal String Binary Date Time Timestamp UUID"
_LIMITS = "what lies beyond a type is decided when it is bound"
LITERALS: tuple[Row, ...] = (
    *(both(f"{name}Literal", "Literal") for name in _HELD.split()),
    reads("FloatLiteral", "Literal", "written as a DoubleLiteral, which pyiceberg converts"),
    refused("FixedLiteral", "bytes of fixed length have no type in Rowsieve"),
    *(
        reads(f"{kind}{end}", "TRUE or FALSE", f"{_LIMITS}; refused in lists")
        for kind in ("Int", "Long", "Float")
        for end in ("AboveMax", "BelowMin")
    ),
)
ROWS: Mapping[str, Row] = {
    row.foreign: row for row in (*JUNCTIONS, *PREDICATES, *BOUND, *TERMS, *LITERALS)
}
# pyiceberg's classes of types; those of Decimal and Struct have parameters.
TYPES: Mapping[logical.LogicalType, str] = {
    logical.Bool(): "BooleanType",
    **{logical.Int(bits): "IntegerType" for bits in (8, 16, 32)},
    **{logical.Int(bits, signed=False): "IntegerType" for bits in (8, 16)},
    **dict.fromkeys((logical.Int(64), logical.Int(32, signed=False)), "LongType"),
    logical.Float(32): "FloatType",
    logical.Float(64): "DoubleType",
    logical.String(): "StringType",
    logical.Binary(): "BinaryType",
    logical.Date(): "DateType",
    logical.Time(): "TimeType",
    logical.Timestamp(): "TimestampType",
    logical.Timestamp(utc=True): "TimestamptzType",
    logical.Uuid(): "UUIDType",
}
# Classes of literals that hold our stored values.
LITERALS_OF: Mapping[type[logical.LogicalType], str] = {
    logical.Date: "DateLiteral",
    logical.Time: "TimeLiteral",
    logical.Timestamp: "TimestampLiteral",
    logical.Uuid: "UUIDLiteral",
}
