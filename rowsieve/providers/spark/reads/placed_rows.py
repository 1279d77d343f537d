"""The rows of one version of a table without a key, each with its place among them, for Spark.

A table without a key has nothing else that identifies a row. Spark reads all files itself and
numbers their rows.

Soundness: places count all rows of all parts in the order of the version's manifest, hidden ones
included, so they mean the same rows to every reader of the version (`part_starts`).
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as sql

from rowsieve.bridges.spark_columns.types import spark_schema
from rowsieve.changes.hiding import part_starts
from rowsieve.errors import UnsupportedOperation
from rowsieve.providers.spark.plans import empty_frame
from rowsieve.providers.spark.reads.hybrid import routes_of, scans_with_numbers, union
from rowsieve.providers.spark.reads.native_columns import output_columns
from rowsieve.providers.spark.reads.spark_read import SparkRead
from rowsieve.providers.spark.reads.visible_rows import places


def placed_frame(read: SparkRead, place: str) -> Any:
    """The visible rows with their places in the column `place`.

    UnsupportedOperation, which names the files, if Spark cannot read one of them itself.
    """
    routes = routes_of(read, ("bitmap",))
    if routes.on("source"):
        raise UnsupportedOperation(
            "merge_spark: the table has no key, and the rows of such a table are found by their "
            f"numbers in files that Spark reads itself; {routes}\nUse MERGE in "
            "rowsieve.providers.datafusion.SessionContext"
        )
    snapshot = read.table.handle.pinned
    if not routes.parts:
        empty = empty_frame(read.spark, spark_schema(snapshot.schema))
        return empty.withColumn(place, sql.lit(None).cast("bigint"))
    starts = part_starts(snapshot)
    frames = []
    for shape, parts, frame in scans_with_numbers(read, routes):
        by_size = {part.size_bytes: starts[part.part_id] for part in parts}
        column = places(read.spark, frame, by_size).alias(place)
        frames.append(frame.select(*output_columns(routes.columns, shape), column))
    return union(frames)
