"""Names, types and constants: what binding resolves, and what it refuses."""

from __future__ import annotations

import decimal
from importlib import import_module
from typing import Any

import pyarrow as pa
import pytest

from rowsieve.errors import InvalidInput, InvalidPredicate, SchemaMismatch, UnknownColumn
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind, bind_operand
from rowsieve.predicate.evaluate import compute, evaluate, matching
from rowsieve.predicate.functions.registry import find
from rowsieve.predicate.interpret import interpret
from rowsieve.predicate.normalize import normalize
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import (
    Bool,
    Date,
    Decimal,
    Field,
    Float,
    Int,
    Json,
    List,
    LogicalType,
    String,
    Struct,
    Time,
    Timestamp,
    Uuid,
)
from rowsieve.types.schema import Schema
from tests.strategies import SCHEMA

OPS = {op.value: op for op in ir.ComparisonOp}


def compared(column: str, op: str, value: Any) -> ir.Predicate:
    return bind(ir.Comparison(OPS[op], ir.Column(column), ir.Literal(value)), SCHEMA).root


def bound(column: str) -> ir.BoundColumn:
    field = SCHEMA.field(column)
    return ir.BoundColumn(field.id, field.name, field.type)


def point(column: str, op: str, value: Any) -> ir.Comparison:
    found = bound(column)
    return ir.Comparison(OPS[op], found, ir.Literal(value, found.type))


D = decimal.Decimal


def test_a_number_beyond_all_floats_is_refused() -> None:
    with pytest.raises(InvalidPredicate, match="beyond the range of float64"):
        compared("f64", "<", D("1e400"))
    assert compared("f64", "<", 10**40) == point("f64", "<", 1e40)


@pytest.mark.parametrize(
    ("column", "op", "constant", "wanted"),
    [
        ("i32", "=", 5, point("i32", "=", 5)),
        ("i32", "=", "5", point("i32", "=", 5)),
        ("i32", "=", D("5.00"), point("i32", "=", 5)),
        ("i32", ">", D("1.5"), point("i32", ">", 1)),
        ("i32", ">=", D("1.5"), point("i32", ">", 1)),
        ("i32", "<", D("-1.5"), point("i32", "<=", -2)),
        ("d", "=", 7, point("d", "=", D("7.00"))),
        ("d", "<", D("0.005"), point("d", "<=", D("0.00"))),
        ("d", "=", "1.5", point("d", "=", D("1.50"))),
        ("f64", "=", 5, point("f64", "=", 5.0)),
        ("f64", "=", "NaN", point("f64", "=", float("nan"))),
        ("day", ">=", "2013-01-01", point("day", ">=", 15706)),
        ("ts", "=", "1970-01-01 00:00:01.5", point("ts", "=", 1_500_000)),
        ("tz", "=", "1970-01-01T01:00:00+01:00", point("tz", "=", 0)),
        ("tz", "=", "1970-01-01 00:00Z", point("tz", "=", 0)),
        ("time", "=", "00:00:01", point("time", "=", 1_000_000)),
        ("b", "=", "yes", point("b", "=", value=True)),
        ("bin", "=", "\\x00ff", point("bin", "=", b"\x00\xff")),
        ("uid", "=", "00000000-0000-0000-0000-000000000001", point("uid", "=", bytes(15) + b"\1")),
        ("s", "=", "5", point("s", "=", "5")),
        ("i32", "=", None, point("i32", "=", None)),
    ],
)
def test_a_constant_takes_the_type_of_the_column(
    column: str, op: str, constant: Any, wanted: ir.Predicate
) -> None:
    assert compared(column, op, constant) == wanted


