"""Lists and structs compare as the slow, obvious comparison of their values does."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.codec import predicate_from_json, predicate_to_json
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.predicate.literal_values import array_of, from_scalar
from rowsieve.predicate.semantics import NestedNulls, Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import (
    Field,
    Float,
    Int,
    Json,
    List,
    LogicalType,
    Map,
    String,
    Struct,
)
from rowsieve.types.schema import Schema
from tests.profiles import examples
from tests.stats.manifests import collected, manifest

LISTS = List(Field(11, "element", Float(64)))
DEEP = List(
    Field(
        12,
        "element",
        Struct((Field(13, "a", Int(32)), Field(14, "b", List(Field(15, "element", String()))))),
    )
)
PAIRS = Struct((Field(21, "x", Int(64)), Field(22, "y", Float(32))))
_INNER = Struct((Field(31, "y", Float(64)), Field(32, "z", String())))
RECORDS = Struct((Field(33, "x", Int(32)), Field(34, "inner", _INNER), Field(35, "last", Int(8))))
TYPES: dict[str, LogicalType] = {"l": LISTS, "d": DEEP, "p": PAIRS, "r": RECORDS}
SCHEMA = Schema(
    0, tuple(Field(place, name, type_) for place, (name, type_) in enumerate(TYPES.items(), 1))
)
TOTAL = ("sql", "datafusion", "spark", "duckdb")


def physical(type_: LogicalType) -> st.SearchStrategy[Any]:
    """Few values, so that many are equal."""
    match type_:
        case List(element=element):
            filled = st.lists(physical(element.type), max_size=3).map(tuple)
        case Struct(fields=fields):
            filled = st.tuples(*(physical(field.type) for field in fields))
        case Float():
            filled = st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf])
        case String():
            filled = st.sampled_from(["", "a", "ß", "ab"])
        case _:
            filled = st.sampled_from([0, 1, -1])
    return st.none() | filled


def order(a: Any, b: Any, rules: Semantics) -> int:
    """-1, 0 or 1 of two values inside a list or struct, NULL among them."""
    if a is None or b is None:
        sign = (a is None) - (b is None)
        return -sign if rules.nested_nulls is NestedNulls.LEAST else sign
    if isinstance(a, tuple):
        for one, other in zip(a, b, strict=False):
            if (sign := order(one, other, rules)) != 0:
                return sign
        return int(np.sign(len(a) - len(b)))
    if isinstance(a, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) - math.isnan(b)
        if rules.nested_zeros_differ and a == b == 0:
            return int(np.sign(math.copysign(1, a) - math.copysign(1, b)))
    return int(a > b) - int(a < b)


def judged(op: ir.ComparisonOp, a: Any, b: Any, rules: Semantics) -> bool | None:
    if op in (ir.ComparisonOp.DISTINCT, ir.ComparisonOp.NOT_DISTINCT):
        return (order(a, b, rules) != 0) is (op is ir.ComparisonOp.DISTINCT)
    if a is None or b is None:
        return None
    sign = order(a, b, rules)
    return {
        ir.ComparisonOp.EQ: sign == 0,
        ir.ComparisonOp.NE: sign != 0,
        ir.ComparisonOp.LT: sign < 0,
        ir.ComparisonOp.LE: sign <= 0,
        ir.ComparisonOp.GT: sign > 0,
        ir.ComparisonOp.GE: sign >= 0,
    }[op]


def batch_of(cells: dict[str, list[Any]]) -> pa.RecordBatch:
    rows = len(next(iter(cells.values())))
    columns = [array_of(cells.get(name, [None] * rows), type_) for name, type_ in TYPES.items()]
    return pa.record_batch(columns, list(TYPES))


def verdicts(predicate: ir.Predicate, batches: list[pa.RecordBatch], rules: Semantics) -> list[int]:
    known = manifest(
        [batch.num_rows for batch in batches],
        [collected(batch, SCHEMA) for batch in batches],
        SCHEMA,
    )
    found: list[int] = interpret(bind(predicate, SCHEMA, rules), known).tolist()
    return found


def answers(predicate: ir.Predicate, batch: pa.RecordBatch, rules: Semantics) -> list[bool | None]:
    found = evaluate(bind(predicate, SCHEMA, rules), batch)
    assert not found.failed.any()
    return [None if null else bool(true) for true, null in zip(found.true, found.null, strict=True)]


@pytest.mark.parametrize("name", ["l", "p"])
@pytest.mark.parametrize("untyped", [["{1}"], [None, "[1]"], [1], [b"x"]])
def test_members_without_a_type_are_not_read_as_nulls(name: str, untyped: list[Any]) -> None:
    with pytest.raises(InvalidPredicate, match=r"compared with|has no meaning"):
        bind(ir.InList(ir.Column(name), ir.ValueSet(pa.array(untyped))), SCHEMA)


def test_nested_members_have_the_type_of_their_array() -> None:
    members = pa.array([[1.5], None, [2.0, None]], pa.large_list(pa.float32()))
    listed = ir.InList(ir.Column("l"), ir.ValueSet(members.cast(pa.list_(pa.float64()))))
    found = answers(listed, batch_of({"l": [(1.5,), (), (2.0, None)]}), Semantics.SQL)
    assert found == [True, None, True]


@examples(150)
@given(data=st.data())
def test_a_column_compares_with_a_constant_like_its_values(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(list(TYPES)))
    rules = Semantics.named(data.draw(st.sampled_from(TOTAL)))
    op = data.draw(st.sampled_from(list(ir.ComparisonOp)))
    cells = data.draw(st.lists(physical(TYPES[name]), max_size=6))
    constant = data.draw(physical(TYPES[name]) | st.sampled_from([*cells, None]))
    predicate = ir.Comparison(op, ir.Column(name), ir.Literal(constant, TYPES[name]))
    found = answers(predicate, batch_of({name: cells}), rules)
    assert found == [judged(op, cell, constant, rules) for cell in cells]
    assert predicate_from_json(predicate_to_json(predicate)) == predicate


@examples(60)
@given(data=st.data())
def test_two_columns_compare_row_by_row_in_any_slice(data: st.DataObject) -> None:
    type_ = data.draw(st.sampled_from(list(TYPES.values())))
    schema = Schema(0, (Field(1, "a", type_), Field(2, "b", type_)))
    rules = Semantics.named(data.draw(st.sampled_from(TOTAL)))
    op = data.draw(st.sampled_from(list(ir.ComparisonOp)))
    pairs = data.draw(st.lists(st.tuples(physical(type_), physical(type_)), max_size=6))
    start = data.draw(st.integers(0, len(pairs)))
    columns = [array_of([pair[place] for pair in pairs], type_) for place in (0, 1)]
    batch = pa.record_batch(columns, ["a", "b"]).slice(start)
    found = evaluate(bind(ir.Comparison(op, ir.Column("a"), ir.Column("b")), schema, rules), batch)
    wanted = [judged(op, a, b, rules) for a, b in pairs[start:]]
    assert found.true.tolist() == [answer is True for answer in wanted]
    assert found.null.tolist() == [answer is None for answer in wanted]


@examples(60)
@given(data=st.data())
def test_a_list_of_nested_values_is_an_or_of_equals(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(list(TYPES)))
    rules = Semantics.named(data.draw(st.sampled_from(TOTAL)))
    cells = data.draw(st.lists(physical(TYPES[name]), max_size=5))
    members = data.draw(st.lists(physical(TYPES[name]), max_size=3))
    listed = ir.InList(ir.Column(name), ir.ValueSet(array_of(members, TYPES[name]), TYPES[name]))
    for negated in (False, True):
        found = answers(ir.Not(listed) if negated else listed, batch_of({name: cells}), rules)
        for cell, answer in zip(cells, found, strict=True):
            each = [judged(ir.ComparisonOp.EQ, cell, member, rules) for member in members]
            wanted = True if True in each else None if None in each else False
            if cell is None:
                wanted = None
            assert answer is (None if wanted is None else wanted is not negated)


@examples(150)
@given(data=st.data())
def test_a_verdict_on_nested_values_never_contradicts_the_rows(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(list(TYPES)))
    rules = Semantics.named(data.draw(st.sampled_from((*TOTAL, "trino"))))
    equalities = [op for op in ir.ComparisonOp if op.value in ("=", "<>") or "DISTINCT" in op.value]
    op = data.draw(
        st.sampled_from(equalities if rules is Semantics.TRINO else list(ir.ComparisonOp))
    )
    cells = st.lists(physical(TYPES[name]), min_size=1, max_size=4)
    parts = data.draw(st.lists(cells, min_size=1, max_size=4))
    constant = data.draw(
        physical(TYPES[name]) | st.sampled_from([cell for part in parts for cell in part])
    )
    sides: list[ir.Operand] = [ir.Column(name), ir.Literal(constant, TYPES[name])]
    predicate: ir.Predicate = ir.Comparison(op, *data.draw(st.permutations(sides)))
    if data.draw(st.booleans()):
        predicate = ir.Not(predicate)
    batches = [batch_of({name: part}) for part in parts]
    for verdict, batch in zip(verdicts(predicate, batches, rules), batches, strict=True):
        found = answers(predicate, batch, rules)
        assert verdict != Verdict.NONE or True not in found
        assert verdict != Verdict.ALL or found == [True] * len(found)


def test_an_equality_prunes_by_length_items_and_members() -> None:
    parts = [
        batch_of({"l": [(1.0,), (2.0,)], "p": [(1, 1.5), (2, 1.5)]}),
        batch_of({"l": [(1.0, 2.0)], "p": [(5, 1.5)]}),
        batch_of({"l": [(9.0,)], "p": [(1, 9.0)]}),
    ]
    for name, constant in (("l", (1.0,)), ("p", (1, 1.5))):
        predicate = ir.Comparison(
            ir.ComparisonOp.EQ, ir.Column(name), ir.Literal(constant, TYPES[name])
        )
        found = verdicts(predicate, parts, Semantics.SQL)
        assert found == [Verdict.SOME, Verdict.NONE, Verdict.NONE]


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_an_order_prunes_by_members_from_the_first_on(operator: str) -> None:
    parts = [
        batch_of({"r": [(1, (0.5, "b"), 1), (1, (0.5, "b"), 2)]}),
        batch_of({"r": [(1, (0.5, "b"), 3)]}),
        batch_of({"r": [(1, (0.5, "c"), 0), (2, (9.0, "z"), 0)]}),
        batch_of({"r": [(None, (0.0, "a"), 0)]}),
        batch_of({"r": [(1, (0.0, "a"), None), None]}),
    ]
    op = ir.ComparisonOp(operator)
    constant = ir.Literal((1, (0.5, "b"), 3), RECORDS)
    for rules, null_sign in ((Semantics.SQL, 1), (Semantics.named("datafusion"), -1)):
        signs = (-1, 0, 1, null_sign)  # of the rows of a part, beside the constant
        wanted = [Verdict.ALL if judged(op, sign, 0, rules) else Verdict.NONE for sign in signs]
        some = judged(op, -1, 0, rules) or judged(op, null_sign, 0, rules)  # fields may be NULL
        wanted.append(Verdict.SOME if some else Verdict.NONE)
        assert verdicts(ir.Comparison(op, ir.Column("r"), constant), parts, rules) == wanted


def test_an_order_prunes_by_the_items_of_lists() -> None:
    parts = [
        batch_of({"l": [(2.0, 5.0), (3.0,)]}),
        batch_of({"l": [(2.0, 5.0), ()]}),
        batch_of({"l": [(None, 5.0)]}),
        batch_of({"l": [(7.0,)]}),
        batch_of({"l": [(), None]}),
    ]
    some, none, every = Verdict.SOME, Verdict.NONE, Verdict.ALL
    sql, datafusion = Semantics.SQL, Semantics.named("datafusion")
    for op, constant, rules, wanted in (
        ("<", (1.0,), sql, [none, some, none, none, some]),
        ("<", (2.0,), sql, [none, some, none, none, some]),
        ("<=", (2.0,), sql, [some, some, none, none, some]),  # one item may be equal
        ("<", (), sql, [none, none, none, none, none]),
        (">", (), sql, [every, some, every, every, some]),
        (">", (6.0,), datafusion, [none, none, none, some, none]),  # NULL is least
        (">=", (2.0, 5.0), datafusion, [some, some, some, some, none]),
    ):
        predicate = ir.Comparison(
            ir.ComparisonOp(op), ir.Column("l"), ir.Literal(constant, TYPES["l"])
        )
        assert verdicts(predicate, parts, rules) == wanted, (op, constant)


UNKNOWN: list[tuple[Any, Any, bool | None]] = [
    ((1.0,), (1.0,), True),
    ((1.0, None), (1.0, None), None),
    ((1.0, None), (2.0, None), False),
    ((1.0, None), (1.0,), False),
    ((None,), (1.0,), None),
    ((math.nan,), (math.nan,), False),
    ((), (), True),
]


@pytest.mark.parametrize(("a", "b", "equal"), UNKNOWN)
def test_null_inside_makes_an_equality_null_under_the_standard(
    a: Any, b: Any, equal: bool | None
) -> None:
    batch = batch_of({"l": [a]})
    unequal = None if equal is None else not equal
    for op, wanted in ((ir.ComparisonOp.EQ, equal), (ir.ComparisonOp.NE, unequal)):
        predicate = ir.Comparison(op, ir.Column("l"), ir.Literal(b, LISTS))
        assert answers(predicate, batch, Semantics.TRINO) == [wanted]
    same = ir.Comparison(ir.ComparisonOp.NOT_DISTINCT, ir.Column("l"), ir.Literal(b, LISTS))
    assert answers(same, batch, Semantics.TRINO) == [order(a, b, Semantics.TRINO) == 0]


NUMBERS: list[tuple[LogicalType, tuple[Any, ...], bool]] = [
    (Int(64), (1, 2), False),
    (Int(64, signed=False), (2**63,), False),
    (Int(32), (0,), True),
    (Float(64), (0.0,), True),
]


@pytest.mark.parametrize(("inner", "items", "equal"), NUMBERS)
def test_numbers_of_other_widths_inside_compare_by_value(
    inner: LogicalType, items: tuple[Any, ...], equal: bool
) -> None:
    column = List(Field(11, "element", Int(8)))
    schema = Schema(0, (Field(1, "l", column),))
    constant = ir.Literal(items, List(Field(0, "item", inner)))
    bound = bind(ir.Comparison(ir.ComparisonOp.EQ, ir.Column("l"), constant), schema)
    found = evaluate(bound, pa.record_batch({"l": pa.array([[0], [1], None], arrow_type(column))}))
    assert found.true.tolist() == [equal, False, False]
    assert found.null.tolist() == [False, False, True]


REFUSED: list[tuple[Semantics, ir.ComparisonOp, Any]] = [
    (Semantics.DUCKDB, ir.ComparisonOp.EQ, ir.Literal("{1}")),
    (Semantics.SQL, ir.ComparisonOp.EQ, ir.Literal((1,), List(Field(0, "item", String())))),
    (Semantics.SQL, ir.ComparisonOp.EQ, ir.Literal((1,), Struct((Field(0, "x", Int()),)))),
    (Semantics.SQL, ir.ComparisonOp.EQ, ir.Column("m")),
    (Semantics.SQL, ir.ComparisonOp.EQ, ir.Column("j")),
    (Semantics.TRINO, ir.ComparisonOp.LT, ir.Literal((1.0,), LISTS)),
    (Semantics.PYARROW, ir.ComparisonOp.EQ, ir.Literal((1.0,), LISTS)),
    (Semantics.POLARS, ir.ComparisonOp.EQ, ir.Column("l")),
]


@pytest.mark.parametrize(("rules", "op", "other"), REFUSED, ids=str)
def test_values_without_order_or_of_another_shape_are_rejected(
    rules: Semantics, op: ir.ComparisonOp, other: Any
) -> None:
    names = Map(Field(31, "key", String(), nullable=False), Field(32, "value", Int()))
    holds = List(Field(33, "element", Json()))
    schema = Schema(0, (*SCHEMA.fields, Field(8, "m", names), Field(9, "j", holds)))
    left = other if isinstance(other, ir.Column) else ir.Column("l")
    with pytest.raises(InvalidPredicate):
        bind(ir.Comparison(op, left, other), schema, rules)


@pytest.mark.parametrize("name", TYPES)
def test_a_constant_comes_back_from_its_scalar(name: str) -> None:
    values = [None, *(cell for cell in _samples(name) if cell is not None)]
    array = array_of(values, TYPES[name])
    array.validate(full=True)
    assert array.type == arrow_type(TYPES[name])
    back = [from_scalar(scalar, TYPES[name]) for scalar in array]
    assert back == [ir.Literal(value, TYPES[name]) for value in values]


@functools.cache
def _samples(name: str) -> tuple[Any, ...]:
    return {
        "l": ((), (None,), (0.0, math.nan)),
        "d": ((), (None, (1, ("a", None))), ((None, None),)),
        "p": ((None, None), (1, 0.5)),
        "r": ((None, None, None), (1, (0.5, None), 3)),
    }[name]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("struct(n, s) > struct(1, 'x')", [2, 4]),
        ("struct(n, s) = struct(1, 'x')", [1]),
        ("struct(s, n) >= struct('x', 1)", [1, 2]),
        ("struct(n, s) IN (struct(1, 'x'))", [1]),
        ("struct(n, k) <= struct(1, 1)", [1, 3]),
    ],
)
def test_fields_without_names_compare_by_their_places(text: str, expected: list[int]) -> None:
    cells = {
        "k": pa.array([1, 2, 3, 4]),
        "n": pa.array([1, 1, None, 2], pa.int32()),
        "s": pa.array(["x", "y", "x", None]),
    }
    rows = pa.table(cells)
    table = rs.create_table(f"memory:///unnamed/{text}", rows.schema, key=["k"])
    for place in range(4):
        table.upsert(rows.slice(place, 1))
    found = table.to_arrow(text, ["k"], dialect="datafusion")
    assert sorted(found["k"].to_pylist()) == expected
