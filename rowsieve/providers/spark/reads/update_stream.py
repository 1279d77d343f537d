"""Implements `spark.readStream.format("rowsieve").option("readUpdates", "true")`.

The rows are updates of a differential table, with their time and difference. An offset is a
frontier: a batch has all updates of the times from one frontier to the next, each exactly once.
Without `startingTime` the first batch has all updates that there are.

Soundness: a batch ends at a frontier that a version has declared complete, so no update of its
times comes later. A repeated batch has the same sums; updates of one row and time may have been
added up since. Times that were given up before they were read are SnapshotExpired, never merged
updates. While a query runs, a lease keeps `since` below what it has not read, and no further.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from rowsieve import clock
from rowsieve.bridges.spark_columns.types import spark_schema
from rowsieve.config import DEFAULT
from rowsieve.decoded_types import described
from rowsieve.errors import (
    InvalidInput,
    SnapshotExpired,
    StoreError,
    TableNotFound,
    UnsupportedOperation,
)
from rowsieve.objects import open_store
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate import ir
from rowsieve.predicate.comparison_op import ComparisonOp
from rowsieve.providers.spark.cluster.task_stores import task_store
from rowsieve.providers.spark.known_options import flag_of, known_names, refuse_unknown
from rowsieve.providers.spark.option_values import count_of, uri_of
from rowsieve.providers.spark.reads.audited import reported_rows, reporter_of
from rowsieve.providers.spark.row_types import arrow_schema_of, to_spark
from rowsieve.providers.spark.store_options import STORAGE, storage_of
from rowsieve.retention.leases import LEASE_S, Lease
from rowsieve.storage.differential import (
    TIME,
    as_updates,
    frontiers_of,
    is_differential,
    may_have_merged,
    physical_time,
    shown_time,
    time_of_text,
)
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import Snapshot

READ_UPDATES: Final = "readUpdates"
_KNOWN: Final = ("path", READ_UPDATES, "startingTime", "split_bytes")
_HOLDER: Final = "spark stream of updates"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UpdateOptions:
    """The options of a stream of updates."""

    uri: str
    storage: Mapping[str, str] = field(repr=False)  # may contain secrets
    starting_time: str | None = None
    split_bytes: int | None = None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> UpdateOptions:
        """Read Spark's options; InvalidInput says which one is wrong."""
        options = known_names(options)
        refuse_unknown(options, _KNOWN, (STORAGE,), "stream of updates")
        return cls(
            uri_of(options),
            storage_of(options),
            options.get("startingtime"),
            count_of(options, "split_bytes", least=1),
        )


def reads_updates(options: Mapping[str, str]) -> bool:
    """Return whether these options ask for a stream of updates."""
    return flag_of({name.lower(): value for name, value in options.items()}, READ_UPDATES)


@dataclass(frozen=True, slots=True)
class PinnedUpdates:
    """The version whose columns the rows have, without parts, and the first time, or None."""

    target: Snapshot
    first: int | None


def pin_updates(options: UpdateOptions) -> PinnedUpdates:
    """Read the newest version; UnsupportedOperation if it has no updates."""
    target = CommitLog(open_store(options.uri, options.storage)).latest()
    target = replace(target, parts=PartTable.empty(), tokens={})  # it goes to every task
    if not is_differential(target.table):
        raise UnsupportedOperation(
            f"option {READ_UPDATES}: the table has mode {target.table.mode!r}, and only tables "
            'with mode="differential" have updates; give readChangeFeed for its changes'
        )
    first = options.starting_time
    if first is None:
        return PinnedUpdates(target, None)
    time = time_of_text(target, first)
    return PinnedUpdates(
        target, physical_time(time, target.schema.field(TIME).type, "option startingTime")
    )


