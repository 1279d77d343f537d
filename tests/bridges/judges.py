"""The engine behind each filter language, as the judge of the rows that a condition keeps.

A judge takes a condition in its language and rows in memory, and returns the numbers of the rows
kept, or None where the engine fails on a value. Languages without an engine here have none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.substrait as ps

from rowsieve.types.schema import Schema
from tests.bridges.datafusion_exprs import engine as datafusion_exprs
from tests.bridges.iceberg_exprs import engine as iceberg_exprs
from tests.bridges.iceberg_json import engine as iceberg_json
from tests.bridges.polars_exprs import engine as polars_exprs
from tests.bridges.sql import engines
from tests.strategies import SCHEMA

Judge = Callable[[Any, pa.RecordBatch], list[int] | None]
_ROW = "row number"
_FAILURES = ("overflow", "divide by zero", "would lose data", "out of bounds", "not in range")

_LACKS_ZONES = ("#local_timestamp", "not an expected enum value", "accepts 1 arguments but 2")


def pyarrow_rows(expression: Any, batch: pa.RecordBatch) -> list[int] | None:
    """The rows that pyarrow keeps by an expression."""
    numbered = batch.append_column(_ROW, pa.array(range(batch.num_rows)))
    try:
        found: list[int] = numbered.filter(expression)[_ROW].to_pylist()
    except pa.ArrowInvalid as error:
        if not any(word in str(error) for word in _FAILURES):
            raise
        return None
    return found


def dnf_rows(filters: Any, batch: pa.RecordBatch) -> list[int] | None:
    """The rows that pyarrow keeps by a list of filters."""
    return pyarrow_rows(pq.filters_to_expression(filters), batch)


def substrait_rows(message: bytes, batch: pa.RecordBatch) -> list[int] | None:
    """The rows that pyarrow keeps by a message, which knows columns by their places.

    None where the message has functions of time zones, which pyarrow lacks and says so.
    """
    try:
        (expression,) = ps.deserialize_expressions(message).expressions.values()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        if not any(word in str(error) for word in _LACKS_ZONES):
            raise
        return None
    return pyarrow_rows(expression, batch)


def iceberg_rows(
    expression: Any, batch: pa.RecordBatch, schema: Schema = SCHEMA
) -> list[int] | None:
    """The rows that a scan of pyiceberg keeps, and its evaluator too: that of what is written."""
    scanned = iceberg_exprs.scanned(expression, schema, batch)
    judged = iceberg_exprs.judged(expression, schema, batch)
    assert scanned is None or scanned == judged, expression
    return judged


JUDGES: Mapping[str, Judge] = {
    **engines.JUDGES,
    "datafusion_exprs": datafusion_exprs.theirs,
    "pyarrow_exprs": pyarrow_rows,
    "polars": polars_exprs.theirs,
    "iceberg": iceberg_rows,
    "iceberg_json": iceberg_json.judged,
    "delta_dnf": dnf_rows,
    "substrait": substrait_rows,
}
