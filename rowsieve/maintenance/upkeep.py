"""The methods of `Table` for upkeep: what makes it cheap to read, and gives disk space back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal, Self, overload

from rowsieve import clock
from rowsieve.arguments import Example
from rowsieve.arguments.annotations import (
    ColumnNames,
    Metadata,
    Moment,
    RetryTimeout,
    StorageOptions,
    TableUri,
    Version,
)
from rowsieve.bridges.session import Session
from rowsieve.bridges.sql.dialects import DialectName
from rowsieve.bridges.where import locating_errors, semantics_of, to_predicate
from rowsieve.changes.change import Question
from rowsieve.changes.column_changes import columns_read
from rowsieve.changes.method_base import TableMethods, changes
from rowsieve.changes.mutation import Mutation
from rowsieve.changes.table_handle import Handle
from rowsieve.changes.vector_building import plan_vectors
from rowsieve.changes.vector_merging import plan_merged_vectors
from rowsieve.compaction.pace import Pace
from rowsieve.compaction.rewrite_passes import COMPACTION_RETRY_TIMEOUT_S
from rowsieve.maintenance.advice import Advice, advise
from rowsieve.maintenance.analyzing import Analysis, plan_analysis
from rowsieve.maintenance.background import Background
from rowsieve.maintenance.cloning import clone_version
from rowsieve.maintenance.gauges import gauges_of
from rowsieve.maintenance.steps import Maintenance, compact_in_passes, fold_in_memory, maintain
from rowsieve.maintenance.verifying import Verification, verify_version
from rowsieve.objects import open_store
from rowsieve.predicate.bind import bind
from rowsieve.progress_bars import ShownProgress, shown
from rowsieve.retention.leases import LEASE_S
from rowsieve.retention.orphans import GRACE_S
from rowsieve.retention.removed_files import RemovedFiles
from rowsieve.retention.retaining import (
    Seconds,
    checked_grace,
    expire_versions,
    leased,
    remove_orphans,
)
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.snapshot import Snapshot

BytesPerSecond = Annotated[float, Example("50e6", "a number of bytes")]


class UpkeepMethods(TableMethods):
    """Compaction, statistics, deletion vectors, copies, leases and retention."""

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle)
        handle.folds = fold_in_memory

    def maintenance_advice(self) -> Advice:
        """Describe the newest version, and recommend what would make it cheaper to read.

        Reads no files; the cost grows with the number of parts.
        """
        return advise(self.handle.resolve())

    def gauges(self, *, disk: bool = False) -> dict[str, float]:
        """Return the state of the newest version as numbers by name, for a monitor.

        `rowsieve.metrics.gauges_text` makes Prometheus' text of them. Reads no files; with `disk`,
        lists the table's folders for the files of all versions.
        """
        return gauges_of(self.handle.store, self.handle.resolve(), disk=disk)

    @changes("compact")
    def compact(
        self,
        *,
        metadata: Metadata | None = None,
        progress: ShownProgress | None = None,
        max_bytes_per_s: BytesPerSecond | None = None,
        retry_timeout_s: RetryTimeout = COMPACTION_RETRY_TIMEOUT_S,
    ) -> Commit:
        """Rewrite small parts, and parts with deleted rows or several versions of a key.

        No file is deleted, so readers of older versions are not affected. Where many small parts
        overlap, a first commit merges these with one another, and a second one merges the result
        with the large parts; returns the last commit.
        `progress=True` shows a bar. `max_bytes_per_s` limits the decoded bytes
        that are rewritten per second. If a concurrent commit changes these parts, the compaction
        starts again; CommitConflict once `retry_timeout_s` seconds have passed.
        """
        pace = Pace(max_bytes_per_s)
        with shown(progress, "rows rewritten") as show:
            return compact_in_passes(self.handle, metadata, show, pace, retry_timeout_s)[-1]

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
        self.handle.require_writable("analyze")
        notes, names = dict(metadata or {}), tuple(columns or ())

        def plan(snapshot: Snapshot) -> Mutation | None:
            analysis = Analysis.of(
                snapshot.schema, names, rewrite_all=rewrite_all, distinct_counts=distinct_counts
            )
            return plan_analysis(self.handle.store, snapshot, analysis, notes)

        change = self.handle.change("analyze", notes, None, retry_timeout_s)
        return self.handle.commit_mutation(change, plan, any_columns=not names)

    @changes("build_deletion_vectors")
    def build_deletion_vectors(
        self,
        where: Any = None,
        *,
        dialect: DialectName = "postgres",
        session: Session | None = None,
        metadata: Metadata | None = None,
        retry_timeout_s: RetryTimeout = COMPACTION_RETRY_TIMEOUT_S,
    ) -> Commit:
        """Store which rows newer versions of their keys hide, so that reads need not compare keys.

        With `where`, only for parts that may hold a matching row, and parts that overlap them.
        Later commits are resolved from their own keys. Writes no rows, changes no result, and
        commits nothing if all vectors are complete. UnsupportedOperation for a table without a key,
        whose deletes always store vectors. The table then requires writers of protocol 4.
        """
        self.handle.require_writable("build_deletion_vectors")
        self.handle.order("build_deletion_vectors")
        notes = dict(metadata or {})
        change = self.handle.change("build_deletion_vectors", notes, None, retry_timeout_s)
        schema, question = self.handle.newest.schema, None
        semantics = semantics_of(dialect, where, session)
        if where is not None:
            with locating_errors(where, dialect, schema, semantics):
                predicate = to_predicate(where, dialect, schema, semantics, session)
                bind(predicate, schema, semantics, now_us=0, simplified=False)
            question = Question(predicate, semantics, clock.now_us())
        asked = question
        return self.handle.commit_mutation(
            change,
            lambda snapshot: plan_vectors(self.handle.store, snapshot, asked, notes),
            any_columns=asked is None,
            reads=None if asked is None else (schema, lambda: columns_read(schema, asked, {})),
        )

    @changes("rewrite_position_delete_files")
    def rewrite_position_delete_files(
        self,
        *,
        metadata: Metadata | None = None,
        retry_timeout_s: RetryTimeout = COMPACTION_RETRY_TIMEOUT_S,
    ) -> Commit:
        """Write the stored deletion vectors of a table with a key into as few files as possible.

        Joins small files; drops unreadable vectors and vectors of removed parts. Commits nothing if
        at most one file is small, and none has vectors of parts that are gone.
        """
        self.handle.require_writable("rewrite_position_delete_files")
        notes = dict(metadata or {})
        return self.handle.commit_mutation(
            self.handle.change("rewrite_position_delete_files", notes, None, retry_timeout_s),
            lambda snapshot: plan_merged_vectors(self.handle.store, snapshot, notes),
            any_columns=True,
        )

    @overload
    def maintain(
        self,
        *,
        older_than: Moment | None = None,
        retain_last: int | None = None,
        grace_s: Seconds = GRACE_S,
        metadata: Metadata | None = None,
        progress: ShownProgress | None = None,
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
        progress: ShownProgress | None = None,
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
        progress: ShownProgress | None = None,
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
        self.handle.require_writable("maintain")
        checked_grace(grace_s)
        pace = Pace(max_bytes_per_s)

        def vacuum() -> RemovedFiles:
            return self.vacuum(
                older_than=older_than, retain_last=retain_last, grace_s=grace_s, metadata=metadata
            )

        def work() -> Maintenance:
            with shown(progress, "rows rewritten") as show:
                return maintain(self.handle, metadata, show, pace, vacuum)

        return Background(work, pace) if background else work()

    def verify(
        self,
        *,
        version: Version | None = None,
        as_of: Moment | None = None,
        quick: bool = False,
        progress: ShownProgress | None = None,
    ) -> Verification:
        """Read every file of a version, and compare it with its size and checksums.

        The newest version without `version` and `as_of`. Damaged and missing files are in
        `damaged`, with the reason; the table is not changed. `quick` compares only sizes and
        footers, as it does for files that were imported in place.
        """
        snapshot = self.handle.resolve(version, as_of)
        with shown(progress, "files compared") as show:
            return verify_version(self.handle.store, snapshot, quick=quick, progress=show)

    def clone(
        self,
        uri: TableUri,
        *,
        version: Version | None = None,
        as_of: Moment | None = None,
        storage_options: StorageOptions | None = None,
        progress: ShownProgress | None = None,
    ) -> Self:
        """Copy one version with its data files into a new table at `uri`, and open that.

        The newest version without `version` and `as_of`. A lease protects it meanwhile, so commits,
        expiry and removal of orphans may go on. The copy begins with the number of the version and
        has no earlier ones; its table id is new. TableExists if there is a table.
        """
        target = open_store(uri, storage_options)
        lease = self.lease(version=version, as_of=as_of, holder="clone")
        with lease as pinned, shown(progress, "files copied") as show:
            planted = clone_version(self.handle.store, pinned.handle.pinned, target, show)
        log = CommitLog(target)
        return type(self)(Handle(target, log, planted, storage_options=storage_options))

    @contextmanager
    def lease(
        self,
        duration_s: Seconds = LEASE_S,
        *,
        version: Version | None = None,
        as_of: Moment | None = None,
        holder: str = "",
        since: Any = None,
    ) -> Iterator[Self]:
        """Protect a version from deletion in a `with` block; yields a read-only table at it.

        `with t.lease() as pinned: pinned.to_arrow()`. Without `version` and `as_of` it is the
        newest version, or that of a read-only table. All later versions are protected, too. The
        lease is renewed in the background; if the process dies, it is over `duration_s` seconds
        after the last renewal. SnapshotExpired if the version is gone. The table's folder must be
        writable.

        The lease also keeps `since` of a differential table where that version has it, or, with
        `since`, a time that the version can read, no later than there.
        """
        with leased(self.handle, duration_s, version, as_of, holder, since) as pinned:
            yield type(self)(pinned)

    @changes("expire_versions")
    def expire_versions(
        self,
        *,
        older_than: Moment | None = None,
        retain_last: int | None = None,
        grace_s: Seconds = 0.0,
        dry_run: bool = False,
        metadata: Metadata | None = None,
        progress: ShownProgress | None = None,
    ) -> RemovedFiles:
        """Give up old versions, and delete the files that only they had.

        Kept are the newest version, the last `retain_last` versions, every version that was the
        newest one at `older_than` or later, and what a lease protects; without arguments, the
        versions of the last 7 days. Readers of other versions get SnapshotExpired. `grace_s` is
        the time between the commit that gives them up and the first deletion. Commits nothing if no
        version expires. With `dry_run`, only says what would be deleted. `progress` gets the
        numbers of files that are deleted and of all, in runs of 1,000. Published versions are kept
        until a later one is published.
        """
        handle = self.handle
        if handle.publishes is not None and not handle.read_only and not dry_run:
            handle.latest()
            handle.publishes(handle, holds_all=True)
        with shown(progress, "files deleted") as show:
            return expire_versions(
                self.handle, older_than, retain_last, grace_s, metadata, show, dry_run=dry_run
            )

    @changes("remove_orphans")
    def remove_orphans(
        self,
        *,
        grace_s: Seconds = GRACE_S,
        dry_run: bool = False,
        metadata: Metadata | None = None,
        progress: ShownProgress | None = None,
    ) -> RemovedFiles:
        """Delete files that no version has: those of writes that failed or were interrupted.

        A write that is not committed yet loses its files if it began more than `grace_s` seconds
        ago (a day by default), on a version that has been superseded since. It then fails with
        CommitConflict, or writes them again. With `dry_run`, only says what would be deleted.
        """
        with shown(progress, "files deleted") as show:
            return remove_orphans(self.handle, grace_s, metadata, show, dry_run=dry_run)

    def vacuum(
        self,
        *,
        older_than: Moment | None = None,
        retain_last: int | None = None,
        grace_s: Seconds = GRACE_S,
        dry_run: bool = False,
        metadata: Metadata | None = None,
        progress: ShownProgress | None = None,
    ) -> RemovedFiles:
        """Give disk space back: `expire_versions`, then `remove_orphans` with `grace_s`.

        Each of them reports its own `progress`.
        """
        checked_grace(grace_s)  # before anything expires
        self.handle.require_writable("vacuum")
        expired = self.expire_versions(
            older_than=older_than,
            retain_last=retain_last,
            dry_run=dry_run,
            metadata=metadata,
            progress=progress,
        )
        orphans = self.remove_orphans(
            grace_s=grace_s, dry_run=dry_run, metadata=metadata, progress=progress
        )
        return expired.joined(orphans, "vacuum")
