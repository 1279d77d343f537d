"""`rs.Database`: tables by name in one log.

A version is a version of the whole database: one commit may change several tables, and a reader of
several tables pins one version of all. What a call costs follows the tables that it touches, never
their number.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal

from rowsieve.arguments import checked, checked_methods
from rowsieve.arguments.annotations import (
    ColumnNames,
    Metadata,
    Moment,
    Properties,
    SequenceNames,
    StorageOptions,
    TableUri,
    Token,
)
from rowsieve.arguments.peer_names import DATABASE, unknown_attribute
from rowsieve.changes.table_handle import Handle
from rowsieve.database.database_names import DEFAULT_NAMESPACE, plain_name
from rowsieve.database.database_refs import DatabaseRefs
from rowsieve.database.moving import move_in, move_out
from rowsieve.database.table_versions import newest_of
from rowsieve.database.transactions import DatabaseOrder, DatabaseTransaction
from rowsieve.database.vacuuming import Vacuumed, vacuum
from rowsieve.errors import (
    InvalidInput,
    NamespaceNotFound,
    TableExists,
    TableMoved,
    TableNotFound,
    UnsupportedOperation,
    VersionNotFound,
    did_you_mean,
)
from rowsieve.names.catalog_statements import CatalogStatements, OpensTables
from rowsieve.names.qualified_names import identifier
from rowsieve.objects import ObjectNotFound, open_store
from rowsieve.objects.durable import stating_outcome
from rowsieve.objects.shared.group_commit import Overtaken
from rowsieve.objects.shared.section_store import SectionStore
from rowsieve.objects.shared.shared_entry import Section
from rowsieve.objects.shared.shared_state import State
from rowsieve.objects.shared.shared_tables import shared_tables
from rowsieve.objects.shared.table_pages import new_table_id
from rowsieve.opening import create_table, open_table
from rowsieve.retention.leases import check_published_here
from rowsieve.retention.retaining import Seconds, checked_grace
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.conflicts import Isolation
from rowsieve.storage.log.refs import refs_of
from rowsieve.table import Table
from rowsieve.transactions.open_transaction import TransactionOptions
from rowsieve.transactions.transaction_methods import IsolationName

_VERSIONED: Final = re.compile(r"([^@]+)@(?:v(\d{1,18})|([^@]+))")
_WEEK_S: Final = 7 * 86_400.0


@checked_methods
class Database(DatabaseRefs, CatalogStatements):
    """The tables that share the log at one URI; the first `create_table` creates the database.

    A table is `name` or `namespace.name`; in SQL, those without a namespace are in `default`.
    """

    @checked
    def __init__(self, uri: TableUri, *, storage_options: StorageOptions | None = None) -> None:
        super().__init__()
        store = open_store(uri, storage_options)
        self._storage_options: StorageOptions = dict(storage_options or {})
        self._shared = shared_tables(store, storage_options)
        self._uri: str = store.uri

    if not TYPE_CHECKING:  # a checker would believe every name

        def __getattr__(self, name: str) -> object:
            """Say what to write in place of a method of another library."""
            return unknown_attribute(self, name, DATABASE)

    def __repr__(self) -> str:
        return f"<rowsieve.Database at {self.uri}>"

    @property
    def uri(self) -> str:
        """The database's location, without credentials."""
        return self._uri

    @property
    def storage_options(self) -> StorageOptions:
        """The options with which another process opens the store; may hold secrets."""
        return self._storage_options

    @property
    def version(self) -> int:
        """The newest version of the database; TableNotFound if there is none."""
        return self._shared.log.latest().version

    def ensure(self) -> None:
        """Create the database if there is none; the first `create_table` does so, too."""
        self._created()

    # Tables

    def create_table(
        self,
        name: str,
        schema_or_data: Any,
        key: ColumnNames | None = None,
        *,
        if_exists: Literal["error", "ignore"] = "error",
        properties: Properties | None = None,
        metadata: Metadata | None = None,
        sequence: SequenceNames | None = None,
        mode: Literal["upsert", "append", "differential"] | None = None,
        time: Literal["uint64", "timestamptz"] | None = None,
    ) -> Table:
        """Create a table, as `rs.create_table` does; TableExists if the name is taken.

        `if_exists="ignore"` opens that table and writes nothing.
        """
        wanted = plain_name(name)
        if self._shared.log.id_of(wanted, self._created()) is not None:
            if if_exists == "ignore":
                return self.open_table(name)
            raise TableExists(f"{self.uri} has a table {wanted!r} already; open it")
        table_id = new_table_id(wanted)
        self._shared.reserved[table_id] = wanted
        try:
            return create_table(
                self._place_of(table_id),
                schema_or_data,
                key,
                properties=properties,
                storage_options=self._storage_options,
                metadata=metadata,
                sequence=sequence,
                mode=mode,
                time=time,
            )
        except TableExists:
            if if_exists == "error":
                raise
            return self.open_table(name)
        finally:
            del self._shared.reserved[table_id]

    def open_table(
        self,
        name: str,
        *,
        version: int | None = None,
        as_of: Moment | None = None,
        ref: str | None = None,
    ) -> Table:
        """Open a table, or for reading as it is in a version of the database.

        `name@v12` is the table in version 12, `name@audit` a branch or tag of it. `as_of`: the
        table's own commits up to a moment. TableNotFound if there is no such table,
        VersionNotFound if there is no such version.
        """
        if (match := _VERSIONED.fullmatch(name)) is not None:
            if (version, as_of, ref) != (None, None, None):
                raise InvalidInput(f"{name!r} names a version; give no version=, as_of= or ref=")
            name = match[1]
            version, ref = (None, match[3]) if match[2] is None else (int(match[2]), None)
        if version is not None and ref is not None:
            raise InvalidInput(
                "open_table: a version of the database has no branches; give version= or ref="
            )
        state = self._shared.log.latest() if version is None else self._at(version)
        if as_of is not None or ref is not None:
            return open_table(
                self._place_of(self._id_of(name, state)),
                as_of=as_of,
                ref=ref,
                storage_options=self._storage_options,
            )
        return self._opened_at(name, state, read_only=version is not None)

    def opener(self) -> OpensTables:
        """Return what opens tables by name, all of them in the version that is the newest now.

        That version is `table.handle.pinned`; `table.scan()` looks up a newer one.
        """
        state = self._shared.log.latest()

        def opened(name: str, *, ref: str | None = None) -> Table:
            if ref is not None or _VERSIONED.fullmatch(name) is not None:
                return self.open_table(name, ref=ref)
            return self._opened_at(name, state)

        return opened

    def uri_of(self, name: str) -> str:
        """Return where the table of a name is, for `rs.open_table`; TableNotFound if none."""
        return self._place_of(self._id_of(name, self._shared.log.latest()))

    def tables(self, namespace: str | None = None, *, version: int | None = None) -> list[str]:
        """List the names of all tables, or of those in a namespace as `namespace.name`."""
        state = self._shared.log.latest() if version is None else self._at(version)
        names = list(self._shared.log.names(state))
        if namespace is None:
            return names
        space = identifier(namespace)
        full = (name if "." in name else f"{DEFAULT_NAMESPACE}.{name}" for name in names)
        return [name for name in full if name.startswith(f"{space}.")]

    def namespaces(self) -> list[str]:
        """List the namespaces: those with a table, and `default`."""
        names = self._shared.log.names(self._shared.log.latest())
        return sorted(
            {DEFAULT_NAMESPACE, *(name.partition(".")[0] for name in names if "." in name)}
        )

    def rename_table(self, name: str, new_name: str) -> None:
        """Give a table another name; TableExists if that is taken."""
        old, new = plain_name(name), plain_name(new_name)
        if old == new:
            raise InvalidInput(f"rename_table: {name!r} has this name already; give another one")
        table_id = self._id_of(name, self._shared.log.latest())
        self._shared.group.change("rename_table", [Section(table_id, name=new, former=old)])

    def drop_table(
        self,
        name: str,
        *,
        purge: bool = False,
        if_absent: Literal["error", "ignore"] = "error",
    ) -> None:
        """Remove a table from the database; `vacuum` deletes its files, with `purge` at once.

        TableNotFound if it is absent, UnsupportedOperation if it has branches or tags, or is
        published in another folder. A table of the same name may be created again.
        """
        while True:
            try:
                state = self._shared.log.latest()
                table_id = self._id_of(name, state)
            except TableNotFound:
                if if_absent == "error":
                    raise
                return
            known = (table_id, self._number_without_refs(name, table_id, state))
            dropped = Section(table_id, former=plain_name(name), is_dropped=True)
            try:
                self._shared.group.change("drop_table", [dropped], [known])
            except Overtaken:  # it has just got a branch, or another commit
                continue
            break
        if purge:
            vacuum(self._shared, self._storage_options, 0.0, only=table_id)

    def transaction(
        self,
        *,
        isolation: IsolationName | None = None,
        token: Token | None = None,
        metadata: Metadata | None = None,
    ) -> DatabaseTransaction:
        """Begin a transaction on the newest version: changes of several tables, one commit or none.

        `isolation`, `token` and `metadata` are those of `Table.transaction`.
        """
        level = None if isolation is None else Isolation(isolation)
        order = DatabaseOrder(self._shared, self._created())
        options = TransactionOptions(level, token, dict(metadata or {}))
        return DatabaseTransaction(order, options, self._place_of, self._storage_options)

    # Namespaces: those that a table's name has

    def create_namespace(
        self,
        name: str,
        *,
        if_exists: Literal["error", "ignore"] = "error",
        log: Literal["own", "shared"] | None = None,
    ) -> None:
        """UnsupportedOperation: in a database, the first table of a namespace creates it.

        `if_exists="ignore"` does nothing.
        """
        if log == "own":
            raise UnsupportedOperation(
                f"create_namespace: all tables of the database {self.uri} share its log; create "
                "tables with logs of their own in a rowsieve.Catalog"
            )
        if if_exists == "ignore":
            return
        raise UnsupportedOperation(
            f"create_namespace: {identifier(name)!r} comes into being with its first table; "
            f"create {name}.<table>"
        )

    def drop_namespace(
        self,
        name: str,
        *,
        cascade: bool = False,
        purge: bool = False,
        if_absent: Literal["error", "ignore"] = "error",
    ) -> None:
        """Drop all tables of a namespace, with `cascade`; NamespaceNotFound if it has none."""
        while True:
            names = self.tables(identifier(name))
            if not names and if_absent == "error":
                raise NamespaceNotFound(f"the database {self.uri} has no namespace {name}")
            if names and not cascade:
                raise UnsupportedOperation(
                    f"drop_namespace: {name} has tables ({len(names)}, the first is {names[0]}); "
                    "drop them first, or drop them with it by cascade=True"
                )
            state = self._shared.log.known()
            plain = [plain_name(each) for each in names]
            ids = {each: self._shared.log.id_of(each, state) for each in plain}
            gone = [Section(i, former=each, is_dropped=True) for each, i in ids.items() if i]
            try:
                known = [
                    (i, self._number_without_refs(each, i, state)) for each, i in ids.items() if i
                ]
                self._shared.group.change("drop_namespace", gone, known)
            except (TableNotFound, Overtaken):  # one of them has just changed or lost its name
                continue
            break
        for table_id in (each.table for each in gone if purge):
            vacuum(self._shared, self._storage_options, 0.0, only=table_id)

    def move_in(self, name: str, uri: TableUri) -> Table:
        """Let a table that exists elsewhere be a table of this database; its files stay there.

        Its versions, branches, tags and tokens stay what they are. `rs.open_table` of its former
        URI opens it here; older versions of this library refuse it. TableExists if the name is
        taken, TableMoved if it is in another database. A call that was interrupted is repeated.
        """
        wanted = plain_name(name)
        if self._shared.log.id_of(wanted, self._created()) is not None:
            raise TableExists(
                f"move_in: {self.uri} has a table {wanted!r} already; give another name"
            )
        move_in(self._shared, wanted, str(uri), self._storage_options)
        return self.open_table(name)

    def move_out(self, name: str) -> Table:
        """Let a table have a log of its own again, and no name here; its files stay where they are.

        Its `uri` is the one that it moved in from, or its place in the folder of the database,
        which has to be kept then. Older versions of the database still have it.
        """
        table = self.open_table(name)
        uri = move_out(self._shared, plain_name(name), table.handle)
        return open_table(uri, storage_options=self._storage_options)

    def register_table(self, name: str, uri: TableUri) -> Table:
        """Do what `move_in` does: the tables of a database are in its log."""
        return self.move_in(name, uri)

    def vacuum(self, *, retain_s: Seconds = _WEEK_S) -> Vacuumed:
        """Delete what no version of the last `retain_s` seconds needs, and files of dropped tables.

        The tables' own versions expire by `maintain` and `vacuum` of each table.
        """
        checked_grace(retain_s, "retain_s")
        return vacuum(self._shared, self._storage_options, retain_s)

    def _number_without_refs(self, name: str, table_id: str, state: State) -> int:
        """The number of the table's next entry.

        UnsupportedOperation if it has branches or tags, or is published in another folder.
        """
        log = CommitLog(open_store(self._place_of(table_id), self._storage_options))
        snapshot = newest_of(self._shared.log, log, table_id, state)
        if refs := sorted(refs_of(snapshot.table.properties)):
            raise UnsupportedOperation(
                f"drop_table: {name!r} has branches or tags ({', '.join(refs)}), which keep its "
                "files; drop them first, by drop_ref"
            )
        check_published_here(log.store)
        return snapshot.version + 1

    def _created(self) -> State:
        """The newest version; creates the database if there is none."""
        log = self._shared.log
        try:
            return log.latest()
        except TableNotFound:
            pass
        try:
            with stating_outcome("create the database", "Open it"):
                return log.create()
        except TableExists:
            return log.latest()

    def _at(self, version: int) -> State:
        log = self._shared.log
        if not 0 <= version <= log.latest().version:
            raise VersionNotFound(
                f"{self.uri} has no version {version}: the newest is {log.known().version}; give "
                "one from 0 to that"
            )
        try:
            return log.at(version)
        except ObjectNotFound as error:
            raise VersionNotFound(
                f"version {version} of {self.uri} can no longer be read; read a newer one"
            ) from error

    def _opened_at(self, name: str, state: State, *, read_only: bool = False) -> Table:
        table_id = self._id_of(name, state)
        store = open_store(self._place_of(table_id), self._storage_options)
        log, options = CommitLog(store), self._storage_options
        try:
            snapshot = newest_of(self._shared.log, log, table_id, state)
        except TableMoved:
            known = self._shared.log.table(table_id, state)
            if known is None or not read_only:
                raise
            assert isinstance(store, SectionStore)  # its versions have the same numbers elsewhere
            uri, number = store.inner.uri, known.next_number - 1
            return open_table(uri, version=number, storage_options=options)
        return Table(Handle(store, log, snapshot, read_only=read_only, storage_options=options))

    def _id_of(self, name: str, state: State) -> str:
        wanted = plain_name(name)
        table_id = self._shared.log.id_of(wanted, state)
        if table_id is None:
            near = did_you_mean(wanted, self._shared.log.names(state))
            raise TableNotFound(f"{self.uri} has no table {wanted!r}{near}")
        return table_id
