"""polars over rows in memory, as the judge of what an expression means to it."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

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
