"""Where dialects differ: the same text is another tree, or is refused."""

from __future__ import annotations

import decimal

import pytest

from rowsieve.bridges.sql import parse_expression, to_sql
from rowsieve.errors import InvalidInput, InvalidPredicate, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.types.logical import (
    Binary,
    Date,
    Decimal,
    Field,
    Float,
    Int,
    List,
    String,
    Timestamp,
    Uuid,
)

A, B = ir.Column("a"), ir.Column("b")
DOUBLE = Float(64)

READ: list[tuple[str, str, ir.Operand]] = [
    ("spark", "`a b`", ir.Column("a b")),
    ("spark", '"a"', ir.Literal("a")),
    ("spark", r"'it\'s'", ir.Literal("it's")),
    ("spark", r"'a\\b'", ir.Literal(r"a\b")),
    ("spark", "1e5", ir.Literal(1e5, DOUBLE)),
    ("spark", "1.5", ir.Literal(decimal.Decimal("1.5"), Decimal(2, 1))),
    ("spark", "1.5BD", ir.Literal(decimal.Decimal("1.5"), Decimal(2, 1))),
    (
        "spark",
        f"-{'9' * 38}BD",
        ir.Literal(decimal.Decimal(-(10**38) + 1), Decimal(38, 0)),
    ),
    ("spark", "-128Y", ir.Cast(ir.Literal(-128, Int(64)), Int(8))),
    (
        "spark",
        "- 9223372036854775808L",
        ir.Cast(ir.Literal(decimal.Decimal(-(2**63)), Decimal(19, 0)), Int(64)),
    ),
    ("spark", "-(1BD)", ir.Call("negate", (ir.Literal(decimal.Decimal(1), Decimal(1, 0)),))),
    (
        "spark",
        "a -1BD",
        ir.Call("subtract", (A, ir.Literal(decimal.Decimal(1), Decimal(1, 0)))),
    ),
    ("spark", "CAST(a AS int)", ir.Cast(A, Int(32))),
    ("spark", "TRY_CAST(a AS int)", ir.Cast(A, Int(32), try_=True)),
    ("spark", "CAST(a AS timestamp)", ir.Cast(A, Timestamp(utc=True))),
    ("spark", "CAST(a AS timestamp_ntz)", ir.Cast(A, Timestamp())),
    ("spark", "CAST(a AS float)", ir.Cast(A, Float(32))),
    ("spark", "CAST(a AS decimal)", ir.Cast(A, Decimal(10, 0))),
    ("spark", "CAST('ab' AS binary)", ir.Literal(b"ab", Binary())),
    ("spark", "concat(a, b)", ir.Call("concat_strict", (A, B))),
    ("spark", "year(a)", ir.Call("extract_year", (A,))),
    ("spark", "startswith(a, 'x')", ir.Call("starts_with", (A, ir.Literal("x")))),
    ("spark", "a['x']", ir.FieldAccess(A, "x")),
    ("spark", r"a LIKE '1\\%'", ir.Condition(ir.Like(A, r"1\%", "\\"))),
    ("spark", "CAST(a AS DOUBLE) / b", ir.Call("divide", (ir.Cast(A, DOUBLE), B))),
    ("duckdb", "a / b", ir.Call("divide", (ir.Cast(A, DOUBLE), B))),
    ("duckdb", "1e5", ir.Literal(1e5, DOUBLE)),
    ("duckdb", r"a LIKE 'x\%'", ir.Condition(ir.Like(A, r"x\%"))),
    ("duckdb", r"'\x00a'::BLOB", ir.Literal(b"\x00a", Binary())),
    ("duckdb", "CAST(a AS float)", ir.Cast(A, Float(32))),
    ("duckdb", "now()", ir.Now()),
    (
        "duckdb",
        "date_trunc('day', DATE '1970-01-01')",
        ir.Call("date_trunc", (ir.Literal("day"), ir.Literal(0, Date()))),
    ),
    ("datafusion", "1.5", ir.Literal(1.5, DOUBLE)),
    ("datafusion", "18446744073709551616", ir.Literal(18446744073709551616.0, DOUBLE)),
    ("datafusion", "-9223372036854775809", ir.Literal(-9223372036854775809.0, DOUBLE)),
    ("datafusion", "CAST(a AS float)", ir.Cast(A, Float(32))),
    ("datafusion", "CAST(a AS double)", ir.Cast(A, DOUBLE)),
    ("datafusion", "CAST(a AS BIGINT UNSIGNED)", ir.Cast(A, Int(64, signed=False))),
    ("datafusion", "a / b", ir.Call("divide", (A, B))),
    (
        "datafusion",
        "arrow_cast('1970-01-01T00:00:00Z', 'Timestamp(Microsecond, Some(\"UTC\"))')",
        ir.Literal(0, Timestamp(utc=True)),
    ),
]

