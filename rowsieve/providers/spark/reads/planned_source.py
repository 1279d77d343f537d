"""Reads a table without a log, as `open_parquet` returns it, into a Spark DataFrame.

Spark's processes cannot open such a table: it exists in one process only. So the read is planned
when the DataFrame is made. The plan's splits, with their files and rows, are an option of the
DataFrame, and each task reads one of them. All scans of the DataFrame read the same splits.

Soundness: the condition is evaluated by the settings of the session when the DataFrame is made. A
file that changed since is `CorruptData` in the task, by the checksum of its tail.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from rowsieve import clock
from rowsieve.bridges.spark_columns.types import spark_schema
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.resolved import join_small_splits
from rowsieve.providers.spark.cluster.task_stores import task_store
from rowsieve.providers.spark.reads.audited import audited_plan, reported_rows, reporter_of
from rowsieve.providers.spark.reads.spark_read import SparkRead
from rowsieve.providers.spark.row_types import arrow_schema_of, to_spark
from rowsieve.providers.spark.source import output_schema, plan_read, split_bytes_of
from rowsieve.providers.spark.store_options import STORAGE, storage_of

NAME: Final = "rowsieve_planned"
_SPLITS: Final = "splits"


def planned_frame(read: SparkRead) -> Any:
    """Plan the read, and return a DataFrame of its splits."""
    table, options, spark = read.table, read.options, read.spark
    snapshot, store = table.handle.pinned, table.handle.store
    now_us, reporter = clock.now_us(), reporter_of(options.reporter)
    plan = audited_plan(
        partial(plan_read, options, snapshot, store.uri, now_us),
        partial(plan_read, options, snapshot, store.uri, now_us, pruning=False),
        options.switches.settings(snapshot.table),
        store,
        reporter,
    )
    plan = join_small_splits(plan, split_bytes_of(options, snapshot))
    spark.dataSource.register(PlannedSource)
    storage = {
        name: value for name, value in read.source_options.items() if name.startswith(STORAGE)
    }
    return (
        spark.read.format(NAME)
        .schema(spark_schema(output_schema(options, snapshot.schema)))
        .options(**storage, **{_SPLITS: _encoded(plan.splits_to_bytes())})
        .load()
    )


class PlannedSource(DataSource):
    """A source of splits that are already planned."""

    @classmethod
    def name(cls) -> str:
        """The name in `format(...)`."""
        return NAME

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's name
        """A scan of the splits."""
        return _PlannedReader(self.options)


class _PlannedReader(DataSourceReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._splits = options[_SPLITS]
        self._storage = storage_of(options)

    def partitions(self) -> list[InputPartition]:
        """One partition per split; Spark itself adds an empty one if there is none."""
        return [InputPartition(split) for split in _decoded(self._splits)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one split, in Spark's types."""
        if partition.value is None:
            return
        plan = ScanPlan.from_bytes(partition.value)
        schema = plan.schema.select(tuple(column.name for column in plan.columns))
        target = arrow_schema_of(spark_schema(schema))
        store = task_store(plan.table_uri, self._storage)
        for batch in reported_rows(plan, store, reporter_of(None)):
            yield to_spark(batch, schema, target)


def _encoded(splits: list[bytes]) -> str:
    return base64.b64encode(zlib.compress(msgspec.msgpack.encode(splits))).decode()


def _decoded(text: str) -> list[bytes]:
    return msgspec.msgpack.decode(zlib.decompress(base64.b64decode(text)), type=list[bytes])
