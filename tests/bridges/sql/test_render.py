"""The text itself, where how it looks matters; that it reads back is `test_round_trip`'s."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowsieve.bridges.sql import parse_predicate, to_sql
from rowsieve.predicate import ir
from rowsieve.types.logical import Date, Float, Int, String

A, B = ir.Column("a"), ir.Column("b")
CARRIER = ir.BoundColumn(1, "carrier", String())
DELAY = ir.BoundColumn(2, "delay", Int(32))
NOTHING = ir.ValueSet(pa.array([], pa.int64()), Int(64))

WRITTEN: list[tuple[str, str, str]] = [
    ("a = 1 AND b < 2", "postgres", '"a" = 1 AND "b" < 2'),
    ("a = 1 AND (b < 2 OR c)", "postgres", '"a" = 1 AND ("b" < 2 OR "c")'),
    ("NOT (a = 1)", "postgres", 'NOT ("a" = 1)'),
    ("a NOT IN (1, 2)", "postgres", '"a" NOT IN (1, 2)'),
    ("a IS NOT NULL", "postgres", '"a" IS NOT NULL'),
    ("a IS NOT TRUE", "postgres", '"a" IS NOT TRUE'),
    ("a IS DISTINCT FROM b", "datafusion", '"a" IS DISTINCT FROM "b"'),
    ("a IS DISTINCT FROM b AND c", "datafusion", '("a" IS DISTINCT FROM "b") AND "c"'),
    ("a + b * -1 > 0", "postgres", '"a" + ("b" * (-1)) > 0'),
    ("a.b = 1", "postgres", '("a")."b" = 1'),
    ("a.b = 1", "duckdb", "\"a\"['b'] = 1"),
    ("a = 'it''s'", "spark", r"`a` = 'it\'s'"),
    ("a LIKE 'x!%' ESCAPE '!'", "postgres", "\"a\" LIKE 'x!%' ESCAPE '!'"),
    ("a LIKE 'x!%y%' ESCAPE '!'", "spark", r"`a` LIKE 'x\\%y%'"),
    (r"a LIKE 'x\\y' ESCAPE ''", "datafusion", r""""a" LIKE 'x\\\\y'"""),
    (r"a LIKE 'x\y' ESCAPE ''", "postgres", r""""a" LIKE 'x\y' ESCAPE '!'"""),
    ("d = DATE '2013-01-01'", "postgres", "\"d\" = DATE '2013-01-01'"),
    ("a = CAST('NaN' AS float8)", "spark", "`a` = CAST('NaN' AS DOUBLE)"),
    ("a = X'00ff'", "duckdb", r""""a" = CAST('\x00\xff' AS BLOB)"""),
]

TREES: list[tuple[ir.Predicate, str]] = [
    (ir.And(()), "TRUE"),
    (ir.Or(()), "FALSE"),
    (ir.And((ir.Like(A, "x"),)), "\"a\" LIKE 'x'"),
    (ir.InList(A, NOTHING), '"a" IS NULL AND NULL'),
    (ir.Not(ir.InList(A, NOTHING)), 'NOT ("a" IS NULL AND NULL)'),
    (ir.Comparison(ir.ComparisonOp.EQ, CARRIER, ir.Literal("AA", String())), "\"carrier\" = 'AA'"),
    (ir.Comparison(ir.ComparisonOp.GT, ir.Literal(5, Int(32)), DELAY), '5 > "delay"'),
    (
        ir.Comparison(ir.ComparisonOp.GT, DELAY, ir.Literal(5, Int(16))),
        "\"delay\" > CAST('5' AS SMALLINT)",
    ),
    (
        ir.InList(CARRIER, ir.ValueSet(pa.array(["AA", None]), String())),
        "\"carrier\" IN ('AA', NULL)",
    ),
    (ir.InList(DELAY, ir.ValueSet(pa.array([1, 2], pa.int32()), Int(32))), '"delay" IN (1, 2)'),
    (ir.InList(A, ir.ValueSet(pa.array([0], pa.date32()))), "\"a\" IN (DATE '1970-01-01')"),
    (ir.InList(A, ir.ValueSet(pa.nulls(1, pa.date32()), Date())), '"a" IN (CAST(NULL AS DATE))'),
    (
        ir.Comparison(ir.ComparisonOp.EQ, A, ir.Literal(0.1, Float(64))),
        "\"a\" = CAST('0.1' AS DOUBLE PRECISION)",
    ),
    (ir.Comparison(ir.ComparisonOp.EQ, A, ir.Literal(5)), '"a" = 5'),
]


@pytest.mark.parametrize(("text", "dialect", "written"), WRITTEN)
def test_a_condition_is_written_as(text: str, dialect: str, written: str) -> None:
    assert to_sql(parse_predicate(text), dialect) == written


@pytest.mark.parametrize(("tree", "written"), TREES, ids=[written for _, written in TREES])
def test_a_tree_is_written_as(tree: ir.Predicate, written: str) -> None:
    assert to_sql(tree) == written
