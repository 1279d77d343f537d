"""The methods that a table inside a transaction has in addition: commit, rollback, savepoints."""

from __future__ import annotations

from typing import Literal, TypeAlias

from rowsieve.arguments.annotations import Metadata, Token
from rowsieve.changes.method_base import TableMethods
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import UnsupportedOperation
from rowsieve.storage.log.conflicts import Isolation
from rowsieve.storage.log.log_entry import Commit
from rowsieve.transactions.open_transaction import OpenTransaction, TransactionOptions
from rowsieve.transactions.transaction_block import TransactionBlock
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


class TransactionMethods(TransactionBlock, TableMethods):
    """The end of a transaction, and its savepoints. In a with block, it commits at the end."""

    handle: TransactionHandle
    committed: Commit | None = None
    """The commit of the transaction, once it has one."""

    @property
    def _transaction(self) -> OpenTransaction:
        assert isinstance(self.handle.transaction, OpenTransaction)
        return self.handle.transaction

    def commit(self) -> Commit | None:
        """Commit all changes as one commit; TransactionConflict if what was read has changed.

        After an error nothing is committed, and the transaction has ended.
        """
        self.committed = self._transaction.commit()
        return self.committed
