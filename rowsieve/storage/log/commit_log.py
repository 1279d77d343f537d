"""The commit log of a table: create the table, read its versions, commit to it.

A commit is one create-only put of the next numbered entry. The number orders commits; the commit id
in the entry identifies the writer that won the number.

Soundness (invariants, I6 and rules 1, 2, 3, 6, 8): after any error of that put, the entry at the
number is read, and its commit id decides: our id means success, another id means that another
commit won, and an absent entry means that the same bytes are put again. All files that an entry
names are durable before the entry is put. Nothing is overwritten, and a commit deletes nothing, so
after a crash at any point the table is either before or after the commit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from rowsieve import clock
from rowsieve.checksums import checksum
from rowsieve.errors import (
    CommitConflict,
    CorruptData,
    InvalidInput,
    StoreError,
    TableExists,
    TableNotFound,
    UnsupportedProtocol,
)
from rowsieve.objects import (
    NotCreated,
    ObjectExists,
    ObjectNotFound,
    SyncFailed,
    Uploads,
    put_fresh,
    together,
)
from rowsieve.objects.durable import Patience
from rowsieve.properties import OLDEST_VERSION, OWN_REF
from rowsieve.storage.differential import ONLY_DIFFERENTIAL, check_mode
from rowsieve.storage.log.checkpoint import (
    read_commit_id,
)
from rowsieve.storage.log.checkpoint_turns import (
    checkpoint_interval,
    is_turn,
)
from rowsieve.storage.log.commit_request import (
    CommitRequest,
    OnConflict,
    check_for,
    check_in_memory,
    check_request,
    rebased,
)
from rowsieve.storage.log.create_only import prove_create_only
from rowsieve.storage.log.floors import check_open, floors_of
from rowsieve.storage.log.incremental_checkpoint import begin_due_checkpoint
from rowsieve.storage.log.inline_parts import LIST_BYTES, short_list
from rowsieve.storage.log.log_entry import (
    LOG,
    AddedFile,
    Commit,
    LogEntry,
    decode_entry,
    encode_entry,
    log_path,
    version_of,
)
from rowsieve.storage.log.log_reader import LogReader
from rowsieve.storage.log.refs import check_not_tag
from rowsieve.storage.log.replay import replay
from rowsieve.storage.log.retries import Retries
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.manifests.side_file import inline_bytes, put_side_file
from rowsieve.storage.snapshot import DIFFERENTIAL, MODES, WRITER_VERSION, Snapshot, TableInfo
from rowsieve.storage.versioned_names import PUBLISHED_FOLDERS, base_of_id, new_id
from rowsieve.types.instants import from_microseconds
from rowsieve.types.schema import Schema

_ATTEMPTS: Final = 6  # per put or read of an entry, against failures of the store
_OWN_FILE = re.compile(r"[0-9a-f]{32}\..*")

__all__ = ["Commit", "CommitLog", "CommitRequest", "OnConflict", "Outrun", "check_writable"]


class Outrun(CommitConflict):
    """The commits since the base have expired, so that a conflict with them cannot be seen."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A request whose list of parts is stored, and the commit id of its future entry."""

    request: CommitRequest
    commit_id: str
    file: AddedFile | None
    parts: PartTable | None


