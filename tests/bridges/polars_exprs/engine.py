"""polars over rows in memory, as the judge of what an expression means to it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa

from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema

ROW = "row number"


def theirs(expression: pl.Expr, batch: pa.RecordBatch) -> list[int] | None:
    """The numbers of the rows that polars keeps; None where a strict cast fails."""
    numbered = batch.append_column(ROW, pa.array(range(batch.num_rows), pa.int64()))
    frame = pl.from_arrow(pa.Table.from_batches([numbered]))
    assert isinstance(frame, pl.DataFrame)
    try:
        found = frame.filter(expression)[ROW].to_list()
    except pl.exceptions.InvalidOperationError as error:
        if "conversion from" not in str(error):
            raise
        return None
    return sorted(found)


def ours(
    predicate: Predicate, schema: Schema, batch: pa.RecordBatch, semantics: Semantics
) -> list[int] | None:
    """The numbers of the rows that our evaluator keeps; None where it fails."""
    outcome = evaluate(bind(predicate, schema, semantics), batch)
    if outcome.failed.any():
        return None
    return [int(row) for row in np.flatnonzero(outcome.true)]
