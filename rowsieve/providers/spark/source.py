"""Implements `spark.read.format("rowsieve")` and `df.write.format("rowsieve")`.

With the option `readChangeFeed` both read the change feed (`feed_reads.py`, `stream_source.py`).
A read is pinned to one version when Spark requests its schema. This object carries the version to
every scan of the DataFrame, so two scans of one statement never see two versions (invariant 23).
The driver resolves the plan: it opens footers, bloom filters and page indexes and finds hidden rows
once. The plan's splits are Spark's partitions; each task gets its split with the rows to read as
bytes, and only reads them. Conditions that need the session's settings prune in the task.

There is no `pushFilters`: in Spark 4.1 to 4.3, the filters of one scan leak into other scans of the
same DataFrame and lose rows. Spark filters above the source; the option `where` prunes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from rowsieve import clock
from rowsieve.bridges.spark_columns.types import spark_schema
from rowsieve.bridges.where import to_predicate
from rowsieve.config import DEFAULT
from rowsieve.errors import InvalidInput, SnapshotExpired, UnsupportedOperation
from rowsieve.executor.execute import refine
from rowsieve.objects import open_store
from rowsieve.planner.plan import ScanPlan, table_columns
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.planner.resolved import join_small_splits
from rowsieve.planner.splits import split_bytes_for_cores
from rowsieve.predicate.bind import bind
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.later_now import from_now_on
from rowsieve.predicate.normalize import normalize
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.native_files.planned_parts import only_parts
from rowsieve.providers.spark.cluster.task_stores import task_store
from rowsieve.providers.spark.name_case import OddNames, odd_names
from rowsieve.providers.spark.option_values import uri_of
from rowsieve.providers.spark.reads.audited import audited_plan, reported_rows, reporter_of
from rowsieve.providers.spark.reads.catalog_reads import (
    CatalogRead,
    catalog_read,
    check_catalog_read,
    given_options,
    is_creation,
    keeping,
)
from rowsieve.providers.spark.reads.feed_options import FeedOptions, reads_feed
from rowsieve.providers.spark.reads.feed_reads import FeedReader, PinnedFeed, output_of, pin_feed
from rowsieve.providers.spark.reads.stream_source import RowsieveStreamReader
from rowsieve.providers.spark.reads.update_stream import (
    READ_UPDATES,
    PinnedUpdates,
    UpdateOptions,
    UpdateStreamReader,
    pin_updates,
    reads_updates,
)
from rowsieve.providers.spark.row_types import arrow_schema_of, to_spark
from rowsieve.providers.spark.session_settings import (
    ansi_default,
    check_task,
    plan_in_task,
    session_independent,
)
from rowsieve.providers.spark.source_options import ReadOptions, WriteOptions
from rowsieve.providers.spark.task_properties import property_of_task
from rowsieve.providers.spark.writes.stream_sink import RowsieveStreamWriter
from rowsieve.providers.spark.writes.write_tasks import RowsieveWriter
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.sent_versions import version_as_bytes, version_of_bytes
from rowsieve.storage.log.version_arguments import resolve_snapshot
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.schema import Schema

_LOG = logging.getLogger("rowsieve")
LARGE_BYTES = 1024**3  # reads of more stored bytes without a condition are warned of
SMALLEST_SPLIT_BYTES = 8 * 1024 * 1024  # the overhead of a task exceeds the gain of smaller splits


@dataclass(frozen=True, slots=True)
class Pinned:
    """The state that all scans of one DataFrame share."""

    table_uuid: str
    version: int
    now_us: int
    ansi_default: bool
    odd_names: OddNames  # of the text: sessions of one setting do not find them


class RowsieveSource(DataSource):
    """The data source, which Spark creates for each `load` and each `save`."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self._pinned: Pinned | PinnedFeed | PinnedUpdates | None = None
        self._sent: Mapping[str, bytes] | None = None  # the version that is pinned, of a store

    @classmethod
    def name(cls) -> str:
        """The name in `format(...)`."""
        return "rowsieve"

    def schema(self) -> StructType:
        """Pin the read to the newest or the requested version, and return its columns."""
        creates = is_creation(self.options)
        read_options = given_options(self.options) if creates else self.options
        if reads_feed(read_options):
            of_feed = FeedOptions.parse(read_options)
            self._pinned = pin_feed(of_feed)
            return output_of(of_feed, self._pinned)
        if reads_updates(read_options):
            self._pinned = pin_updates(UpdateOptions.parse(read_options))
            updates: StructType = spark_schema(self._pinned.target.schema)
            return updates
        options = ReadOptions.parse(read_options)
        store = open_store(options.uri, options.storage)
        stored = resolve_snapshot(CommitLog(store), options.version, options.as_of)
        snapshot = options.view(stored)
        check_read(options, snapshot.schema)  # rejects an invalid filter now; partitions() plans
        self._sent = version_as_bytes(stored) if store.overlaps else None
        self._pinned = _pin(options, snapshot)
        reporter_of(options.reporter)
        columns: StructType = spark_schema(output_schema(options, snapshot.schema))
        if creates:
            return keeping(columns, read_options, snapshot)
        return columns

    def reader(self, schema: StructType) -> DataSourceReader:
        """A scan of the version that `schema()` pinned, or its change feed.

        A table of Spark's catalog was pinned when it was created.
        """
        if self._pinned is None and (of_catalog := catalog_read(self.options, schema)) is not None:
            return _reader_of_catalog(of_catalog, schema)
        pinned = self._pinned_by_schema()
        if isinstance(pinned, PinnedFeed):
            return FeedReader(FeedOptions.parse(self.options), pinned)
        if isinstance(pinned, PinnedUpdates):
            raise UnsupportedOperation(
                f"option {READ_UPDATES} is of spark.readStream; read a time of the table with the "
                "option at, and its updates in this process with Table.subscribe"
            )
        return RowsieveReader(ReadOptions.parse(self.options), pinned, self._sent)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's names
        """A stream of the change feed, or of the updates of a differential table."""
        pinned = self._pinned_by_schema()
        if isinstance(pinned, PinnedUpdates):
            return UpdateStreamReader(UpdateOptions.parse(self.options), pinned)
        if not isinstance(pinned, PinnedFeed):
            raise UnsupportedOperation(
                "a stream reads the change feed of a table: add .option('readChangeFeed', 'true'); "
                "its rows have the columns _change_type, _commit_version and _commit_timestamp. A "
                f"differential table has {READ_UPDATES} instead"
            )
        return RowsieveStreamReader(FeedOptions.parse(self.options), pinned)

    def _pinned_by_schema(self) -> Pinned | PinnedFeed | PinnedUpdates:
        if self._pinned is None:
            uri_of(self.options)
            raise InvalidInput(
                f"{self.options.get('path')} has its own columns: read it without schema(...), and "
                "select columns with the option columns"
            )
        return self._pinned

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Check a write against the table; writes nothing yet."""
        return RowsieveWriter.begin(WriteOptions.parse(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        """Check a streaming write against the table; Spark asks again for every batch."""
        options = WriteOptions.parse_stream(self.options)
        return RowsieveStreamWriter.begin(options, schema, overwrite=overwrite)


def _pin(options: ReadOptions, snapshot: Snapshot) -> Pinned:
    """Pin a read to a version."""
    follows = options.where is not None and options.semantics is None
    return Pinned(
        snapshot.table.uuid,
        snapshot.version,
        clock.now_us(),
        ansi_default(),
        odd_names(options.where or "TRUE", snapshot.schema) if follows else OddNames(),
    )


def _reader_of_catalog(catalog_read: CatalogRead, columns: StructType) -> RowsieveReader:
    """A scan of a table of Spark's catalog that has these columns."""
    options = ReadOptions.parse(catalog_read.options)
    log = CommitLog(open_store(options.uri, options.storage))
    snapshot = options.view(resolve_snapshot(log, options.version, None))
    check_catalog_read(
        catalog_read, snapshot, columns, spark_schema(output_schema(options, snapshot.schema))
    )
    return RowsieveReader(options, _pin(options, snapshot))