class CommitLog(LogReader):
    """The log in `store`. Thread-safe."""

    def create(
        self,
        table_info: TableInfo,
        schema: Schema,
        next_field_id: int,
        write: Callable[[], PartTable] | None = None,
        metadata: Mapping[str, Any] | None = None,
        *,
        uploads: Uploads | None = None,
        is_vacant: bool = False,
    ) -> Snapshot:
        """Create a table with one commit, version 0; TableExists if a table exists here.

        `write` stores the first parts. It is called after the directory and the store were checked.
        `uploads` are uploads of its files that may still run when `write` returns. `is_vacant`: the
        caller has checked that the directory is.
        """
        _check_info(table_info)
        if not is_vacant:
            self.check_vacant()
        prove_create_only(self._store, table_info.uuid)
        parts = None if write is None else write()
        request = CommitRequest(
            "create",
            parts,
            metadata=metadata or {},
            rows_written=parts.row_count if parts else 0,
            uploads=uploads,
        )
        check_request(request)
        check_in_memory(request, table_info)
        draft = self.store_parts(request, table_info, 0)
        if uploads is not None:
            uploads.wait()  # before the entry (invariants, rule 3)
        entry = LogEntry(
            version=0,
            commit_id=draft.commit_id,
            predecessor=None,
            table_uuid=table_info.uuid,
            timestamp_us=clock.now_us(),
            operation=request.operation,
            rows_written=request.rows_written,
            metadata=request.metadata,
            info=table_info,
            schema=schema,
            next_field_id=next_field_id,
            file=draft.file,
        )
        published = self.publish(entry)
        if published is None:
            raise self.table_exists()
        return self.remember(replay(None, (_with_draft_parts(published, draft),)))

    def commit(
        self,
        request: CommitRequest,
        base: Snapshot,
        on_conflict: OnConflict,
        retries: Retries | None = None,
        draft: Draft | None = None,
    ) -> tuple[Commit, Snapshot]:
        """Commit on top of `base`, or of a later version; `draft` is the request staged before.

        When another commit wins the number, `on_conflict(head, entries)` receives the new head and
        the entries since the last attempt, with their parts loaded. It returns the request to
        commit on that head (the same object if it is still valid unchanged) or raises
        `CommitConflict`. `retries` limits the attempts; None means no deadline.
        """
        retries = retries or Retries(request.operation)
        head = base
        schemas: dict[int, Schema] = {}
        while True:
            schemas[head.schema.id] = head.schema
            check_writable(request.operation, head)
            if OWN_REF in head.table.properties:
                check_not_tag(request.operation, head)
            if (earlier := self.committed_before(request.token, head)) is not None:
                return earlier, head
            check_for(request, head, schemas)
            if request.info is not None:
                _check_info(request.info)
            draft = self.stage(request, head, draft)
            published = self.publish(_entry_of(draft, head))
            if published is not None:
                self._check_neighbours(head, published)
                entry = _with_draft_parts(published, draft)
                snapshot = begin_due_checkpoint(self._store, replay(head, (entry,)), head)
                return entry.commit, self.remember(snapshot)
            retries.wait()
            newer, entries = self._read_newer(head)
            if self.committed_before(request.token, newer) is None:
                after = on_conflict(newer, entries)
                request = rebased(request, after, entries, keyed=bool(newer.table.key))
            head = newer

    def committed_before(self, token: tuple[str, int] | None, head: Snapshot) -> Commit | None:
        """Return the commit that already used an idempotency token; None if it is new."""
        if token is None or (last := head.tokens.get(token[0])) is None:
            return None
        if token[1] > last.sequence:
            return None
        entry = self.entry(last.version)
        if entry is not None and entry.commit_id == last.commit_id:
            return entry.commit
        when = from_microseconds(last.timestamp_us)  # the entry has expired; the token has not
        return Commit(last.version, last.commit_id, when, last.operation, 0, 0, 0, 0, {})

    def stage(self, request: CommitRequest, head: Snapshot, draft: Draft | None = None) -> Draft:
        """Prove create-only puts, and store the parts unless `draft` already has this request.

        When this returns, all files that the entry will name are stored (invariants, rule 3).
        """
        prove = partial(prove_create_only, self._store, head.table.uuid)
        if draft is not None and draft.request is request and not _is_given_up(draft, head):
            prove()
            return draft
        tasks: list[Callable[[], Draft | None]] = [
            prove,
            partial(self.store_parts, request, head.table, head.version),
        ]
        _, staged = together(self._store, tasks)
        if request.uploads is not None:
            request.uploads.wait()
        assert isinstance(staged, Draft)
        return staged

    def store_parts(self, request: CommitRequest, info: TableInfo, base_version: int) -> Draft:
        """Store the parts under a fresh commit id (invariants, rule 4)."""
        commit_id = new_id(base_version)
        parts = request.added or request.restored
        if not parts:
            return Draft(request, commit_id, None, None)
        if request.added and request.restored:
            parts = request.added.append(request.restored)
        if (inline := short_list(parts, info, LIST_BYTES)) is not None:
            return Draft(request, commit_id, inline, parts)
        data = put_side_file(self._store, LOG, commit_id, parts, inline_bytes(info.properties))
        name = f"{commit_id}.arrow"
        put_fresh(self._store, f"{LOG}/{name}", data)  # before the entry (invariants, rule 3)
        file = AddedFile(name, len(data), checksum(data), len(parts), parts.row_count)
        return Draft(request, commit_id, file, parts)

    def publish(self, entry: LogEntry) -> LogEntry | None:
        """Put an entry at its number; return it as it reads back, or None if the number is taken.

        Only the entry stored at the number decides whether it is ours (invariant I6; invariants,
        rule 1).
        """
        path = log_path(entry.version)
        data = encode_entry(entry)
        ours = decode_entry(data, entry.version, path)  # never put an unreadable entry
        patience = Patience(_ATTEMPTS)
        while True:
            problem: Exception
            try:
                self._store.put_new(path, data)
            except SyncFailed as error:
                raise _unsynced(entry, error) from error
            except NotCreated as error:
                raise StoreError(f"{entry.operation}: {error}; nothing was committed") from error
            except (ObjectExists, StoreError) as error:
                problem = error
            else:
                self._note_decoded(data, ours)
                return ours
            stored = self._read_entry(entry.version)
            if stored is None:  # absent: put the same bytes at the same number again
                if patience.again():
                    continue
                raise StoreError(
                    f"commit {entry.commit_id} could not be written to {path} in "
                    f"{self._store.uri}: {problem}; the entry was absent at the last read, but a "
                    "late write may still arrive: reopen the table and look for this id in its "
                    "history before trying again"
                ) from problem
            if stored.commit_id != entry.commit_id:
                return None
            try:
                self._store.make_durable(path)
            except StoreError as error:
                raise _unsynced(entry, error) from error
            return ours

    def _read_entry(self, version: int) -> LogEntry | None:
        """Read an entry that was put, with retries when the store fails; None if it is absent."""
        try:
            return self._entry_patiently(version)
        except StoreError as problem:
            raise StoreError(
                f"cannot determine whether {log_path(version)} in {self._store.uri} was "
                f"written: {problem}; reopen the table and look at its history before "
                "trying again"
            ) from problem

    def _entry_patiently(self, version: int) -> LogEntry | None:
        patience = Patience(_ATTEMPTS)
        while True:
            try:
                return self.entry(version)
            except StoreError:
                if not patience.again():
                    raise

    def _unproved(self, ours: LogEntry, problem: StoreError) -> StoreError:
        """Build the error for a published entry whose neighbours could not be read."""
        return StoreError(
            f"commit {ours.commit_id} was published as {log_path(ours.version)} in "
            f"{self._store.uri}, and readers see it unless an expiry has removed the entries "
            f"before it at the same moment, which could not be read: {problem}. Look for this id "
            "in the history of the reopened table before trying again"
        )

    def _check_neighbours(self, head: Snapshot, ours: LogEntry) -> None:
        """Check that our entry is at the end of the log, and not in a gap of it.

        The entry is published by now, so an error says that it is not part of the log only if a
        fresh read of the log shows that.
        """
        reads: list[Callable[[], LogEntry | str | None]] = [
            partial(self._entry_patiently, head.version),
            partial(self._entry_patiently, ours.version + 1),
            partial(self._checkpoint_id, ours.version, head),
        ]
        try:
            before, after, checkpoint_id = together(self._store, reads)
        except StoreError as problem:
            raise self._unproved(ours, problem) from problem
        assert before is None or isinstance(before, LogEntry)
        assert after is None or isinstance(after, LogEntry)
        if before is None or before.commit_id != head.commit_id:
            self._check_reached(head, ours)
        if after is not None and after.predecessor != ours.commit_id:
            raise self._filled_gap(ours, f"the next entry follows commit {after.predecessor}")
        if checkpoint_id not in (None, ours.commit_id):
            raise self._filled_gap(ours, f"its checkpoint is of commit {checkpoint_id}")

    def _check_reached(self, head: Snapshot, ours: LogEntry) -> None:
        """Check whether an entry whose predecessor is gone is in the log (invariants, rule 6).

        If expiry has removed entries past our number, the number was free again, and our entry is
        below the oldest entry of the log, where no reader looks.
        """
        published = f"commit {ours.commit_id} was published as {log_path(ours.version)}"
        try:
            fresh = self.latest()
            after = self._entry_patiently(ours.version + 1)
            stored = self._entry_patiently(ours.version)
        except StoreError as problem:
            raise self._unproved(ours, problem) from problem
        except CorruptData as error:
            if self._is_alone(ours):
                raise TableNotFound(
                    f"{ours.operation}: {published} in {self._store.uri}, and its log has no other "
                    "entry any more: the table was deleted with its files; nothing was changed"
                ) from error
            raise CorruptData(
                f"{published} in {self._store.uri}, but the log is damaged before it: {error}. The "
                "commit takes effect when the log is restored: do not repeat it"
            ) from error
        if fresh.commit_id == ours.commit_id:
            return
        if after is not None and after.predecessor == ours.commit_id:
            return
        if stored is None:
            raise StoreError(
                f"{published} in {self._store.uri} and is gone: log entries up to it were removed. "
                "Reopen the table and check whether it has the change before trying again"
            )
        raise Outrun(
            f"the commit to {self._store.uri} was based on version {head.version}, which was "
            f"removed from the log meanwhile; {published}, below the oldest entry of the log, "
            "where no reader looks: refresh the table and try again"
        )

    def _is_alone(self, ours: LogEntry) -> bool:
        """Return whether the log has our entry alone, and no checkpoint."""
        return not self._checkpoints() and self._versions(LOG, None, version_of) == [ours.version]

    def _checkpoint_id(self, version: int, head: Snapshot) -> str | None:
        """Return the commit id of a version's checkpoint, if one was due and is readable."""
        if not (head.owes_checkpoint or is_turn(version, head.table.properties)):
            return None
        try:
            return read_commit_id(self._store, version)
        except (CorruptData, ObjectNotFound, StoreError):
            return None  # no evidence against the commit

    def _filled_gap(self, ours: LogEntry, evidence: str) -> CorruptData:
        return CorruptData(
            f"{log_path(ours.version)} in {self._store.uri} had been lost from the log: {evidence}."
            f" Commit {ours.commit_id} has taken its number. The log is damaged: restore the entry "
            "from a copy, then make this change again"
        )

    def _read_newer(self, head: Snapshot) -> tuple[Snapshot, tuple[LogEntry, ...]]:
        """Read the new head and all entries since `head`; Outrun if some have expired."""
        if (followed := self._follow(head)) is not None and followed[1]:
            return followed
        newer = self.latest(head)
        entries = self._entries(range(head.version + 1, newer.version + 1))
        present = [entry for entry in entries if entry is not None]
        try:
            if len(present) == len(entries):
                return newer, self._with_parts(present)
            missing = head.version + 1 + max(i for i, entry in enumerate(entries) if entry is None)
            if self._is_hole(missing):
                raise self._hole(missing)
        except ObjectNotFound:
            pass  # expired between the two reads
        raise Outrun(  # invariants, rule 12
            f"the commit to {self._store.uri} was based on version {head.version}; later commits "
            f"up to version {newer.version} can no longer be read, so they cannot be checked for "
            "conflicts: refresh the table and try again"
        )

    def since(self, known: Snapshot) -> tuple[Snapshot, tuple[LogEntry, ...]]:
        """Return the newest version, and the commits after `known` with their parts.

        Outrun if some of them have expired, so that what they changed is unknown.
        """
        followed = self._follow(known)
        return self._read_newer(known) if followed is None else followed

    def check_vacant(self) -> None:
        """Check that the directory holds no table and no foreign files.

        TableExists or InvalidInput otherwise. Files of an interrupted creation are allowed.
        """
        exists, foreign = self.survey()
        if exists:
            self._check_absent()
        self.refuse_foreign(foreign)

    def survey(self) -> tuple[bool, list[str]]:
        """Return whether a table exists here, readable or not; if not, the files that no table has.

        The first requests are simultaneous, because what they look for does not depend on one
        another. A folder of data is listed only if it belongs to no table: a table's is long.
        """
        looks: list[Callable[[], object]] = [*self.probes(), self._store.children]
        *signs, names = together(self._store, looks)
        if any(signs):
            return True, []
        assert isinstance(names, list)
        foreign = [
            name
            for name in names
            if name not in ("_rowsieve", "data") and not self._is_emptied(name)
        ]
        parts = self._store.children("data") if "data" in names else []
        foreign += [f"data/{name}" for name in parts if _OWN_FILE.fullmatch(name) is None]
        return False, foreign

    def _is_emptied(self, name: str) -> bool:
        """Whether a folder is what is left of the publications of a table that was dropped."""
        is_folder = name in PUBLISHED_FOLDERS and name in self._store.folders()
        return is_folder and not self._store.details(name, most=1)

    def refuse_foreign(self, names: Sequence[str]) -> None:
        """Raise InvalidInput if there are files that are not a table's."""
        if names:
            shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
            raise InvalidInput(
                f"cannot create a table in {self._store.uri}: the directory is not a table and "
                f"contains {shown}; give a new or empty directory"
            )

    def _check_absent(self) -> None:
        try:
            self.latest()
        except TableNotFound:
            return
        except CorruptData as error:
            if self.has_entries():
                raise
            raise CorruptData(
                f"{error}. If a copy was interrupted here, repeat it with the same version, or "
                "delete the folder"
            ) from error
        raise self.table_exists()

    def check_alone(self, version: int) -> None:
        """Raise TableExists if the log has a checkpoint or an entry of another version."""
        if {*self._checkpoints(), *self._versions(LOG, None, version_of)} - {version}:
            raise self.table_exists()

    def has_entries(self) -> bool:
        """Return whether an entry of the log is listed."""
        return bool(self._versions(LOG, None, version_of))

    def table_exists(self) -> TableExists:
        """The error for a place that has a table."""
        return TableExists(
            f"a table already exists at {self._store.uri}; open it, or create the new one elsewhere"
        )


