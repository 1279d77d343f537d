"""The rows of one version of a table without a key, each with its place among them, for Spark.

A table without a key has nothing else that identifies a row. Spark reads all files itself and
numbers their rows; those of parts in memory come with their numbers.

Soundness: places count all rows of all parts in the order of the version's manifest, hidden ones
included, so they mean the same rows to every reader of the version (`part_starts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sql
from pyspark.sql.types import LongType

from rowsieve.bridges.spark_columns.types import spark_schema
from rowsieve.changes.hiding import part_starts
from rowsieve.errors import UnsupportedOperation
from rowsieve.executor.execute import Execution
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.ir import TRUE
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.spark.plans import empty_frame
from rowsieve.providers.spark.reads.file_names import FIRST_PLACE, ROW_NUMBERS
from rowsieve.providers.spark.reads.hybrid import (
    routes_of,
    scans_with_numbers,
    shown_columns,
    union,
)
from rowsieve.providers.spark.reads.spark_read import SparkRead
from rowsieve.providers.spark.row_types import arrow_schema_of, to_spark
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.logical import Field


def placed_frame(read: SparkRead, place: str) -> Any:
    """The visible rows with their places in the column `place`.

    UnsupportedOperation, which names the files, if Spark cannot read one of them itself.
    """
    routes = routes_of(read, ("bitmap",))
    snapshot = read.table.handle.pinned
    in_memory = _in_memory(snapshot)
    if any(part.part_id not in in_memory for part in routes.on("source")):
        raise UnsupportedOperation(
            "merge_spark: the table has no key, and the rows of such a table are found by their "
            f"numbers in files that Spark reads itself; {routes}\nUse MERGE in "
            "rowsieve.providers.datafusion.SessionContext"
        )
    if not routes.parts:
        empty = empty_frame(read.spark, spark_schema(snapshot.schema))
        return empty.withColumn(place, sql.lit(None).cast("bigint"))
    starts = part_starts(snapshot)
    frames = []
    column = (sql.col(FIRST_PLACE) + sql.col(ROW_NUMBERS)).alias(place)
    for shape, frame in scans_with_numbers(read, routes, starts):
        frames.append(frame.select(*shown_columns(read, routes, shape), column))
    if routes.on("source"):
        needed = frozenset(part.part_id for part in routes.on("source"))
        frames.append(_frame_in_memory(read, routes.columns, needed, place))
    return union(frames)


def _in_memory(snapshot: Snapshot) -> frozenset[str]:
    parts = snapshot.parts
    in_memory = parts.held_in_memory().tolist()
    return frozenset(
        part for part, is_held in zip(parts.part_ids, in_memory, strict=True) if is_held
    )


def _frame_in_memory(
    read: SparkRead, columns: Sequence[Field], needed: frozenset[str], place: str
) -> Any:
    """The visible rows of parts in memory, which this process sends along with the query."""
    handle = read.table.handle
    snapshot, starts = handle.pinned, part_starts(handle.pinned)
    schema = snapshot.schema.select(tuple(column.name for column in columns))
    types = spark_schema(schema)
    target = arrow_schema_of(types)
    only = replace(snapshot, parts=snapshot.parts.chosen(needed))
    plan = plan_scan(only, handle.store.uri, predicate=TRUE, semantics=Semantics.SQL, now_us=0)
    batches = []
    for source, visible, numbered in Execution(plan, handle.store).visible_rows(schema):
        start = starts[source.part.part_id]
        for first, batch in numbered:
            mask = visible.slice(first, first + batch.num_rows).to_mask()
            rows = to_spark(batch.filter(pa.array(mask)), schema, target)
            placed = pa.array(start + first + np.flatnonzero(mask), pa.int64())
            batches.append(rows.append_column(place, placed))
    table = pa.Table.from_batches(batches, target.append(pa.field(place, pa.int64())))
    return read.spark.createDataFrame(table, types.add(place, LongType()))
