"""Give space back in a database: old versions of its log, and the files of dropped tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rowsieve import clock
from rowsieve.arguments.annotations import StorageOptions
from rowsieve.objects import open_store
from rowsieve.objects.shared.shared_entry import Section
from rowsieve.objects.shared.shared_log import SharedLog
from rowsieve.objects.shared.shared_tables import SharedTables
from rowsieve.objects.shared.table_log import TableLog
from rowsieve.objects.shared.unneeded_entries import clean
from rowsieve.retention.dropping import own_files
from rowsieve.retention.leases import lease_files

_US_PER_S = 1_000_000


class Vacuumed(NamedTuple):
    """What a vacuum of a database deleted: objects of the log, tables, and files of those."""

    entries: int
    roots: int
    pages: int
    tables: int
    files: int


def vacuum(
    shared: SharedTables,
    storage_options: StorageOptions | None,
    retain_s: float,
    only: str | None = None,
) -> Vacuumed:
    """Delete what only versions from before `retain_s` seconds need; `only`: one dropped table.

    A dropped table that a lease protects keeps its files.
    """
    before_us = clock.now_us() - int(retain_s * _US_PER_S)
    tables = files = 0
    for table in _dropped(shared.log, before_us, only):
        store = open_store(shared.place_of(table.table), storage_options)
        if lease_files(store, published=False):
            continue
        paths = store.list("") if table.place_uri is None else own_files(store)
        store.delete(paths)
        moved = table.place_uri is not None
        gone = Section(table.table, gone_below=table.next_number, is_dropped=True, leaves=moved)
        shared.group.change("vacuum", [gone])
        tables, files = tables + 1, files + len(paths)
    cleaned = clean(shared.log, before_us) if only is None else (0, 0, 0)
    return Vacuumed(*cleaned, tables, files)


def _dropped(log: SharedLog, before_us: int, only: str | None) -> Iterator[TableLog]:
    """The tables that were dropped before a time and still have entries."""
    state = log.latest()
    known = set(state.changes) if only is None else {only}
    if only is None:
        known |= {table for page in log.pages(state.root) for table in page.tables}
    for table_id in sorted(known):
        table = log.table(table_id, state)
        if table is None or table.dropped_us is None or table.is_purged:
            continue
        if only is not None or table.dropped_us < before_us:
            yield table