def _is_given_up(draft: Draft, head: Snapshot) -> bool:
    """Return whether the list of parts was stored on a version below the head's floor (rule 15)."""
    base = base_of_id(draft.commit_id)
    return base is None or base < floors_of(head.table.properties).oldest_base


def _entry_of(draft: Draft, head: Snapshot) -> LogEntry:
    request = draft.request
    return LogEntry(
        version=head.version + 1,
        commit_id=draft.commit_id,
        predecessor=head.commit_id,
        table_uuid=head.table.uuid,
        timestamp_us=max(clock.now_us(), head.timestamp_us + 1),  # invariants, rule 8
        operation=request.operation,
        rows_written=request.rows_written,
        rows_deleted=request.rows_deleted,
        token=request.token,
        metadata=request.metadata,
        info=request.info,
        schema=request.schema,
        next_field_id=request.next_field_id,
        removed=request.removed,
        file=draft.file,
        rows_late=request.rows_late,
    )


def _unsynced(entry: LogEntry, error: StoreError) -> StoreError:
    """Build the error for a commit whose entry may not be on disk (invariants, rule 3)."""
    if isinstance(error, SyncFailed) and not error.is_visible:
        return StoreError(f"{entry.operation}: {error}; nothing was committed")
    return StoreError(
        f"{entry.operation}: {error}. Readers see commit {entry.commit_id} as version "
        f"{entry.version} unless a crash removes it: look for this id in the history of the "
        "reopened table before trying again"
    )


