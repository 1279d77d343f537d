"""Implements `spark.readStream.format("rowsieve")`: the change feed as a stream.

An offset is the last version that was read. A batch is a range of versions, which never change, so
a repeated batch has the same rows. Without an option that says where to start, the first batch has
all rows of the newest version as inserts, and the changes follow.

Spark does not keep the first offset of a query: if the first batch is repeated, it asks again, and
the table may have newer versions by then. So every offset also says where the stream began, and the
end of the first batch decides.

Soundness: no version is skipped. A version that is gone is SnapshotExpired, other columns than
those of the DataFrame stop the query before the version that has them, and a table that was
replaced is TableNotFound. While a query runs, a lease protects the versions after its offset.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from rowsieve.bridges.sql import parse_predicate
from rowsieve.change_feed.feed import check_changes_kept
from rowsieve.decoded_types import described
from rowsieve.errors import (
    InvalidInput,
    SnapshotExpired,
    StoreError,
    TableNotFound,
    UnsupportedOperation,
    VersionNotFound,
)
from rowsieve.objects import ObjectStore, open_store
from rowsieve.predicate.ir import Now, walk
from rowsieve.providers.spark.reads.feed_options import MAX_VERSIONS, FeedOptions
from rowsieve.providers.spark.reads.feed_reads import (
    CommitPlanner,
    PinnedFeed,
    check_columns,
    check_same_table,
    first_version,
    read_commits,
)
from rowsieve.retention.leases import LEASE_S, Lease
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.floors import check_kept
from rowsieve.storage.snapshot import Snapshot

_NEW_CHECKPOINT: Final = (
    "Start a query with a new checkpoint: without startingVersion it begins with all rows of the "
    "table. Keep versions for as long as a query may stand still"
)
_log = logging.getLogger(__name__)


class Offset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A place in the versions of a table: `version` is the last one that was read.

    `began` is the first version of the stream, of which it has all rows if `snapshot`, otherwise
    the changes. Before it, `version` is `began - 1`.
    """

    table: str
    version: int
    began: int
    snapshot: bool

    @classmethod
    def of(cls, offset: Mapping[str, Any]) -> Offset:
        """Read what Spark kept; InvalidInput if it is of another source."""
        try:
            return msgspec.convert(offset, described(cls))
        except msgspec.ValidationError as error:
            raise InvalidInput(
                f"the checkpoint of this query has the offset {offset!r}, which is not of a stream "
                f"from a Rowsieve table: {error}; give each query a checkpoint of its own"
            ) from error

    @property
    def is_first(self) -> bool:
        """True if nothing was read yet."""
        return self.version < self.began

    @property
    def all_rows_of(self) -> int | None:
        """The version whose rows the next batch has in full; None for a batch of changes."""
        return self.began if self.snapshot and self.is_first else None

    @property
    def needed(self) -> int:
        """The oldest version that the next batch needs."""
        return max(self.version, 0) if self.all_rows_of is None else self.began

    def plain(self) -> dict[str, Any]:
        """The offset as Spark keeps it."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields


class RowsieveStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The source of one query.

    One process of the driver calls all methods but `read` as long as the query runs.
    """

    def __init__(self, options: FeedOptions, pinned: PinnedFeed) -> None:
        options.check_stream()
        _refuse_now(options)
        self._options = options
        self._pinned = pinned
        self._driver: _Driver | None = None  # not sent to tasks: it is created at the first call

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """The offset at which a new query starts."""
        return self._on_driver().initial().plain()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """The most versions per batch; of Spark's limits, that of files comes nearest."""
        return ReadMaxFiles(self._options.max_versions or MAX_VERSIONS)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """The end of the next batch; `start` itself if there is nothing new."""
        begin = Offset.of(start)
        most = None if isinstance(limit, ReadAllAvailable) else self.getDefaultReadLimit()
        count = most.max_files if isinstance(most, ReadMaxFiles) else None
        end = self._on_driver().end_of_batch(begin, count)
        return start if end == begin else end.plain()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Let the query end at the version that is the newest now."""
        self._on_driver().stop_at_head()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """The newest version that was seen, for the progress of the query."""
        newest = self._on_driver().newest
        return None if newest is None else newest.plain()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Some commits, or a share of one, for each task."""
        return self._on_driver().tasks(Offset.of(start), Offset.of(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The changes of one task."""
        if partition.value is None:
            return iter(())
        return read_commits(self._options, self._pinned, partition.value)

    def stop(self) -> None:
        """End the lease."""
        if self._driver is not None:
            self._driver.stop()

    def _on_driver(self) -> _Driver:
        if self._driver is None:
            self._driver = _Driver(self._options, self._pinned)
        return self._driver


def _refuse_now(options: FeedOptions) -> None:
    """Refuse a condition on the time of the query: a repeated batch must have the same rows."""
    tree = options.predicate
    if options.where is not None:
        tree = parse_predicate(options.where, "spark")
    if tree is not None and any(isinstance(node, Now) for node in walk(tree)):
        raise UnsupportedOperation(
            "option where of a stream: the time of the query is not the same if a batch is "
            "repeated; filter the DataFrame by it instead"
        )


@dataclass(frozen=True, slots=True)
class _Batch:
    start: Offset
    end: Offset
    tasks: list[InputPartition]


class _Driver:
    """The driver process's view of the table."""

    def __init__(self, options: FeedOptions, pinned: PinnedFeed) -> None:
        self._options = options
        self._target = pinned.target
        self._store: ObjectStore = open_store(options.uri, options.storage)
        self._log = CommitLog(self._store)
        self._planner = CommitPlanner(self._log, pinned.target)
        self._head: Snapshot | None = None
        self._stop: Snapshot | None = None  # the version at which the trigger availableNow ends
        self._lease: Lease | None = None
        self._batch: _Batch | None = None
        self.newest: Offset | None = None

    def initial(self) -> Offset:
        head = self._stop or self._refresh()
        table = self._target.table.uuid
        if not self._options.has_start:
            check_columns(head, self._target)
            return Offset(table, head.version - 1, head.version, snapshot=True)
        first = first_version(self._log, head, self._options)
        check_changes_kept(head, first)
        return Offset(table, first - 1, first, snapshot=False)

    def end_of_batch(self, start: Offset, count: int | None) -> Offset:
        """The last version of the batch of at most `count` versions after this offset."""
        self._check(start)
        self._protect(start)
        head = self._refresh()
        self._check_kept(start, head)
        self.newest = replace_version(start, head.version)
        if start.version > head.version:
            raise VersionNotFound(
                f"the checkpoint of this query has version {start.version} of table {start.table}, "
                f"and the newest version at {self._options.uri} is {head.version}: the table is an "
                f"older copy. {_NEW_CHECKPOINT}"
            )
        last = (self._stop or head).version
        if count is not None:
            last = min(last, start.version + count)
            last = self._last_of_files(start.version + 1, last)
        if start.version >= last:
            return start
        return replace_version(start, self._last_with_columns(start, last, head))

    def _last_of_files(self, first: int, last: int) -> int:
        """The last version up to `last` with at most `maxFilesPerTrigger` files; `first` always."""
        if (most := self._options.max_files) is None:
            return last
        count = 0
        for version in range(first, last + 1):
            entry = self._log.entry(version)
            count += 0 if entry is None or entry.file is None else entry.file.parts
            if count > most:
                return max(first, version - 1)
        return last

    def stop_at_head(self) -> None:
        self._stop = self._refresh()

    def tasks(self, start: Offset, end: Offset) -> list[InputPartition]:
        """The tasks of a batch, also of one that was planned before the query was restarted."""
        self._check(end)
        if start.is_first:
            start = replace_version(end, end.began - 1)
        self._check(start)
        if start.version == end.version:
            return []
        if self._batch is not None and (self._batch.start, self._batch.end) == (start, end):
            return self._batch.tasks
        self._protect(start)
        self._check_kept(start, self._refresh())
        versions = range(start.version + 1, end.version + 1)
        commits = self._planner.commits(versions, all_rows_of=start.all_rows_of)
        tasks = self._planner.tasks(commits, self._options.split_bytes)
        self._batch = _Batch(start, end, tasks)
        return tasks

    def stop(self) -> None:
        if self._lease is not None:
            self._lease.end()

    def _refresh(self) -> Snapshot:
        self._head = self._log.latest(self._head)
        check_same_table(self._head.table.uuid, self._target, self._options.uri)
        return self._head

    def _check(self, offset: Offset) -> None:
        """Raise TableNotFound if the checkpoint belongs to another table than the loaded one."""
        if offset.table != self._target.table.uuid:
            raise TableNotFound(
                f"the checkpoint of this query is of table {offset.table}, and at "
                f"{self._options.uri} is table {self._target.table.uuid}, whose versions are "
                "others. Give each query a checkpoint of its own; if the table was dropped and "
                "created again, start a query with a new checkpoint"
            )

    def _check_kept(self, start: Offset, head: Snapshot) -> None:
        try:
            if (version := start.all_rows_of) is not None:
                check_kept(version, head)
            else:
                check_changes_kept(head, start.version + 1)
        except SnapshotExpired as error:
            raise SnapshotExpired(f"{error}. {_NEW_CHECKPOINT}") from error

    def _last_with_columns(self, start: Offset, last: int, head: Snapshot) -> int:
        """The last version up to `last` with the columns of the DataFrame, or with older ones.

        SchemaMismatch if that is the one that was read already.
        """
        target = self._target
        if last <= target.version or head.schema.id == target.schema.id:
            return last
        newest = max(start.version, target.version)
        check_columns(self._log.at(newest), target)
        for version in range(newest + 1, last + 1):
            entry = self._log.entry(version)
            if entry is None or entry.schema is not None:
                after = self._log.at(version)
                if after.schema.id != target.schema.id:
                    break
            newest = version
        if newest == start.version:
            check_columns(self._log.at(newest + 1), target)
        return newest

    def _protect(self, offset: Offset) -> None:
        """Hold a lease on what the next batch needs; without one if the table is read-only."""
        if self._lease is not None and self._lease.version == offset.needed:
            return
        old = self._lease
        try:
            self._lease = Lease(
                self._store, self._target.table.uuid, offset.needed, LEASE_S, "spark stream"
            )
        except StoreError as error:
            _log.info("the stream of %s has no lease: %s", self._store.uri, error)
            return
        if old is not None:
            old.end()


def replace_version(offset: Offset, version: int) -> Offset:
    """The offset of another version of the same stream."""
    return msgspec.structs.replace(offset, version=version)