class Frontier(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An offset: all updates of times below `upper` were read; None: nothing was."""

    table: str
    upper: int | None

    @classmethod
    def of(cls, offset: Mapping[str, Any]) -> Frontier:
        """Read what Spark kept; InvalidInput if it is of another source."""
        try:
            return msgspec.convert(offset, described(cls))
        except msgspec.ValidationError as error:
            raise InvalidInput(
                f"the checkpoint of this query has the offset {offset!r}, which is not of a stream "
                f"of updates: {error}; give each query a checkpoint of its own"
            ) from error

    def plain(self) -> dict[str, Any]:
        """The offset as Spark keeps it."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields


class UpdateStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The source of one query; one process of the driver calls all methods but `read`."""

    def __init__(self, options: UpdateOptions, pinned: PinnedUpdates) -> None:
        self._options = options
        self._pinned = pinned
        self._driver: _Driver | None = None  # not sent to tasks: it is created at the first call

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """The offset at which a new query starts."""
        return Frontier(self._pinned.target.table.uuid, self._pinned.first).plain()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002, N802 - Spark's names
        """The frontier of the newest version; `start` itself if it has not moved."""
        begin = Frontier.of(start)
        end = self._on_driver().newest(begin)
        return start if end == begin else end.plain()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Let the query end at the frontier of now."""
        self._on_driver().stop_at_head()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The splits of the updates between two frontiers."""
        return self._on_driver().splits(Frontier.of(start), Frontier.of(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The updates of one split, in Spark's types."""
        if partition.value is None:
            return
        plan = ScanPlan.from_bytes(partition.value)
        target = arrow_schema_of(spark_schema(plan.schema))
        store = task_store(plan.table_uri, self._options.storage)
        for batch in reported_rows(plan, store, reporter_of(None)):
            yield to_spark(batch, plan.schema, target)

    def stop(self) -> None:
        """End the lease."""
        if self._driver is not None:
            self._driver.stop()

    def _on_driver(self) -> _Driver:
        if self._driver is None:
            self._driver = _Driver(self._options, self._pinned)
        return self._driver


class _Driver:
    """The driver process's view of the table."""

    def __init__(self, options: UpdateOptions, pinned: PinnedUpdates) -> None:
        self._options = options
        self._pinned = pinned
        self._store = open_store(options.uri, options.storage)
        self._log = CommitLog(self._store)
        self._head: Snapshot | None = None
        self._stop: int | None = None  # the frontier at which the trigger availableNow ends
        self._lease: Lease | None = None

    def newest(self, start: Frontier) -> Frontier:
        head = self._checked(start)
        upper = frontiers_of(head.table).upper if self._stop is None else self._stop
        self._protect(head, upper if start.upper is None else start.upper)
        if start.upper is None:
            return Frontier(start.table, upper)
        return Frontier(start.table, max(upper, start.upper))

    def stop_at_head(self) -> None:
        self._stop = frontiers_of(self._refresh().table).upper

    def splits(self, start: Frontier, end: Frontier) -> list[InputPartition]:
        head = self._checked(start)
        if end.upper is None or start == end:
            return []
        time_type = head.schema.field(TIME).type
        upper = frontiers_of(head.table).upper
        if end.upper > upper:
            raise SnapshotExpired(
                f"the checkpoint of this query has the frontier {shown_time(end.upper, time_type)} "
                f"and upper is {shown_time(upper, time_type)}: the table is an older copy. Start a "
                "query with a new checkpoint"
            )
        if start.upper is None:  # a first batch, which may be planned again much later
            self._check_kept(head, end.upper)
        self._protect(head, end.upper if start.upper is None else start.upper)
        bounds = [(ComparisonOp.LT, end.upper)]
        if start.upper is not None:
            bounds.append((ComparisonOp.GE, start.upper))
        terms = [ir.Comparison(op, ir.Column(TIME), ir.Literal(at, time_type)) for op, at in bounds]
        plan = plan_scan(
            as_updates(head),
            self._store.uri,
            predicate=ir.conjoin(terms),
            now_us=clock.now_us(),
            split_bytes=self._options.split_bytes or DEFAULT.split_bytes,
            in_process=False,
        )
        return [InputPartition(split) for split in plan.splits_to_bytes()]

    def stop(self) -> None:
        if self._lease is not None:
            self._lease.end()

    def _checked(self, start: Frontier) -> Snapshot:
        """The newest version; an error if it is of another table, or has given up times."""
        head = self._refresh()
        if start.table != head.table.uuid or head.schema.id != self._pinned.target.schema.id:
            raise TableNotFound(
                f"the checkpoint or the DataFrame of this query is of table {start.table} with "
                f"other columns or another id than {head.table.uuid}, which is at "
                f"{self._options.uri}; load it again, and give each query a checkpoint of its own"
            )
        if start.upper is not None:
            self._check_kept(head, start.upper)
        return head

    def _check_kept(self, head: Snapshot, time: int) -> None:
        """SnapshotExpired if updates of times before this one may have a later time by now."""
        time_type = head.schema.field(TIME).type
        if may_have_merged(head.table, time, time_type):
            since = frontiers_of(head.table).since
            raise SnapshotExpired(
                f"the times from {shown_time(time, time_type)} to "
                f"{shown_time(since, time_type)} were given up before this query read them, "
                "and may have updates of earlier times by now. Start "
                "a query with a new checkpoint: without startingTime it begins with all updates"
            )

    def _refresh(self) -> Snapshot:
        self._head = self._log.latest(self._head)
        return self._head

    def _protect(self, head: Snapshot, time: int) -> None:
        """Hold a lease that keeps `since` below a time; without one if the table is read-only.

        The times before it are read, or are those of a first batch, which are read together.
        """
        old, since = self._lease, max(frontiers_of(head.table).since, time - 1)
        if old is not None and (old.version, old.since) == (head.version, since):
            return
        try:
            self._lease = Lease(self._store, head.table.uuid, head.version, LEASE_S, _HOLDER, since)
        except StoreError as error:
            _log.info("the stream of %s has no lease: %s", self._store.uri, error)
            return
        if old is not None:
            old.end()
