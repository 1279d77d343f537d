"""An OR of many alternatives has, searched, the outcome of its terms one by one."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rowsieve.predicate import alike_terms, ir
from rowsieve.predicate.bind import BoundPredicate, bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.evaluation import boxes
from rowsieve.predicate.evaluation.box_search import RankBoxes
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Binary, Date, Field, Float, Int, LogicalType, String, Timestamp
from rowsieve.types.schema import Schema
from tests.predicate.test_evaluate import answers, expected
from tests.profiles import DEEP_FACTOR, IS_DEEP
from tests.strategies import COLUMN_TYPES, SCHEMA, SEMANTICS, arrow_array

ROUNDS = 3 * (20 * DEEP_FACTOR if IS_DEEP else 1)
OPS = [getattr(ir.ComparisonOp, name) for name in ("EQ", "EQ", "EQ", "NE", "LT", "LE", "GT", "GE")]
COLUMNS = ("i8", "i64", "u64", "f32", "f64", "s", "ts", "day")


def values_of(type_: LogicalType) -> list[Any]:
    match type_:
        case Int(bits=bits, signed=signed):
            low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
            return [low, low + 1, high, high - 1, *range(9)]
        case Float(bits=bits):
            least = 5e-324 if bits == 64 else 2.0**-149
            return [math.nan, -math.nan, math.inf, -math.inf, 0.0, -0.0, 0.5, -0.5, least, 1.5]
        case String():
            return ["", "a", "b", "ab", "é", "k7"]
        case Binary():
            return [b"", b"a", b"\xff"]
        case Date() | Timestamp():
            return [-1, *range(7)]
    raise AssertionError(type_)


def is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def term(chance: random.Random, names: tuple[str, ...]) -> ir.Predicate:
    parts: list[ir.Predicate] = []
    for name in names:
        type_, column = COLUMN_TYPES[name], ir.Column(name)
        pool = [value for value in values_of(type_) if not is_nan(value) or chance.random() < 0.2]
        for _ in range(1 + (chance.random() < 0.2)):
            if chance.random() < 0.1 and not isinstance(type_, Float):
                members = chance.sample(pool, 2) + ([None] if chance.random() < 0.2 else [])
                listed = arrow_array(members, type_)
                parts.append(ir.InList(column, ir.ValueSet(listed, type_)))
            else:
                op = ir.ComparisonOp.EQ if isinstance(type_, String) else chance.choice(OPS)
                parts.append(ir.Comparison(op, column, ir.Literal(chance.choice(pool), type_)))
    if chance.random() < 0.02:
        parts.append(ir.IsNull(ir.Column(names[0])))
    if chance.random() < 0.02:
        parts.append(ir.Comparison(ir.ComparisonOp.EQ, ir.Column(names[0]), ir.Literal(None)))
    chance.shuffle(parts)
    return parts[0] if len(parts) == 1 else ir.And(tuple(parts))


def batch_of(chance: random.Random, rows: int) -> pa.RecordBatch:
    columns = {name: pa.nulls(rows, arrow_type(type_)) for name, type_ in COLUMN_TYPES.items()}
    for name in COLUMNS:
        type_ = COLUMN_TYPES[name]
        pool = values_of(type_)
        cells = [None if chance.random() < 0.15 else chance.choice(pool) for _ in range(rows)]
        columns[name] = arrow_array(cells, type_)
    return pa.record_batch(columns)


def case(seed: int, rows: int) -> tuple[ir.Predicate, pa.RecordBatch]:
    chance = random.Random(seed)
    shapes = [tuple(chance.sample(COLUMNS, chance.choice([1, 2, 2, 3]))) for _ in range(2)]
    terms = [term(chance, shape) for shape in shapes for _ in range(chance.choice([3, 8, 40]))]
    chance.shuffle(terms)
    found: ir.Predicate = ir.Or(tuple(terms))
    if chance.random() < 0.3:
        found = ir.Not(found)
    return found, batch_of(chance, rows)


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Search few boxes, too; the list has the number of boxes of each group."""
    found: list[int] = []
    monkeypatch.setattr(alike_terms, "MIN_ALIKE", 1)
    monkeypatch.setattr("rowsieve.predicate.evaluation.box_search._BOXES_PER_SEARCH", 0)
    whole = boxes.BoxGroup.outcome

    def noted(self: boxes.BoxGroup, columns: Any) -> Any:
        found.append(len(self.starts[0]))
        return whole(self, columns)

    monkeypatch.setattr(boxes.BoxGroup, "outcome", noted)
    return found


@pytest.mark.parametrize("semantics", SEMANTICS, ids=lambda semantics: semantics.name)
def test_the_outcome_is_that_of_the_oracle(semantics: Semantics, searched: list[int]) -> None:
    for seed in range(ROUNDS):
        predicate, batch = case(seed, 25)
        found = answers(evaluate(bind(predicate, SCHEMA, semantics, simplified=False), batch))
        assert found == expected(predicate, batch, semantics), seed
    assert sum(searched) > ROUNDS