@pytest.mark.parametrize(
    ("column", "op", "constant", "answer"),
    [
        ("i8", "=", 300, "FN"),
        ("i8", "<", 300, "TN"),
        ("i8", ">", -(2**70), "TN"),
        ("u8", "=", -1, "FN"),
        ("i8", "=", D("1.5"), "FN"),
        ("i8", "<>", D("1.5"), "TN"),
        ("i8", "<", D("1e50"), "TN"),
        ("i8", "IS DISTINCT FROM", 300, "TT"),
        ("i8", "IS NOT DISTINCT FROM", 300, "FF"),
        ("d", ">", 10**9, "FN"),
        ("d", "<>", D("0.001"), "TN"),
    ],
)
def test_a_constant_outside_the_type_is_null_for_null_alone(
    column: str, op: str, constant: Any, answer: str
) -> None:
    batch = pa.record_batch(
        {
            "i8": pa.array([7, None], pa.int8()),
            "u8": pa.array([7, None], pa.uint8()),
            "d": pa.array([D(7), None], pa.decimal128(6, 2)),
        }
    )
    outcome = evaluate(
        bind(ir.Comparison(OPS[op], ir.Column(column), ir.Literal(constant)), SCHEMA), batch
    )
    letters = [
        "T" if t else "N" if n else "F" for t, n in zip(outcome.true, outcome.null, strict=True)
    ]
    assert "".join(letters) == answer


def test_t14_decimals_of_different_scales_compare_exactly() -> None:
    schema = Schema(0, (Field(1, "a", Decimal(38, 0)), Field(2, "b", Decimal(38, 38))))
    batch = pa.record_batch(
        {
            "a": pa.array([D(10**37), D(0), D(1)], pa.decimal128(38, 0)),
            "b": pa.array([D("0.5"), D("1e-38"), D(0)], pa.decimal128(38, 38)),
        }
    )
    above = bind(ir.Comparison(ir.ComparisonOp.GT, ir.Column("a"), ir.Column("b")), schema)
    assert evaluate(above, batch).true.tolist() == [True, False, True]


def test_members_that_no_value_equals_are_dropped_and_null_stays() -> None:
    values = ir.ValueSet(pa.array([D("1.00"), D("1.50"), D("300.00"), None]))
    found = bind(ir.InList(ir.Column("i8"), values), SCHEMA).root
    assert isinstance(found, ir.InList)
    assert found.values.array.to_pylist() == [1, None]
    assert found.values.type == Int(8)


def test_decimal_members_of_many_digits_meet_whole_numbers_exactly() -> None:
    values = ir.ValueSet(pa.array([D("5"), D("5.0000000001")], pa.decimal128(38, 30)))
    found = bind(ir.InList(ir.Column("i64"), values), SCHEMA).root
    assert isinstance(found, ir.InList)
    assert found.values.array.to_pylist() == [5]


def test_bare_text_members_are_read_in_the_column_type() -> None:
    values = ir.ValueSet(pa.array(["2013-01-01", None]))
    found = bind(ir.InList(ir.Column("day"), values), SCHEMA).root
    assert isinstance(found, ir.InList)
    assert found.values.array.cast(pa.int32()).to_pylist() == [15706, None]
    uuids = bind(ir.InList(ir.Column("uid"), ir.ValueSet(pa.array(["0" * 32]))), SCHEMA).root
    assert isinstance(uuids, ir.InList)
    assert uuids.values.array.to_pylist() == [bytes(16)]


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["a", None], pa.large_string()),
        pa.array(["a", None], pa.string_view()),
        pa.array(["a", None]).dictionary_encode(),
    ],
    ids=str,
)
def test_members_of_any_text_encoding(array: pa.Array) -> None:
    found = bind(ir.InList(ir.Column("s"), ir.ValueSet(array, String())), SCHEMA).root
    assert isinstance(found, ir.InList)
    assert found.values.array.equals(pa.array(["a", None]))


