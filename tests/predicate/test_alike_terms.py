"""ORs of many alike terms: the vectorised outcome is the one of the walk over each term."""

from __future__ import annotations

import decimal
import math
import operator
import random
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

from rowsieve.predicate import alike_terms, ir
from rowsieve.predicate import interpret as module
from rowsieve.predicate.alike_terms import Grouped
from rowsieve.predicate.bind import BoundPredicate
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.predicate.interpretation.abstract import AbstractColumn
from rowsieve.predicate.literal_values import scalar
from rowsieve.predicate.semantics import NanOrder, Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Date, Decimal, Float, Int, LogicalType, String
from tests.profiles import IS_DEEP

VALUES: dict[LogicalType, list[Any]] = {
    Int(64): [-2, -1, 0, 1, 2, 3, 2**63 - 1],
    Int(32, signed=False): [0, 1, 2, 3, 2**32 - 1],
    Float(64): [-1.5, -0.0, 0.0, 1.0, float("inf"), float("nan")],
    String(): ["", "a", "b", "ba", "é"],
    Date(): [-1, 0, 1, 19_000],
    Decimal(10, 2): [decimal.Decimal(text) for text in ("-1.00", "0.00", "1.25", "9.99")],
}
OPS = [ir.ComparisonOp[name] for name in ("EQ", "NE", "LT", "LE", "GT", "GE")]
COMPARE: dict[ir.ComparisonOp, Any] = dict(
    zip(
        OPS,
        (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
        strict=True,
    )
)
ROUNDS = 20


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


class Parts:
    """Random parts of rows, and statistics that hold for them: too wide or missing ones, too."""

    def __init__(self, rng: random.Random, columns: list[ir.BoundColumn]) -> None:
        self.part_count = rng.randint(0, 4)
        self.rows = [
            [
                {each: rng.choice([None, *VALUES[each.type]]) for each in columns}
                for _ in range(rng.randint(1, 3))
            ]
            for _ in range(self.part_count)
        ]
        self._known = {each: self._statistics(rng, each) for each in columns if rng.random() < 0.9}

    def column(self, column: ir.BoundColumn) -> AbstractColumn | None:
        return self._known.get(column)

    def _statistics(self, rng: random.Random, column: ir.BoundColumn) -> AbstractColumn:
        bounds, flags = [], []
        is_open = rng.random() < 0.5
        for rows in self.rows:
            present = [row[column] for row in rows if row[column] is not None]
            plain = [value for value in present if not is_nan(value)]
            values = plain + [
                each for each in [rng.choice(VALUES[column.type])] if not is_nan(each)
            ]
            low, high = (min(values), max(values)) if values else (None, None)
            if is_open and rng.random() < 0.3:
                low = None
            bounds.append((low, high))
            flags.append((not present, len(present) < len(rows), len(plain) < len(present)))
        storage = arrow_type(column.type)
        lower, upper = (
            pa.array(
                [
                    None if each[side] is None else scalar(ir.Literal(each[side], column.type))
                    for each in bounds
                ],
                storage,
            )
            for side in (0, 1)
        )
        empty, null, nan = (np.array([each[i] for each in flags], np.bool_) for i in range(3))
        return AbstractColumn(
            lower, upper, empty, null, nan if isinstance(column.type, Float) else None
        )


def a_term(rng: random.Random, shapes: list[list[tuple[ir.BoundColumn, ir.ComparisonOp]]]) -> Any:
    parts = tuple(
        ir.Comparison(op, column, ir.Literal(rng.choice(VALUES[column.type]), column.type))
        for column, op in rng.choice(shapes)
    )
    return parts[0] if len(parts) == 1 else ir.And(parts)


def outcome(
    term: ir.Predicate, row: dict[ir.BoundColumn, Any], semantics: Semantics
) -> bool | None:
    """The outcome of one term on one row."""
    found: bool | None = True
    for part in term.terms if isinstance(term, ir.And) else (term,):
        assert isinstance(part, ir.Comparison)
        assert isinstance(part.left, ir.BoundColumn)
        assert isinstance(part.right, ir.Literal)
        value, constant = row[part.left], part.right.value
        if value is None:
            found = found and None
            continue
        pair = [value, constant]
        if isinstance(part.left.type, Float) and semantics.nan is not NanOrder.IEEE:
            pair = [(is_nan(each), 0.0 if is_nan(each) else each) for each in pair]
        if not COMPARE[part.op](*pair):
            return False
    return found


@pytest.mark.parametrize("semantics", [Semantics.SQL, Semantics.DUCKDB, Semantics.PYARROW])
@pytest.mark.parametrize("seed", range(40 if IS_DEEP else 8))
def test_the_outcome_is_that_of_the_walk_and_of_each_row(seed: int, semantics: Semantics) -> None:
    rng = random.Random(seed)
    columns = [ir.BoundColumn(i, f"c{i}", type_) for i, type_ in enumerate(VALUES)]
    for _ in range(ROUNDS):
        asked = rng.sample(columns, 2)
        shapes = [
            [(rng.choice(asked), rng.choice(OPS)) for _ in range(rng.randint(1, 4))]
            for _ in range(rng.randint(1, 3))
        ]
        terms = tuple(a_term(rng, shapes) for _ in range(rng.randint(1, 6)))
        node: ir.Predicate = ir.Or(terms)
        negated = rng.random() < 0.3
        bound = BoundPredicate(ir.Not(node) if negated else node, 1, semantics)
        parts = Parts(rng, asked)
        with mock.patch.object(module, "grouped", lambda terms, *_: Grouped((), terms)):
            alone = interpret(bound, parts)
        with (
            mock.patch.object(alike_terms, "MIN_ALIKE", 1),
            mock.patch.object(module, "_MAX_AT_ONCE", 5),
        ):
            together = interpret(bound, parts)
        assert together.tolist() == alone.tolist()
        for verdict, rows in zip(together.tolist(), parts.rows, strict=True):
            for row in rows:
                each = [outcome(term, row, semantics) for term in terms]
                is_true = all(one is False for one in each) if negated else True in each
                assert verdict != (Verdict.NONE if is_true else Verdict.ALL)
