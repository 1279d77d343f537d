"""The methods of `Table` that change it by its earlier versions: restore, and cherry-pick."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rowsieve.arguments.annotations import Metadata, RetryTimeout, Token, Version
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
from rowsieve.objects import in_thread
from rowsieve.retention.retaining import leased
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
        version: Version,
        *,
        metadata: Metadata | None = None,
        token: Token | None = None,
        retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
    ) -> Commit:
        """Restore the rows of `version`, or of a tag, in a new commit; the history is kept.

        A call with a `token` that was committed returns that commit. CommitConflict if concurrent
        commits prevent the restore for `retry_timeout_s` seconds.
        """
        if (done := self.handle.committed_before(token)) is not None:
            return done
        notes = dict(metadata or {})
        begin = partial(self.handle.change, token=token, retry_timeout_s=retry_timeout_s)
        if isinstance(version, str):
            return self._restore_tag(version, notes, begin)
        change = begin("restore", {**notes, "restored": str(version)})
        log = self.handle.log
        reading = in_thread(partial(log.at, version)) if self.handle.store.overlaps else None
        head = self.handle.latest()
        target = log.at(version) if reading is None else reading.result()
        return self.handle.commit(change, head, lambda head: restore_to(change, head, target))

    def _restore_tag(self, name: str, notes: Metadata, begin: Callable[..., Change]) -> Commit:
        """Restore the rows of a tag; a lease keeps them if the tag is dropped meanwhile."""
        head = self.handle.latest()
        ref = restorable_ref(self.handle.store, name, head)
        change = begin("restore", {**notes, "restored": str(ref.version), "ref": name})
        with leased(self.handle, version=name, holder="restore") as held:
            target = held.pinned
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
