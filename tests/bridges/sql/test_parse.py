"""What each construct of SQL text is read as."""

from __future__ import annotations

import decimal
import math

import pyarrow as pa
import pytest

from rowsieve.bridges.sql import parse_expression, parse_predicate
from rowsieve.predicate.ir import (
    FALSE,
    TRUE,
    And,
    BooleanOperand,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    ComparisonOp,
    Condition,
    FieldAccess,
    InList,
    IsNull,
    Like,
    Literal,
    Not,
    Now,
    Operand,
    Or,
    PhysicalValue,
    Predicate,
    ValueSet,
)
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    Json,
    String,
    Time,
    Timestamp,
    Uuid,
)

A, B, C = Column("a"), Column("b"), Column("c")
YES = Literal(value=True, type=Bool())
NO = Literal(value=False, type=Bool())


def whole(value: int) -> Literal:
    return Literal(value, Int(64))


def compare(op: str, left: Operand, right: Operand) -> Comparison:
    return Comparison(ComparisonOp(op), left, right)


def equals(left: Operand, right: Operand) -> Comparison:
    return compare("=", left, right)


def members(*values: PhysicalValue, type_: pa.DataType | None = None) -> ValueSet:
    logical = {None: Int(64), pa.string(): None, pa.null(): None}.get(type_)
    return ValueSet(pa.array(values, type_ or pa.int64()), logical)


ONE, TWO = equals(A, whole(1)), equals(B, whole(2))
DAY = Literal(15706, Date())

PREDICATES: list[tuple[str, Predicate]] = [
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
    ("a = 1 AND b = 2 AND c", And((ONE, TWO, BooleanOperand(C)))),
    ("a = 1 AND (b = 2 AND c)", And((ONE, TWO, BooleanOperand(C)))),
    ("a = 1 OR b = 2 AND c", Or((ONE, And((TWO, BooleanOperand(C)))))),
    ("(a = 1 OR b = 2) AND c", And((Or((ONE, TWO)), BooleanOperand(C)))),
    ("NOT a = 1", Not(ONE)),
    ("NOT a = 1 AND b = 2", And((Not(ONE), TWO))),
    ("NOT (a = 1 OR b = 2)", Not(Or((ONE, TWO)))),
    ("a", BooleanOperand(A)),
    ("NOT a", Not(BooleanOperand(A))),
    ("true", TRUE),
    ("(FALSE)", FALSE),
    ("NULL", BooleanOperand(Literal(None))),
    (
        "a BETWEEN 1 AND 2",
        And((compare(">=", A, whole(1)), compare("<=", A, whole(2)))),
    ),
    (
        "a NOT BETWEEN 1 AND 2 OR b",
        Or(
            (
                Not(And((compare(">=", A, whole(1)), compare("<=", A, whole(2))))),
                BooleanOperand(B),
            )
        ),
    ),
    ("a IN (1, 2)", InList(A, members(1, 2))),
    ("a IN (1, NULL)", InList(A, members(1, None))),
    ("a NOT IN (-1)", Not(InList(A, members(-1)))),
    ("a IN ('x', 'y''z')", InList(A, members("x", "y'z", type_=pa.string()))),
    ("a IN (NULL)", InList(A, members(None, type_=pa.null()))),
    ("a IN (DATE '2013-01-01')", InList(A, ValueSet(pa.array([15706], pa.date32()), Date()))),
    (
        "a IN (1, 2.5)",
        InList(
            A,
            ValueSet(
                pa.array([decimal.Decimal(1), decimal.Decimal("2.5")], pa.decimal128(20, 1)),
                Decimal(20, 1),
            ),
        ),
    ),
    ("a IN (b, 1)", Or((equals(A, B), ONE))),
    ("a IN (b)", equals(A, B)),
    ("a IN (1, 'x')", Or((ONE, equals(A, Literal("x"))))),
    ("a IS NULL", IsNull(A)),
    ("a IS NOT NULL", Not(IsNull(A))),
    ("a IS UNKNOWN", IsNull(A)),
    ("(a = 1) IS NULL", IsNull(Condition(ONE))),
    ("a + 1 IS NULL", IsNull(Call("add", (A, whole(1))))),
    ("a IS TRUE", compare("IS NOT DISTINCT FROM", A, YES)),
    ("a IS NOT TRUE", compare("IS DISTINCT FROM", A, YES)),
    ("a IS FALSE", compare("IS NOT DISTINCT FROM", A, NO)),
    ("(a = 1) IS NOT FALSE", compare("IS DISTINCT FROM", Condition(ONE), NO)),
    ("(a = 1) = b", equals(Condition(ONE), B)),
    ("a LIKE 'x%'", Like(A, "x%")),
    ("a NOT LIKE 'x_'", Not(Like(A, "x_"))),
    ("a ILIKE 'x'", Like(A, "x", ignore_case=True)),
    (r"a LIKE '1\%'", Like(A, r"1\%", "\\")),
    (r"a LIKE 'x\\'", Like(A, r"x\\", "\\")),
    ("a LIKE '1!%' ESCAPE '!'", Like(A, "1!%", "!")),
    ("a LIKE 'x' ESCAPE '!'", Like(A, "x")),
    (r"a LIKE '\' ESCAPE ''", Like(A, "\\")),
    (
        "CASE WHEN a = 1 THEN b ELSE c END",
        BooleanOperand(Case(((ONE, B),), C)),
    ),
    ("starts_with(a, 'x')", BooleanOperand(Call("starts_with", (A, Literal("x"))))),
    ("frobnicate(a, 1)", BooleanOperand(Call("frobnicate", (A, whole(1))))),
    ("CAST(a AS BOOLEAN)", BooleanOperand(Cast(A, Bool()))),
    ("a.b = 1", equals(FieldAccess(A, "b"), whole(1))),
    ("a.b.c = 1", equals(FieldAccess(FieldAccess(A, "b"), "c"), whole(1))),
    ('(a)."B" = 1', equals(FieldAccess(A, "B"), whole(1))),
    ("a = 1 -- b\n /* ; c */ AND b = 2", And((ONE, TWO))),
    ("comment = date", equals(Column("comment"), Column("date"))),
]

