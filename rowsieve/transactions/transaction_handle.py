"""The handle of a table inside a transaction: changes become layers, and reads see them.

All ways to read and change a table stand on its handle, so they need no others here.

Soundness: what would commit by another way, or change more than rows, is refused, not passed on to
the table's log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from rowsieve.arguments.annotations import Metadata, Moment, Token
from rowsieve.changes.change import Change, nothing_done
from rowsieve.changes.data.ingest import Changes
from rowsieve.changes.event_order.too_late import OnTooLate
from rowsieve.changes.mutation import Mutation
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.storage.log.commit_log import CommitLog, CommitRequest, Draft, OnConflict
from rowsieve.storage.log.conflicts import OPERATIONS, Kind
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.retries import Retries
from rowsieve.storage.snapshot import Snapshot
from rowsieve.transactions.layers import TableLayers
from rowsieve.types.logical import Field
from rowsieve.types.schema import Schema

_ROW_CHANGES: Final = frozenset(
    {
        *("append", "upsert", "apply", "apply_events", "delete_keys"),
        *("insert", "delete", "update", "merge", "overwrite"),
    }
)


def _refused(operation: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"{operation}: not available inside a transaction, which only changes rows: by upsert, "
        "append, apply_changes, apply_events, delete, update, overwrite, and by SQL of a "
        "DataFusion session or a database. The transaction stays open, without this change; call "
        "it on the table, before or after the transaction"
    )


class _LogOutside(CommitLog):
    """The table's log, which can be read inside a transaction; commits to it are refused."""

    def commit(
        self,
        request: CommitRequest,
        base: Snapshot,
        on_conflict: OnConflict,
        retries: Retries | None = None,
        draft: Draft | None = None,
    ) -> tuple[Commit, Snapshot]:
        """Raise UnsupportedOperation."""
        del base, on_conflict, retries, draft
        raise _refused(request.operation)


class Usable(Protocol):
    """The state of a transaction, as its handles need it."""

    def check_usable(self, what: str) -> None:
        """Raise an error if the transaction has ended, or another thread uses it."""


class TransactionHandle(Handle):
    """The versions that one transaction has of one table; `outside` is the handle it began from."""

    def __init__(self, transaction: Usable, outside: Handle, pinned: Snapshot) -> None:
        self.layers = TableLayers(pinned)
        super().__init__(
            outside.store,
            _LogOutside(outside.store),
            self.layers.head,
            storage_options=outside.storage_options,
        )
        self.transaction = transaction
        self.outside = outside
        self.collecting = outside.collecting
        self.own_reporter = outside.own_reporter

    @property
    def line(self) -> str:
        """The table's line of versions: another transaction of the table has another one."""
        return f"{self.pinned.table.uuid}/{id(self.transaction):x}"

    @property
    def may_build_ahead(self) -> bool:
        """False: its version is in memory."""
        return False

    def latest(self) -> Snapshot:
        """Return the version that the transaction reads; TransactionEnded after its end."""
        self.transaction.check_usable("read")
        return self.newest

    def resolve(self, version: int | str | None = None, as_of: Moment | None = None) -> Snapshot:
        """Return the version that the transaction reads; it has no other."""
        if version is not None or as_of is not None:
            raise UnsupportedOperation(
                "a transaction reads the version that it began with, and its own changes; read "
                "other versions by the table, with version= or as_of="
            )
        return self.pinned if self.read_only else self.latest()

    @contextmanager
    def changing(self, operation: str) -> Iterator[None]:
        """Run the block as one change; refuse what is not a change of rows at once."""
        if operation not in _ROW_CHANGES:
            raise _refused(operation)
        with super().changing(operation):
            yield

    def require_writable(self, operation: str) -> None:
        """Raise an error if the transaction has ended or cannot make such a change."""
        self.transaction.check_usable(operation)
        if operation not in _ROW_CHANGES:
            raise _refused(operation)
        super().require_writable(operation)

    def at_log(self, log: CommitLog, snapshot: Snapshot, *, read_only: bool) -> Handle:
        """Raise UnsupportedOperation: another log has versions that the transaction does not."""
        del log, snapshot, read_only
        raise _refused("refs")

    def require_committed(self, what: str) -> None:
        """Raise UnsupportedOperation: the changes of a transaction are in no log yet."""
        raise UnsupportedOperation(
            f"{what}: the changes of a transaction are not committed, so that neither the change "
            "feed nor other processes can read them; call it on the table, after the commit"
        )

    def change(
        self,
        operation: str,
        metadata: Metadata | None = None,
        token: Token | None = None,
        retry_timeout_s: float | None = None,
        on_too_late: OnTooLate | None = None,
    ) -> Change:
        """Begin a change; `retry_timeout_s` has no effect, because a layer never conflicts."""
        if token is not None:
            raise InvalidInput(
                f"{operation}: a transaction is committed once, with one token; give token= to "
                "transaction(), not to its changes"
            )
        return super().change(operation, metadata, None, retry_timeout_s, on_too_late)

    def commit_blind(self, change: Change, changes: Changes) -> Commit:
        """Add changes that do not depend on rows as a layer."""
        head = self.latest()
        if changes.is_empty:
            return self._unchanged(change.operation)
        if head.table.sequence:
            return self._commit_in_order(change, changes)
        return self.add_layer(change.write(head, changes), Kind.BLIND)

    def commit(
        self,
        change: Change,
        base: Snapshot,
        request_for: Callable[[Snapshot], CommitRequest],
        draft: Draft | None = None,
    ) -> Commit:
        """Add the request as a layer."""
        del change, base, draft
        request = request_for(self.latest())
        return self.add_layer(request, OPERATIONS[request.operation])

    def commit_mutation(
        self,
        change: Change,
        build: Callable[[Snapshot], Mutation | None],
        *,
        recompute: bool = True,
        any_columns: bool = False,
        in_background: bool = False,
        reads: tuple[Schema, Callable[[], Iterable[Field]]] | None = None,
    ) -> Commit:
        """Add what `build` returns as a layer; columns cannot have changed since."""
        del recompute, any_columns, in_background, reads
        mutation = build(self.latest())
        if mutation is None:
            return self._unchanged(change.operation)
        return self.add_layer(mutation.request, mutation.kind, mutation)

    def add_layer(
        self, request: CommitRequest, kind: Kind, mutation: Mutation | None = None
    ) -> Commit:
        """Put a change over the others; the engines read it from now on."""
        if mutation is None:
            commit = self.layers.add(request, kind)
        else:
            commit = self.layers.add(request, kind, mutation.touched_by)
        self.show_layers()
        return commit

    def show_layers(self) -> None:
        """Read the newest layer from now on."""
        with self._lock:
            self.pinned = self.newest = self.layers.head

    def pin(self, snapshot: Snapshot, *, engines: bool = True) -> None:
        """Do nothing: only a layer moves the version of a transaction."""

    def _unchanged(self, operation: str) -> Commit:
        return nothing_done(operation, self.layers.pinned)