def test_names_match_exactly_or_uniquely_ignoring_case() -> None:
    schema = Schema(0, (Field(1, "Ab", Int()), Field(2, "aB", Int()), Field(3, "C", Int())))
    assert bind(ir.IsNull(ir.Column("aB")), schema).columns == (ir.BoundColumn(2, "aB", Int()),)
    assert bind(ir.IsNull(ir.Column("c")), schema).columns == (ir.BoundColumn(3, "C", Int()),)
    with pytest.raises(UnknownColumn, match="ambiguous"):
        bind(ir.IsNull(ir.Column("ab")), schema)
    with pytest.raises(UnknownColumn, match="no column 'd'"):
        bind(ir.IsNull(ir.Column("d")), schema)


NESTED = Schema(
    3,
    (
        Field(1, "list", List(Field(2, "element", Int()))),
        Field(3, "json", Json()),
        Field(4, "pair", Struct((Field(5, "X", Int()),))),
        Field(6, "i", Int(32)),
        Field(7, "s", String()),
        Field(8, "ts", Timestamp()),
        Field(9, "tz", Timestamp(utc=True)),
        Field(10, "u", Uuid()),
    ),
)


@pytest.mark.parametrize(
    ("predicate", "fragment"),
    [
        (
            ir.Comparison(ir.ComparisonOp.EQ, ir.Column("list"), ir.Literal("{{1}}")),
            "write its items",
        ),
        (
            ir.Comparison(ir.ComparisonOp.LT, ir.Column("json"), ir.Literal("{}")),
            "cannot be compared",
        ),
        (ir.Comparison(ir.ComparisonOp.EQ, ir.Column("pair"), ir.Column("list")), "of one shape"),
        (
            ir.Comparison(ir.ComparisonOp.EQ, ir.Column("i"), ir.Literal("x")),
            "'x' is not a valid int32",
        ),
        (
            ir.Comparison(ir.ComparisonOp.EQ, ir.Column("i"), ir.Literal("x", String())),
            "no meaning",
        ),
        (
            ir.Comparison(ir.ComparisonOp.EQ, ir.Column("ts"), ir.Literal("2013-02-30")),
            "'2013-02-30'",
        ),
        (
            ir.Comparison(ir.ComparisonOp.EQ, ir.Column("ts"), ir.Literal("2013-01-01 00:00Z")),
            "offset",
        ),
        (
            ir.Comparison(ir.ComparisonOp.EQ, ir.Column("u"), ir.Literal("abc")),
            "'abc' is not a valid uuid",
        ),
        (ir.Comparison(ir.ComparisonOp.EQ, ir.Column("s"), ir.Literal(5)), "cast a side"),
        (ir.BooleanOperand(ir.Column("i")), "expected a condition"),
        (ir.Like(ir.Column("i"), "a%"), "LIKE needs text"),
        (ir.Like(ir.Column("s"), "a!", "!"), "ends in its escape"),
        (ir.IsNull(ir.Call("frobnicate", ())), "no function 'frobnicate'"),
        (ir.IsNull(ir.Call("lower", (ir.Column("i"),))), r"lower\(int32\) has no meaning"),
        (ir.IsNull(ir.Call("date_trunc", (ir.Literal("eon"), ir.Column("ts")))), "date_trunc"),
        (ir.IsNull(ir.FieldAccess(ir.Column("i"), "x")), "only a struct has fields"),
        (ir.IsNull(ir.FieldAccess(ir.Column("pair"), "y")), "not have exactly one field 'y'"),
        (ir.IsNull(ir.Cast(ir.Column("ts"), Bool())), "CAST from timestamp to bool"),
        (
            ir.IsNull(ir.Case(((ir.IsNull(ir.Column("i")), ir.Column("i")),), ir.Column("s"))),
            "no common type",
        ),
        (ir.InList(ir.Column("i"), ir.ValueSet(pa.array(["1", "x"]))), "'x' in an IN list"),
        (ir.InList(ir.Column("i"), ir.ValueSet(pa.array(["1"]), String())), "no meaning"),
        (
            ir.Comparison(ir.ComparisonOp.EQ, ir.Column("i"), ir.Literal(300, Int(8))),
            "300 is not a valid int8",
        ),
        (ir.IsNull(ir.Call("add", (ir.Column("i"), ir.Literal(10**40)))), "is not a valid decimal"),
    ],
)
def test_undefined_expressions_are_rejected_by_name(predicate: ir.Predicate, fragment: str) -> None:
    with pytest.raises(InvalidPredicate, match=fragment):
        bind(predicate, NESTED)