EXPRESSIONS: list[tuple[str, Operand]] = [
    ('"Ab c"', Column("Ab c")),
    ('"a""b"', Column('a"b')),
    ("Delay", Column("Delay")),
    ("a + 1", Call("add", (A, whole(1)))),
    ("a - b * c", Call("subtract", (A, Call("multiply", (B, C))))),
    ("a / b", Call("divide", (A, B))),
    ("a % 2", Call("modulo", (A, whole(2)))),
    ("mod(a, 2)", Call("modulo", (A, whole(2)))),
    ("-a", Call("negate", (A,))),
    ("-(1)", Call("negate", (whole(1),))),
    ("a || b || 'x'", Call("concat_strict", (A, B, Literal("x")))),
    ("concat(a, b)", Call("concat", (A, B))),
    ("lower(a)", Call("lower", (A,))),
    ("UPPER(a)", Call("upper", (A,))),
    ("abs(a)", Call("abs", (A,))),
    ("length(a)", Call("length", (A,))),
    ("char_length(a)", Call("length", (A,))),
    ("ceil(a)", Call("ceil", (A,))),
    ("ceiling(a)", Call("ceil", (A,))),
    ("floor(a)", Call("floor", (A,))),
    ("round(a)", Call("round", (A,))),
    ("round(a, 2)", Call("round", (A, whole(2)))),
    ("coalesce(a, b, 1)", Call("coalesce", (A, B, whole(1)))),
    ("nullif(a, 1)", Call("nullif", (A, whole(1)))),
    ("least(a, b)", Call("least", (A, B))),
    ("greatest(a, b, c)", Call("greatest", (A, B, C))),
    ("substr(a, 2)", Call("substr", (A, whole(2)))),
    ("substring(a FROM 1 FOR 2)", Call("substr", (A, whole(1), whole(2)))),
    ("date_trunc('day', a)", Call("date_trunc", (Literal("day"), A))),
    ("DATE_TRUNC('WEEK', a)", Call("date_trunc", (Literal("week"), A))),
    ("EXTRACT(year FROM a)", Call("extract_year", (A,))),
    ("date_part('doy', a)", Call("extract_doy", (A,))),
    ("month(a)", Call("extract_month", (A,))),
    ("now()", Now()),
    ("CURRENT_TIMESTAMP", Now()),
    ("current_date", Cast(Now(), Date())),
    ("localtimestamp", Cast(Now(), Timestamp())),
    ("CAST(a AS INTEGER)", Cast(A, Int(32))),
    ("a::decimal(10,2)", Cast(A, Decimal(10, 2))),
    ("TRY_CAST(a AS bigint)", Cast(A, Int(64), try_=True)),
    ("CAST(a AS float)", Cast(A, Float(64))),
    ("CAST(a AS real)", Cast(A, Float(32))),
    ("CAST(a AS timestamptz)", Cast(A, Timestamp(utc=True))),
    ("CAST(a AS timestamp(6))", Cast(A, Timestamp())),
    ("CAST(a = 1 AS text)", Cast(Condition(ONE), String())),
    ("a = 1", Condition(ONE)),
    (
        "CASE a WHEN 1 THEN 'x' WHEN 2 THEN 'y' END",
        Case(((ONE, Literal("x")), (equals(A, whole(2)), Literal("y"))), Literal(None)),
    ),
    ("CASE WHEN a THEN 1 END", Case(((BooleanOperand(A), whole(1)),), Literal(None))),
]