class RowsieveReader(DataSourceReader):
    """One scan: returns the splits on the driver, and reads one split in a task.

    `sent`: the pinned version as bytes, so that the process that plans need not read the log again.
    """

    def __init__(
        self, options: ReadOptions, pinned: Pinned, sent: Mapping[str, bytes] | None = None
    ) -> None:
        self._options = options
        self._pinned = pinned
        self._sent = sent

    def partitions(self) -> list[InputPartition]:
        """One partition per split of the plan; Spark itself adds an empty one if there is none."""
        store = open_store(self._options.uri, self._options.storage)
        sent, self._sent = self._sent, None  # no task needs it
        version = self._pinned.version
        snapshot = version_of_bytes(sent, version) if sent else CommitLog(store).at(version)
        if snapshot.table.uuid != self._pinned.table_uuid:
            raise SnapshotExpired(
                f"the table that was loaded from {store.uri} was replaced by another one; load "
                "it again"
            )
        options, now_us = self._options, self._pinned.now_us
        snapshot = options.view(snapshot)
        plan = audited_plan(
            partial(plan_read, options, snapshot, store.uri, now_us),
            partial(plan_read, options, snapshot, store.uri, now_us, pruning=False),
            options.switches.settings(snapshot.table),
            store,
            reporter_of(options.reporter),
        )
        _warn_if_large(options, plan)
        plan = join_small_splits(plan, split_bytes_of(options, snapshot))
        return [InputPartition(split) for split in plan.splits_to_bytes()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one split, in Spark's types."""
        options = self._options
        followed = options.where if options.semantics is None else None
        check_task(followed, self._pinned.odd_names, property_of_task)
        if partition.value is None:
            return
        plan = ScanPlan.from_bytes(partition.value)
        if (text := self._options.where) is not None and not self._used_whole_text(plan):
            plan = plan_in_task(plan, text, property_of_task, ansi=self._pinned.ansi_default)
            plan = refine(plan, task_store(plan.table_uri, self._options.storage))
        schema = plan.schema.select(tuple(column.name for column in plan.columns))
        target = arrow_schema_of(spark_schema(schema))
        store = task_store(plan.table_uri, self._options.storage)
        for batch in reported_rows(plan, store, reporter_of(self._options.reporter)):
            yield to_spark(batch, schema, target)

    def _used_whole_text(self, plan: ScanPlan) -> bool:
        """Return whether the plan used all conditions of the text."""
        if self._options.semantics is not None:
            return True
        return session_independent(self._options.where or "", plan.schema)[1]


def plan_read(
    options: ReadOptions,
    snapshot: Snapshot,
    table_uri: str,
    now_us: int,
    *,
    pruning: bool = True,
    lasting: bool = False,
) -> ScanPlan:
    """Plan a read; for text without settings, only with conditions that need no settings.

    `lasting`: the rows are those that the condition keeps at `now_us` or later, and maybe more.
    """
    predicate, semantics = _condition(options, snapshot.schema)
    if lasting:
        predicate = from_now_on(predicate, semantics, now_us)
    plan = plan_scan(
        snapshot,
        table_uri,
        predicate=predicate,
        columns=table_columns(output_schema(options, snapshot.schema).names),
        semantics=semantics,
        now_us=now_us,
        split_bytes=split_bytes_of(options, snapshot),
        in_process=False,
        pruning=pruning,
        constrained=True,
    )
    return plan if options.parts is None else only_parts(plan, options.parts)


def _warn_if_large(options: ReadOptions, plan: ScanPlan) -> None:
    """Warn of a read of a large table as a whole: filters of the query do not reach the source."""
    if any(each is not None for each in (options.where, options.predicate, options.parts)):
        return
    if (size_bytes := sum(split.size_bytes for split in plan.splits)) > LARGE_BYTES:
        _LOG.warning(
            'spark.read.format("rowsieve") of %s has no condition and reads %.1f GB through '
            "Python, whatever the query filters or counts; give the options where and columns, or "
            "read with Table.to_spark, so that Spark reads files itself where it can",
            plan.table_uri,
            size_bytes / 1e9,
        )


def split_bytes_of(options: ReadOptions, snapshot: Snapshot) -> int:
    """Return the stored bytes of a split of a read."""
    return options.split_bytes or split_bytes_for_cores(
        snapshot.parts, least=SMALLEST_SPLIT_BYTES, most=DEFAULT.split_bytes
    )


def check_read(options: ReadOptions, schema: Schema) -> None:
    """Refuse a condition and columns that `plan_read` would refuse, without planning."""
    predicate, semantics = _condition(options, schema)
    bind(normalize(predicate, semantics), schema, semantics, now_us=0)
    output_schema(options, schema)


def _condition(options: ReadOptions, schema: Schema) -> tuple[Predicate, Semantics]:
    """The predicate to plan a read with, and its semantics."""
    semantics = options.semantics or Semantics.SPARK
    if options.predicate is not None:
        return options.predicate, semantics
    if options.where is not None and options.semantics is None:
        return session_independent(options.where, schema)[0], semantics
    predicate = to_predicate(options.where, "spark", schema, semantics, names_checked=True)
    return predicate, semantics


def output_schema(options: ReadOptions, schema: Schema) -> Schema:
    """The requested columns, in that order."""
    if options.columns is None:
        return schema
    chosen = schema.select(options.columns)
    if len(set(chosen.names)) < len(chosen):
        raise InvalidInput(f"option columns names a column twice: {', '.join(chosen.names)}")
    return chosen
