"""What each construct of SQL text is read as."""

from __future__ import annotations

import decimal
import math

import pyarrow as pa
import pytest

from rowsieve.bridges.sql import parse_expression, parse_predicate
from rowsieve.predicate import ir
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    Json,
    Numeric,
    String,
    Time,
    Timestamp,
    Uuid,
)
from rowsieve.types.numeric_bytes import encoded

A, B, C = ir.Column("a"), ir.Column("b"), ir.Column("c")
YES = ir.Literal(value=True, type=Bool())
NO = ir.Literal(value=False, type=Bool())


def whole(value: int) -> ir.Literal:
    return ir.Literal(value, Int(64))


def compare(op: str, left: ir.Operand, right: ir.Operand) -> ir.Comparison:
    return ir.Comparison(ir.ComparisonOp(op), left, right)


def equals(left: ir.Operand, right: ir.Operand) -> ir.Comparison:
    return compare("=", left, right)


def members(*values: ir.PhysicalValue, type_: pa.DataType | None = None) -> ir.ValueSet:
    logical = {None: Int(64), pa.string(): None, pa.null(): None}.get(type_)
    return ir.ValueSet(pa.array(values, type_ or pa.int64()), logical)


ONE, TWO = equals(A, whole(1)), equals(B, whole(2))
DAY = ir.Literal(15706, Date())

