"""The path of changes that are acknowledged after their commit: group commit.

While one commit is under way, calls wait in the queue; they are the next commit.
"""

from __future__ import annotations

from collections.abc import Callable

from rowsieve.changes.data.ingest import Changes
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import InvalidData
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.snapshot import Snapshot
from rowsieve.writer.counting import Counting
from rowsieve.writer.flushing import commit_changes
from rowsieve.writer.intake import Intake
from rowsieve.writer.memtables import MemtableEntry
from rowsieve.writer.queued_calls import Preparation, QueuedCall, prepared


class CommittedPath:
    """The thread of a writer with `durability="commit"`."""

    def __init__(
        self,
        handle: Handle,
        head: Snapshot,
        intake: Intake,
        counting: Counting,
        note_commit: Callable[[], None],
    ) -> None:
        self._handle, self._intake = handle, intake
        self._note_commit, self._counting = note_commit, counting
        self.preparation = Preparation(
            head, is_logged=False, storage_options=handle.storage_options
        )

    @property
    def works(self) -> list[tuple[str, Callable[[], None]]]:
        """The loop of the thread, by name."""
        return [("commit", self._commit_calls)]

    def _commit_calls(self) -> None:
        try:
            while (calls := self._intake.take(None)) is not None:
                if calls:
                    self._commit(list(prepared(calls, self.preparation, self._refuse)))
                    self.refresh(self._handle.newest)
        except BaseException as error:
            self._intake.fail(error)
            raise

    def _commit(self, groups: list[tuple[list[QueuedCall], Changes]]) -> None:
        if not groups:
            return
        form = self.preparation.form
        entries = [MemtableEntry(0, changes, form, 0, 0) for _, changes in groups]
        members = [call for group, _ in groups for call in group]
        try:
            with self._counting.flush_timed():
                commit = commit_changes(self._handle, entries)
        except InvalidData as error:  # an event that is too late: only its own call fails
            if len(members) == 1:
                self._refuse(members[0], error)
                return
            for call in members:
                self._commit(list(prepared([call], self.preparation, self._refuse)))
        except Exception as error:
            for call in members:
                self._refuse(call, error)
        else:
            self._acknowledge(members, commit)
            self._note_commit()
            self._counting.report()

    def _acknowledge(self, calls: list[QueuedCall], commit: Commit) -> None:
        rows = sum(call.rows for call in calls)
        self._intake.release(rows)
        self._counting.note_group(calls)
        self._counting.note_flushed(rows)
        for call in calls:
            call.acknowledgement.complete(commit.version)

    def _refuse(self, call: QueuedCall, error: BaseException) -> None:
        call.acknowledgement.complete(0, error)
        self._intake.release(call.rows)
        self._counting.note_failed()

    def refresh(self, snapshot: Snapshot) -> None:
        """Prepare later calls for the columns and properties of this version."""
        self.preparation = Preparation(
            snapshot,
            is_logged=False,
            storage_options=self._handle.storage_options,
            earlier=self.preparation,
        )

    def flush(self) -> int:
        """Return the newest version: what was acknowledged is committed."""
        return self._handle.newest.version

    def over(self, snapshot: Snapshot) -> Snapshot | None:
        """Return this version: what was acknowledged is committed."""
        return snapshot

    def close(self) -> None:
        """Raise the error of a writer that failed."""
        if (error := self._intake.failure) is not None:
            raise error

    def stop(self) -> None:
        """Do nothing: the thread ended with the queue."""
