"""Transactions over the tables of a database: changes of several tables, one commit or none.

Each table that the transaction uses has layers and proofs of its own, as in a transaction on one
table. All of them begin with one version of the database, and their commits go into one entry.

Soundness (invariant 41): a table that was only read is proved again, too: the entry is put only
while no other commit to it has come since its proof.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import pyarrow as pa

from rowsieve import engines
from rowsieve.arguments import checked_methods
from rowsieve.arguments.annotations import ColumnNames, Properties, SequenceNames, StorageOptions
from rowsieve.changes.table_handle import Handle
from rowsieve.database.database_names import DEFAULT_NAMESPACE, plain_name
from rowsieve.database.joint_tables import JointTable
from rowsieve.errors import (
    InvalidInput,
    TableExists,
    TableMoved,
    TableNotFound,
    TransactionConflict,
    UnsupportedOperation,
)
from rowsieve.objects.shared.joint import JointCommit
from rowsieve.objects.shared.section_store import SectionStore
from rowsieve.objects.shared.shared_entry import Section
from rowsieve.objects.shared.shared_state import State
from rowsieve.objects.shared.shared_tables import SharedTables
from rowsieve.objects.shared.table_pages import new_table_id
from rowsieve.opening import create_table
from rowsieve.statements.parse_statement import parse
from rowsieve.statements.queries import Query
from rowsieve.statements.read_change import Change
from rowsieve.statements.refused import Refused
from rowsieve.storage.log.log_entry import Commit
from rowsieve.table import Table, Transaction
from rowsieve.transactions.open_transaction import OpenTransaction, TransactionOptions
from rowsieve.transactions.transaction_block import TransactionBlock

_NO_TABLE: Final = "there is none in the version that the transaction reads"
_ROW_CHANGES: Final = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})
UriOf = Callable[[str], str]
"""The place of a table, by its id."""


@dataclass(frozen=True, slots=True)
class DatabaseNewTable:
    """A table that a transaction creates: its name, and the call that creates it."""

    name: str
    create: Callable[[], Commit]


class DatabaseOrder:
    """The log of a database as what orders the tables of one transaction."""

    def __init__(self, shared: SharedTables, state: State) -> None:
        self.shared, self.state = shared, state
        self.created: dict[str, DatabaseNewTable] = {}
        """The tables to create, by id."""
        self.commits: dict[str, Commit] = {}
        self.version: int | None = None
        """The version of the database that has the commits."""
        self._members: dict[str, JointTable] = {}  # by URI
        self._joint: JointCommit | None = None

    def hold(self, section: Section) -> None:
        """Hold a table's entry until those of the others are there."""
        if self._joint is None:
            raise UnsupportedOperation(
                "a table of a transaction is committed with the transaction; nothing was committed"
            )
        self._joint.hold(section)

    def orders(self, outside: Handle) -> bool:
        """Whether a table is one of this database."""
        store = outside.store
        return (
            isinstance(store, SectionStore)
            and store.member.log.store.uri == self.shared.log.store.uri
        )

    def add(self, member: JointTable) -> Handle:
        """Add a table; the handle that joins the transaction."""
        self._members[member.waiting.store.uri] = member
        return member.waiting

    def commit(
        self, changed: Mapping[str, Callable[[], Commit]], read: Mapping[str, Callable[[], int]]
    ) -> None:
        """Commit the changes of tables, and new tables, in one entry.

        A transaction that changed nothing has read one version: it needs no proof.
        """
        creations = {table_id: each.create for table_id, each in self.created.items()}
        if not changed and not creations:
            return
        proofs = {_id_in(uri): prove for uri, prove in read.items()}
        self._joint = joint = JointCommit(self.shared.group, proofs)
        self.shared.joint.update(dict.fromkeys(creations, joint))
        try:
            self.commits = joint.run({**changed, **creations})
        except TableNotFound as error:
            if gone := self._gone():
                raise TableNotFound(
                    f"transaction: {', '.join(gone)} of {self.shared.log.store.uri} was dropped "
                    "since the transaction began; nothing was committed"
                ) from error
            raise
        except TableMoved as error:
            raise TransactionConflict(
                f"transaction: a table that it used is elsewhere since: {error}. Nothing was "
                "committed. Run the transaction again, as rowsieve.run_transaction does",
                version=self.state.version,
                table=error.uri,
            ) from error
        finally:
            for table_id in creations:
                del self.shared.joint[table_id]
        self.version = joint.version
        for uri in changed:
            self._members[uri].follow()

    def _gone(self) -> Sequence[str]:
        """The names of the tables that were dropped since."""
        log, now = self.shared.log, self.shared.log.latest()
        gone = []
        for table_id in map(_id_in, self._members):
            then, table = log.table(table_id, self.state), log.table(table_id, now)
            if then is not None and (table is None or table.dropped_us is not None):
                gone.append(f"table {then.name!r}")
        return sorted(gone)

    def savepoint(self) -> Callable[[], None]:
        """What forgets the tables that are created after this call."""
        created = dict(self.created)

        def return_to() -> None:
            self.created = dict(created)

        return return_to

    def creates(self, name: str) -> bool:
        """True if the transaction creates a table of this name."""
        return any(each.name == name for each in self.created.values())


