"""How errors name a table: by its name and database where it has one, by its URI elsewhere."""

from __future__ import annotations

from contextlib import suppress

from rowsieve.errors import RowsieveError
from rowsieve.objects.shared.section_store import SectionStore
from rowsieve.objects.store import ObjectStore


def shown_place(store: ObjectStore) -> str:
    """The table of a store, for an error: `table 'orders' of file:///shop`, or its URI."""
    return name_in_database(store) or store.uri


def name_in_database(store: ObjectStore) -> str | None:
    """The name and the database of a table; None without a database, or if it has no name."""
    if not isinstance(store, SectionStore):
        return None
    member = store.member
    with suppress(RowsieveError):  # the error that is being raised matters more
        table = member.log.table(member.table, member.log.known())
        if table is not None and table.name is not None:
            return f"table {table.name!r} of {member.log.store.uri}"
    return None
