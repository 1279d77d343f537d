"""The methods that a table inside a transaction has in addition: commit, rollback, savepoints."""

from __future__ import annotations

from types import TracebackType
from typing import Literal, Self, TypeAlias

from rowsieve.arguments.annotations import Metadata, Token
from rowsieve.changes.table_handle import Handle
from rowsieve.changes.table_methods import TableMethods
from rowsieve.errors import UnsupportedOperation
from rowsieve.storage.log.conflicts import Isolation
from rowsieve.storage.log.log_entry import Commit
from rowsieve.transactions.open_transaction import OpenTransaction, TransactionOptions
from rowsieve.transactions.transaction_handle import TransactionHandle

IsolationName: TypeAlias = Literal["serializable", "snapshot"]


def begun(
    handle: Handle,
    isolation: IsolationName | None,
    token: Token | None,
    metadata: Metadata | None,
) -> TransactionHandle:
    """Begin a transaction on the newest version of a table."""
    if isinstance(handle, TransactionHandle):
        raise UnsupportedOperation(
            "transaction: a transaction is open on this table already; use savepoints inside it, "
            "or begin another one on the table"
        )
    level = None if isolation is None else Isolation(isolation)
    return OpenTransaction(TransactionOptions(level, token, dict(metadata or {}))).join(handle)


class TransactionMethods(TableMethods):
    """The end of a transaction, and its savepoints. In a with block, it commits at the end."""

    handle: TransactionHandle
    committed: Commit | None = None
    """The commit of the transaction, once it has one."""

    @property
    def is_open(self) -> bool:
        """True until the transaction is committed or rolled back."""
        return self.handle.transaction.is_open

    def commit(self) -> Commit | None:
        """Commit all changes as one commit; TransactionConflict if what was read has changed.

        After an error nothing is committed, and the transaction has ended.
        """
        self.committed = self.handle.transaction.commit()
        return self.committed

    def rollback(self) -> None:
        """End the transaction without a commit."""
        self.handle.transaction.rollback()

    def savepoint(self, name: str) -> None:
        """Mark the present state, to which `rollback_to` returns."""
        self.handle.transaction.savepoint(name)

    def rollback_to(self, name: str) -> None:
        """Undo the changes since a savepoint; what was read since counts as read all the same."""
        self.handle.transaction.rollback_to(name)

    def release(self, name: str) -> None:
        """Forget a savepoint and those after it; the changes stay."""
        self.handle.transaction.release(name)

    def __enter__(self) -> Self:
        """Return the transaction."""
        self.handle.transaction.check_usable("with")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Commit, or roll back if the block raised; do nothing if it has ended the transaction."""
        if not self.is_open:
            return
        if kind is None:
            self.commit()
        else:
            self.rollback()
