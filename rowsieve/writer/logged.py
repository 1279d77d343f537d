"""The path of changes that are acknowledged from the write-ahead log.

One thread writes records, another one commits memtables. Soundness: a record is durable before it
is in a memtable, in a memtable before it is acknowledged, and durable before it is committed, so
that no version is ever ahead of the log (invariant 18).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from rowsieve import clock
from rowsieve.changes.data.ingest import Changes
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import CommitConflict, CorruptData, RowsieveError, StoreError, WriterFailed
from rowsieve.storage.snapshot import Snapshot
from rowsieve.writer.combining import combined
from rowsieve.writer.counting import Counting
from rowsieve.writer.flushing import commit_records, through_sequence
from rowsieve.writer.intake import Intake
from rowsieve.writer.memtables import MemtableEntry, Memtables
from rowsieve.writer.overlay import Overlay
from rowsieve.writer.queued_calls import Preparation, QueuedCall, prepared
from rowsieve.writer.records import Form, adapted, decode_changes, encode_changes
from rowsieve.writer.wal import Wal
from rowsieve.writer.writer_settings import WriterSettings

_LOG: Final = logging.getLogger("rowsieve")
_TRANSIENT: Final = (StoreError, CommitConflict, OSError)
"""Errors of a commit after which a later attempt may succeed."""

_RETRY_PAUSE_S: Final = 0.5


class LoggedPath:
    """The log, the memtables and the threads of a writer with `durability="wal"`."""

    def __init__(
        self,
        handle: Handle,
        head: Snapshot,
        settings: WriterSettings,
        intake: Intake,
        counting: Counting,
        note_commit: Callable[[], None],
    ) -> None:
        """Take the log over; what it has that no commit has becomes the first memtable."""
        assert settings.wal_dir is not None
        self._handle, self._settings, self._intake = handle, settings, intake
        self._note_commit, self._counting = note_commit, counting
        self.preparation = Preparation(head, is_logged=True, storage_options=handle.storage_options)
        form = self.preparation.form
        self._wal = Wal(
            settings.wal_dir, head.table.uuid, form.encode(), recovery=settings.recovery
        )
        try:
            head = handle.latest()  # after the claim: the former owner may have committed
            self._memtables = Memtables(head.version)
            self._recover(through_sequence(head, self._wal.wal_id))
        except BaseException:
            self._wal.abandon()
            raise
        self._overlay = Overlay(handle.store, self._wal.wal_id)
        self._logged_form = form
        self._synced_s = clock.monotonic_s()
        self._changed = threading.Condition()
        self._asked = self._answered = 0
        self._error: BaseException | None = None
        self._is_stopped = self._wants_sync = False
        self._durable = self._wal.last_sequence

    @property
    def works(self) -> list[tuple[str, Callable[[], None]]]:
        """The loops of the threads, by name; the first one ends with the queue."""
        return [("log", self._log_calls), ("flush", self._flush_when_due)]

    def _recover(self, through: int) -> None:
        wal = self._wal
        if not wal.first_sequence - 1 <= through <= wal.last_sequence:
            raise CorruptData(
                f"the write-ahead log in {wal.directory} has the records {wal.first_sequence} to "
                f"{wal.last_sequence}, and the table has those through {through}: the directory is "
                "an older copy, or files of it are missing. Restore it, or use another directory"
            )
        forms: dict[bytes, Form] = {}
        for record in wal.recovered:
            if record.sequence > through:
                form = forms.setdefault(record.preamble, Form.read(record.preamble))
                changes = decode_changes(record.payload, form)
                self._memtables.add(_entry(record.sequence, changes, form, len(record.payload)))
                self.preparation.note(adapted(changes, form, self.preparation.form))
        wal.recovered = []
        wal.forget(through)
        rows, _, _ = self._memtables.mutable
        self._memtables.freeze()
        self._intake.count(rows)
        self._counting.note_recovered(rows)

    # The thread that writes the log

    def _log_calls(self) -> None:
        try:
            while (calls := self._intake.take(self._wait_s())) is not None:
                if calls:
                    self._log(calls)
                self._sync_if_due()
            self._wants_sync = self._intake.failure is None  # what is left is committed at the end
            self._sync_if_due()
        except BaseException as error:
            self._fail(error)
            raise

    def _wait_s(self) -> float | None:
        if self._settings.sync == "always" or self._durable == self._wal.last_sequence:
            return None
        return self._settings.sync_interval_s

    def _log(self, calls: list[QueuedCall]) -> None:
        preparation = self.preparation
        form, groups = preparation.form, list(prepared(calls, preparation, self._refuse))
        if not groups:
            return
        members = [call for group, _ in groups for call in group]
        try:
            changes = combined([changes for _, changes in groups], form)
            payload = encode_changes(changes)
            sequence = self._write(payload, form)
        except WriterFailed as error:
            self._fail(error, members)
            return
        except Exception as error:
            for call in members:
                self._refuse(call, error)
            return
        rows = sum(call.rows for call in members)
        version = preparation.snapshot.version
        self._memtables.add(MemtableEntry(sequence, changes, form, rows, len(payload), version))
        self._counting.note_group(members, len(payload))
        for call in members:
            call.acknowledgement.complete(sequence)
        waiting, size_bytes, _ = self._memtables.mutable
        if waiting >= self._settings.flush_rows or size_bytes >= self._settings.flush_bytes:
            self._memtables.freeze()
        with self._changed:
            self._changed.notify_all()

    def _write(self, payload: bytes, form: Form) -> int:
        if form != self._logged_form:
            self._wal.begin(form.encode())
            self._logged_form = form
        sequence = self._wal.append(payload)
        if self._settings.sync == "always":
            self._sync()
        else:
            self._wal.check_owner()
        return sequence

    def _sync(self) -> None:
        with self._counting.sync_timed():
            self._wal.sync()
        with self._changed:
            self._durable = self._wal.last_sequence
            self._wants_sync = False
            self._changed.notify_all()
        self._synced_s = clock.monotonic_s()

    def _sync_if_due(self) -> None:
        if self._durable == self._wal.last_sequence:
            return
        since_s = clock.monotonic_s() - self._synced_s
        is_due = self._settings.sync == "interval" and since_s >= self._settings.sync_interval_s
        if is_due or self._wants_sync:
            try:
                self._sync()
            except WriterFailed as error:
                self._fail(error)

    def _refuse(self, call: QueuedCall, error: BaseException) -> None:
        call.acknowledgement.complete(0, error)
        self._intake.release(call.rows)
        self._counting.note_failed()

    def _fail(self, error: BaseException, calls: list[QueuedCall] | None = None) -> None:
        """End the writer: wake all waiters with the error (rule 21)."""
        for call in calls or ():
            call.acknowledgement.complete(0, error)
        self._counting.note_failed(len(calls or ()))
        self._intake.fail(error)
        with self._changed:
            self._changed.notify_all()

    # The thread that commits

    def _flush_when_due(self) -> None:
        while True:
            with self._changed:
                if not self._is_due():
                    self._changed.wait(self._pause_s())
                if self._is_stopped or self._intake.failure is not None:
                    return
                asked = self._asked
                if asked == self._answered and not self._is_due():
                    continue
            error = self._flush_now()
            with self._changed:
                self._answered, self._error = asked, error
                self._changed.notify_all()
                if error is not None and self._asked == asked and not self._is_stopped:
                    self._changed.wait(_RETRY_PAUSE_S)

    def _is_due(self) -> bool:
        if self._is_stopped or self._intake.failure is not None:
            return True
        if self._asked > self._answered or self._memtables.immutable_through:
            return True
        rows, _, age_s = self._memtables.mutable
        return bool(rows) and age_s >= self._settings.flush_interval_s

    def _pause_s(self) -> float | None:
        rows, _, age_s = self._memtables.mutable
        return max(self._settings.flush_interval_s - age_s, 0.001) if rows else None

    def _flush_now(self) -> BaseException | None:
        """Commit all memtables; return the error of an attempt that failed."""
        self._memtables.freeze()
        through = self._memtables.immutable_through
        if not through:
            return None
        try:
            if not self._is_durable(through):
                return self._intake.failure
            self._commit(through)
        except _TRANSIENT as error:
            _LOG.warning("a flush of %s failed: %s", self._handle.store.uri, error)
            self._counting.note_failed_flush()
            return error
        except Exception as error:
            failure = WriterFailed(
                f"the writer of {self._handle.store.uri} cannot commit what it acknowledged: "
                f"{error}. The changes are in the write-ahead log {self._wal.directory}: remove "
                "the cause, then open a new writer on it"
            )
            failure.__cause__ = error
            self._fail(failure)
            return failure
        return None

    def _is_durable(self, through: int) -> bool:
        """Wait until the log is durable up to this record; False if the writer failed."""
        with self._changed:
            while self._durable < through and self._intake.failure is None:
                self._wants_sync = True
                self._intake.wake()
                self._changed.wait(_RETRY_PAUSE_S)
            return self._durable >= through

    def _commit(self, through: int) -> None:
        handle, wal = self._handle, self._wal
        with self._counting.flush_timed():
            commit = commit_records(
                handle, wal.wal_id, lambda after: self._memtables.between(after, through), through
            )
        rows = self._memtables.drop(through, commit.version)
        self._intake.release(rows)
        self._counting.note_flushed(rows)
        if through_sequence(handle.newest, wal.wal_id) >= through:
            wal.forget(through)
        self.refresh(handle.newest)
        self._note_commit()
        self._counting.report()

    # For the writer

    def refresh(self, snapshot: Snapshot) -> None:
        """Prepare later calls for the columns and properties of this version."""
        self.preparation = Preparation(
            snapshot,
            is_logged=True,
            storage_options=self._handle.storage_options,
            earlier=self.preparation,
        )

    def flush(self) -> int:
        """Commit all memtables, and return the version that has them."""
        with self._changed:
            self._asked += 1
            mine = self._asked
            self._changed.notify_all()
            while self._answered < mine and self._intake.failure is None:
                self._changed.wait()
            error = self._intake.failure or self._error
        if error is not None:
            raise error
        return self._handle.newest.version

    def over(self, snapshot: Snapshot) -> Snapshot | None:
        """Return this version with what was acknowledged since; None if it is outdated."""
        through = through_sequence(snapshot, self._wal.wal_id)
        unflushed = self._memtables.after(snapshot.version, through, Form.of(snapshot))
        return None if unflushed is None else self._overlay.over(snapshot, unflushed)

    def close(self) -> None:
        """Commit what is there, and seal the log; a failed writer raises its error."""
        try:
            self.flush()
        except RowsieveError:
            if self._intake.failure is not None:
                self._wal.abandon()
            else:
                self._wal.close()
            raise
        self._wal.close()

    def stop(self) -> None:
        """End the thread that commits."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()


def _entry(sequence: int, changes: Changes, form: Form, size_bytes: int) -> MemtableEntry:
    tables = (changes.rows, changes.deletes)
    rows = sum(table.num_rows for table in tables if table is not None)
    return MemtableEntry(sequence, changes, form, rows, size_bytes)
