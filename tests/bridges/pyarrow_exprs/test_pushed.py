"""pyarrow expressions: every form that users write, and what DataFusion really pushes down."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest

from rowsieve.bridges.pyarrow_exprs import is_pyarrow_expression, pushed_predicate
from rowsieve.bridges.sql import parse_predicate
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    Numeric,
    String,
    Time,
    Timestamp,
)
from rowsieve.types.numeric_bytes import encoded

F = pc.field
A = ir.Column("a")
YES, NO = pa.array([True, False])


def equals(value: ir.PhysicalValue, type_: LogicalType | None) -> ir.Comparison:
    return ir.Comparison(ir.ComparisonOp.EQ, A, ir.Literal(value, type_))


def found_in(*members: int | None) -> ir.InList:
    return ir.InList(A, ir.ValueSet(pa.array(members, pa.int64()), Int(64)))


ONE = equals(1, Int(64))

FORMS: list[tuple[Any, ir.Predicate]] = [
    (F("a") == 1, ONE),
    (F("a") != 1, ir.Comparison(ir.ComparisonOp.NE, A, ir.Literal(1, Int(64)))),
    (F("a") < 1, ir.Comparison(ir.ComparisonOp.LT, A, ir.Literal(1, Int(64)))),
    (F("a") <= 1, ir.Comparison(ir.ComparisonOp.LE, A, ir.Literal(1, Int(64)))),
    (F("a") > 1, ir.Comparison(ir.ComparisonOp.GT, A, ir.Literal(1, Int(64)))),
    (F("a") >= 1, ir.Comparison(ir.ComparisonOp.GE, A, ir.Literal(1, Int(64)))),
    (F("a") == F("b.c"), ir.Comparison(ir.ComparisonOp.EQ, A, ir.Column("b.c"))),
    (F("a"), ir.BooleanOperand(A)),
    (~F("a"), ir.Not(ir.BooleanOperand(A))),
    (pc.scalar(YES), ir.TRUE),
    (pc.scalar(NO), ir.FALSE),
    (F("a").is_null(), ir.IsNull(A)),
    (F("a").is_valid(), ir.Not(ir.IsNull(A))),
    (F("a").isin([1, None]), found_in(1, None)),
    (~F("a").isin([1, 2]), ir.Not(found_in(1, 2))),
    (
        (F("a") == 1) & F("a") & F("b"),
        ir.And((ONE, ir.BooleanOperand(A), ir.BooleanOperand(ir.Column("b")))),
    ),
    (
        (F("a") == 1) & (F("a") | F("b")),
        ir.And((ONE, ir.Or((ir.BooleanOperand(A), ir.BooleanOperand(ir.Column("b")))))),
    ),
    (
        (F("a") == 1) == F("b"),
        ir.Comparison(ir.ComparisonOp.EQ, ir.Condition(ONE), ir.Column("b")),
    ),
    (
        F("a") + 1 > F("b") * 2 - 3,
        ir.Comparison(
            ir.ComparisonOp.GT,
            ir.Call("add", (A, ir.Literal(1, Int(64)))),
            ir.Call(
                "subtract",
                (
                    ir.Call("multiply", (ir.Column("b"), ir.Literal(2, Int(64)))),
                    ir.Literal(3, Int(64)),
                ),
            ),
        ),
    ),
    (
        pc.field("s", "x") == 1,
        ir.Comparison(
            ir.ComparisonOp.EQ, ir.FieldAccess(ir.Column("s"), "x"), ir.Literal(1, Int(64))
        ),
    ),
    (
        pc.starts_with(F("a"), "x"),
        ir.BooleanOperand(ir.Call("starts_with", (A, ir.Literal("x", String())))),
    ),
    (
        F("call") == "end",
        ir.Comparison(ir.ComparisonOp.EQ, ir.Column("call"), ir.Literal("end", String())),
    ),
    (
        F("a\n'\0") == "é\n",
        ir.Comparison(ir.ComparisonOp.EQ, ir.Column("a\n'\0"), ir.Literal("é\n", String())),
    ),
]

LITERALS: list[tuple[Any, ir.PhysicalValue, LogicalType | None]] = [
    (YES, True, Bool()),
    (pa.scalar(7, pa.int8()), 7, Int(8)),
    (pa.scalar(7, pa.uint64()), 7, Int(64, signed=False)),
    (pa.scalar(1.5, pa.float32()), 1.5, Float(32)),
    (pa.scalar(math.nan), math.nan, Float(64)),
    (pa.scalar(decimal.Decimal("1.50")), decimal.Decimal("1.50"), Decimal(3, 2)),
    (pa.scalar(decimal.Decimal("1.50"), pa.decimal256(40, 2)), encoded("1.5"), Numeric()),
    (pa.scalar([], pa.list_(pa.null())), None, None),
    (pa.scalar("x", pa.large_string()), "x", String()),
    (pa.scalar("x", pa.string_view()), "x", String()),
    (pa.scalar("x", pa.dictionary(pa.int8(), pa.string())), "x", String()),
    (pa.scalar(b"x", pa.binary_view()), b"x", Binary()),
    (pa.scalar(b"xy", pa.binary(2)), b"xy", Binary()),
    (pa.scalar(datetime.date(1970, 1, 2)), 1, Date()),
    (pa.scalar(datetime.date(1970, 1, 2), pa.date64()), 1, Date()),
    (pa.scalar(datetime.time(0, 0, 1)), 1_000_000, Time()),
    (pa.scalar(1, pa.time32("s")), 1_000_000, Time()),
    (pa.scalar(5, pa.timestamp("us")), 5, Timestamp()),
    (pa.scalar(5000, pa.timestamp("ns")), 5, Timestamp()),
    (pa.scalar(5, pa.timestamp("ms", "Europe/Berlin")), 5000, Timestamp(utc=True)),
    (pa.scalar(None, pa.int32()), None, Int(32)),
    (pa.scalar(None), None, None),
]


@pytest.mark.parametrize(("expression", "tree"), FORMS, ids=lambda value: str(value)[:40])
def test_an_expression_is_read_as(expression: Any, tree: ir.Predicate) -> None:
    assert pushed_predicate(expression) == tree


@pytest.mark.parametrize(("scalar", "value", "type_"), LITERALS, ids=lambda value: str(value)[:30])
def test_a_constant_is_read_as(
    scalar: Any, value: ir.PhysicalValue, type_: LogicalType | None
) -> None:
    expression = F("a") == pc.scalar(scalar)
    if type_ is None and value is None and not pa.types.is_null(scalar.type):
        with pytest.raises(UnsupportedOperation, match="constant of the Arrow type"):
            pushed_predicate(expression)
    else:
        assert pushed_predicate(expression) == equals(value, type_)


def test_a_set_keeps_its_members_in_storage_form() -> None:
    members = pa.array([datetime.date(1970, 1, 2), None], pa.date64())
    tree = pushed_predicate(F("a").isin(members))
    assert isinstance(tree, ir.InList)
    assert tree.values == ir.ValueSet(pa.array([1, None], pa.int32()).cast(pa.date32()), Date())


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        (F("a").cast("int32") == 1, "cast"),
        (F("a") / 2 == 1, "divide_checked"),
        (pc.add(F("a"), 1) == 2, "add"),
        (pc.and_(F("a"), F("b")), "and_"),
        (F("a").is_null(nan_is_null=True), "is_null"),
        (F("a").is_nan(), "is_nan"),
        (pc.starts_with(F("a"), "x", ignore_case=True), "starts_with"),
        (pc.match_substring_regex(F("a"), "x"), "match_substring_regex"),
        (pc.utf8_lower(F("a")) == "x", "utf8_lower"),
        (pc.if_else(F("a"), F("b"), F("c")), "if_else"),
        (F("a") & (pc.utf8_lower(F("b")) == "x"), "utf8_lower"),
    ],
)
def test_a_function_without_counterpart_is_refused_by_name(expression: Any, name: str) -> None:
    with pytest.raises(UnsupportedOperation, match=f"'{name}'"):
        pushed_predicate(expression)


def test_pyarrow_expressions_are_recognised() -> None:
    assert is_pyarrow_expression(F("a") == 1)
    assert not is_pyarrow_expression("a = 1")


def test_many_terms_stay_flat() -> None:
    expression = F("a") == 0
    for i in range(1, 300):
        expression |= F("a") == i
    tree = pushed_predicate(expression)
    assert isinstance(tree, ir.Or)
    assert len(tree.terms) == 300


class _Scanner:
    def __init__(self, schema: pa.Schema) -> None:
        self.projected_schema = schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        return iter(())


class _Recorder(pads.FileSystemDataset):  # type: ignore[misc]
    """A dataset without rows that keeps the filters it is asked for."""

    pushed: list[Any]

    def scanner(self, columns: Any = None, filter: Any = None, **_: Any) -> Any:  # noqa: A002
        self.pushed.append(filter)
        return _Scanner(_projected(self.schema, columns))

    def get_fragments(self, filter: Any = None) -> Any:  # noqa: A002
        return [_Fragment()]


class _Fragment:
    def scanner(self, schema: pa.Schema, columns: Any = None, **_: Any) -> Any:
        return _Scanner(_projected(schema, columns))


def _projected(schema: pa.Schema, columns: list[str] | None) -> pa.Schema:
    return schema if columns is None else pa.schema([schema.field(name) for name in columns])


SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("i", pa.int32()),
        ("f", pa.float64()),
        ("t", pa.string()),
        ("yes", pa.bool_()),
        ("d", pa.date32()),
        ("ts", pa.timestamp("us")),
        ("tz", pa.timestamp("us", "UTC")),
        ("n", pa.decimal128(10, 2)),
        ("x", pa.binary()),
        ("Odd name", pa.int64()),
    ]
)

# What DataFusion hands over, as our text with the types that it gives to constants.
PUSHED: list[tuple[str, str | None]] = [
    ("a = 5", "a = 5"),
    ("5 < a", "a > 5"),
    ("a <> 5", "a <> 5"),
    ("a >= 5", "a >= 5"),
    ("a <= -5", "a <= -5"),
    ("a BETWEEN 1 AND 3", "a >= 1 AND a <= 3"),
    ("a IS NULL", "a IS NULL"),
    ("a IS NOT NULL", "a IS NOT NULL"),
    ("NOT (a IS NULL)", "a IS NOT NULL"),
    ("yes", "yes"),
    ("NOT yes", "NOT yes"),
    ("yes = false", "NOT yes"),
    ("a = 1 OR i = 2", "a = 1 OR i = CAST('2' AS INTEGER)"),
    ("a > 1 AND i < 2", "a > 1 AND i < CAST('2' AS INTEGER)"),
    ("NOT (a > 1 AND yes)", "a <= 1 OR NOT yes"),
    ("a IN (1, 2)", "a = 1 OR a = 2"),
    ("a IN (1, 2, 3, 4)", "a IN (1, 2, 3, 4)"),
    ("a NOT IN (1, 2, 3, 4)", "a NOT IN (1, 2, 3, 4)"),
    ("a IN (1, 2, 3, 4, NULL)", None),
    ("t IN ('u', 'v', 'w', 'x')", "t IN ('u'::text, 'v'::text, 'w'::text, 'x'::text)"),
    ("t = 'it''s'", "t = 'it''s'::text"),
    ("t > ''", "t > ''::text"),
    ("f > 1.5", "f > '1.5'::float8"),
    ("f = 'NaN'", "f = 'NaN'::float8"),
    ("f IN (1, 2, 3, 4.5)", "f IN ('1'::float8, '2'::float8, '3'::float8, '4.5'::float8)"),
    ("d = DATE '2013-01-01'", "d = DATE '2013-01-01'"),
    ("ts < TIMESTAMP '2013-01-01 00:00:00'", "ts < TIMESTAMP '2013-01-01 00:00:00'"),
    (
        "tz >= TIMESTAMP '2013-01-01 00:00:00Z'",
        "tz >= TIMESTAMPTZ '2013-01-01 00:00:00Z'",
    ),
    ("n = 1.50", "n = '1.50'::decimal(10,2)"),
    ("x = X'00ff'", "x = X'00ff'"),
    ('"Odd name" = 1', '"Odd name" = 1'),
    ("a = i", None),
    ("extract(year FROM d) = 2013", "d >= DATE '2013-01-01' AND d < DATE '2014-01-01'"),
    ("cast(a AS varchar) = '5'", "a = 5"),
]


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[Any]]:
    pushed: list[Any] = []
    return _registered(tmp_path_factory.mktemp("nothing"), pushed), pushed


def _registered(folder: Path, pushed: list[Any]) -> datafusion.SessionContext:
    schema = SCHEMA
    dataset = _Recorder(
        [],
        schema,
        pads.ParquetFileFormat(),
        pa.fs.SubTreeFileSystem(str(folder), pa.fs.LocalFileSystem()),
    )
    dataset.pushed = pushed
    context = datafusion.SessionContext()
    context.register_table("t", dataset)
    return context


@pytest.mark.parametrize(("where", "ours"), PUSHED, ids=[where for where, _ in PUSHED])
def test_filters_pushed_by_datafusion_keep_its_rows(
    recorder: tuple[Any, list[Any]], where: str, ours: str | None
) -> None:
    context, pushed = recorder
    pushed.clear()
    context.sql(f"SELECT a FROM t WHERE {where}").collect()
    filters = [item for item in pushed if item is not None]
    if ours is None:
        assert not filters
    else:
        assert pushed_predicate(filters[-1]) == parse_predicate(ours)
