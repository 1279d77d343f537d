"""The methods of `Table` that keep it cheap to read and store.

They are advice, compaction, and compaction with retention in one call.
"""

from __future__ import annotations

from dataclasses import dataclass

from rowsieve.arguments.annotations import Metadata, Moment, RetryTimeout
from rowsieve.changes.handle import changes
from rowsieve.compaction.run import (
    COMPACTION_RETRY_TIMEOUT_S,
    MOST_PASSES,
    Progress,
    has_passes_left,
    plan_compaction,
)
from rowsieve.maintenance.advice import Advice, advise
from rowsieve.maintenance.storing_vectors import StoringVectors
from rowsieve.retention.orphans import GRACE_S
from rowsieve.retention.removed_files import RemovedFiles
from rowsieve.retention.retaining import Seconds
from rowsieve.storage.log_entry import Commit


@dataclass(frozen=True, slots=True)
class Maintenance:
    """What `maintain` did: its compaction, the files that it removed, and the advice after it."""

    compaction: Commit
    removed: RemovedFiles
    advice: Advice


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
        retry_timeout_s: RetryTimeout = COMPACTION_RETRY_TIMEOUT_S,
    ) -> Commit:
        """Rewrite small parts, and parts with deleted rows or several versions of a key.

        No file is deleted, so readers of older versions are not affected. Memory holds one output
        part and a batch per input part. Where many small parts overlap, a first commit merges these
        with one another, and a second one merges the result with the large parts; returns the last
        commit. If a concurrent commit changes these parts, the compaction starts again;
        CommitConflict once `retry_timeout_s` seconds have passed.
        """
        return self._passes(metadata, progress, retry_timeout_s)[-1]

    def _passes(
        self,
        metadata: Metadata | None,
        progress: Progress | None,
        retry_timeout_s: float | None = COMPACTION_RETRY_TIMEOUT_S,
    ) -> list[Commit]:
        """Compact until nothing is left to rewrite; return the commits, or one that did nothing."""
        self._writable("compact")
        notes = dict(metadata or {})
        change = self._change("compact", notes, None, retry_timeout_s)
        done: list[Commit] = []
        for _ in range(MOST_PASSES):
            is_last = not has_passes_left(self._latest())
            commit = self._commit_mutation(
                change,
                lambda snapshot: plan_compaction(
                    self._store, snapshot, notes, progress, self._collecting
                ),
                any_columns=True,
            )
            if commit.committed or not done:
                done.append(commit)
            if is_last or not commit.committed:
                break
        return done

    def maintain(
        self,
        *,
        older_than: Moment | None = None,
        retain_last: int | None = None,
        grace_s: Seconds = GRACE_S,
        metadata: Metadata | None = None,
        progress: Progress | None = None,
    ) -> Maintenance:
        """Do what is due: `compact`, then `vacuum` with these arguments.

        Without `older_than` and `retain_last` the versions of the last 7 days stay, and so do
        their files. A call that finds nothing to do commits nothing.
        """
        compaction = self.compact(metadata=metadata, progress=progress)
        removed = self.vacuum(
            older_than=older_than, retain_last=retain_last, grace_s=grace_s, metadata=metadata
        )
        return Maintenance(compaction, removed, self.maintenance_advice())
