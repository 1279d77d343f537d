"""Random typed expressions: what the interpreter derives contains what the evaluator gives."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.evaluate import compute
from rowsieve.predicate.interpret import interpret_operand
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Int
from tests.oracle_texts import known_texts
from tests.predicate.functions.claims import outside
from tests.predicate.part_statistics import statistics, widened
from tests.profiles import examples
from tests.strategies import (
    COLUMN_TYPES,
    SCHEMA,
    SEMANTICS,
    batches,
    instants,
    numbers,
    predicates,
    texts,
)

OPERANDS: st.SearchStrategy[ir.Operand] = st.one_of(
    numbers(2),
    texts(),
    instants(),
    st.builds(ir.Condition, predicates(1)),
    st.builds(
        lambda when, then, otherwise: ir.Case(((when, then),), otherwise),
        predicates(1),
        st.sampled_from([ir.Column("i32"), ir.Column("i64"), ir.Literal(7, Int(32))]),
        numbers(0).filter(lambda node: isinstance(node, ir.Column) and node.name[0] in "iu"),
    ),
)
NAMES = st.frozensets(st.sampled_from(list(COLUMN_TYPES)), max_size=6)


@examples(400)
@given(
    OPERANDS,
    st.lists(batches(min_rows=1), min_size=1, max_size=3),
    st.sampled_from(SEMANTICS),
    NAMES,
    NAMES,
)
@known_texts()
def test_derived_values_contain_computed_values(
    operand: ir.Operand,
    parts: list[pa.RecordBatch],
    semantics: Semantics,
    hidden: frozenset[str],
    unbounded: frozenset[str],
) -> None:
    bound = bind_operand(operand, SCHEMA, semantics)
    known = widened(statistics(parts, hidden), unbounded, frozenset())
    may = interpret_operand(bound, known)
    for place, part in enumerate(parts):
        values, failed = compute(bound, part)
        wrong = outside(values, failed, may, np.full(part.num_rows, place))
        assert not wrong.any(), (values, failed, may.lower[place], may.upper[place])