def test_json_is_looked_up_as_jsonb_only() -> None:
    among = ir.InList(ir.Column("json"), ir.ValueSet(pa.array(["1"])))
    assert "jsonb_eq" in str(bind(among, NESTED, Semantics.SQL).root)
    with pytest.raises(InvalidPredicate, match="cannot be looked up with IN"):
        bind(among, NESTED, Semantics.DUCKDB)


def test_nested_columns_can_be_null_and_their_members_compared() -> None:
    batch = pa.record_batch(
        {
            "list": pa.array([[1], None], pa.list_(pa.int64())),
            "pair": pa.array([{"X": 5}, None], pa.struct([("X", pa.int64())])),
        }
    )
    assert evaluate(bind(ir.IsNull(ir.Column("list")), NESTED), batch).true.tolist() == [
        False,
        True,
    ]
    member = ir.Comparison(
        ir.ComparisonOp.EQ, ir.FieldAccess(ir.Column("pair"), "x"), ir.Literal(5)
    )
    outcome = evaluate(bind(member, NESTED), batch)
    assert outcome.true.tolist() == [True, False]
    assert outcome.null.tolist() == [False, True]


def test_an_unknown_time_zone_is_refused_where_it_matters() -> None:
    nowhere = Semantics("nowhere", time_zone="Europe/Atlantis")
    mixed = ir.Comparison(ir.ComparisonOp.LT, ir.Column("ts"), ir.Column("tz"))
    with pytest.raises(InvalidPredicate, match="Europe/Atlantis"):
        bind(mixed, NESTED, nowhere)
    bind(mixed, NESTED)
    bind(ir.Comparison(ir.ComparisonOp.LT, ir.Column("ts"), ir.Column("ts")), NESTED, nowhere)


def test_now_is_one_literal_or_stays() -> None:
    recent = ir.Comparison(ir.ComparisonOp.GT, ir.Column("tz"), ir.Now())
    folded = bind(recent, NESTED, now_us=5).root
    assert folded == ir.Comparison(
        ir.ComparisonOp.GT,
        bind(ir.IsNull(ir.Column("tz")), NESTED).columns[0],
        ir.Literal(5, Timestamp(utc=True)),
    )
    open_ = bind(recent, NESTED)
    with pytest.raises(InvalidPredicate, match="now_us"):
        evaluate(open_, pa.record_batch({"tz": pa.array([0], pa.timestamp("us", "UTC"))}))


@pytest.mark.parametrize(
    ("target", "wanted"),
    [(Int(8), [1, None]), (Float(64), [1.0, None]), (Decimal(5, 1), [D("1.0"), None])],
)
def test_an_assignment_converts_to_its_target(target: LogicalType, wanted: list[Any]) -> None:
    batch = pa.record_batch({"i32": pa.array([0, None], pa.int32())})
    operand = bind_operand(ir.Call("add", (ir.Column("i32"), ir.Literal(1))), SCHEMA, target=target)
    values, failed = compute(operand, batch)
    assert operand.type == target
    assert values.to_pylist() == wanted
    assert not failed.any()


def test_an_assignment_without_a_conversion_is_refused() -> None:
    with pytest.raises(InvalidPredicate, match="int32 cannot be converted to date"):
        bind_operand(ir.Column("i32"), SCHEMA, target=Date())
    with pytest.raises(InvalidPredicate, match="'x' is not a valid time"):
        bind_operand(ir.Literal("x"), SCHEMA, target=Time())