LITERALS: list[tuple[str, Literal]] = [
    ("1", whole(1)),
    ("-1", whole(-1)),
    ("007", whole(7)),
    ("9223372036854775807", whole(2**63 - 1)),
    ("9223372036854775808", Literal(decimal.Decimal(2**63), Decimal(19, 0))),
    ("-9223372036854775808", whole(-(2**63))),
    ("1.50", Literal(decimal.Decimal("1.50"), Decimal(3, 2))),
    ("-0.05", Literal(decimal.Decimal("-0.05"), Decimal(2, 2))),
    (".5", Literal(decimal.Decimal("0.5"), Decimal(1, 1))),
    ("1e5", Literal(decimal.Decimal(100000), Decimal(6, 0))),
    ("1.5E-3", Literal(decimal.Decimal("0.0015"), Decimal(4, 4))),
    ("1e300", Literal(1e300, Float(64))),
    ("-2.5e-100", Literal(-2.5e-100, Float(64))),
    ("'it''s'", Literal("it's")),
    (r"'a\nb'", Literal(r"a\nb")),
    ("''", Literal("")),
    ("TRUE", YES),
    ("NULL", Literal(None)),
    ("CAST(NULL AS int)", Literal(None, Int(32))),
    ("X'00fF'", Literal(b"\x00\xff", Binary())),
    ("X''", Literal(b"", Binary())),
    (r"'\x00ff'::bytea", Literal(b"\x00\xff", Binary())),
    ("DATE '2013-01-01'", DAY),
    ("CAST('2013-01-01' AS date)", DAY),
    ("'1969-12-31'::date", Literal(-1, Date())),
    ("TIME '10:00:00.5'", Literal(36_000_500_000, Time())),
    ("TIMESTAMP '1970-01-02 00:00:01'", Literal(86_401_000_000, Timestamp())),
    ("TIMESTAMP '1970-01-02'", Literal(86_400_000_000, Timestamp())),
    ("TIMESTAMPTZ '1970-01-01 01:00:00+01'", Literal(0, Timestamp(utc=True))),
    ("TIMESTAMP WITH TIME ZONE '1970-01-01T00:00:00Z'", Literal(0, Timestamp(utc=True))),
    ("CAST('5' AS smallint)", Literal(5, Int(16))),
    ("CAST('5' AS UTINYINT)", Literal(5, Int(8, signed=False))),
    ("CAST('NaN' AS double precision)", Literal(math.nan, Float(64))),
    ("CAST('-Infinity' AS real)", Literal(-math.inf, Float(32))),
    ("CAST('0.1' AS real)", Literal(0.10000000149011612, Float(32))),
    ("CAST('1.5' AS decimal(10,2))", Literal(decimal.Decimal("1.50"), Decimal(10, 2))),
    ("CAST('t' AS boolean)", YES),
    ("'x'::text", Literal("x", String())),
    ("UUID '00000000-0000-0000-0000-00000000000a'", Literal(b"\0" * 15 + b"\n", Uuid())),
    ("CAST('{}' AS json)", Literal("{}", Json())),
]


@pytest.mark.parametrize(("text", "tree"), PREDICATES, ids=[text for text, _ in PREDICATES])
def test_a_condition_is_read_as(text: str, tree: Predicate) -> None:
    assert parse_predicate(text) == tree


@pytest.mark.parametrize(("text", "tree"), EXPRESSIONS, ids=[text for text, _ in EXPRESSIONS])
def test_an_expression_is_read_as(text: str, tree: Operand) -> None:
    assert parse_expression(text) == tree


@pytest.mark.parametrize(("text", "tree"), LITERALS, ids=[text for text, _ in LITERALS])
def test_a_constant_is_read_as(text: str, tree: Literal) -> None:
    found = parse_expression(text)
    assert found == tree
    assert isinstance(found, Literal)
    assert type(found.value) is type(tree.value)


def test_an_instant_without_offset_waits_for_the_session_zone() -> None:
    text = "TIMESTAMPTZ '2013-01-01 00:00:00'"
    expected = Cast(Literal("2013-01-01 00:00:00"), Timestamp(utc=True))
    assert parse_expression(text) == expected
