"""TRUE, FALSE, NULL or a failure, row by row: conditions in Spark and here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from tests.bridges.spark_columns.nasty import BATCH, NOW_US, SCHEMA, in_driver

ROW = "the_row"


def numbered(spark: Any) -> Any:
    """The awkward rows with their numbers."""
    batch = BATCH.append_column(ROW, pa.array(range(BATCH.num_rows), pa.int32()))
    return in_driver(spark, batch, schema_of(batch.schema)[0])


def ours(predicate: Predicate, semantics: Semantics) -> tuple[list[bool | None], list[int]]:
    """What the condition is on each row, and the rows on which it fails."""
    found = evaluate(bind(predicate, SCHEMA, semantics, now_us=NOW_US), BATCH)
    truths = [
        None if null else bool(true) for true, null in zip(found.true, found.null, strict=True)
    ]
    return truths, [int(row) for row in np.flatnonzero(found.failed)]


def theirs(
    frame: Any, columns: Sequence[Any], spared: Sequence[Sequence[int]]
) -> list[list[bool | None] | str]:
    """What Spark makes of each condition on the rows but those spared; its error if it has one."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as f

    chosen = [
        f.when(~f.col(ROW).isin(list(rows)), column).alias(f"c{place}")
        for place, (column, rows) in enumerate(zip(columns, spared, strict=True))
    ]
    try:
        found: pa.Table = frame.select(*chosen).toArrow()
        return [column.to_pylist() for column in found.columns]
    except PySparkException as error:
        if len(columns) == 1:
            return [str(error).partition("\n")[0]]
    half = len(columns) // 2
    return theirs(frame, columns[:half], spared[:half]) + theirs(
        frame, columns[half:], spared[half:]
    )


def fails(frame: Any, column: Any, row: int) -> bool:
    """Whether Spark fails on the condition on this row, or gives NULL.

    A function there does not look at what follows an argument that is NULL; ours does.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as f

    try:
        found: pa.Table = frame.where(f.col(ROW) == row).select(column.alias("c")).toArrow()
    except PySparkException:
        return True
    return bool(found.column(0).null_count)
