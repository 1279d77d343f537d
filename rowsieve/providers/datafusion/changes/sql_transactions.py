"""`BEGIN … COMMIT` in our session: statements between them change and read one transaction.

The transaction takes a table in when a statement first names it. Statements then read and change
the table inside the transaction; other sessions and the table itself do not see it. Tables of one
database are read in the version that it has when the first of them is named, and are committed
together.

Soundness: a table that the session has under several names is in the transaction under all of them.
A statement that fails leaves the transaction open, without that statement's change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rowsieve.changes.table_handle import Handle
from rowsieve.database.joint_tables import JointTable
from rowsieve.database.transactions import DatabaseOrder
from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.objects.shared.section_store import SectionStore
from rowsieve.objects.shared.shared_tables import shared_tables
from rowsieve.statements.alter import AlterTable
from rowsieve.statements.calls import CallStatement
from rowsieve.statements.parse_statement import Statement, split_verb
from rowsieve.statements.queries import Other, QueryDefinition
from rowsieve.statements.read_change import Change
from rowsieve.statements.transaction_control import (
    ControlAction,
    TransactionControl,
    read_transaction_control,
)
from rowsieve.storage.log.conflicts import Isolation
from rowsieve.storage.log.log_entry import Commit
from rowsieve.table import Table, Transaction
from rowsieve.transactions.open_transaction import OpenTransaction, TransactionOptions

if TYPE_CHECKING:
    from rowsieve.providers.datafusion.own_table import OwnTable


class SqlTransactions:
    """The transaction of one session, if one is open."""

    def __init__(
        self, replace: Callable[[str, Any], None], registered: Callable[[], Iterable[Table]]
    ) -> None:
        self._replace = replace  # registers a provider under a name of the session
        self._registered = registered  # the tables of the session
        self._open: OpenTransaction | None = None
        self._orders: list[DatabaseOrder] = []
        self._tables: dict[str, Transaction] = {}  # by the table's uuid

    def table_of(self, table: Table) -> Table:
        """The table that statements read and change: inside the transaction, if one is open.

        A table at a fixed version, and one that is inside a transaction of its own, stay as they
        are.
        """
        if self._open is None or table.handle.read_only or isinstance(table, Transaction):
            return table
        uuid = table.handle.newest.table.uuid
        if (known := self._tables.get(uuid)) is None:
            joining = self._joining(self._open, table.handle)
            known = self._tables[uuid] = Transaction(self._open.join(joining))
        self._open.check_usable("sql")
        return known

    def _joining(self, transaction: OpenTransaction, handle: Handle) -> Handle:
        """The handle to join: of a table of a database, one that is committed with the others."""
        store = handle.store
        if not isinstance(store, SectionStore):
            return handle
        order = next((each for each in self._orders if each.orders(handle)), None)
        if order is None:
            for table in self._registered():
                if table.handle.writer is not None:  # what it has acknowledged is committed first
                    table.handle.committed()
            shared = shared_tables(store.member.log.store, handle.storage_options)
            order = DatabaseOrder(shared, shared.log.latest())
            self._orders.append(order)
            transaction.orders.append(order)
        return order.add(JointTable.of(handle, order.shared, order.state, order.hold))

    def enter(self, own: OwnTable) -> None:
        """Move a registered table into the open transaction, if there is one."""
        inside = self.table_of(own.table)
        if inside is not own.table:
            self._move(own, inside, own.table)

    def leave(self, own: OwnTable) -> None:
        """Move a registered table out of the transaction, if that has ended."""
        if self._open is None and own.outside is not None:
            self._move(own, own.outside, None)

    def _move(self, own: OwnTable, table: Table, outside: Table | None) -> None:
        own.table, own.outside = table, outside
        own.move(table.handle.pinned)
        self._replace(own.name, own.provider())

    def check(self, statement: Statement) -> None:
        """Raise UnsupportedOperation for what an open transaction would not contain, nor undo."""
        if self._open is not None and (what := _refused(statement)):
            raise UnsupportedOperation(
                f"sql: {what} cannot be part of a transaction, which changes rows only; the "
                "transaction stays open. COMMIT or ROLLBACK it first"
            )

    def run(self, query: str, *, folds: bool) -> int | None:
        """Run BEGIN, COMMIT or the like; COMMIT returns the version that it made, if any.

        That is one of the table, or of the database if several tables changed. `folds`: names of
        savepoints without quotes are folded to lower case.
        """
        control = read_transaction_control(*split_verb(query), folds=folds)
        if control.action is ControlAction.BEGIN:
            self._begin(control)
            return None
        if self._open is None:
            raise InvalidInput(f"sql: {control.action.value}: no transaction is open; write BEGIN")
        transaction = self._open
        match control.action:
            case ControlAction.SAVEPOINT:
                transaction.savepoint(control.name)
            case ControlAction.ROLLBACK_TO:
                transaction.rollback_to(control.name)
            case ControlAction.RELEASE:
                transaction.release(control.name)
            case ControlAction.ROLLBACK:
                transaction.rollback()
                self._forget()
            case ControlAction.COMMIT:
                transaction.check_usable("commit")
                orders = self._orders
                self._forget()  # an error ends the transaction, too
                return _version(transaction.commit(), orders)
        return None

    def _begin(self, control: TransactionControl) -> None:
        if self._open is not None:
            raise InvalidInput(
                "sql: BEGIN: a transaction is open already; COMMIT or ROLLBACK it, or write "
                "SAVEPOINT name inside it"
            )
        isolation = None if control.isolation is None else Isolation(control.isolation)
        self._open = OpenTransaction(TransactionOptions(isolation))

    def _forget(self) -> None:
        self._open, self._orders = None, []
        self._tables.clear()


def _version(commit: Commit | None, orders: Sequence[DatabaseOrder]) -> int | None:
    """The version that a transaction made; None if it changed nothing."""
    if commit is not None:
        return commit.version if commit.committed else None
    for order in orders:
        commits = [each for each in order.commits.values() if each.committed]
        if commits:
            return commits[0].version if len(commits) == 1 else order.version
    return None


def _refused(statement: Statement) -> str:
    """The verb of a statement that no transaction contains; empty for all others."""
    if isinstance(statement, CallStatement):
        return "CALL"
    if isinstance(statement, AlterTable):
        return "ALTER TABLE"
    match statement:
        case (
            Change(changes_rows=False)
            | QueryDefinition(is_view=True)
            | Other(verb="CREATE" | "DROP")
        ):
            return statement.verb
        case _:
            return ""
