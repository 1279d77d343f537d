"""Functions at the edges of their types, and the claims that the registry makes of them."""

from __future__ import annotations

import decimal
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.evaluate import compute
from rowsieve.predicate.functions.casting.casts import cast, cast_rule
from rowsieve.predicate.functions.registry import FUNCTIONS, known_of, resolve
from rowsieve.predicate.functions.row import Argument, Direction
from rowsieve.predicate.literal_values import int_range
from rowsieve.predicate.semantics import NanOrder, OnFailure, Semantics
from rowsieve.types.logical import (
    Bool,
    Date,
    Decimal,
    Field,
    Float,
    Int,
    LogicalType,
    String,
    Timestamp,
)
from rowsieve.types.schema import Schema
from tests.oracle import Oracle
from tests.oracle_values import Cell, Failed, exact_arithmetic
from tests.profiles import examples
from tests.strategies import COLUMN_TYPES, arrow_array, values_of

D = decimal.Decimal
INT_TYPES = [Int(bits, signed) for bits in (8, 16, 32, 64) for signed in (True, False)]


@st.composite
def integer_pairs(draw: st.DrawFn) -> tuple[Int, list[int], list[int]]:
    type_ = draw(st.sampled_from(INT_TYPES))
    low, high = int_range(type_)
    root = int(high**0.5)
    edges = [low, low + 1, 0, 1, 2, 3, root - 1, root, root + 1, high // 2, high - 1, high]
    edges += [-edge for edge in edges if low <= -edge <= high]
    pool = st.sampled_from(edges) | st.integers(low, high)
    pairs = draw(st.lists(st.tuples(pool, pool), min_size=1, max_size=20))
    return type_, [a for a, _ in pairs], [b for _, b in pairs]


@examples(200)
@given(integer_pairs(), st.sampled_from(["add", "subtract", "multiply", "divide", "modulo"]))
def test_whole_numbers_are_exact_or_fail(
    pairs: tuple[Int, list[int], list[int]], function: str
) -> None:
    type_, left, right = pairs
    row, signature = resolve(function, [Argument(type_), Argument(type_)])
    arrays = [arrow_array(left, type_), arrow_array(right, type_)]
    computed = row.evaluate(arrays, signature, Semantics.SQL)
    wrapped = row.evaluate(
        arrays, signature, replace(Semantics.SQL, integer_overflow=OnFailure.WRAP)
    )
    low, high = int_range(type_)
    for i, (a, b) in enumerate(zip(left, right, strict=True)):
        failed = computed.failed is not None and bool(computed.failed[i])
        if function in ("divide", "modulo") and b == 0:
            assert failed
            continue
        exact = int(exact_arithmetic(function, [Fraction(a), Fraction(b)], type_))
        assert failed == (not low <= exact <= high)
        assert computed.values[i].as_py() == (None if failed else exact)
        assert (wrapped.values[i].as_py() - exact) % (1 << type_.bits) == 0


@examples(200)
@given(st.data())
def test_casts_agree_with_the_oracle(data: st.DataObject) -> None:
    types = [*COLUMN_TYPES.values(), Decimal(38, 38), Decimal(3, 0), Int(16), Int(32, signed=False)]
    pairs = [(a, b) for a in types for b in types if cast_rule(a, b) is not None and a != b]
    source, target = data.draw(st.sampled_from(pairs))
    pool = values_of(source)
    if source == String():
        pool = pool | st.sampled_from(SPELLED)
    values = data.draw(st.lists(st.none() | pool, min_size=1, max_size=8))
    # what Spark reads of a text is judged by Spark, in test_spark_texts.py
    judged = (Semantics.SQL,) if source == String() else (Semantics.SQL, Semantics.SPARK)
    for semantics in judged:
        computed = cast(arrow_array(values, source), source, target, semantics)
        oracle = Oracle(Schema(0, ()), semantics)
        wanted: list[Any] = []
        for value in values:
            try:
                wanted.append(oracle.cast(Cell(source, value), target, try_=False).value)
            except Failed:
                wanted.append(Failed)
        failed = np.zeros(len(values), bool) if computed.failed is None else computed.failed
        found = [
            Failed
            if bad
            else (cell.value if pa.types.is_temporal(cell.type) and cell.is_valid else cell.as_py())
            for cell, bad in zip(computed.values, failed, strict=True)
        ]
        assert repr(found) == repr(wanted)
        assert cast_rule(source, target).can_fail or not failed.any()  # type: ignore[union-attr]


_SPELLED_NUMBERS = [
    "0.",
    "-00.",
    "5.",
    "-",
    "+",
    "-0",
    "+7",
    "007",
    "9999999999999999999999999999999999999999",
    "127",
    "128",
    "-128",
    "-129",
    "1.",
    ".5",
    ".",
    "1.5",
    "-2.5",
    "0.005",
    "10000000000000000000000000000000000000",
    "1e5",
    "1e400",
    "-1e-400",
    "0x10",
    "1_000",
    "NaN",
    "-nan",
    "+inf",
    "-Infinity",
    "00000000000000000000000000000000000000000000000009",
    "infinit",
    "TRUE",
    "f",
    "Off",
    "yes!",
    "\N{ARABIC-INDIC DIGIT THREE}",
    "\N{FULLWIDTH DIGIT ONE}",
]
_SPELLED_DATES = [
    "2013-01-01",
    "2013-1-1",
    "2012-02-29",
    "2013-02-29",
    "0000-01-01",
    "9999-12-31",
    "2013-01-01 10:30",
    "2013-01-01T10:30:59.123456",
    "2013-01-01 10:30:60",
    "2013-01-01 24:00",
    "2013-01-01 10:30Z",
    "2013-01-01 10:30+05:30",
    "2013-01-01 10:30 -0530",
    "2013-01-01 10:30+05",
    "2013-01-01 10:30+16",
]
_SPELLED_OTHERS = [
    "10:30",
    "10:30:59.5",
    " 23:59:59.999999",
    "24:00",
    "10:60",
    "10:30:00.1234567",
    "00000000-0000-0000-0000-00000000000A",
    "{00000000-0000-0000-0000-00000000000a}",
    "{0000000000000000000000000000000a",
    "0" * 32,
    "0" * 31 + "g",
    "0000-0000-0000-0000-0000-0000-0000-0000",
]
SPELLED = ["", " ", " 12 ", *_SPELLED_NUMBERS, *_SPELLED_DATES, *_SPELLED_OTHERS]


def claims() -> list[tuple[str, LogicalType, ir.Call | ir.Cast]]:
    """Functions of the column `x` with constants beside it, for every claim of monotony."""
    found: list[tuple[str, LogicalType, ir.Call | ir.Cast]] = []
    x = ir.Column("x")
    constants = [ir.Literal(value) for value in (-3, 2, 0)]
    numeric: list[LogicalType] = [*INT_TYPES, Float(32), Float(64), Decimal(6, 2)]
    for type_ in numeric:
        names = ("add", "subtract", "multiply", "divide", "modulo")
        exact_only = isinstance(type_, Decimal) or type_ == Int(64, signed=False)
        for name in names[:-1] if exact_only else names:
            found += [(name, type_, ir.Call(name, (x, constant))) for constant in constants]
            found += [(name, type_, ir.Call(name, (constant, x))) for constant in constants]
        found += [(name, type_, ir.Call(name, (x,))) for name in ("negate", "abs", "floor", "ceil")]
    instants: list[LogicalType] = [Date(), Timestamp(), Timestamp(utc=True)]
    for type_ in instants:
        for unit in ("hour", "day", "week", "month", "quarter", "year", "century", "millennium"):
            found.append(("date_trunc", type_, ir.Call("date_trunc", (ir.Literal(unit), x))))
        for field in ("year", "month", "day", "week", "dow", "doy", "epoch"):
            found.append(("extract", type_, ir.Call("extract", (ir.Literal(field), x))))
    types = list(COLUMN_TYPES.values())
    for source in types:
        found += [
            ("cast", source, ir.Cast(x, target))
            for target in types
            if target != source and cast_rule(source, target) is not None
        ]
    return found


@examples(400)
@given(st.sampled_from(claims()), st.data())
def test_a_monotone_function_stays_between_its_ends(
    claim: tuple[str, LogicalType, ir.Call | ir.Cast], data: st.DataObject
) -> None:
    """And is defined between them: what the registry claims, on three values in order."""
    _, type_, node = claim
    pool = values_of(type_).filter(is_plain)
    values = sorted(data.draw(st.lists(pool, min_size=3, max_size=3)), key=ordering)
    operand = bind_operand(node, Schema(0, (Field(1, "x", type_),)))
    batch = pa.record_batch({"x": arrow_array(values, type_)})
    results, failed = compute(operand, batch)
    if not is_claimed(operand.root) or failed[0] or failed[2]:
        return
    assert not failed[1]
    first, middle, last = (
        cell.value if pa.types.is_temporal(cell.type) else cell.as_py() for cell in results
    )
    assert first <= middle <= last or first >= middle >= last


def is_plain(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def ordering(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def type_of(operand: ir.Operand) -> LogicalType:
    assert isinstance(operand, ir.BoundColumn | ir.Literal | ir.Cast)
    assert operand.type is not None
    return operand.type


def is_claimed(root: ir.Operand) -> bool:
    """Whether the registry claims that the outermost function is monotone in its column."""
    if isinstance(root, ir.Cast):
        rule = cast_rule(type_of(root.operand), root.type)
        return rule is not None and rule.increasing
    assert isinstance(root, ir.Call)
    types = [type_of(argument) for argument in root.arguments]
    row, signature = resolve(root.function, known_of(root.arguments, types))
    moving = [
        i for i, argument in enumerate(root.arguments) if not isinstance(argument, ir.Literal)
    ]
    return all(row.direction(signature)[i] is not Direction.NONE for i in moving)


def test_every_row_has_a_name_of_its_own_and_says_how_it_is_used() -> None:
    for name, row in FUNCTIONS.items():
        assert row.name == name == name.lower()
        assert row.usage


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (ir.Call("divide", (ir.Literal(7), ir.Literal(-2))), -3),
        (ir.Call("modulo", (ir.Literal(-7), ir.Literal(2))), -1),
        (ir.Call("divide", (ir.Literal(D("1.00")), ir.Literal(3))), D("0.3333333333333")),
        (ir.Call("divide", (ir.Literal(D("2.00")), ir.Literal(3))), D("0.6666666666667")),
        (ir.Call("divide", (ir.Literal(D("-2.00")), ir.Literal(3))), D("-0.6666666666667")),
        (ir.Call("multiply", (ir.Literal(D("1.5")), ir.Literal(D("1.5")))), D("2.25")),
        (ir.Call("add", (ir.Literal(2**31 - 1), ir.Literal(2**31))), 2**32 - 1),
        (ir.Call("modulo", (ir.Literal(2**64 - 1, Int(64, signed=False)), ir.Literal(10))), 5),
        (ir.Call("floor", (ir.Literal(D("-1.5")),)), D(-2)),
        (ir.Call("ceil", (ir.Literal(D("99.5")),)), D(100)),
        (ir.Call("ceil", (ir.Literal(-0.5),)), 0.0),
        (ir.Call("substr", (ir.Literal("hello"), ir.Literal(0), ir.Literal(3))), "he"),
        (ir.Call("substr", (ir.Literal("hello"), ir.Literal(2))), "ello"),
        (ir.Call("concat", (ir.Literal("a"), ir.Literal(None), ir.Literal("b"))), "ab"),
        (ir.Call("concat_strict", (ir.Literal("a"), ir.Literal(None))), None),
        (ir.Call("length", (ir.Literal("é\U0010ffff"),)), 2),
        (ir.Call("length", (ir.Literal(b"\xc3\xa9"),)), 2),
        (ir.Call("greatest", (ir.Literal(None), ir.Literal(1), ir.Literal(3))), 3),
        (ir.Call("nullif", (ir.Literal(3), ir.Literal(3))), None),
        (ir.Call("extract_hour", (ir.Literal(3_600_000_000, Timestamp()),)), 1),
        (
            ir.Call("extract", (ir.Literal("second"), ir.Literal(1_500_000, Timestamp()))),
            D("1.500000"),
        ),
        (ir.Call("starts_with", (ir.Literal("abc"), ir.Literal("ab"))), True),
        (ir.Cast(ir.Literal(2.5), Int(32)), 2),
        (ir.Cast(ir.Literal(D("2.5")), Int(32)), 3),
        (ir.Cast(ir.Literal(D("0.00000001")), String()), "0.00000001"),
        (ir.Cast(ir.Literal("t"), Bool()), True),
        (ir.Cast(ir.Literal("x"), Int(32), try_=True), None),
    ],
    ids=repr,
)
def test_results(call: ir.Call | ir.Cast, wanted: Any) -> None:
    batch = pa.record_batch({"x": pa.array([1])})
    values, failed = compute(bind_operand(call, Schema(0, ())), batch)
    assert not failed.any()
    assert values.to_pylist() == [wanted]


@pytest.mark.parametrize("type_", [type_ for type_ in INT_TYPES if type_.signed], ids=str)
@pytest.mark.parametrize("function", ["multiply", "divide"])
def test_the_least_number_has_no_opposite(type_: Int, function: str) -> None:
    low, _ = int_range(type_)
    row, signature = resolve(function, [Argument(type_), Argument(type_)])
    sides = [arrow_array([low, low + 1], type_), arrow_array([-1, -1], type_)]
    for arguments in (sides, sides[::-1]) if function == "multiply" else (sides,):
        computed = row.evaluate(arguments, signature, Semantics.SQL)
        assert computed.failed is not None
        assert computed.failed.tolist() == [True, False]
        assert computed.values.to_pylist() == [None, -(low + 1)]


def test_divisions_by_zero_as_the_semantics_say() -> None:
    schema = Schema(0, (Field(1, "x", Int(32)), Field(2, "y", Float())))
    batch = pa.record_batch({"x": pa.array([0], pa.int32()), "y": pa.array([0.0])})
    whole = ir.Call("divide", (ir.Literal(1), ir.Column("x")))
    real = ir.Call("divide", (ir.Literal(1.0), ir.Column("y")))

    def result(call: ir.Call, semantics: Semantics) -> Any:
        values, failed = compute(bind_operand(call, schema, semantics), batch)
        return "failed" if failed[0] else values[0].as_py()

    assert result(whole, Semantics.SQL) == result(real, Semantics.SQL) == "failed"
    assert result(whole, replace(Semantics.SQL, integer_division_by_zero=OnFailure.NULL)) is None
    assert result(whole, Semantics.DUCKDB) == "failed"
    assert result(real, Semantics.DUCKDB) == float("inf")
    assert result(real, replace(Semantics.SQL, nan=NanOrder.IEEE)) == "failed"


def test_the_first_unit_of_all_begins_with_the_least_timestamp() -> None:
    schema = Schema(0, (Field(1, "x", Timestamp()),))
    ends = arrow_array([-(2**63), 2**63 - 1, None], Timestamp())
    for unit in ("day", "week", "month", "millennium"):
        call = ir.Call("date_trunc", (ir.Literal(unit), ir.Column("x")))
        values, failed = compute(bind_operand(call, schema), pa.record_batch({"x": ends}))
        assert not failed.any()
        assert values[0].value == -(2**63)
        assert values[1].value <= 2**63 - 1
        assert not values[2].is_valid