def test_a_batch_that_is_not_the_schema_is_refused() -> None:
    predicate = bind(ir.IsNull(ir.Column("i32")), SCHEMA)
    with pytest.raises(SchemaMismatch, match="'i32'"):
        evaluate(predicate, pa.record_batch({"i64": pa.array([1])}))
    with pytest.raises(SchemaMismatch, match="int64"):
        evaluate(predicate, pa.record_batch({"i32": pa.array([1])}))


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_a_member_beyond_64_bits_of_microseconds_equals_no_time(unit: str) -> None:
    far = pa.array([-(2**63), 2**63 - 1], pa.int64()).view(pa.timestamp(unit))
    condition = bind(ir.InList(ir.Column("ts"), ir.ValueSet(far)), SCHEMA)
    rows = pa.record_batch({"ts": pa.array([0, -(2**63)], pa.timestamp("us"))})
    assert not evaluate(condition, rows).true.any()


def test_limits_are_checked_before_any_recursion() -> None:
    deep: ir.Predicate = ir.IsNull(ir.Column("i32"))
    for _ in range(10_000):
        deep = ir.Not(deep)
    for refused in (lambda: bind(deep, SCHEMA), lambda: normalize(deep)):
        with pytest.raises(InvalidPredicate, match="nests deeper than 200"):
            refused()
    wide = ir.Or(tuple(ir.IsNull(ir.Column(name)) for name in ["i32"] * 100_001))
    with pytest.raises(InvalidPredicate, match="more than 200,000 nodes"):
        bind(wide, SCHEMA)
    values = ir.ValueSet(pa.nulls(5_000_001, pa.int32()))
    long = ir.And((ir.InList(ir.Column("i32"), values), ir.InList(ir.Column("i32"), values)))
    with pytest.raises(InvalidPredicate, match="10,000,002 values"):
        bind(long, SCHEMA)


def test_a_predicate_at_the_limit_of_depth_works() -> None:
    deep: ir.Predicate = ir.IsNull(ir.Column("i32"))
    for _ in range(198):
        deep = ir.Not(deep)
    batch = pa.record_batch({"i32": pa.array([1, None], pa.int32())})
    assert evaluate(bind(deep, SCHEMA), batch).true.tolist() == [False, True]


def test_wrong_arguments_are_named() -> None:
    """A tree is not yet a condition on rows, and the names of columns are no schema."""
    tree: Any = ir.IsNull(ir.Column("i"))
    names: Any = ["i"]
    with pytest.raises(InvalidInput, match=r"schema of pyarrow or of a plan.*not to list"):
        bind(tree, names)
    batch: Any = pa.record_batch({"i": [1]})
    calls: list[Any] = [matching, evaluate, compute, interpret]
    for call in calls:
        with pytest.raises(InvalidInput, match=f"{call.__name__} takes what bind.*got IsNull"):
            call(tree, batch)


def test_a_tree_binds_to_a_schema_of_pyarrow_and_the_module_is_called() -> None:
    tree = ir.Comparison(ir.ComparisonOp.EQ, ir.Column("i"), ir.Literal(1))
    batch = pa.record_batch({"i": pa.array([1, None, 2], pa.int32())})
    called = import_module("rowsieve.predicate").bind  # the module, once that is imported
    for bound in (bind(tree, batch.schema), called(tree, batch.schema)):
        assert matching(bound, batch).tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("uper", "no function 'uper'; did you mean 'upper'"),
        ("date_trnc", "no function 'date_trnc'; did you mean 'date_trunc'"),
        ("xyzzy", "no function 'xyzzy'; rs.register_function adds one"),
    ],
)
def test_an_unknown_function_suggests_the_nearest_names(name: str, advice: str) -> None:
    with pytest.raises(InvalidPredicate) as raised:
        find(name)
    assert str(raised.value).startswith(advice)
    assert str(raised.value).count(" or ") <= 2
