"""The methods of `Table` that change it by its earlier versions: restore, and cherry-pick."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rowsieve.arguments.annotations import Metadata, Moment, RetryTimeout, Token, Version
from rowsieve.changes.change import Change, nothing_done
from rowsieve.changes.cherry_picks import (
    PICKED,
    AlreadyPicked,
    changes_of,
    is_picked,
    operation_of,
)
from rowsieve.changes.method_base import TableMethods, changes
from rowsieve.changes.operations import restore_to
from rowsieve.errors import InvalidInput
from rowsieve.retention.retaining import leased
from rowsieve.storage.log.commit_log import Draft
from rowsieve.storage.log.commit_request import CommitRequest
from rowsieve.storage.log.floors import check_kept
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.refs import restorable_ref
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S
from rowsieve.storage.snapshot import Snapshot


class VersionMethods(TableMethods):
    """Changes by what earlier versions had; each is one commit."""

    @changes("restore")
    def restore(
        self,
        version: Version | None = None,
        *,
        as_of: Moment | None = None,
        metadata: Metadata | None = None,
        token: Token | None = None,
        retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
    ) -> Commit:
        """Restore the rows of `version`, a number or a tag, or `as_of` a time, in a new commit.

        The history is kept. A time means the newest version that was committed at or before it.
        A call with a `token` that was committed returns that commit. CommitConflict if concurrent
        commits prevent the restore for `retry_timeout_s` seconds.
        """
        if (done := self.handle.committed_before(token)) is not None:
            return done
        if (version is None) == (as_of is None):
            raise InvalidInput(
                "restore takes either a version or as_of=, such as restore(3); history() lists the "
                "versions with their times"
            )
        if version is None:
            version = self.handle.resolve(None, as_of).version
        notes = dict(metadata or {})
        begin = partial(self.handle.change, token=token, retry_timeout_s=retry_timeout_s)
        if isinstance(version, str):
            return self._restore_tag(version, notes, begin)
        change = begin("restore", {**notes, "restored": str(version)})
        return self._restore_number(version, change)

    def _restore_number(self, version: int, change: Change) -> Commit:
        """Restore the rows of a version; read and stage it while the newest one is looked up."""
        log = self.handle.log

        def request_for(head: Snapshot) -> CommitRequest:
            target = log.in_memory(version, head.table.uuid) or log.at(version)
            return restore_to(change, head, target)

        def staged(head: Snapshot) -> tuple[CommitRequest, Draft | None]:
            request = request_for(head)
            return request, log.stage(request, head)

        def unstaged(head: Snapshot) -> tuple[CommitRequest, Draft | None]:
            return request_for(head), None

        base, build = self.handle.beside_look_up(change, staged, unstaged)
        request, draft = build(base)

        def rebased(head: Snapshot) -> CommitRequest:
            return request if head is base else request_for(head)

        return self.handle.commit(change, base, rebased, draft)

    def _restore_tag(self, name: str, notes: Metadata, begin: Callable[..., Change]) -> Commit:
        """Restore the rows of a tag; a lease keeps them if the tag is dropped meanwhile."""
        head = self.handle.latest()
        ref = restorable_ref(self.handle.store, name, head)
        change = begin("restore", {**notes, "restored": str(ref.version), "ref": name})
        with leased(self.handle, version=name, holder="restore") as lease:
            target = lease.pinned
            return self.handle.commit(change, head, lambda head: restore_to(change, head, target))

    @changes("cherry_pick")
    def cherry_pick(
        self, version: int, *, retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S
    ) -> Commit:
        """Repeat the changes of the commit of `version`, which a restore has undone.

        A second call changes nothing. UnsupportedOperation with the reason if it cannot be sound:
        the commit is not undone, it depended on other rows, the columns have changed, or newer rows
        have keys in its ranges. All rows of the commit are held in memory.
        """
        picked = self.handle.log.at(version)
        operation, notes = operation_of(self.handle.log, version), {PICKED: str(version)}
        change = self.handle.change(operation, notes, None, retry_timeout_s)
        try:
            return self.handle.commit(
                change, self.handle.latest(), partial(self._picking, change, picked)
            )
        except AlreadyPicked:
            return nothing_done("cherry_pick", self.handle.latest())

    def _picking(self, change: Change, picked: Snapshot, head: Snapshot) -> CommitRequest:
        check_kept(picked.version, head)
        if is_picked(self.handle.log, head, picked.version):
            raise AlreadyPicked
        return change.write(head, changes_of(self.handle.store, picked, change.operation, head))
