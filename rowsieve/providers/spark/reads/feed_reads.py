"""Reads the change feed in Spark: plans commits on the driver, and reads their rows in tasks.

The columns are those of the version that was the newest when Spark asked for the schema, or of the
last version of a batch read. The driver reads only the log and manifests. Each task gets the parts
that its commits are computed from, opens them, finds the changed rows and evaluates the condition;
a commit with much data is cut by overlap groups of keys. So neither a large commit nor the rows of
a whole version go through the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from rowsieve import clock
from rowsieve.bridges.spark_columns.types import spark_schema
from rowsieve.bridges.where import to_predicate
from rowsieve.change_feed.commit_parts import (
    CommitParts,
    check_has_key,
    parts_of_commit,
    parts_of_rows,
)
from rowsieve.change_feed.commit_rows import rows_of_commit
from rowsieve.change_feed.feed import checked_range
from rowsieve.change_feed.feed_columns import FeedColumns, feed_schema
from rowsieve.change_feed.undone_rewrites import net_parts
from rowsieve.config import DEFAULT
from rowsieve.errors import InvalidInput, SchemaMismatch, TableNotFound, VersionNotFound
from rowsieve.objects import open_store
from rowsieve.planner.splits import even_split_bytes
from rowsieve.predicate.ir import TRUE, Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.spark.cluster.task_stores import task_store
from rowsieve.providers.spark.name_case import OddNames, odd_names
from rowsieve.providers.spark.reads.feed_options import LATEST, FeedOptions
from rowsieve.providers.spark.row_types import arrow_schema_of, to_spark
from rowsieve.providers.spark.session_settings import (
    ansi_default,
    check_task,
    condition_in_task,
    session_independent,
)
from rowsieve.providers.spark.task_properties import property_of_task
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.next_version import next_version
from rowsieve.storage.log.version_arguments import resolve_snapshot
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.instants import to_microseconds

SMALLEST_TASK_BYTES: Final = 8 * 1024 * 1024
_COMMIT_BYTES: Final = 1024 * 1024  # opening the files of a commit costs as much as reading these


@dataclass(frozen=True, slots=True)
class PinnedFeed:
    """The state of a DataFrame of the change feed.

    `target`, without parts, is the version whose columns its rows have.
    """

    target: Snapshot
    now_us: int
    ansi_default: bool
    odd_names: OddNames


def pin_feed(options: FeedOptions) -> PinnedFeed:
    """Read the version whose columns the rows have, and check the other options against it."""
    log = CommitLog(open_store(options.uri, options.storage))
    target = resolve_snapshot(log, options.ending_version, options.ending_timestamp)
    if options.starting_timestamp is not None:
        check_reached(log.latest(target), options.starting_timestamp)
    target = replace(target, parts=PartTable.empty(), tokens={})
    follows = options.where is not None and options.semantics is None
    names = odd_names(options.where or "TRUE", feed_schema(target)) if follows else OddNames()
    pinned = PinnedFeed(target, clock.now_us(), ansi_default(), names)
    feed_columns(options, pinned)
    if options.net:
        check_has_key(target)
    return pinned


def feed_columns(options: FeedOptions, pinned: PinnedFeed) -> FeedColumns:
    """The columns of the feed, and the conditions that mean the same in every session."""
    predicate, semantics, _ = _condition(options, pinned.target)
    return FeedColumns.bound(pinned.target, options.columns, predicate, semantics, pinned.now_us)


def output_of(options: FeedOptions, pinned: PinnedFeed) -> StructType:
    """The columns of the DataFrame."""
    columns: StructType = spark_schema(feed_columns(options, pinned).schema)
    return columns


def read_commits(
    options: FeedOptions, pinned: PinnedFeed, encoded: bytes
) -> Iterator[pa.RecordBatch]:
    """The rows of the commits of one task, in Spark's types."""
    followed = options.where if options.semantics is None else None
    check_task(followed, pinned.odd_names, property_of_task)
    predicate, semantics, is_whole = _condition(options, pinned.target)
    if not is_whole:
        predicate, semantics = condition_in_task(
            options.where or "",
            feed_schema(pinned.target),
            property_of_task,
            ansi=pinned.ansi_default,
        )
    columns = FeedColumns.bound(pinned.target, options.columns, predicate, semantics, pinned.now_us)
    target = arrow_schema_of(spark_schema(columns.schema))
    store = task_store(options.uri, options.storage)
    for data in msgspec.msgpack.decode(encoded, type=list[bytes]):
        commit = CommitParts.from_bytes(data)
        for batch in rows_of_commit(store, pinned.target, commit, columns):
            yield to_spark(batch, columns.schema, target)


def _condition(options: FeedOptions, target: Snapshot) -> tuple[Predicate, Semantics, bool]:
    """The conditions that do not depend on the session, and whether these are all."""
    semantics, schema = options.semantics or Semantics.SPARK, feed_schema(target)
    if options.predicate is not None:
        return options.predicate, semantics, True
    if options.where is None:
        return TRUE, semantics, True
    if options.semantics is None:
        predicate, is_whole = session_independent(options.where, schema)
        return predicate, semantics, is_whole
    predicate = to_predicate(options.where, "spark", schema, semantics, names_checked=True)
    return predicate, semantics, True


