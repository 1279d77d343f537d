"""Floats out of range fail in PostgreSQL's text, and pruning hides no such failure."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import EvaluationError
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.evaluate import compute
from rowsieve.predicate.interpret import interpret_operand
from rowsieve.predicate.interpretation.abstract import AbstractColumn
from rowsieve.predicate.ir import Call, Cast, Column, Operand
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Float
from tests.predicate.functions.sample_ranges import Parts, schema_of
from tests.small_tables import fresh_uri

A, B = Column("a"), Column("b")
NUMBERS = [-1e300, -2.0, -1e-310, 0.0, 5e-324, 1e-200, 0.5, 1.0, 2.0, 1e300]
RANGES = list(itertools.combinations_with_replacement(range(len(NUMBERS)), 2))
OPERANDS = [
    *(Call(name, (A, B)) for name in ("add", "subtract", "multiply", "divide")),
    Cast(A, Float(32)),
]


def every_pair_of_ranges() -> Parts:
    """A part for each range of `a` and range of `b`, with all pairs of numbers in these."""
    cells: dict[str, list[float]] = {"a": [], "b": []}
    ends: dict[str, list[tuple[float, float]]] = {"a": [], "b": []}
    part_of_row: list[int] = []
    for part, spans in enumerate(itertools.product(RANGES, RANGES)):
        pairs = list(itertools.product(*(NUMBERS[low : high + 1] for low, high in spans)))
        part_of_row += [part] * len(pairs)
        for place, name in enumerate(cells):
            cells[name] += [pair[place] for pair in pairs]
            ends[name].append((NUMBERS[spans[place][0]], NUMBERS[spans[place][1]]))
    nowhere = np.zeros(len(RANGES) ** 2, np.bool_)
    known = {
        name: AbstractColumn(
            pa.array([low for low, _ in spans]),
            pa.array([high for _, high in spans]),
            *(nowhere, nowhere, nowhere, nowhere),
        )
        for name, spans in ends.items()
    }
    return Parts(pa.record_batch(cells), np.array(part_of_row), known)


@pytest.mark.parametrize("operand", OPERANDS, ids=["add", "subtract", "multiply", "divide", "cast"])
def test_a_part_is_known_not_to_fail_only_if_no_row_fails(operand: Operand) -> None:
    parts = every_pair_of_ranges()
    schema = schema_of({"a": Float(64), "b": Float(64)})
    bound = bind_operand(operand, schema, Semantics.POSTGRES)
    _, failed = compute(bound, parts.batch)
    may = interpret_operand(bound, parts).fails
    assert not (failed & ~may[parts.part_of_row]).any()
    above = [place for place, number in enumerate(NUMBERS) if number in (0.5, 1.0, 2.0)]
    usual = [each for each in RANGES if set(each) <= set(above)]
    for part, spans in enumerate(itertools.product(RANGES, RANGES)):
        assert not may[part] or not set(spans) <= set(usual)


@pytest.mark.parametrize("text", ["s::numeric::float8 = 0", "s::numeric::real = 0"])
def test_a_number_that_no_float_is_near_fails_as_its_text_does(text: str) -> None:
    table = rs.create_table(fresh_uri(), pa.table({"k": [1], "s": ["1e-400"]}), key=["k"])
    for each in (text, text.replace("::numeric", "")):
        with pytest.raises(EvaluationError):
            table.scan(each, dialect="postgres").to_arrow()
    table.upsert(pa.table({"k": [1], "s": ["0e-400"]}))
    assert table.scan(text, dialect="postgres").to_arrow().num_rows == 1


def test_only_the_text_of_postgresql_fails_on_a_float_out_of_range() -> None:
    table = rs.create_table(fresh_uri(), pa.table({"k": [1], "x": [1e308]}), key=["k"])
    for dialect in ("duckdb", "datafusion", "spark"):
        assert table.scan("x * 10 > 0", dialect=dialect).to_arrow().num_rows == 1
    with pytest.raises(EvaluationError):
        table.scan("x * 10 > 0", dialect="postgres").to_arrow()