@checked_methods
class DatabaseTransaction(TransactionBlock):
    """A transaction over the tables of a database. For the thread that began it.

    In a `with` block it commits at the end, or rolls back if the block raises.
    """

    def __init__(
        self,
        order: DatabaseOrder,
        options: TransactionOptions,
        uri_of: UriOf,
        storage_options: StorageOptions,
    ) -> None:
        self._order, self._uri_of, self._storage_options = order, uri_of, storage_options
        self._open = OpenTransaction(options, order)
        self._tables: dict[str, Transaction] = {}
        self._names: dict[str, str] = {}
        """By URI, the names that tables were used under."""
        self.committed: dict[str, Commit] | None = None
        """The commit of each table by its name, once they are there."""

    @property
    def _transaction(self) -> OpenTransaction:
        return self._open

    def table(self, name: str) -> Transaction:
        """Return a table as the transaction sees it: in the version of the begin, with its changes.

        TableNotFound if the database had no such table then.
        """
        self._open.check_usable("table")
        if "@" in name:
            raise UnsupportedOperation(
                f"table: {name!r} names another version, and a transaction reads the one that it "
                "began with; open it by Database.open_table"
            )
        wanted = plain_name(name)
        if (known := self._tables.get(wanted)) is not None:
            return known
        shared = self._order.shared
        table_id = shared.log.id_of(wanted, self._order.state)
        if table_id is None:
            is_new = self._order.creates(wanted)
            why = "created by this transaction: commit that first" if is_new else _NO_TABLE
            raise TableNotFound(f"table: no table {name!r} in {shared.log.store.uri}: {why}")
        order = self._order
        member = JointTable.opened(shared, table_id, order.state, order.hold, self._storage_options)
        self._tables[wanted] = table = Transaction(self._open.join(order.add(member)))
        self._names[member.waiting.store.uri] = wanted
        return table

    def create_table(
        self,
        name: str,
        schema_or_data: Any,
        key: ColumnNames | None = None,
        *,
        properties: Properties | None = None,
        sequence: SequenceNames | None = None,
        mode: Literal["upsert", "append", "differential"] | None = None,
        time: Literal["uint64", "timestamptz"] | None = None,
    ) -> None:
        """Create a table with the commit of this transaction; TableExists if the name is taken.

        The arguments are those of `Database.create_table`.
        """
        self._open.check_usable("create_table")
        shared, wanted = self._order.shared, plain_name(name)
        known = shared.log.id_of(wanted, self._order.state) is not None
        if known or self._order.creates(wanted):
            raise TableExists(f"create_table: there is a table {wanted!r}; choose another name")
        table_id = new_table_id(wanted)

        def created() -> Commit:
            shared.reserved[table_id] = wanted
            try:
                table: Table = create_table(
                    self._uri_of(table_id),
                    schema_or_data,
                    key,
                    properties=properties,
                    storage_options=self._storage_options,
                    metadata=dict(self._open.options.metadata),
                    sequence=sequence,
                    mode=mode,
                    time=time,
                )
            finally:
                del shared.reserved[table_id]
            return table.history()[0]

        self._order.created[table_id] = DatabaseNewTable(wanted, created)

    def sql(self, statement: str, *, params: Mapping[str, Any] | None = None) -> pa.Table:
        """Run a query, or a change of rows, over the tables as the transaction sees them.

        Names are those of `Database.sql`. `params` are the values of `$name` or `:name` in the
        statement; they are bound as typed values, never as text. UnsupportedOperation for other
        statements: they change names, columns or files, which a transaction does not.
        """
        self._open.check_usable("sql")
        if not statement.strip():
            raise InvalidInput("sql: the statement is empty; give a query or a change of rows")
        parsed = parse(statement, "datafusion", names=True)
        if isinstance(parsed, Refused):
            if not parsed.is_of_transactions:
                raise parsed.error
            raise UnsupportedOperation(
                f"sql: {parsed.verb} is not available: this transaction ends by its commit or "
                "rollback, or with its block; savepoint, rollback_to and release mark its states"
            )
        is_row_change = isinstance(parsed, Change) and parsed.verb in _ROW_CHANGES
        if not isinstance(parsed, Query) and not is_row_change:
            raise UnsupportedOperation(
                "sql: a transaction runs queries, INSERT, UPDATE, DELETE and MERGE; it stays open, "
                "without this statement. Run it before or after the transaction"
            )
        tables = _TransactionTables(self, self._order)
        provider = engines.datafusion_catalog()
        result: pa.Table = provider.query(tables, statement, params=params, changes=True)
        return result

    def commit(self) -> dict[str, Commit]:
        """Commit all changes as one entry; TransactionConflict if what was read has changed.

        Returns the commit of each table by its name. After an error nothing is committed, and the
        transaction has ended.
        """
        self._open.commit()
        names = self._names | {i: each.name for i, each in self._order.created.items()}
        self.committed = {names[key]: commit for key, commit in self._order.commits.items()}
        return self.committed


class _TransactionTables:
    """The tables of a transaction by name, as DataFusion asks a catalog for them."""

    def __init__(self, transaction: DatabaseTransaction, order: DatabaseOrder) -> None:
        self._transaction = transaction
        self._names = [
            name if "." in name else f"{DEFAULT_NAMESPACE}.{name}"
            for name in order.shared.log.names(order.state)
        ]

    def namespaces(self) -> list[str]:
        """The namespaces, sorted."""
        return sorted({DEFAULT_NAMESPACE, *(name.partition(".")[0] for name in self._names)})

    def tables(self, namespace: str) -> list[str]:
        """The names of a namespace's tables."""
        return [name for name in self._names if name.startswith(f"{namespace}.")]

    def open_table(self, name: str) -> Transaction:
        """The table, as the transaction sees it."""
        return self._transaction.table(name)

    def opener(self) -> Callable[[str], Transaction]:
        """What opens tables: the transaction has one version of all."""
        return self.open_table


def _id_in(uri: str) -> str:
    return uri[-32:]