class CommitPlanner:
    """Plans the commits of a table one by one; keeps the last version that it has read."""

    def __init__(self, log: CommitLog, target: Snapshot) -> None:
        self._log = log
        self._target = target
        self._last: Snapshot | None = None

    def commits(self, versions: range, *, all_rows_of: int | None = None) -> list[CommitParts]:
        """The commits that change rows; of the version `all_rows_of`, all rows as inserts.

        The latter may only be the first one. SchemaMismatch for versions after the target with
        other columns.
        """
        if not versions:
            return []
        commits: list[CommitParts | None] = []
        if versions[0] == all_rows_of:
            before: Snapshot | None = self._at(versions[0])
            assert before is not None
            check_columns(before, self._target)
            commits.append(parts_of_rows(before))
            versions = versions[1:]
        else:
            before = self._at(versions[0] - 1) if versions[0] else None
        for version in versions:
            after, operation = next_version(self._log, before, version)
            check_columns(after, self._target)
            commits.append(parts_of_commit(before, after, operation, self._target))
            before = after
        self._last = before
        return [commit for commit in commits if commit is not None]

    def net(self, versions: range) -> list[CommitParts]:
        """The net changes of the versions, which end with the target, as those of one commit."""
        before = self._at(versions[0] - 1) if versions[0] else None
        commit = net_parts(self._log, before, self._log.at(versions[-1]))
        return [] if commit is None else [commit]

    def _at(self, version: int) -> Snapshot:
        last = self._last
        return last if last is not None and last.version == version else self._log.at(version)

    def tasks(
        self, commits: Sequence[CommitParts], split_bytes: int | None
    ) -> list[InputPartition]:
        """Spread commits over tasks; each has about as many bytes, of consecutive commits."""
        total = sum(_cost(commit) for commit in commits)
        most = split_bytes or even_split_bytes(
            total, least=SMALLEST_TASK_BYTES, most=DEFAULT.split_bytes
        )
        tasks: list[list[bytes]] = []
        open_bytes = most
        for commit in commits:
            whole = _cost(commit) <= most
            for share in [commit] if whole else commit.shares(self._target):
                if open_bytes + _cost(share) > most or not tasks:
                    tasks.append([])
                    open_bytes = 0
                tasks[-1].append(share.to_bytes())
                open_bytes += _cost(share)
        return [InputPartition(msgspec.msgpack.encode(task)) for task in tasks]


def _cost(commit: CommitParts) -> int:
    return _COMMIT_BYTES + commit.size_bytes


def first_version(log: CommitLog, head: Snapshot, options: FeedOptions) -> int:
    """The version that the options start at; VersionNotFound if it is not there yet."""
    if options.starting_timestamp is not None:
        return _first_since(log, head, options.starting_timestamp)
    if options.starting_version == LATEST:
        return head.version + 1
    assert isinstance(options.starting_version, int)
    if options.starting_version > head.version + 1:
        raise VersionNotFound(
            f"option startingVersion={options.starting_version}: the newest version is "
            f"{head.version}; give at most {head.version + 1}, or 'latest'"
        )
    return options.starting_version


def _first_since(log: CommitLog, head: Snapshot, text: str) -> int:
    """The first version that was committed at this time or later."""
    check_reached(head, text)
    since_us = to_microseconds(text)
    try:
        return log.as_of(since_us - 1).version + 1
    except VersionNotFound:
        return 0


def check_reached(head: Snapshot, text: str) -> None:
    """Raise VersionNotFound if no version was committed at this time or later."""
    if head.timestamp_us < to_microseconds(text):
        raise VersionNotFound(
            f"option startingTimestamp={text}: the newest version was committed at "
            f"{head.timestamp}, before it; give an earlier time, or startingVersion=latest"
        )


def check_same_table(uuid: str, target: Snapshot, uri: str) -> None:
    """Raise TableNotFound if the table at the URI is not the one that was loaded."""
    if uuid != target.table.uuid:
        raise TableNotFound(
            f"{uri} was loaded as table {target.table.uuid}, and is now table {uuid}: it was "
            "dropped and created again; load it again"
        )


def check_columns(snapshot: Snapshot, target: Snapshot) -> None:
    """Raise SchemaMismatch if a version after the target has other columns."""
    if snapshot.version > target.version and snapshot.schema.id != target.schema.id:
        raise SchemaMismatch(
            f"the columns of table {target.table.uuid} were changed by version {snapshot.version} "
            f"or before it, and the stream was loaded from version {target.version}. Load the "
            "stream again, which then has the new columns, and start the query with the same "
            "checkpoint: it goes on where it stopped. Change the columns of its target first"
        )


class FeedReader(DataSourceReader):
    """A batch read of the change feed."""

    def __init__(self, options: FeedOptions, pinned: PinnedFeed) -> None:
        options.check_batch()
        self._options = options
        self._pinned = pinned

    def partitions(self) -> list[InputPartition]:
        """Some commits, or a share of one, for each task."""
        options, target = self._options, self._pinned.target
        store = open_store(options.uri, options.storage)
        log = CommitLog(store)
        head = log.latest()
        check_same_table(head.table.uuid, target, options.uri)
        is_latest = options.starting_version == LATEST
        first = target.version + 1 if is_latest else first_version(log, head, options)
        if first > target.version + 1:
            raise InvalidInput(
                f"the change feed from version {first} to {target.version} has no version; give a "
                "start before its end"
            )
        if first > target.version:
            return []
        versions = checked_range(head, first, target.version)
        planner = CommitPlanner(log, target)
        commits = planner.net(versions) if options.net else planner.commits(versions)
        return planner.tasks(commits, options.split_bytes)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The changes of one task."""
        if partition.value is None:  # what Spark passes if there is no partition
            return iter(())
        return read_commits(self._options, self._pinned, partition.value)
