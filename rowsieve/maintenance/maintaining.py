"""The methods of `Table` that keep it cheap to read and store.

They are advice, compaction, and compaction with retention in one call.
"""

from __future__ import annotations

from dataclasses import dataclass

from rowsieve.arguments.annotations import Metadata, Moment, RetryTimeout
from rowsieve.changes.handle import changes
from rowsieve.compaction.run import COMPACTION_RETRY_TIMEOUT_S, Progress, plan_compaction
from rowsieve.maintenance.advice import Advice, advise
from rowsieve.retention.orphans import GRACE_S
from rowsieve.retention.removed_files import RemovedFiles
from rowsieve.retention.retaining import Retaining, Seconds
from rowsieve.storage.log_entry import Commit


@dataclass(frozen=True, slots=True)
class Maintenance:
    """What `maintain` did: its compaction, the files that it removed, and the advice after it."""

    compaction: Commit
    removed: RemovedFiles
    advice: Advice


class Maintaining(Retaining):
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

        Each visible row is written once. No file is deleted, so readers of older versions are not
        affected. Memory holds one output part and a batch per input part. If a concurrent commit
        changes these parts, the compaction starts again; CommitConflict once `retry_timeout_s`
        seconds have passed.
        """
        self._writable("compact")
        notes = dict(metadata or {})
        return self._commit_mutation(
            self._change("compact", notes, None, retry_timeout_s),
            lambda snapshot: plan_compaction(
                self._store, snapshot, notes, progress, self._collecting
            ),
            any_columns=True,
        )

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
