"""A catalog: the tables under one URI, by namespace and name, and the procedures called on them.

The table `db.events` of a catalog at `URI` is the Rowsieve table at `URI/db/events`, unless the
catalog's log places it elsewhere; so tables made by `create_table` belong to the catalog too.

Soundness: a name refers to one table at a time. Concurrent creates, drops and renames are ordered
by the log; of two that want one name, one succeeds.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal
from urllib.parse import quote

import pyarrow as pa

from rowsieve import engines
from rowsieve.arguments import checked, checked_methods
from rowsieve.arguments.annotations import (
    ColumnNames,
    Metadata,
    Moment,
    Properties,
    PropertyNames,
    StorageOptions,
    TableUri,
)
from rowsieve.bridges.session import Session
from rowsieve.catalog.catalog_log import CatalogLog, CatalogState
from rowsieve.catalog.names import TableName, identifier, is_identifier, table_name
from rowsieve.errors import (
    CommitConflict,
    InvalidInput,
    RowsieveError,
    TableExists,
    TableNotFound,
    UnsupportedOperation,
    repr_of,
)
from rowsieve.objects import apart, open_store, together
from rowsieve.opening import create_table, open_table
from rowsieve.procedures.built_in import built_in
from rowsieve.procedures.call_statement import Call, Explain, classify
from rowsieve.procedures.coordinator import Coordinator
from rowsieve.procedures.procedure_registry import ProcedureRegistry
from rowsieve.properties import check_properties
from rowsieve.retention.dropping import close, closed_head, delete_files
from rowsieve.storage.commit_log import CommitLog
from rowsieve.table import Table

_LOG: Final = "_rowsieve"


@checked_methods
class Catalog:
    """The tables under one URI; `procedures` are those that `call` knows."""

    @checked
    def __init__(self, uri: TableUri, *, storage_options: StorageOptions | None = None) -> None:
        self._store = open_store(uri, storage_options)
        self._storage_options = dict(storage_options or {})
        self._log = CatalogLog(self._store)
        self.procedures: ProcedureRegistry = built_in()

    def __repr__(self) -> str:
        return f"<rowsieve.Catalog at {self.uri}>"

    @property
    def uri(self) -> str:
        """The catalog's location, without credentials."""
        return self._store.uri

    @property
    def storage_options(self) -> StorageOptions:
        """The options with which another process opens the store; may hold secrets."""
        return self._storage_options

    # Tables

    def uri_of(self, name: str) -> str:
        """The URI of the table `namespace.name`, which need not exist.

        TableNotFound if a table of this name was dropped or renamed.
        """
        return self._uri(self._location(self._log.read(), table_name(name)))

    def create_table(
        self,
        name: str,
        schema_or_data: Any,
        key: ColumnNames | None = None,
        *,
        if_exists: Literal["error", "ignore"] = "error",
        properties: Properties | None = None,
        metadata: Metadata | None = None,
    ) -> Table:
        """Create the table `namespace.name`; TableExists if it exists.

        `if_exists="ignore"` opens that table and writes nothing. The catalog's properties are the
        table's, unless `properties` says otherwise.
        """
        wanted = table_name(name)
        state = self._log.read()
        if state.locations.get(name) is not None:
            if if_exists == "ignore":
                return self.open_table(name)
            raise self._taken(wanted)
        location = wanted.folder
        if name in state.locations:  # its folder may hold a table that was dropped or renamed
            location = f"{location}.{uuid.uuid4().hex[:16]}"
        try:
            created = create_table(
                self._uri(location),
                schema_or_data,
                key,
                properties={**state.properties, **(properties or {})},
                storage_options=self._storage_options,
                metadata=metadata,
            )
            self._log.change("create_table", partial(self._with_created, wanted, location))
        except TableExists:
            if if_exists == "error":
                raise
            return self.open_table(name)
        return created

    def open_table(
        self, name: str, *, version: int | None = None, as_of: Moment | None = None
    ) -> Table:
        """Open the table `namespace.name`, or one version of it; TableNotFound if there is none.

        `namespace.name@v12` is the table at version 12.
        """
        wanted = table_name(name, versioned=True)
        if wanted.version is not None:
            if version is not None or as_of is not None:
                raise InvalidInput(f"{name!r} names a version; give no version= and no as_of=")
            version = wanted.version
        opening = partial(
            open_table, version=version, as_of=as_of, storage_options=self._storage_options
        )
        guess = self._log.known.locations.get(wanted.plain, wanted.folder)
        guessed = None
        if guess is not None and self._store.overlaps:  # while the log is read
            guessed = apart(partial(opening, self._uri(guess)))
        location = self._location(self._log.read(), wanted)
        if guessed is not None and location == guess:
            return guessed.result()
        return opening(self._uri(location))

    def drop_table(self, name: str, *, purge: bool = False) -> None:
        """Remove the name `namespace.name`; its files stay where they are, unless `purge` is set.

        A table of the same name may be created again. TableNotFound if there is none. `purge`
        closes the table for changes, removes the name and deletes the table's own files, also those
        that an interrupted call left. UnsupportedOperation if a lease protects the table, if it has
        another name too, or if it was registered, for then its files are not the catalog's.
        """
        wanted = table_name(name)
        if purge:
            self._purge(wanted)
            return

        def without_it(now: CatalogState) -> CatalogState:
            self._standing(now, wanted)
            return _placed(now, {name: None})

        self._log.change("drop_table", without_it)

    def rename_table(self, name: str, new_name: str) -> None:
        """Give a table another name, in one step; its files stay where they are.

        TableNotFound if there is no such table, TableExists if the new name is taken.
        """
        old, new = table_name(name), table_name(new_name)
        if old == new:
            raise InvalidInput(f"rename_table: {name!r} has this name already; give another one")

        def moved(now: CatalogState) -> CatalogState:
            location = self._standing(now, old)
            self._check_free(now, new)
            return _placed(now, {name: None, new_name: location})

        self._log.change("rename_table", moved)

    def register_table(self, name: str, uri: TableUri) -> Table:
        """Give a table that exists elsewhere the name `namespace.name`, and open it.

        TableNotFound if there is no table at `uri`, TableExists if the name is taken.
        """
        wanted = table_name(name)
        table = open_table(uri, storage_options=self._storage_options)

        def placed(now: CatalogState) -> CatalogState:
            self._check_free(now, wanted)
            return _placed(now, {name: table.uri})

        self._log.change("register_table", placed)
        return table

    def namespaces(self) -> list[str]:
        """The names of the folders that may hold tables, sorted."""
        placed = self._log.read().locations.items()
        named = {table_name(name).namespace for name, location in placed if location is not None}
        return sorted(named.union(filter(is_identifier, self._store.folders())))

    def tables(self, namespace: str | None = None) -> list[str]:
        """The tables, as `namespace.name`, sorted; of one namespace, or of all."""
        locations = self._log.read().locations
        spaces = self.namespaces() if namespace is None else [identifier(namespace)]
        placed = {name for name, location in locations.items() if location is not None}
        found = {name for name in placed if table_name(name).namespace in spaces}
        plain = [
            name
            for folder in self._table_folders(spaces)
            if is_identifier(folder.table) and (name := folder.plain) not in locations
        ]
        return sorted(found.union(plain))

    # Properties

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties that tables get when they are created in this catalog."""
        return dict(self._log.read().properties)

    def set_properties(self, properties: Properties) -> None:
        """Set properties for tables that will be created; others keep their values."""
        given = check_properties(properties)
        self._log.change(
            "set_properties", lambda now: replace(now, properties={**now.properties, **given})
        )

    def unset_properties(self, names: PropertyNames) -> None:
        """Remove properties; InvalidInput names one that is not set."""

        def without(now: CatalogState) -> CatalogState:
            if missing := sorted(set(names) - now.properties.keys()):
                raise InvalidInput(f"unset_properties: the catalog has no property {missing[0]!r}")
            kept = {name: now.properties[name] for name in now.properties if name not in names}
            return replace(now, properties=kept)

        self._log.change("unset_properties", without)

    # Statements

    def call(
        self,
        statement: str,
        *,
        engine: Any = None,
        dialect: str = "postgres",
        session: Session | None = None,
    ) -> pa.Table:
        """Run CALL, ALTER TABLE … EXECUTE, EXPLAIN of them, SHOW PROCEDURES, DESCRIBE PROCEDURE.

        `engine` runs the tasks of a distributed procedure: a `LocalEngine` (the default) or a
        `rowsieve.providers.spark.procedure_engine.SparkEngine`. The text of a filter is SQL of
        `dialect`, read with the settings of `session`. InvalidInput names an argument that is
        missing, unknown or of another type; NotFound an unknown procedure; TableNotFound a table.
        CommitConflict if a concurrent commit replaced the parts that were rewritten.
        """
        found = classify(statement)
        if found is None:
            raise InvalidInput(
                f"call: {statement[:60]!r} is not a statement on procedures; it begins with CALL, "
                "ALTER TABLE … EXECUTE, SHOW PROCEDURES or DESCRIBE PROCEDURE"
            )
        return self._coordinator(engine, dialect, session).run(found)

    def explain(
        self, statement: str, *, dialect: str = "postgres", session: Session | None = None
    ) -> str:
        """The plan of a call, a node a line; nothing runs."""
        found = classify(statement)
        if isinstance(found, Explain):
            found = found.call
        if not isinstance(found, Call):
            raise InvalidInput(
                f"explain: {statement[:60]!r} is not a call of a procedure; give CALL … or "
                "ALTER TABLE … EXECUTE …"
            )
        return self._coordinator(None, dialect, session).explain(found)

    def sql(self, statement: str, *, engine: Any = None) -> pa.Table:
        """Run a query over the catalog's tables in DataFusion, or a statement for `call`.

        Tables are `namespace.name`; `namespace.name FOR VERSION AS OF 12` and
        `namespace."name@v12"` are version 12. All parts of a query read one version of a table.
        """
        if classify(statement) is not None:
            return self.call(statement, engine=engine, dialect="datafusion")
        return engines.datafusion_catalog().query(self, statement)

    def to_datafusion(self) -> Any:
        """Return an object for DataFusion's `register_catalog_provider`: all tables at once.

        A table keeps the version that its first use found, until `refresh` of this object.
        """
        return engines.datafusion_catalog().catalog_provider(self)

    def _coordinator(self, engine: Any, dialect: str, session: Session | None) -> Coordinator:
        if engine is not None and not (hasattr(engine, "run") and hasattr(engine, "cancel")):
            raise InvalidInput(f"engine must have run and cancel, and {repr_of(engine)} has not")
        return Coordinator(self.procedures, self._find, engine, dialect, session, catalog=self)

    def _find(self, namespace: str, name: str) -> Table:
        return self.open_table(f"{namespace}.{name}")

    # Names and places

    def _uri(self, location: str) -> str:
        if "://" in location:
            return location
        return "/".join([self.uri.rstrip("/"), *map(quote, location.split("/"))])

    def _location(self, state: CatalogState, name: TableName) -> str:
        """The location of a name, whether a table is there or not; TableNotFound if dropped."""
        location = state.locations.get(name.plain, name.folder)
        if location is None:
            raise TableNotFound(
                f"there is no table {name.plain} in {self.uri}: it was dropped or renamed; "
                "see Catalog.tables()"
            )
        return location

    def _standing(self, state: CatalogState, name: TableName) -> str:
        """The location of a name; TableNotFound unless a table is there."""
        location = self._location(state, name)
        if not self._holds_table(location):
            raise TableNotFound(
                f"there is no table {name.plain} in {self.uri}; see Catalog.tables()"
            )
        return location

    def _check_free(self, state: CatalogState, name: TableName) -> None:
        location = state.locations.get(name.plain, name.folder)
        if location is not None and (name.plain in state.locations or self._holds_table(location)):
            raise self._taken(name)

    def _with_created(self, name: TableName, location: str, now: CatalogState) -> CatalogState:
        """The state with a table that was just created; TableExists if its name went to another.

        That table's files are deleted then, unless another name refers to them.
        """
        if now.locations.get(name.plain, location) not in (None, location):
            if self._other_name(now, name, location) is None:
                store = open_store(self._uri(location), self._storage_options)
                with suppress(RowsieveError):  # the files stay: somebody reads them, or no store
                    delete_files(store, close(store))
            raise self._taken(name)
        return now if location == name.folder else _placed(now, {name.plain: location})

    def _purge(self, name: TableName) -> None:
        """Close the table, remove its name, then delete its files."""
        state = self._log.read()
        if state.locations.get(name.plain, name.folder) is None and self._finish_purges(state):
            return
        location = self._standing(state, name)
        self._check_purged(state, name, location)
        store = open_store(self._uri(location), self._storage_options)
        head = close(store)

        def without_it(now: CatalogState) -> CatalogState:
            if self._standing(now, name) != location:
                raise CommitConflict(
                    f"drop_table: {name.plain} became another table meanwhile; call it again"
                )
            self._check_purged(now, name, location)
            return _placed(now, {name.plain: None})

        self._log.change("drop_table", without_it)
        delete_files(store, head)

    def _finish_purges(self, state: CatalogState) -> bool:
        """Delete the files of closed tables without a name; whether there were any."""
        done = False
        for folder in self._table_folders(self._store.folders()):
            is_named = folder.plain not in state.locations or self._other_name(state, folder)
            store = open_store(self._uri(folder.folder), self._storage_options)
            if not is_named and (head := closed_head(store)) is not None:
                delete_files(store, head)
                done = True
        return done

    def _table_folders(self, namespaces: Sequence[str]) -> list[TableName]:
        """The folders in these namespaces that have a log of a table, named or not."""
        spaces = [space for space in namespaces if is_identifier(space)]
        within = together(self._store, [partial(self._store.folders, space) for space in spaces])
        found = [
            TableName(space, folder)
            for space, folders in zip(spaces, within, strict=True)
            for folder in folders
        ]
        looks = [partial(self._store.folders, each.folder) for each in found]
        inside = together(self._store, looks)
        return [each for each, names in zip(found, inside, strict=True) if _LOG in names]

    def _other_name(self, state: CatalogState, name: TableName, location: str = "") -> str | None:
        """Another name of the table in a folder; None if there is none."""
        location = location or name.folder
        places = (location, self._uri(location))
        for other, place in state.locations.items():
            if place in places and other != name.plain:
                return other
        return None

    def _check_purged(self, state: CatalogState, name: TableName, location: str) -> None:
        """UnsupportedOperation if files of the table must not be deleted."""
        uri = self._uri(location)
        if "://" in location or open_store(uri, self._storage_options).uri != uri:
            raise UnsupportedOperation(
                f"drop_table: {name.plain} was registered or linked from {location}, so its files "
                "are not the catalog's to delete; drop it without purge"
            )
        if (other := self._other_name(state, name, location)) is not None:
            raise UnsupportedOperation(
                f"drop_table: the table {name.plain} is {other}, too; drop that name first"
            )

    def _holds_table(self, location: str) -> bool:
        return CommitLog(open_store(self._uri(location), self._storage_options)).exists()

    def _taken(self, name: TableName) -> TableExists:
        return TableExists(
            f"a table {name.plain} exists already in {self.uri}; open it with open_table, or "
            "choose another name"
        )


def _placed(state: CatalogState, locations: Mapping[str, str | None]) -> CatalogState:
    return replace(state, locations={**state.locations, **locations})
