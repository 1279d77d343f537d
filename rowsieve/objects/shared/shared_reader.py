"""Read the entries and pages of a shared log, and find tables and names in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rowsieve.byte_cache import ByteCache
from rowsieve.errors import CorruptData
from rowsieve.objects.durable import reading_whole
from rowsieve.objects.shared.shared_entry import SharedEntry, entry_path, unpacked
from rowsieve.objects.shared.shared_state import State
from rowsieve.objects.shared.table_log import TableLog
from rowsieve.objects.shared.table_pages import Page, Root, hash_of_name, hash_of_table, read_page
from rowsieve.objects.store import ObjectNotFound, ObjectStore

_entries: Final[ByteCache[tuple[str, str, int], SharedEntry]] = ByteCache(
    32 * 1024 * 1024, "entries of databases"
)
"""Entries by store, database and version."""
_pages: Final[ByteCache[tuple[str, str], Page]] = ByteCache(32 * 1024 * 1024, "pages of databases")
"""Pages by store and file."""


class SharedReader:
    """Reads the shared log in `store`, the folder of a database. Thread-safe."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store

    def entry(self, version: int) -> SharedEntry:
        """Read an entry from the store; ObjectNotFound if it is absent."""
        path = entry_path(version)
        where = f"{path} in {self.store.uri}"
        entry = reading_whole(
            self.store, lambda: unpacked("entry", self.store.get(path), SharedEntry, where)
        )
        if entry.version != version:
            raise CorruptData(f"{where} holds version {entry.version}: it was renamed or copied")
        self.keep(entry)
        return entry

    def entry_or_none(self, version: int) -> SharedEntry | None:
        """Read an entry from the store; None if it is absent."""
        try:
            return self.entry(version)
        except ObjectNotFound:
            return None

    def entry_of(self, database: str, version: int) -> SharedEntry:
        """An entry that was read before, or read it now."""
        return _entries.get((self.store.uri, database, version)) or self.entry(version)

    def keep(self, entry: SharedEntry) -> None:
        """Keep an entry in memory."""
        size = 500 + sum(300 + len(each.data) for each in entry.sections)
        _entries.put((self.store.uri, entry.database, entry.version), entry, size)

    def table(self, table: str, state: State) -> TableLog | None:
        """A table at a version, by its id; None if it was never created, or is purged."""
        log = self.page(state.root, hash_of_table(table)).tables.get(table)
        for change in state.changes.get(table, ()):
            log = (log or TableLog(table)).after(change.section, change.entry)
        return log

    def id_of(self, name: str, state: State) -> str | None:
        """The id of the table with a name; None if there is none."""
        if name in state.names:
            return state.names[name]
        return self.page(state.root, hash_of_name(name)).names.get(name)

    def names(self, state: State) -> dict[str, str]:
        """The ids of all tables, by name; reads all pages."""
        names: dict[str, str | None] = {}
        for page in self.pages(state.root):
            names |= page.names
        names |= state.names
        return {name: table for name, table in sorted(names.items()) if table is not None}

    def data(self, log: TableLog, number: int, state: State) -> bytes | None:
        """An entry of a table, as the table wrote it; None if it does not exist or is gone."""
        if (place := log.place(number)) is None:
            return None
        if place.data is not None:
            return place.data
        section = self.entry_of(state.database, place.version).section_of(log.table)
        if section is None or section.number != number:
            raise CorruptData(
                f"{entry_path(place.version)} in {self.store.uri} lacks entry {number} of table "
                f"{log.table}; restore it from a copy"
            )
        return section.data

    def page(self, root: Root, hashed: int) -> Page:
        """The page for a hash of 32 bits."""
        return self.page_at(root, root.number_of(hashed))

    def pages(self, root: Root) -> Iterator[Page]:
        """All pages of a root."""
        for number in range(len(root.pages)):
            yield self.page_at(root, number)

    def page_at(self, root: Root, number: int) -> Page:
        """The page with a number."""
        ref = root.pages[number]
        if ref is None:
            return Page()
        page = _pages.get((self.store.uri, ref.file))
        if page is None:
            page = read_page(self.store, ref)
            _pages.put((self.store.uri, ref.file), page, 4 * ref.size)
        return page