REFUSED_TEXT: list[tuple[str, str, str]] = [
    ("spark", "'it''s'", "two adjacent strings"),
    ("spark", r"'1\%'", "in strings only"),
    ("spark", "substr(a, -1)", "constant start from 0"),
    ("duckdb", "substr(a, b)", "constant start of 1 or more"),
    ("duckdb", "1" * 39, "more than 38 digits"),
    ("duckdb", "a // b", "whole quotients"),
    ("duckdb", "extract(millisecond from a)", "extract takes one of"),
    ("spark", "extract(epoch from a)", "extract takes one of"),
    ("postgres", "a & b + 1", "in parentheses"),
    ("postgres", "to_hex(a)", "to_hex"),
    ("postgres", "date_bin(INTERVAL '1 month', a, TIMESTAMP '2000-01-01')", "not in postgres"),
    ("postgres", "date_bin(INTERVAL '1 day', a)", "an origin"),
    ("duckdb", "time_bucket(a, b)", "as a constant, INTERVAL"),
    ("duckdb", "reverse(a)", "keeps a letter and its accents together"),
    ("duckdb", "date_diff('hour', a, b)", r"form date_diff\('day', y, x\) only"),
    ("spark", "datediff(HOUR, a, b)", r"form datediff\(x, y\) only"),
    ("spark", "date_add(a, b)", "a constant number of days"),
    ("datafusion", "encode(a, 'hex')", r"form encode\(sha256\(x\), 'hex'\) or"),
    ("spark", "sha2(a, 384)", r"form sha2\(x, 256\) or"),
    ("spark", "trunc(a, 'day')", "trunc takes one of month, quarter"),
    ("spark", "left(a, b)", "constant count"),
    ("duckdb", "a -> 'x'", "json_get"),
    ("duckdb", "a #> '{x}'", "write the path"),
    ("datafusion", "arrow_cast(a, 'Float16')", "arrow_cast is read to"),
    ("datafusion", "a IS DISTINCT FROM b AND a", "in parentheses"),
    ("datafusion", "NOT a IS NOT DISTINCT FROM b OR a", "in parentheses"),
    ("postgres", "a['x']", "a subscript is a place"),
    ("trino", "CAST(a AS decimal)", "precision and scale"),
]

_PARTS = (ir.Literal(1, Int(64)), ir.Literal(0, Int(64)), ir.Literal(0, Int(64)))
UNWRITABLE: list[tuple[str, ir.Node, str]] = [
    ("spark", ir.Literal(b"\0" * 16, Uuid()), "no type for uuid"),
    ("spark", ir.Literal(1, Int(8, signed=False)), "no type for uint8"),
    ("spark", ir.Call("concat", (A, B)), "no counterpart in spark"),
    ("spark", ir.Call("divide", (A, B)), "divides integers"),
    ("duckdb", ir.Call("divide", (A, ir.Cast(B, DOUBLE))), "divides integers"),
    ("duckdb", ir.Call("substr", (A, B)), "no counterpart in duckdb"),
    ("duckdb", ir.Call("my_function", (A,)), "no counterpart in duckdb"),
    ("datafusion", ir.Call("json_get", (A, ir.Literal("x"))), "no counterpart in datafusion"),
    ("duckdb", ir.Call("shift", (A, *_PARTS)), "shift has no counterpart"),
    ("spark", ir.Call("add_interval", (A, *_PARTS)), "add_interval has no counterpart"),
    ("spark", ir.Call("left", (A, ir.Literal(-1))), "no counterpart in spark"),
    ("trino", ir.Literal(3_000_000, Date()), "years 1 to 9999"),
    ("postgres", ir.Opaque("rlike(a, 'x')", "spark"), "another engine has no counterpart in SQL"),
    ("postgres", ir.Cast(A, List(Field(1, "element", String()))), "no type for list<string>"),
]


@pytest.mark.parametrize(("dialect", "text", "tree"), READ)
def test_a_dialect_reads(dialect: str, text: str, tree: ir.Operand) -> None:
    assert parse_expression(text, dialect) == tree


@pytest.mark.parametrize(("dialect", "text", "message"), REFUSED_TEXT)
def test_a_dialect_refuses_to_read(dialect: str, text: str, message: str) -> None:
    with pytest.raises(InvalidPredicate, match=message):
        parse_expression(text, dialect)


@pytest.mark.parametrize(("dialect", "tree", "message"), UNWRITABLE)
def test_a_dialect_refuses_to_write(dialect: str, tree: ir.Operand, message: str) -> None:
    with pytest.raises(UnsupportedOperation, match=message):
        to_sql(tree, dialect)


def test_an_unknown_dialect_lists_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="postgres, spark, datafusion, duckdb"):
        parse_expression("a", "oracle")
