"""DataFusion over rows in memory, as the judge of what an expression means to it."""

from __future__ import annotations

import datafusion
import numpy as np
import pyarrow as pa

from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema

ROW = "row number"


def frame(batch: pa.RecordBatch) -> datafusion.DataFrame:
    """The rows as DataFusion holds them, each with its number."""
    numbered = batch.append_column(ROW, pa.array(range(batch.num_rows), pa.int64()))
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    context.register_record_batches("t", [[numbered]])
    return context.table("t")


def theirs(expression: datafusion.Expr, batch: pa.RecordBatch) -> list[int] | None:
    """The numbers of the rows that DataFusion keeps; None where it fails."""
    try:
        found = frame(batch).filter(expression).select(datafusion.col(f'"{ROW}"')).to_arrow_table()
    except Exception as error:
        if not any(word in str(error) for word in FAILURES):
            raise
        return None
    return sorted(found.column(0).to_pylist())


FAILURES = (
    "overflow",
    "Overflow",
    "Divide by zero",
    "Cast error",
    "not fit",
    "out of range",
    "Cannot cast",
)


def ours(
    predicate: Predicate, schema: Schema, batch: pa.RecordBatch, semantics: Semantics
) -> list[int] | None:
    """The numbers of the rows that our evaluator keeps; None where it fails."""
    outcome = evaluate(bind(predicate, schema, semantics), batch)
    if outcome.failed.any():
        return None
    return [int(row) for row in np.flatnonzero(outcome.true)]
