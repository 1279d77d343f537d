"""The functions on the allow-list, conditions on each, and the rows that we keep by them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from rowsieve.bridges.functions import TABLE
from rowsieve.bridges.sql.dialects import dialect_named
from rowsieve.bridges.sql.language import to_text
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import InvalidPredicate, UnreadText
from rowsieve.predicate.bind import bind, bind_operand
from rowsieve.predicate.evaluate import compute, evaluate
from rowsieve.predicate.ir import Comparison, ComparisonOp, Operand
from rowsieve.predicate.literal_values import from_scalar
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import List
from tests.bridges.sql.spelled import CALLS, OTHERS, table

ROWS = table().combine_chunks().to_batches()[0]
COLUMNS = schema_of(ROWS.schema)[0]
EVERY: dict[str, list[Operand]] = {
    name: [*calls] for name, calls in (*CALLS.items(), *OTHERS.items())
}


def verified(dialect: str) -> frozenset[str]:
    """Functions that the dialect computes as we do, at least for some arguments."""
    spellings = {name: row.spelling(dialect) for name, row in TABLE.items()}
    return frozenset(name for name, found in spellings.items() if found is not None and found.cases)


def conditions(name: str, dialect: str) -> Iterator[tuple[str, pa.RecordBatch, list[int]]]:
    """Text that is written as exact, rows on which nothing fails, and the rows that match."""
    semantics = dialect_named(dialect).semantics
    for operand in EVERY[name]:
        try:
            bound = bind_operand(operand, COLUMNS, semantics)
        except InvalidPredicate:
            continue
        try:
            values, failed = compute(bound, ROWS)
        except UnreadText:
            continue
        good = ROWS.take(pa.array([row for row, bad in enumerate(failed) if not bad]))
        seen = values.filter(pa.array(~failed)).drop_null()
        if not len(seen) or isinstance(bound.type, List):
            continue
        for op in (ComparisonOp.EQ, ComparisonOp.LT):
            predicate = Comparison(op, operand, from_scalar(seen[len(seen) // 2], bound.type))
            made = to_text(predicate, COLUMNS, dialect=dialect)
            if made.exactness is Exactness.EXACT:
                outcome = evaluate(bind(predicate, COLUMNS, semantics), good)
                matches = [row for row, true in enumerate(outcome.true) if true]
                yield made.exact(), good, matches
