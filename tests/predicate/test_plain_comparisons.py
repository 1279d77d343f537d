"""The interpreter's short way says what the general one says, wherever it says anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.predicate import interpret as interpreter
from rowsieve.predicate import ir
from rowsieve.predicate.bind import BoundPredicate
from rowsieve.predicate.interpret import interpret
from rowsieve.predicate.interpretation import narrow
from rowsieve.predicate.interpretation.abstract import AbstractColumn
from rowsieve.predicate.interpretation.plain_comparisons import plain_truth, plain_verdicts
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Date, Int, LogicalType, Timestamp
from tests.profiles import examples

TYPES: tuple[LogicalType, ...] = (
    Int(64),
    Int(8),
    Int(32, signed=False),
    Int(64, signed=False),
    Date(),
    Timestamp(),
)
SMALL = st.integers(0, 6)


@dataclass(frozen=True)
class Known:
    """Statistics of a few parts."""

    part_count: int
    columns: Mapping[str, AbstractColumn]

    def column(self, column: ir.BoundColumn) -> AbstractColumn | None:
        """What is known."""
        return self.columns.get(column.name)


@st.composite
def statistics(draw: st.DrawFn, type_: LogicalType, count: int) -> AbstractColumn:
    """Bounds that are sometimes missing, and sometimes the wrong way round."""
    gap = st.sampled_from([None, 0, 1]) if draw(st.booleans()) else st.just(0)
    sides: list[list[int | None]] = [[], []]
    for _ in range(count):
        both = sorted((draw(SMALL), draw(SMALL)), reverse=draw(st.integers(0, 19)) == 0)
        for side, value in zip(sides, both, strict=True):
            side.append(None if draw(gap) is None else value)
    lower, upper = (pa.array(side, pa.int64()) for side in sides)
    masks = st.lists(st.booleans(), min_size=count, max_size=count)
    empty, may_be_null = (np.array(draw(masks), dtype=np.bool_) for _ in range(2))
    target = arrow_type(type_)
    if pa.types.is_date32(target):
        lower, upper = (side.cast(pa.int32()) for side in (lower, upper))
    return AbstractColumn(lower.cast(target), upper.cast(target), empty, may_be_null)


@st.composite
def terms(draw: st.DrawFn, columns: list[ir.BoundColumn]) -> ir.Predicate:
    """A conjunct of the kinds that conditions on columns are made of."""
    column = draw(st.sampled_from(columns))
    match draw(st.integers(0, 9)):
        case 0:
            return ir.Not(ir.IsNull(column)) if draw(st.booleans()) else ir.IsNull(column)
        case 1 | 2:
            values = pa.array(draw(st.lists(SMALL, min_size=1)), pa.int64())
            if pa.types.is_date32(arrow_type(column.type)):
                values = values.cast(pa.int32())
            listed = ir.InList(
                column, ir.ValueSet(values.cast(arrow_type(column.type)), column.type)
            )
            return ir.Not(listed) if draw(st.booleans()) else listed
        case _:
            op = draw(st.sampled_from(list(ir.ComparisonOp)))
            return ir.Comparison(op, column, ir.Literal(draw(SMALL), column.type))


_PAIRS = [(low, high) for low in range(5) for high in range(low, 5)]
_LEAVES = [(op, value) for op in ir.ComparisonOp for value in range(-1, 6)]


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_every_comparison_of_every_interval(type_: LogicalType) -> None:
    column = ir.BoundColumn(1, "c", type_)
    for op, value in _LEAVES:
        if value >= 0:
            node = ir.Comparison(op, column, ir.Literal(value, type_))
            assert verdicts(node, intervals(type_)) == general(node, intervals(type_)), node


@pytest.mark.parametrize("first", list(ir.ComparisonOp), ids=str)
def test_every_two_comparisons_of_every_interval(first: ir.ComparisonOp) -> None:
    column = ir.BoundColumn(1, "c", Int(64))
    known = intervals(Int(64))
    for value in (1, 2):
        for op, other in _LEAVES:
            node = ir.And(
                (
                    ir.Comparison(first, column, ir.Literal(value, Int(64))),
                    ir.Comparison(op, column, ir.Literal(other, Int(64))),
                )
            )
            assert verdicts(node, known) == general(node, known), node


def intervals(type_: LogicalType) -> Known:
    """A part for each interval of small numbers: full, with NULLs, and of NULLs alone."""
    lower, upper = (pa.array([pair[side] for pair in _PAIRS] * 3, pa.int32()) for side in (0, 1))
    target = arrow_type(type_)
    if not pa.types.is_date32(target):
        lower, upper = lower.cast(pa.int64()), upper.cast(pa.int64())
    kind = np.repeat(np.arange(3), len(_PAIRS))
    column = AbstractColumn(lower.cast(target), upper.cast(target), kind == 2, kind > 0)
    return Known(len(kind), {"c": column})


def verdicts(root: ir.Predicate, known: Known) -> list[int]:
    """What the interpreter says of each part."""
    found: list[int] = interpret(BoundPredicate(root, 0, Semantics.SQL), known).tolist()
    return found


def general(root: ir.Predicate, known: Known) -> list[int]:
    """What it says without its short ways."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpreter, "plain_verdicts", lambda *_: None)
        patch.setattr(interpreter, "plain_truth", lambda *_: None)
        patch.setattr(narrow, "adds_nothing", lambda *_: False)
        return verdicts(root, known)


