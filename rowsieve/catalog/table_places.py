"""Finds the tables of a catalog: names, namespaces and locations.

Soundness: a name with a location in the log is there, and nowhere else; a name with NULL was
dropped or renamed. Every other name is the folder `namespace/name`, unless its namespace was
dropped: then tables in its folders have no names until it is created again. In a namespace with a
shared log, that of its database decides; a name that it has not may be in the log of the catalog
while its table moves into another database.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final
from urllib.parse import quote

from rowsieve.arguments.annotations import StorageOptions, TableUri
from rowsieve.catalog.catalog_log import CatalogLog, CatalogState
from rowsieve.database.database import Database
from rowsieve.errors import RowsieveError, TableExists, TableNotFound, did_you_mean
from rowsieve.names.qualified_names import TableName, identifier, is_identifier, table_name
from rowsieve.objects import open_store, together
from rowsieve.storage.log.commit_log import CommitLog

_LOG: Final = "_rowsieve"


class CatalogPlaces:
    """Base class of `Catalog` with names and places."""

    def __init__(self, uri: TableUri, storage_options: StorageOptions | None) -> None:
        self._store = open_store(uri, storage_options)
        self._storage_options: StorageOptions = dict(storage_options or {})
        self._log = CatalogLog(self._store)

    @property
    def uri(self) -> str:
        """The catalog's location, without credentials."""
        return self._store.uri

    @property
    def storage_options(self) -> StorageOptions:
        """The options with which another process opens the store; may hold secrets."""
        return self._storage_options

    def uri_of(self, name: str) -> str:
        """The URI of the table `namespace.name`, which need not exist.

        TableNotFound if a table of this name was dropped or renamed.
        """
        state, wanted = self._log.read(), table_name(name)
        if (database := self._database_with(state, wanted)) is not None:
            return database.uri_of(wanted.table)
        return self._uri(self._location(state, wanted))

    def namespaces(self) -> list[str]:
        """The namespaces, sorted: those with a folder or a table, and those that were created."""
        return self._namespaces(self._log.read())

    def tables(self, namespace: str | None = None) -> list[str]:
        """The tables, as `namespace.name`, sorted; of one namespace, or of all."""
        state = self._log.read()
        spaces = self._namespaces(state) if namespace is None else [identifier(namespace)]
        return self._tables(state, spaces)

    def _namespaces(self, state: CatalogState) -> list[str]:
        placed = state.locations.items()
        named = {table_name(name).namespace for name, location in placed if location is not None}
        created = {name for name, there in state.namespaces.items() if there}
        folders = filter(is_identifier, self._store.folders())
        standing = (each for each in folders if not state.is_dropped(each))
        return sorted(named.union(created, standing))

    def _has_namespace(
        self, state: CatalogState, namespace: str, *, is_shared: bool | None = None
    ) -> bool:
        """Return whether there is such a namespace; `is_shared`: with a shared log, or without."""
        if is_shared is not None and is_shared != (namespace in state.shared):
            return False
        if (known := state.namespaces.get(namespace)) is not None:
            return known
        return namespace in self._namespaces(state)

    def _tables(self, state: CatalogState, spaces: Sequence[str]) -> list[str]:
        placed = {name for name, location in state.locations.items() if location is not None}
        names = {name for name in placed if table_name(name).namespace in spaces}
        for space in state.shared.intersection(spaces):
            names |= {
                f"{space}.{name}" for name in self._database(space).tables() if "." not in name
            }
        plain = [
            name
            for folder in self._table_folders([s for s in spaces if state.has_folders(s)])
            if is_identifier(folder.table) and (name := folder.plain) not in state.locations
        ]
        return sorted(names.union(plain))

    def _database_of(self, state: CatalogState, namespace: str) -> Database | None:
        """The database that a namespace is; None if its tables have logs of their own."""
        return self._database(namespace) if namespace in state.shared else None

    def _database_with(self, state: CatalogState, name: TableName) -> Database | None:
        """The database that has a name; None if its table has a log of its own.

        A table that is renamed from one shared log into another has one in between.
        """
        database = self._database_of(state, name.namespace)
        if database is None or state.locations.get(name.plain) is None:
            return database
        return database if name.table in database.tables() else None

    def _database(self, namespace: str) -> Database:
        return Database(self._uri(namespace), storage_options=self._storage_options)

    def _uri(self, location: str) -> str:
        if "://" in location:
            return location
        return "/".join([self.uri.rstrip("/"), *map(quote, location.split("/"))])

    def _place(self, state: CatalogState, name: TableName) -> str | None:
        """The location of a name, whether a table is there or not; None if it was dropped."""
        if name.plain in state.locations:
            return state.locations[name.plain]
        return None if state.is_dropped(name.namespace) else name.folder

    def _location(self, state: CatalogState, name: TableName) -> str:
        """The same; TableNotFound if it was dropped."""
        if (location := self._place(state, name)) is None:
            raise TableNotFound(
                f"there is no table {name.plain} in {self.uri}: it was dropped or renamed; "
                f"see Catalog.tables(){self._suggestion(state, name)}"
            )
        return location

    def _suggestion(self, state: CatalogState, name: TableName) -> str:
        """The end of a message: the table with the most similar name; empty without one."""
        try:
            names = self._tables(state, self._namespaces(state))
        except RowsieveError:  # another error is being reported
            return ""
        return did_you_mean(name.plain, [other for other in names if other != name.plain])

    def _table_location(self, state: CatalogState, name: TableName) -> str:
        """The location of a name; TableNotFound unless a table is there."""
        location = self._named_location(state, name)
        if name.plain in state.locations and not self._holds_table(location):
            raise TableNotFound(
                f"the table {name.plain} in {self.uri} is at {location}, and no table is there "
                "any more; drop_table without purge removes the name"
            )
        return location

    def _named_location(self, state: CatalogState, name: TableName) -> str:
        """The same for a name in the log, even if its table is gone."""
        location = self._location(state, name)
        if name.plain not in state.locations and not self._holds_table(location):
            raise TableNotFound(
                f"there is no table {name.plain} in {self.uri}; see Catalog.tables()"
                f"{self._suggestion(state, name)}"
            )
        return location

    def _check_free(self, state: CatalogState, name: TableName, wanted: str = "") -> None:
        """Raise TableExists if a table at another place than `wanted` has the name."""
        location = self._place(state, name)
        if (database := self._database_of(state, name.namespace)) is not None:
            is_taken = name.table in database.tables()
        elif location is None or location == wanted:
            is_taken = False
        else:
            is_taken = name.plain in state.locations or self._holds_table(location)
        if is_taken:
            raise TableExists(
                f"a table {name.plain} exists already in {self.uri}; open it, or choose "
                "another name"
            )

    def _table_folders(self, namespaces: Sequence[str]) -> list[TableName]:
        """The folders in these namespaces that have a log of a table, named or not."""
        spaces = [space for space in namespaces if is_identifier(space)]
        within = together(self._store, [partial(self._store.folders, space) for space in spaces])
        tables = [
            TableName(space, folder)
            for space, folders in zip(spaces, within, strict=True)
            for folder in folders
        ]
        looks = [partial(self._store.folders, each.folder) for each in tables]
        inside = together(self._store, looks)
        return [each for each, names in zip(tables, inside, strict=True) if _LOG in names]

    def _other_name(self, state: CatalogState, name: TableName, location: str = "") -> str | None:
        """Another name of the table in a folder; None if there is none."""
        location = location or name.folder
        places = (location, self._uri(location))
        for other, place in state.locations.items():
            if place in places and other != name.plain:
                return other
        return None

    def _holds_table(self, location: str) -> bool:
        return CommitLog(open_store(self._uri(location), self._storage_options)).exists()