PREDICATES: list[tuple[str, ir.Predicate]] = [
    ("a = 1", ONE),
    ("1 = a", equals(whole(1), A)),
    ("a <> 1", compare("<>", A, whole(1))),
    ("a != 1", compare("<>", A, whole(1))),
    ("a < b", compare("<", A, B)),
    ("a <= b", compare("<=", A, B)),
    ("a > b", compare(">", A, B)),
    ("a >= b", compare(">=", A, B)),
    ("a IS DISTINCT FROM b", compare("IS DISTINCT FROM", A, B)),
    ("a IS NOT DISTINCT FROM b", compare("IS NOT DISTINCT FROM", A, B)),
    ("a = 1 AND b = 2 AND c", ir.And((ONE, TWO, ir.BooleanOperand(C)))),
    ("a = 1 AND (b = 2 AND c)", ir.And((ONE, TWO, ir.BooleanOperand(C)))),
    ("a = 1 OR b = 2 AND c", ir.Or((ONE, ir.And((TWO, ir.BooleanOperand(C)))))),
    ("(a = 1 OR b = 2) AND c", ir.And((ir.Or((ONE, TWO)), ir.BooleanOperand(C)))),
    ("NOT a = 1", ir.Not(ONE)),
    ("NOT a = 1 AND b = 2", ir.And((ir.Not(ONE), TWO))),
    ("NOT (a = 1 OR b = 2)", ir.Not(ir.Or((ONE, TWO)))),
    ("a", ir.BooleanOperand(A)),
    ("NOT a", ir.Not(ir.BooleanOperand(A))),
    ("true", ir.TRUE),
    ("(FALSE)", ir.FALSE),
    ("NULL", ir.BooleanOperand(ir.Literal(None))),
    (
        "a BETWEEN 1 AND 2",
        ir.And((compare(">=", A, whole(1)), compare("<=", A, whole(2)))),
    ),
    (
        "a NOT BETWEEN 1 AND 2 OR b",
        ir.Or(
            (
                ir.Not(ir.And((compare(">=", A, whole(1)), compare("<=", A, whole(2))))),
                ir.BooleanOperand(B),
            )
        ),
    ),
    ("a IN (1, 2)", ir.InList(A, members(1, 2))),
    ("a IN (1, NULL)", ir.InList(A, members(1, None))),
    ("a NOT IN (-1)", ir.Not(ir.InList(A, members(-1)))),
    ("a IN ('x', 'y''z')", ir.InList(A, members("x", "y'z", type_=pa.string()))),
    ("a IN (NULL)", ir.InList(A, members(None, type_=pa.null()))),
    ("a IN (DATE '2013-01-01')", ir.InList(A, ir.ValueSet(pa.array([15706], pa.date32()), Date()))),
    (
        "a IN (1, 2.5)",
        ir.InList(
            A,
            ir.ValueSet(
                pa.array([decimal.Decimal(1), decimal.Decimal("2.5")], pa.decimal128(20, 1)),
                Decimal(20, 1),
            ),
        ),
    ),
    ("a IN (b, 1)", ir.Or((equals(A, B), ONE))),
    ("a IN (b)", equals(A, B)),
    ("a IN (1, 'x')", ir.Or((ONE, equals(A, ir.Literal("x"))))),
    ("a IS NULL", ir.IsNull(A)),
    ("a IS NOT NULL", ir.Not(ir.IsNull(A))),
    ("a IS UNKNOWN", ir.IsNull(A)),
    ("(a = 1) IS NULL", ir.IsNull(ir.Condition(ONE))),
    ("a + 1 IS NULL", ir.IsNull(ir.Call("add", (A, whole(1))))),
    ("a IS TRUE", compare("IS NOT DISTINCT FROM", A, YES)),
    ("a IS NOT TRUE", compare("IS DISTINCT FROM", A, YES)),
    ("a IS FALSE", compare("IS NOT DISTINCT FROM", A, NO)),
    ("(a = 1) IS NOT FALSE", compare("IS DISTINCT FROM", ir.Condition(ONE), NO)),
    ("(a = 1) = b", equals(ir.Condition(ONE), B)),
    ("a LIKE 'x%'", ir.Like(A, "x%")),
    ("a NOT LIKE 'x_'", ir.Not(ir.Like(A, "x_"))),
    ("a ILIKE 'x'", ir.Like(A, "x", ignore_case=True)),
    (r"a LIKE '1\%'", ir.Like(A, r"1\%", "\\")),
    (r"a LIKE 'x\\'", ir.Like(A, r"x\\", "\\")),
    ("a LIKE '1!%' ESCAPE '!'", ir.Like(A, "1!%", "!")),
    ("a LIKE 'x' ESCAPE '!'", ir.Like(A, "x")),
    (r"a LIKE '\' ESCAPE ''", ir.Like(A, "\\")),
    (
        "CASE WHEN a = 1 THEN b ELSE c END",
        ir.BooleanOperand(ir.Case(((ONE, B),), C)),
    ),
    ("starts_with(a, 'x')", ir.BooleanOperand(ir.Call("starts_with", (A, ir.Literal("x"))))),
    ("frobnicate(a, 1)", ir.BooleanOperand(ir.Call("frobnicate", (A, whole(1))))),
    ("CAST(a AS BOOLEAN)", ir.BooleanOperand(ir.Cast(A, Bool()))),
    ("a.b = 1", equals(ir.FieldAccess(A, "b"), whole(1))),
    ("a.b.c = 1", equals(ir.FieldAccess(ir.FieldAccess(A, "b"), "c"), whole(1))),
    ('(a)."B" = 1', equals(ir.FieldAccess(A, "B"), whole(1))),
    ("a = 1 -- b\n /* ; c */ AND b = 2", ir.And((ONE, TWO))),
    ("comment = date", equals(ir.Column("comment"), ir.Column("date"))),
]