@given(st.data())
@examples(300)
def test_verdicts_are_those_of_the_general_path(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 5))
    types = data.draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=2))
    columns = [ir.BoundColumn(i, f"c{i}", type_) for i, type_ in enumerate(types)]
    known = Known(count, {c.name: data.draw(statistics(c.type, count)) for c in columns})
    parts = data.draw(st.lists(terms(columns), min_size=1, max_size=4))
    root = parts[0] if len(parts) == 1 else ir.And(tuple(parts))
    assert verdicts(root, known) == general(root, known)


def one(lower: Any, upper: Any, type_: LogicalType) -> Known:
    """Statistics of one part without NULLs."""
    none = np.zeros(1, dtype=np.bool_)
    low, high = (pa.array([each], arrow_type(type_)) for each in (lower, upper))
    return Known(1, {"c": AbstractColumn(low, high, none, none)})


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_plain_comparisons_take_the_short_way(type_: LogicalType) -> None:
    column = ir.BoundColumn(1, "c", type_)
    node = ir.Comparison(ir.ComparisonOp.LT, column, ir.Literal(3, type_))
    assert plain_truth(node, one(3, 5, type_)) is not None
    between = ir.And((node, ir.Comparison(ir.ComparisonOp.GE, column, ir.Literal(1, type_))))
    for root in (node, between):
        asked = BoundPredicate(root, 0, Semantics.SQL)
        assert plain_verdicts(asked, one(3, 5, type_)) == [0]


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_every_list_of_every_interval(type_: LogicalType) -> None:
    known = intervals(type_)
    for members in ([], [0], [2], [1, 2], [3, 1, 3], [0, 1, 2, 3, 4], [7]):
        node = listed(members, type_)
        assert plain_verdicts(BoundPredicate(node, 0, Semantics.SQL), known) is not None
        assert verdicts(node, known) == general(node, known), node


def listed(members: Sequence[int | None], type_: LogicalType) -> ir.Predicate:
    """A condition that the column is one of the members."""
    target = arrow_type(type_)
    values = pa.array(members, pa.int32() if pa.types.is_date32(target) else pa.int64())
    return ir.InList(ir.BoundColumn(1, "c", type_), ir.ValueSet(values.cast(target), type_))


def test_lists_at_the_ends_of_the_range_do_not_overflow() -> None:
    least, most = -(2**63), 2**63 - 1
    for members, lower, upper, verdict in (
        ([least, most], least, most, 1),
        ([least], least, least, 2),
        ([most - 1, most], most - 1, most, 2),
        ([], least, most, 0),
    ):
        asked = BoundPredicate(listed(members, Int(64)), 0, Semantics.SQL)
        assert plain_verdicts(asked, one(lower, upper, Int(64))) == [verdict]


def test_predicates_with_other_conjuncts_use_the_general_path() -> None:
    column = ir.BoundColumn(1, "c", Int(64))
    less = ir.Comparison(ir.ComparisonOp.LT, column, ir.Literal(3, Int(64)))
    other = ir.Comparison(ir.ComparisonOp.NE, column, ir.Literal(9, Int(64)))
    lists = listed([1, None], Int(64)), ir.And((less, listed([1], Int(64))))
    others = other, ir.And((less, other)), ir.Or((less, other)), ir.TRUE, ir.IsNull(column)
    for root in (*others, *lists):
        assert plain_verdicts(BoundPredicate(root, 0, Semantics.SQL), one(3, 5, Int(64))) is None
    for known in (one(None, 5, Int(64)), one(6, 5, Int(64)), one(1, 5, Int(32)), Known(1, {})):
        assert plain_verdicts(BoundPredicate(less, 0, Semantics.SQL), known) is None


def test_ends_of_the_range_compare_as_numbers() -> None:
    unsigned, signed = Int(64, signed=False), Int(64)
    for type_, ends in ((unsigned, (0, 2**64 - 1)), (signed, (-(2**63), 2**63 - 1))):
        column = ir.BoundColumn(1, "c", type_)
        for value, verdict in zip(ends, (1, 2), strict=True):
            node = ir.Comparison(ir.ComparisonOp.LE, column, ir.Literal(value, type_))
            assert interpret(BoundPredicate(node, 0, Semantics.SQL), one(*ends, type_)) == [verdict]


def test_comparisons_that_are_not_plain_use_the_general_path() -> None:
    column = ir.BoundColumn(1, "c", Int(64))
    less = ir.Comparison(ir.ComparisonOp.LT, column, ir.Literal(3, Int(64)))
    assert plain_truth(less, one(None, 5, Int(64))) is None
    assert plain_truth(less, one(6, 5, Int(64))) is None
    assert plain_truth(less, one(1, 5, Int(32))) is None
    assert plain_truth(less, Known(1, {})) is None
    for op in (ir.ComparisonOp.DISTINCT, ir.ComparisonOp.NOT_DISTINCT):
        assert (
            plain_truth(ir.Comparison(op, column, ir.Literal(3, Int(64))), one(1, 5, Int(64)))
            is None
        )
    unknown = ir.Comparison(ir.ComparisonOp.LT, column, ir.Literal(None, Int(64)))
    assert plain_truth(unknown, one(1, 5, Int(64))) is None