@pytest.mark.parametrize("semantics", SEMANTICS, ids=lambda semantics: semantics.name)
def test_the_outcome_is_that_of_the_terms_one_by_one(
    semantics: Semantics, searched: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(1_000, 1_000 + ROUNDS):
        predicate, batch = case(seed, 400)
        bound = bind(predicate, SCHEMA, semantics, simplified=False)
        found = answers(evaluate(bound, batch))
        with monkeypatch.context() as patch:
            patch.setattr(alike_terms, "MIN_ALIKE", 10**9)
            again = BoundPredicate(bound.root, bound.schema_id, bound.semantics)
            assert answers(evaluate(again, batch)) == found, seed
    assert searched


@pytest.mark.parametrize("kind", ["NE", "LT", "LE", "GT", "GE", "EQ"])
@pytest.mark.parametrize("name", ["i8", "i64", "u64", "f64"])
def test_comparisons_with_the_ends_of_a_type(name: str, kind: str, searched: list[int]) -> None:
    op, type_ = getattr(ir.ComparisonOp, kind), COLUMN_TYPES[name]
    same = ir.Comparison(ir.ComparisonOp.EQ, ir.Column("day"), ir.Literal(1, Date()))
    for value in values_of(type_):
        if is_nan(value) or (isinstance(value, float) and math.isinf(value)):
            continue
        one = ir.Comparison(op, ir.Column(name), ir.Literal(value, type_))
        predicate, batch = ir.Or((ir.And((one, same)),) * 4), batch_of(random.Random(3), 40)
        found = answers(evaluate(bind(predicate, SCHEMA, simplified=False), batch))
        assert found == expected(predicate, batch, Semantics.SQL)
    assert searched


@pytest.mark.parametrize("name", ["i64", "s"])
def test_lists_with_null_keep_their_outcome(name: str, searched: list[int]) -> None:
    type_ = COLUMN_TYPES[name]
    members = arrow_array([values_of(type_)[-1], None], type_)
    listed = ir.InList(ir.Column(name), ir.ValueSet(members, type_))
    terms = [term(random.Random(seed), (name, "day")) for seed in range(4)]
    same = ir.Comparison(ir.ComparisonOp.EQ, ir.Column("day"), ir.Literal(1, Date()))
    predicate, batch = ir.Or((*terms, ir.And((listed, same)))), batch_of(random.Random(3), 200)
    found = answers(evaluate(bind(predicate, SCHEMA, simplified=False), batch))
    assert found == expected(predicate, batch, Semantics.SQL)
    assert searched


@pytest.mark.parametrize("semantics", SEMANTICS, ids=lambda semantics: semantics.name)
def test_lists_of_floats_keep_their_outcome(semantics: Semantics, searched: list[int]) -> None:
    """An engine may compare the bits of a list's members, and -0.0 is not 0.0 then."""
    type_ = COLUMN_TYPES["f64"]
    same = ir.Comparison(ir.ComparisonOp.EQ, ir.Column("day"), ir.Literal(1, Date()))
    zeros = ir.InList(
        ir.Column("f64"), ir.ValueSet(arrow_array([0.0, 0.5, 1.5, math.inf], type_), type_)
    )
    terms = [term(random.Random(seed), ("i64", "day")) for seed in range(4)]
    predicate, batch = ir.Or((*terms, ir.And((zeros, same)))), batch_of(random.Random(3), 300)
    found = answers(evaluate(bind(predicate, SCHEMA, semantics, simplified=False), batch))
    assert found == expected(predicate, batch, semantics)
    assert searched


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_points_are_found_in_the_boxes_that_hold_them(
    axes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowsieve.predicate.evaluation.box_search._BOXES_PER_SEARCH", 0)
    random_ = np.random.default_rng(axes)
    for size in (1, 2, 3, 9, 40):
        for count in (1, 2, 30):
            starts = random_.integers(0, size, (axes, count))
            stops = random_.integers(0, size + 1, (axes, count))
            points = random_.integers(0, size + 1, (axes, 200))
            search = RankBoxes.of([*starts], [*stops], [size + 1] * axes)
            assert search is not None
            inside = (starts[:, None, :] <= points[:, :, None]) & (
                points[:, :, None] < stops[:, None, :]
            )
            wanted = np.any(np.all(inside, axis=0), axis=1)
            assert np.array_equal(search.contain([*points]), wanted)


def test_many_pairs_are_one_search(searched: list[int]) -> None:
    predicate = ir.Or(tuple(pair(number) for number in range(500)))
    chance = random.Random(1)
    batch = batch_of(chance, 1_000)
    evaluate(bind(predicate, SCHEMA, Semantics.SQL), batch)
    assert searched == [500]


def pair(number: int) -> ir.Predicate:
    one = ir.Comparison(ir.ComparisonOp.EQ, ir.Column("i64"), ir.Literal(number % 7, Int(64)))
    other = ir.Comparison(ir.ComparisonOp.LT, ir.Column("u64"), ir.Literal(number, Int(64)))
    return ir.And((one, other))


def test_alternatives_of_many_columns_are_not_searched(searched: list[int]) -> None:
    """Each set of columns has a search of its own, for NULL: 16 columns would have 65535."""
    schema = Schema(1, tuple(Field(place, f"c{place}", Int(64)) for place in range(1, 17)))
    terms = tuple(equal_row(value % 5, schema) for value in range(70))
    batch = pa.record_batch({name: pa.array([1, None, 9], pa.int64()) for name in schema.names})
    predicate = ir.Or(terms)
    found = evaluate(bind(predicate, schema, simplified=False), batch)
    assert answers(found) == "TNF"
    assert not searched


def equal_row(value: int, schema: Schema) -> ir.Predicate:
    parts = (
        ir.Comparison(ir.ComparisonOp.EQ, ir.Column(name), ir.Literal(value, Int(64)))
        for name in schema.names
    )
    return ir.And(tuple(parts))


def test_boxes_that_need_too_many_searches_are_not_searched() -> None:
    """Wide ranges of three columns lie in cells of many levels."""
    random_ = np.random.default_rng(1)
    ends = np.sort(random_.integers(0, 10_000, (2, 3, 300)), axis=0)
    assert RankBoxes.of([*ends[0]], [*ends[1]], [10_001] * 3) is None
    assert RankBoxes.of([*ends[0]], [*ends[1]], [2**31] * 3) is None