EXPRESSIONS: list[tuple[str, ir.Operand]] = [
    ('"Ab c"', ir.Column("Ab c")),
    ('"a""b"', ir.Column('a"b')),
    ("Delay", ir.Column("Delay")),
    ("a + 1", ir.Call("add", (A, whole(1)))),
    ("a - b * c", ir.Call("subtract", (A, ir.Call("multiply", (B, C))))),
    ("a / b", ir.Call("divide", (A, B))),
    ("a % 2", ir.Call("modulo", (A, whole(2)))),
    ("mod(a, 2)", ir.Call("modulo", (A, whole(2)))),
    ("-a", ir.Call("negate", (A,))),
    ("-(1)", ir.Call("negate", (whole(1),))),
    ("a || b || 'x'", ir.Call("concat_strict", (A, B, ir.Literal("x")))),
    ("concat(a, b)", ir.Call("concat", (A, B))),
    ("lower(a)", ir.Call("lower", (A,))),
    ("UPPER(a)", ir.Call("upper", (A,))),
    ("abs(a)", ir.Call("abs", (A,))),
    ("length(a)", ir.Call("length", (A,))),
    ("char_length(a)", ir.Call("length", (A,))),
    ("ceil(a)", ir.Call("ceil", (A,))),
    ("ceiling(a)", ir.Call("ceil", (A,))),
    ("floor(a)", ir.Call("floor", (A,))),
    ("round(a)", ir.Call("round", (A,))),
    ("round(a, 2)", ir.Call("round", (A, whole(2)))),
    ("coalesce(a, b, 1)", ir.Call("coalesce", (A, B, whole(1)))),
    ("nullif(a, 1)", ir.Call("nullif", (A, whole(1)))),
    ("least(a, b)", ir.Call("least", (A, B))),
    ("greatest(a, b, c)", ir.Call("greatest", (A, B, C))),
    ("substr(a, 2)", ir.Call("substr", (A, whole(2)))),
    ("substring(a FROM 1 FOR 2)", ir.Call("substr", (A, whole(1), whole(2)))),
    ("date_trunc('day', a)", ir.Call("date_trunc", (ir.Literal("day"), A))),
    ("DATE_TRUNC('WEEK', a)", ir.Call("date_trunc", (ir.Literal("week"), A))),
    ("EXTRACT(year FROM a)", ir.Call("extract_year", (A,))),
    ("date_part('doy', a)", ir.Cast(ir.Call("extract_doy", (A,)), Float(64))),
    ("month(a)", ir.Call("extract_month", (A,))),
    ("now()", ir.Now()),
    ("CURRENT_TIMESTAMP", ir.Now()),
    ("current_date", ir.Cast(ir.Now(), Date())),
    ("localtimestamp", ir.Cast(ir.Now(), Timestamp())),
    ("CAST(a AS INTEGER)", ir.Cast(A, Int(32))),
    ("a::decimal(10,2)", ir.Cast(A, Decimal(10, 2))),
    ("TRY_CAST(a AS bigint)", ir.Cast(A, Int(64), try_=True)),
    ("CAST(a AS float)", ir.Cast(A, Float(64))),
    ("CAST(a AS real)", ir.Cast(A, Float(32))),
    ("CAST(a AS timestamptz)", ir.Cast(A, Timestamp(utc=True))),
    ("CAST(a AS timestamp(6))", ir.Cast(A, Timestamp())),
    ("CAST(a = 1 AS text)", ir.Cast(ir.Condition(ONE), String())),
    ("a = 1", ir.Condition(ONE)),
    (
        "CASE a WHEN 1 THEN 'x' WHEN 2 THEN 'y' END",
        ir.Case(((ONE, ir.Literal("x")), (equals(A, whole(2)), ir.Literal("y"))), ir.Literal(None)),
    ),
    ("CASE WHEN a THEN 1 END", ir.Case(((ir.BooleanOperand(A), whole(1)),), ir.Literal(None))),
]

