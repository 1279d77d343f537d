"""All constructs of Iceberg's expressions as JSON, with their counterparts here.

Source: the Expressions Spec of Apache Iceberg (`format/expressions-spec.md`, August 2026), whose
appendix B has the older, term-based forms too.
"""

from __future__ import annotations

from collections.abc import Mapping

from rowsieve.bridges.rows import both, reads, refused
from rowsieve.bridges.translation import Row
from rowsieve.predicate.ir import ComparisonOp

COMPARISONS: Mapping[str, ComparisonOp] = {
    "eq": ComparisonOp.EQ,
    "not-eq": ComparisonOp.NE,
    "lt": ComparisonOp.LT,
    "lt-eq": ComparisonOp.LE,
    "gt": ComparisonOp.GT,
    "gt-eq": ComparisonOp.GE,
}
_BY_OP = {op: name for name, op in COMPARISONS.items()}
_NULL = "TRUE for NULL; written together with not-null"
_NOTES = {"eq": "TRUE for two columns that are both NULL, or both NaN", "not-eq": _NULL}
PREDICATES: tuple[Row, ...] = (
    both("true", "TRUE", "a JSON boolean"),
    both("false", "FALSE", "a JSON boolean"),
    both("and", "And"),
    both("or", "Or"),
    reads("not", "Not", "pushed down into the comparisons"),
    both("is-null", "IsNull"),
    both("not-null", "Not(IsNull)"),
    both("is-nan", "x <> x, by the rules of IEEE", "of float and double only"),
    both("not-nan", "x = x, by the rules of IEEE", "TRUE for NULL; written with not-null"),
    *(both(name, op.value, _NOTES.get(name, "FALSE for NULL")) for name, op in COMPARISONS.items()),
    both("in", "InList", "FALSE for NULL; -0.0 and 0.0 are equal"),
    both("not-in", "Not(InList)", _NULL),
    both("starts-with", "starts_with", "of text only; and LIKE 'text%'"),
    both("not-starts-with", "Not(starts_with)", _NULL),
)
_RANGE = "as a range of the column"
_TABLE = "functions of a catalog are not loaded"
TERMS: tuple[Row, ...] = (
    both("name", "Column, FieldAccess", "fields of structs by dots"),
    reads("reference by name", "Column, FieldAccess", "written between two columns"),
    both("reference by id", "Column, FieldAccess", "with `ids=`"),
    reads("identity", "Column"),
    *(reads(name, "range", _RANGE) for name in ("year", "month", "day", "hour")),
    reads("truncate[W]", "range", "of integers, decimals and text; " + _RANGE),
    refused("bucket[N]", "no engine here computes the hash; its test for NULL is read"),
    refused("void", "it is NULL for every value"),
    refused("if_else", "compare the values that it chooses from"),
    refused("sql_functions", "its functions have no specified meaning"),
    refused("any other function", _TABLE),
)
_TEXT = "JSON string"
LITERALS: tuple[Row, ...] = (
    both("boolean", "Bool", "JSON boolean"),
    both("int, long", "Int", "JSON integer"),
    both("float, double", "Float", "JSON number; not NaN; written unless infinite"),
    both("decimal(P, S)", "Decimal", _TEXT + "; integers are read too"),
    both("date", "Date", _TEXT + "; days since 1970 are read too"),
    both("time", "Time", _TEXT + "; microseconds are read too"),
    both("timestamp", "Timestamp", _TEXT + " without offset; microseconds are read too"),
    both("timestamptz", "Timestamp(utc)", _TEXT + " with offset; microseconds are read too"),
    both("timestamp_ns, timestamptz_ns", "Nanos", _TEXT),
    both("string", "String", _TEXT),
    both("uuid", "Uuid", _TEXT),
    both("binary", "Binary", "hexadecimal " + _TEXT),
    reads("fixed[L]", "Binary", "hexadecimal " + _TEXT),
    refused("null, NaN", "the specification rejects them; use is-null and is-nan"),
    refused("struct, list, map, variant, geometry, geography", "they have no comparisons"),
)
ROWS: Mapping[str, Row] = {row.foreign: row for row in (*PREDICATES, *TERMS, *LITERALS)}


def mirrored(kind: str) -> str:
    """Return the comparison for swapped sides; any other kind unchanged."""
    op = COMPARISONS.get(kind)
    return kind if op is None else _BY_OP[op.mirrored]
