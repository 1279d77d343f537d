"""Drop tables and namespaces of a catalog, with `purge` also their files.

Soundness: a drop is one change of the catalog's log, made from the newest state and a listing of
the folders. With `purge`, this change also records the folder; only then is the table closed and
deleted, so that a rename either comes first, and the drop fails, or finds no such name. The next
`purge` of an absent name continues where an interrupted one stopped. Each records that it deletes
before it does so: a table that a lease kept either gets its name back or is deleted, and a log that
was deleted already needs no proof, even if a late request of a writer put a file there. A
concurrent creation of a table is another change of the log: if it comes first, the drop of its
namespace lists the folders again; if it comes second, it restores the namespace.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Literal

from rowsieve.catalog.catalog_log import CatalogState
from rowsieve.catalog.table_places import CatalogPlaces
from rowsieve.errors import (
    CommitConflict,
    CorruptData,
    NamespaceNotFound,
    RowsieveError,
    TableNotFound,
    UnsupportedOperation,
)
from rowsieve.names.qualified_names import TableName, identifier, table_name
from rowsieve.objects import ObjectStore, open_store
from rowsieve.retention.dropping import alone, close, delete_files, is_dropped
from rowsieve.storage.snapshot import Snapshot


class Dropping(CatalogPlaces):
    """Base class of `Catalog` with the methods that remove names."""

    def drop_table(
        self,
        name: str,
        *,
        purge: bool = False,
        if_absent: Literal["error", "ignore"] = "error",
    ) -> None:
        """Remove the name `namespace.name`; its files stay where they are, unless `purge` is set.

        A table of the same name may be created again. TableNotFound if it is absent; a name whose
        table was deleted by others can be dropped. `purge` closes
        the table for changes, removes the name and deletes the table's own files, also those of an
        interrupted call. UnsupportedOperation if a lease protects the table, if it is published in
        another folder, if it has another name too, or if it was registered, because then its files
        are not the catalog's.
        """
        wanted = table_name(name)
        if (database := self._database_with(self._log.read(), wanted)) is not None:
            database.drop_table(wanted.table, purge=purge, if_absent=if_absent)
            return

        def without_it(now: CatalogState) -> CatalogState:
            self._named_location(now, wanted)
            return now.placed({name: None})

        try:
            self._purge(wanted) if purge else self._log.change("drop_table", without_it)
        except TableNotFound:
            if if_absent == "error":
                raise

    def drop_namespace(
        self,
        name: str,
        *,
        cascade: bool = False,
        purge: bool = False,
        if_absent: Literal["error", "ignore"] = "error",
    ) -> None:
        """Remove a namespace; UnsupportedOperation if it has tables, NamespaceNotFound if absent.

        `cascade` drops its tables in the same step; their files stay where they are. `purge` first
        drops them one by one with their files, as `drop_table` does, and refuses to begin if the
        files of one are not the catalog's to delete. Tables that share a log are dropped by one
        commit of that log, right before, for each namespace that their database has.
        """
        space = identifier(name)
        state = self._log.read()
        is_known = self._has_namespace(state, space)
        if if_absent == "ignore" and not is_known:
            return
        database = self._database_of(state, space)
        if database is not None and (cascade or purge):
            for each in database.namespaces():
                database.drop_namespace(each, cascade=True, purge=purge, if_absent="ignore")
        elif purge:
            self._purge_tables(state, space)

        def without_it(now: CatalogState) -> CatalogState:
            if not self._has_namespace(now, space):
                if if_absent == "ignore" or (purge and is_known):  # it went with its last table
                    return now
                raise NamespaceNotFound(
                    f"the catalog {self.uri} has no namespace {space}; see Catalog.namespaces()"
                )
            tables = self._tables(now, [space])
            if space in now.shared:  # those that only the database names as well
                tables = [f"{space}.{each}" for each in self._database(space).tables()]
            if tables and (not cascade or space in now.shared):
                raise UnsupportedOperation(
                    f"drop_namespace: {space} has tables ({len(tables)}, the first is "
                    f"{tables[0]}); drop them first, or drop them with it by cascade=True"
                )
            gone = now if space in now.shared else now.placed(dict.fromkeys(tables))
            spaces = {**gone.namespaces, space: False}
            return replace(gone, namespaces=spaces, shared=gone.shared - {space})

        self._log.change("drop_namespace", without_it)

    def _purge_tables(self, state: CatalogState, namespace: str) -> None:
        """Drop the tables of a namespace with their files, if all of them can be.

        Skips tables that another caller has dropped or renamed.
        """
        names = [table_name(name) for name in self._tables(state, [namespace])]
        for name in names:
            self._check_purged(state, name, self._location(state, name))
        for name in names:
            with suppress(TableNotFound):
                self._purge(name)

    def _purge(self, name: TableName) -> None:
        """Remove the table's name, close it, then delete its files."""
        state = self._log.read()
        if self._place(state, name) is None and self._finish_purges(state):
            return
        location = self._named_location(state, name)
        self._check_purged(state, name, location)
        store = open_store(self._uri(location), self._storage_options)
        is_removed = False

        def without_it(now: CatalogState) -> CatalogState:
            if self._named_location(now, name) != location:
                raise CommitConflict(
                    f"drop_table: {name.plain} became another table during the call; call it again"
                )
            self._check_purged(now, name, location)
            return now.placed({name.plain: None}).with_purge(location)

        def remove_name() -> None:
            nonlocal is_removed
            self._log.change("drop_table", without_it)
            is_removed = True

        try:
            with alone(store):
                head = close(store, remove_name)
        except RowsieveError:
            if not is_removed:
                self._named_location(self._log.read(), name)  # did another call drop it?
            elif not self._put_back(name, location):
                return  # another call has closed the table and deletes its files
            raise
        self._delete(store, location, head)

    def _put_back(self, name: TableName, location: str) -> bool:
        """Give a table that a lease protects its name again, unless another table has it.

        False if another call deletes the files, or has deleted them.
        """

        def with_it(now: CatalogState) -> CatalogState:
            is_purged = location in now.purged and not now.is_deleted(location)
            if not is_purged or self._place(now, name) is not None:
                return now
            return now.placed({name.plain: location}).without_purge(location)

        state = self._log.change("drop_table", with_it)
        is_purged = location in state.purged and not state.is_deleted(location)
        return is_purged or self._refers(state, location)

    def _begin_deletion(self, location: str) -> bool:
        """Record that the files of a closed table go; False if it has its name again."""

        def with_it(now: CatalogState) -> CatalogState:
            if self._refers(now, location):
                return now
            return now.with_purge(location).with_deletion(location)

        return self._log.change("drop_table", with_it).is_deleted(location)

    def _delete(self, store: ObjectStore, location: str, head: Snapshot | None) -> bool:
        """Delete the files of a closed table, then forget its folder; False if it has a name."""
        if not self._begin_deletion(location):
            return False
        delete_files(store, head)
        if location in self._log.read().purged:
            self._log.change("drop_table", lambda now: now.without_purge(location))
        return True

    def _finish_purges(self, state: CatalogState) -> bool:
        """Delete the files of tables whose purge was interrupted; return whether there were any."""
        done = False
        for location in (*sorted(state.purged), *self._closed_folders(state)):
            store = open_store(self._uri(location), self._storage_options)
            if self._refers(state, location):
                continue
            done |= self._delete(store, location, _closed_again(state, store, location))
        return done

    def _closed_folders(self, state: CatalogState) -> Iterator[str]:
        """The folders of closed tables whose names were removed, and which are not recorded."""
        for name in self._table_folders(self._store.folders()):
            if name.plain in state.locations and name.folder not in state.purged:
                store = open_store(self._uri(name.folder), self._storage_options)
                if is_dropped(store):
                    yield name.folder

    def _refers(self, state: CatalogState, location: str) -> bool:
        """Return whether a name has this location."""
        return bool({location, self._uri(location)}.intersection(state.locations.values()))

    def _check_purged(self, state: CatalogState, name: TableName, location: str) -> None:
        """Raise UnsupportedOperation if files of the table must not be deleted."""
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


def _closed_again(state: CatalogState, store: ObjectStore, location: str) -> Snapshot | None:
    """Close a table whose purge was interrupted; None if its log is gone, or is being deleted."""
    if not store.list("_rowsieve"):
        return None
    try:
        with alone(store):
            return close(store)
    except CorruptData:
        if state.is_deleted(location):
            return None
        raise
