"""How a transaction ends, and its savepoints: the same for one table and for a database."""

from __future__ import annotations

from abc import abstractmethod
from types import TracebackType
from typing import Any, Self

from rowsieve.transactions.open_transaction import OpenTransaction


class TransactionBlock:
    """The end of a transaction, and its savepoints. In a with block, it commits at the end."""

    @property
    @abstractmethod
    def _transaction(self) -> OpenTransaction:
        """The state of the transaction."""

    @property
    def is_open(self) -> bool:
        """True until the transaction is committed or rolled back."""
        return self._transaction.is_open

    @abstractmethod
    def commit(self) -> Any:
        """Commit all changes, or raise an error and commit nothing; it has ended then."""

    def rollback(self) -> None:
        """End the transaction without a commit."""
        self._transaction.rollback()

    def savepoint(self, name: str) -> None:
        """Mark the present state, to which `rollback_to` returns."""
        self._transaction.savepoint(name)

    def rollback_to(self, name: str) -> None:
        """Undo what was changed and created since a savepoint; what was read counts as read."""
        self._transaction.rollback_to(name)

    def release(self, name: str) -> None:
        """Forget a savepoint and those after it; the changes stay."""
        self._transaction.release(name)

    def __enter__(self) -> Self:
        """Return the transaction."""
        self._transaction.check_usable("with")
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
