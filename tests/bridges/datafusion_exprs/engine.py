"""DataFusion over rows in memory, as the judge of what an expression means to it."""

from __future__ import annotations

import datafusion
import pyarrow as pa

from tests.bridges.sql.engines import FAILURES, ROW


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
