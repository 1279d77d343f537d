"""The methods of `Table` that keep it cheap to read and store.

They are advice, compaction, and compaction with statistics and retention in one call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, Self, overload

from rowsieve.arguments import Example
from rowsieve.arguments.annotations import (
    ColumnNames,
    Metadata,
    Moment,
    Progress,
    RetryTimeout,
    StorageOptions,
    TableUri,
)
from rowsieve.changes.mutation import Mutation
from rowsieve.changes.table_handle import changes
from rowsieve.compaction.pace import Pace
from rowsieve.compaction.pick import pick
from rowsieve.compaction.rewrite_passes import (
    COMPACTION_RETRY_TIMEOUT_S,
    MOST_PASSES,
    Compaction,
)
from rowsieve.maintenance.advice import Advice, advise
from rowsieve.maintenance.analyzing import Analysis, plan_analysis, plan_missing
from rowsieve.maintenance.background import Background
from rowsieve.maintenance.cloning import clone_version
from rowsieve.maintenance.disk_usage import DiskUsage, usage_of
from rowsieve.maintenance.storing_vectors import StoringVectors
from rowsieve.objects import open_store
from rowsieve.retention.orphans import GRACE_S
from rowsieve.retention.removed_files import RemovedFiles
from rowsieve.retention.retaining import Seconds, checked_grace
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.snapshot import Snapshot

BytesPerSecond = Annotated[float, Example("50e6", "a number of bytes")]


@dataclass(frozen=True, slots=True)
class Maintenance:
    """The result of `maintain`: its commits, the files before and after, and the advice after it.

    `compactions` are the passes in order, `compaction` is the last one. `analyzed` is None if no
    part lacked statistics, `stored` if no deletion vectors were worth storing.
    """

    compactions: tuple[Commit, ...]
    analyzed: Commit | None
    removed: RemovedFiles
    before: DiskUsage
    after: DiskUsage
    advice: Advice
    stored: Commit | None = None

    @property
    def compaction(self) -> Commit:
        """The last pass; it is not committed if there was nothing to compact."""
        return self.compactions[-1]


class Maintaining(StoringVectors):
    """Base class of `Table` with advice, compaction and maintenance."""

    def maintenance_advice(self) -> Advice:
        """Describe the newest version, and recommend what would make it cheaper to read.

        Reads no files; the cost grows with the number of parts.
        """
        return advise(self._pinned if self._read_only else self._latest())

    @changes("compact")
    def compact(
        self,
        *,
        metadata: Metadata | None = None,
        progress: Progress | None = None,
        max_bytes_per_s: BytesPerSecond | None = None,
        retry_timeout_s: RetryTimeout = COMPACTION_RETRY_TIMEOUT_S,
    ) -> Commit:
        """Rewrite small parts, and parts with deleted rows or several versions of a key.

        No file is deleted, so readers of older versions are not affected. Where many small parts
        overlap, a first commit merges these with one another, and a second one merges the result
        with the large parts; returns the last commit. `max_bytes_per_s` limits the decoded bytes
        that are rewritten per second. If a concurrent commit changes these parts, the compaction
        starts again; CommitConflict once `retry_timeout_s` seconds have passed.
        """
        return self._passes(metadata, progress, Pace(max_bytes_per_s), retry_timeout_s)[-1]

    @changes("analyze")
    def analyze(
        self,
        columns: ColumnNames | None = None,
        *,
        rewrite_all: bool = False,
        distinct_counts: bool = False,
        metadata: Metadata | None = None,
        retry_timeout_s: RetryTimeout = COMPACTION_RETRY_TIMEOUT_S,
    ) -> Commit:
        """Collect statistics of parts that were written without them, in this process.

        The statistics of `columns` are the last to be trimmed. With `distinct_counts`, also
        sketches of the different values of these columns, or of all; those of other columns stay.
        `rewrite_all` collects them for all parts again. Writes no data file. Skips parts with other
        columns than the newest. Commits nothing if no part lacks anything.
        """
        self._writable("analyze")
        notes, names = dict(metadata or {}), tuple(columns or ())

        def plan(snapshot: Snapshot) -> Mutation | None:
            analysis = Analysis.of(
                snapshot.schema, names, rewrite_all=rewrite_all, distinct_counts=distinct_counts
            )
            return plan_analysis(self._store, snapshot, analysis, notes)

        change = self._change("analyze", notes, None, retry_timeout_s)
        return self._commit_mutation(change, plan, any_columns=not names)

    def _passes(
        self,
        metadata: Metadata | None,
        progress: Progress | None,
        pace: Pace,
        retry_timeout_s: float | None = COMPACTION_RETRY_TIMEOUT_S,
    ) -> tuple[Commit, ...]:
        """Compact until nothing remains to rewrite; return the commits, or one that did nothing."""
        self._writable("compact")
        notes = dict(metadata or {})
        change = self._change("compact", notes, None, retry_timeout_s)
        compaction = Compaction(self._store, notes, progress, self._collecting, pace)
        done: list[Commit] = []
        is_last = True

        def plan_pass(snapshot: Snapshot) -> Mutation | None:
            nonlocal is_last
            picked = pick(snapshot)
            is_last = not picked.slices
            return compaction.plan_pass(snapshot, picked)

        for _ in range(MOST_PASSES):
            commit = self._commit_mutation(change, plan_pass, any_columns=True)
            if commit.committed or not done:
                done.append(commit)
            if is_last or not commit.committed:
                break
        return tuple(done)

    @overload
    def maintain(
        self,
        *,
        older_than: Moment | None = None,
        retain_last: int | None = None,
        grace_s: Seconds = GRACE_S,
        metadata: Metadata | None = None,
        progress: Progress | None = None,
        max_bytes_per_s: BytesPerSecond | None = None,
        background: Literal[False] = False,
    ) -> Maintenance: ...

    @overload
    def maintain(
        self,
        *,
        older_than: Moment | None = None,
        retain_last: int | None = None,
        grace_s: Seconds = GRACE_S,
        metadata: Metadata | None = None,
        progress: Progress | None = None,
        max_bytes_per_s: BytesPerSecond | None = None,
        background: Literal[True],
    ) -> Background[Maintenance]: ...

    def maintain(
        self,
        *,
        older_than: Moment | None = None,
        retain_last: int | None = None,
        grace_s: Seconds = GRACE_S,
        metadata: Metadata | None = None,
        progress: Progress | None = None,
        max_bytes_per_s: BytesPerSecond | None = None,
        background: bool = False,
    ) -> Maintenance | Background[Maintenance]:
        """Do what is due: `compact`, collect missing statistics, then `vacuum`.

        If parts still overlap after a tiered compaction, `build_deletion_vectors` where it pays.
        Without `older_than` and `retain_last` the versions of the last 7 days stay, and so do their
        files. A call that finds nothing to do commits nothing. `max_bytes_per_s` is as in
        `compact`. With `background=True`, returns a handle at once, and a thread does the work; it
        ends with the process.
        """
        self._writable("maintain")
        checked_grace(grace_s)
        pace = Pace(max_bytes_per_s)

        def work() -> Maintenance:
            self._check_newest()  # before a commit takes the number of a lost entry
            before = usage_of(self._store)
            compactions = self._passes(metadata, progress, pace)
            analyzed = self._collect_missing(metadata)
            pace.check()
            stored = self._store_many_hidden_rows(metadata)
            pace.check()
            removed = self.vacuum(
                older_than=older_than, retain_last=retain_last, grace_s=grace_s, metadata=metadata
            )
            after = usage_of(self._store)
            advice = self.maintenance_advice()
            return Maintenance(compactions, analyzed, removed, before, after, advice, stored)

        return Background(work, pace) if background else work()

    def clone(
        self,
        uri: TableUri,
        *,
        version: int | None = None,
        as_of: Moment | None = None,
        storage_options: StorageOptions | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Copy one version with its data files into a new table at `uri`, and open that.

        The newest version without `version` and `as_of`. A lease protects it meanwhile, so commits,
        expiry and removal of orphans may go on. The copy begins with the number of the version and
        has no earlier ones; its table id is new. TableExists if there is a table.
        """
        target = open_store(uri, storage_options)
        with self.lease(version=version, as_of=as_of, holder="clone") as pinned:
            planted = clone_version(self._store, pinned._pinned, target, progress)
        return type(self)(
            target, CommitLog(target), planted, storage_options=dict(storage_options or {})
        )

    def _collect_missing(self, metadata: Metadata | None) -> Commit | None:
        """Collect the statistics that parts lack, and sketches of columns that have some."""
        notes = dict(metadata or {})
        commit = self._commit_mutation(
            self._change("analyze", notes, None, COMPACTION_RETRY_TIMEOUT_S),
            lambda snapshot: plan_missing(self._store, snapshot, notes),
            any_columns=True,
        )
        return commit if commit.committed else None
