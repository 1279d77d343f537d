"""A catalog: the tables under one URI, by namespace and name, and the procedures called on them.

The table `db.events` of a catalog at `URI` is the Rowsieve table at `URI/db/events`, unless the
catalog's log places it elsewhere; so tables made by `create_table` belong to the catalog too.

Soundness: a name refers to one table at a time. Concurrent creates, drops and renames are ordered
by the log; of two that want one name, one succeeds.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from rowsieve.arguments import checked, checked_methods
from rowsieve.arguments.annotations import (
    ColumnNames,
    Metadata,
    Moment,
    Properties,
    PropertyNames,
    SequenceNames,
    StorageOptions,
    TableUri,
    Version,
)
from rowsieve.arguments.peer_names import CATALOG, unknown_attribute
from rowsieve.catalog.catalog_log import CatalogState
from rowsieve.catalog.drops import Dropping
from rowsieve.database.database import Database
from rowsieve.database.moving import uri_of_own_log
from rowsieve.errors import (
    InvalidInput,
    NamespaceExists,
    NamespaceNotFound,
    RowsieveError,
    TableExists,
    TableNotFound,
    UnsupportedOperation,
)
from rowsieve.names.catalog_statements import CatalogStatements, OpensTables
from rowsieve.names.qualified_names import (
    TableName,
    identifier,
    new_namespace,
    new_table_name,
    table_name,
)
from rowsieve.objects import in_thread, open_store
from rowsieve.opening import create_table, open_table
from rowsieve.properties import check_properties
from rowsieve.retention.dropping import alone, close, delete_files, is_dropped
from rowsieve.table import Table


@checked_methods
class Catalog(Dropping, CatalogStatements):
    """The tables under one URI; `procedures` are those that `call` knows."""

    @checked
    def __init__(self, uri: TableUri, *, storage_options: StorageOptions | None = None) -> None:
        super().__init__(uri, storage_options)
        CatalogStatements.__init__(self)

    if not TYPE_CHECKING:  # a checker would believe every name

        def __getattr__(self, name: str) -> object:
            """Say what to write in place of a method of another library."""
            return unknown_attribute(self, name, CATALOG)

    def __repr__(self) -> str:
        return f"<rowsieve.Catalog at {self.uri}>"

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
        """Create the table `namespace.name`; TableExists if it exists.

        `if_exists="ignore"` opens that table and writes nothing. The catalog's properties are the
        table's, unless `properties` says otherwise. In a namespace with a shared log, the table is
        one of its database.
        """
        wanted = new_table_name(name)
        state = self._log.read()
        with_defaults = {**state.properties, **(properties or {})}
        if (database := self._database_of(state, wanted.namespace)) is not None:
            return database.create_table(
                wanted.table,
                schema_or_data,
                key,
                if_exists=if_exists,
                properties=with_defaults,
                metadata=metadata,
                sequence=sequence,
                mode=mode,
                time=time,
            )
        if state.locations.get(name) is not None:
            if if_exists == "ignore":
                return self.open_table(name)
            self._check_free(state, wanted)
        location = wanted.folder
        if self._place(state, wanted) is None:  # its folder may hold a table that was dropped
            location = f"{location}.{uuid.uuid4().hex[:16]}"
        try:
            created = create_table(
                self._uri(location),
                schema_or_data,
                key,
                properties=with_defaults,
                storage_options=self._storage_options,
                metadata=metadata,
                sequence=sequence,
                mode=mode,
                time=time,
            )
            self._log.change("create_table", partial(self._with_created, wanted, location))
        except TableExists:
            if if_exists == "error":
                raise
            return self.open_table(name)
        return created

    def open_table(
        self,
        name: str,
        *,
        version: Version | None = None,
        as_of: Moment | None = None,
        ref: str | None = None,
    ) -> Table:
        """Open the table `namespace.name`, or one version of it; TableNotFound if there is none.

        `namespace.name@v12` is the table at version 12, `namespace.name@audit` its branch or tag of
        this name, which `ref` names too.
        """
        wanted = table_name(name, versioned=True)
        if wanted.ref is not None and ref is not None:
            raise InvalidInput(f"{name!r} names a branch or tag; give no ref=")
        ref = wanted.ref or ref
        if wanted.version is not None:
            if version is not None or as_of is not None:
                raise InvalidInput(f"{name!r} names a version; give no version= and no as_of=")
            version = wanted.version
        opening = partial(
            open_table, version=version, as_of=as_of, ref=ref, storage_options=self._storage_options
        )
        guess = self._place(self._log.known, wanted)
        guessed = None
        if wanted.namespace in self._log.known.shared:
            guess = None
        if guess is not None and self._store.overlaps:  # while the log is read
            guessed = in_thread(partial(opening, self._uri(guess)))
        state = self._log.read()
        if (database := self._database_with(state, wanted)) is not None:
            if (version, as_of, ref) == (None, None, None):
                return database.open_table(wanted.table)
            return opening(database.uri_of(wanted.table))
        location = self._location(state, wanted)
        try:
            if guessed is not None and location == guess:
                return guessed.result()
            return opening(self._uri(location))
        except TableNotFound as error:
            if near := self._suggestion(state, wanted):
                raise TableNotFound(f"{error}{near}") from error
            raise

    def opener(self) -> OpensTables:
        """Return what opens tables by name: those that share a log in one version of it."""
        openers: dict[str, OpensTables] = {}

        def opened(name: str, *, ref: str | None = None) -> Table:
            wanted = table_name(name, versioned=True)
            plain = (wanted.version, wanted.ref, ref) == (None, None, None)
            database = self._database_with(self._log.read(), wanted) if plain else None
            if database is None:
                return self.open_table(name, ref=ref)
            if wanted.namespace not in openers:
                openers.setdefault(wanted.namespace, database.opener())
            return openers[wanted.namespace](wanted.table)

        return opened

    def rename_table(self, name: str, new_name: str) -> None:
        """Give a table another name, in one step; its files stay where they are.

        Into a namespace with a shared log, or out of one, it moves by `Database.move_in` and
        `move_out`, which take two steps: the table has both names in between, and the call is
        repeated if it was interrupted there. From one shared log into another, it has its old name
        until it has the new one.
        TableNotFound if there is no such table, TableExists if the new name is taken.
        """
        old, new = table_name(name), new_table_name(new_name)
        if old == new:
            raise InvalidInput(f"rename_table: {name!r} has this name already; give another one")

        state = self._log.read()
        if (database := self._database_with(state, old)) is not None:
            if old.namespace == new.namespace:
                database.rename_table(old.table, new.table)
                return
            if self._database_of(state, new.namespace) is None:
                self._move_out(database, old, new)
                return
            self._check_free(state, new)
            self._move_out(database, old, old)
            state = self._log.read()
        if (database := self._database_of(state, new.namespace)) is not None:
            location = self._table_location(state, old)
            self._move_in(database, new, self._uri(location))
            self._log.change("rename_table", lambda now: self._without(now, old, location))
            return

        def moved(now: CatalogState) -> CatalogState:
            location = self._table_location(now, old)
            self._check_open("rename_table", location)
            self._check_free(now, new)
            return now.placed({name: None, new_name: location})

        self._log.change("rename_table", moved)

    def register_table(self, name: str, uri: TableUri) -> Table:
        """Give a table that exists elsewhere the name `namespace.name`, and open it.

        In a namespace with a shared log it moves into the database.
        TableNotFound if there is no table at `uri`, TableExists if the name is taken.
        """
        wanted = new_table_name(name)
        if (database := self._database_of(self._log.read(), wanted.namespace)) is not None:
            return database.move_in(wanted.table, uri)
        table = open_table(uri, storage_options=self._storage_options)

        def placed(now: CatalogState) -> CatalogState:
            self._check_free(now, wanted)
            if table.uri in map(self._uri, now.purged):
                raise TableNotFound(
                    f"register_table: the table at {table.uri} is being dropped with its files"
                )
            return now.placed({name: table.uri})

        self._log.change("register_table", placed)
        return table

    # Namespaces

    def create_namespace(
        self,
        name: str,
        *,
        if_exists: Literal["error", "ignore"] = "error",
        log: Literal["own", "shared"] | None = None,
    ) -> None:
        """Create an empty namespace; NamespaceExists if it exists, as every folder does.

        Tables need none to be created: the first one of a namespace creates it. With `log="shared"`
        its tables share one log: the namespace is a database, `database(name)`, in its folder. A
        database that is there already becomes the namespace; a folder with tables does not.
        """
        space = new_namespace(name)
        is_shared, kind = log == "shared", None if log is None else log == "shared"
        state = self._log.read()
        if if_exists == "ignore" and self._has_namespace(state, space, is_shared=kind):
            return
        if is_shared:
            self._check_new(state, space, is_shared=True)
            self._database(space).ensure()  # before the log names it

        def with_it(now: CatalogState) -> CatalogState:
            self._check_new(now, space, is_shared=is_shared)
            shared = now.shared | {space} if is_shared else now.shared
            return replace(now, namespaces={**now.namespaces, space: True}, shared=shared)

        try:
            self._log.change("create_namespace", with_it)
        except NamespaceExists:
            is_there = self._has_namespace(self._log.known, space, is_shared=kind)
            if if_exists == "error" or not is_there:
                raise

    def database(self, namespace: str) -> Database:
        """Return the database of a namespace with a shared log, for transactions over its tables.

        Its tables have their names without the namespace. UnsupportedOperation if the tables of the
        namespace have logs of their own, NamespaceNotFound if there is no such namespace.
        """
        space, state = identifier(namespace), self._log.read()
        if (database := self._database_of(state, space)) is not None:
            return database
        if not self._has_namespace(state, space):
            raise NamespaceNotFound(
                f"the catalog {self.uri} has no namespace {space}; see Catalog.namespaces()"
            )
        raise UnsupportedOperation(
            f"database: the tables of {space} have logs of their own; create_namespace(name, "
            'log="shared") makes a namespace whose tables share one'
        )

    # Properties

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties that tables get when they are created in this catalog."""
        return dict(self._log.read().properties)

    def set_properties(self, properties: Properties) -> None:
        """Set properties for tables that will be created; others keep their values."""
        checked = check_properties(properties)
        self._log.change(
            "set_properties", lambda now: replace(now, properties={**now.properties, **checked})
        )

    def unset_properties(self, names: PropertyNames) -> None:
        """Remove properties; InvalidInput names one that is not set."""

        def without(now: CatalogState) -> CatalogState:
            if missing := sorted(set(names) - now.properties.keys()):
                known = ", ".join(sorted(now.properties)) or "none"
                raise InvalidInput(
                    f"unset_properties: the catalog has no property {missing[0]!r}; it has: {known}"
                )
            properties = {
                name: now.properties[name] for name in now.properties if name not in names
            }
            return replace(now, properties=properties)

        self._log.change("unset_properties", without)

    def _move_in(self, database: Database, name: TableName, uri: str) -> None:
        """Move a table into the database of a namespace, unless a call before this one has."""
        try:
            database.move_in(name.table, uri)
        except TableExists:
            here = open_table(uri, storage_options=self._storage_options)  # wherever it went
            if here.uri != database.uri_of(name.table):
                raise

    def _move_out(self, database: Database, old: TableName, new: TableName) -> None:
        """Move a table out of the database of a namespace, once it has a name outside of that."""
        uri = uri_of_own_log(database.uri_of(old.table), self._storage_options)
        # In the place of the name it is the catalog's own, to move with it and to be purged.
        location = new.folder if self._uri(new.folder) == uri else uri

        def placed(now: CatalogState) -> CatalogState:
            if now.locations.get(new.plain) == location:
                return now  # by a call that was interrupted
            if new != old:
                self._check_free(now, new)
            return now.placed({new.plain: location})

        self._log.change("rename_table", placed)
        try:
            database.move_out(old.table)
        except RowsieveError:
            if old.table in database.tables():  # else it has left, and the answer was lost
                self._log.change("rename_table", lambda now: self._without(now, new, location))
            raise

    def _without(self, state: CatalogState, name: TableName, location: str) -> CatalogState:
        """The state without a name, unless that is of another table by now."""
        is_same = self._place(state, name) == location
        return state.placed({name.plain: None}) if is_same else state

    def _check_new(self, state: CatalogState, space: str, *, is_shared: bool) -> None:
        """Raise NamespaceExists if a namespace cannot be created.

        A folder without tables may become one whose tables share a log.
        """
        if not self._has_namespace(state, space):
            return
        if is_shared and not state.namespaces.get(space) and not self._tables(state, [space]):
            return
        kind = "with a shared log" if space in state.shared else "of tables with logs of their own"
        raise NamespaceExists(
            f"the namespace {space} exists already in {self.uri}, {kind}; use "
            "if_exists='ignore' for one of the same kind, or choose another name"
        )

    def _check_open(self, operation: str, location: str) -> None:
        """Raise TableNotFound if the table at a place was closed by a drop with its files."""
        store = open_store(self._uri(location), self._storage_options)
        if is_dropped(store):
            raise TableNotFound(
                f"{operation}: the table at {store.uri} was dropped with all its files, which are "
                "being deleted; create it again"
            )

    def _with_created(self, name: TableName, location: str, now: CatalogState) -> CatalogState:
        """The state with a table that was just created; TableExists if its name went to another.

        That table's files are deleted then, unless another name refers to them.
        """
        try:
            self._check_free(now, name, location)
        except TableExists:
            if self._other_name(now, name, location) is None:
                store = open_store(self._uri(location), self._storage_options)
                # the files stay: a reader or another drop needs them, or the store is gone
                with suppress(RowsieveError), alone(store):
                    delete_files(store, close(store))
            raise
        if location == name.folder and (
            name.plain in now.locations  # a drop has already deleted it
            or not now.is_dropped(name.namespace)
        ):
            return now
        return now.placed({name.plain: location})