LITERALS: list[tuple[str, ir.Literal]] = [
    ("1", whole(1)),
    ("-1", whole(-1)),
    ("007", whole(7)),
    ("9223372036854775807", whole(2**63 - 1)),
    ("9223372036854775808", ir.Literal(decimal.Decimal(2**63), Decimal(19, 0))),
    ("-9223372036854775808", whole(-(2**63))),
    ("1.50", ir.Literal(decimal.Decimal("1.50"), Decimal(3, 2))),
    ("-0.05", ir.Literal(decimal.Decimal("-0.05"), Decimal(2, 2))),
    (".5", ir.Literal(decimal.Decimal("0.5"), Decimal(1, 1))),
    ("1e5", ir.Literal(decimal.Decimal(100000), Decimal(6, 0))),
    ("1.5E-3", ir.Literal(decimal.Decimal("0.0015"), Decimal(4, 4))),
    ("1e300", ir.Literal(encoded("1e300"), Numeric())),
    ("-2.5e-100", ir.Literal(encoded("-2.5e-100"), Numeric())),
    ("'it''s'", ir.Literal("it's")),
    (r"'a\nb'", ir.Literal(r"a\nb")),
    ("''", ir.Literal("")),
    ("TRUE", YES),
    ("NULL", ir.Literal(None)),
    ("CAST(NULL AS int)", ir.Literal(None, Int(32))),
    ("X'00fF'", ir.Literal(b"\x00\xff", Binary())),
    ("X''", ir.Literal(b"", Binary())),
    (r"'\x00ff'::bytea", ir.Literal(b"\x00\xff", Binary())),
    ("DATE '2013-01-01'", DAY),
    ("CAST('2013-01-01' AS date)", DAY),
    ("'1969-12-31'::date", ir.Literal(-1, Date())),
    ("TIME '10:00:00.5'", ir.Literal(36_000_500_000, Time())),
    ("TIMESTAMP '1970-01-02 00:00:01'", ir.Literal(86_401_000_000, Timestamp())),
    ("TIMESTAMP '1970-01-02'", ir.Literal(86_400_000_000, Timestamp())),
    ("TIMESTAMPTZ '1970-01-01 01:00:00+01'", ir.Literal(0, Timestamp(utc=True))),
    ("TIMESTAMP WITH TIME ZONE '1970-01-01T00:00:00Z'", ir.Literal(0, Timestamp(utc=True))),
    ("CAST('5' AS smallint)", ir.Literal(5, Int(16))),
    ("CAST('5' AS UTINYINT)", ir.Literal(5, Int(8, signed=False))),
    ("CAST('NaN' AS double precision)", ir.Literal(math.nan, Float(64))),
    ("CAST('-Infinity' AS real)", ir.Literal(-math.inf, Float(32))),
    ("CAST('0.1' AS real)", ir.Literal(0.10000000149011612, Float(32))),
    ("CAST('1.5' AS decimal(10,2))", ir.Literal(decimal.Decimal("1.50"), Decimal(10, 2))),
    ("CAST('t' AS boolean)", YES),
    ("'x'::text", ir.Literal("x", String())),
    ("UUID '00000000-0000-0000-0000-00000000000a'", ir.Literal(b"\0" * 15 + b"\n", Uuid())),
    ("CAST('{}' AS json)", ir.Literal("{}", Json())),
]


@pytest.mark.parametrize(("text", "tree"), PREDICATES, ids=[text for text, _ in PREDICATES])
def test_a_condition_is_read_as(text: str, tree: ir.Predicate) -> None:
    assert parse_predicate(text) == tree


@pytest.mark.parametrize(("text", "tree"), EXPRESSIONS, ids=[text for text, _ in EXPRESSIONS])
def test_an_expression_is_read_as(text: str, tree: ir.Operand) -> None:
    assert parse_expression(text) == tree


@pytest.mark.parametrize(("text", "tree"), LITERALS, ids=[text for text, _ in LITERALS])
def test_a_constant_is_read_as(text: str, tree: ir.Literal) -> None:
    found = parse_expression(text)
    assert found == tree
    assert isinstance(found, ir.Literal)
    assert type(found.value) is type(tree.value)


def test_an_instant_without_offset_waits_for_the_session_zone() -> None:
    text = "TIMESTAMPTZ '2013-01-01 00:00:00'"
    expected = ir.Cast(ir.Literal("2013-01-01 00:00:00"), Timestamp(utc=True))
    assert parse_expression(text) == expected