def _with_draft_parts(entry: LogEntry, draft: Draft) -> LogEntry:
    if draft.parts is None:
        return entry
    return replace(entry, added=draft.parts.with_commit_ts(entry.version))


def check_writable(operation: str, head: Snapshot) -> None:
    """Raise an error if this library must not write to the table; call it before any file is put.

    UnsupportedOperation for an operation that the table's mode does not have.

    TableNotFound if the table was dropped with its files, UnsupportedProtocol if it needs a newer
    writer: nobody would delete the files of a refused change.
    """
    if OLDEST_VERSION in head.table.properties:
        check_open(operation, head)
    if head.table.writer_version > WRITER_VERSION:
        raise UnsupportedProtocol(
            f"{operation}: table {head.table.uuid} needs writer protocol "
            f"{head.table.writer_version}, and this version of rowsieve writes up to "
            f"{WRITER_VERSION}: upgrade rowsieve. Nothing was written"
        )
    if head.table.mode == DIFFERENTIAL or operation in ONLY_DIFFERENTIAL:
        check_mode(operation, head.table)


def _check_info(info: TableInfo) -> None:
    if info.mode not in MODES:
        raise InvalidInput(f"table mode is {info.mode!r}; choose one of {', '.join(MODES)}")
    if bool(info.key) != (info.mode == "upsert"):
        raise InvalidInput(
            f"a table of mode {info.mode!r} has "
            + (
                "a key: name its columns in key="
                if info.mode == "upsert"
                else "no key: leave key= out"
            )
        )
    checkpoint_interval(info.properties)
    inline_bytes(info.properties)
