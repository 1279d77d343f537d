"""Tables that moved into a database by metadata alone: what their own log says about it.

The last entry of the table's own log names the database and the table's id there. Later entries are
sections of the database's log; all other objects stay in the table's folder, so that history,
branches, leases and files are what they were. When the table leaves, all of its entries become
objects of its folder again, and its next one lacks the mark.

Soundness (invariants, I6 and rule 40): the mark is a commit, so it orders the move among the
commits of others, and from then on one log alone takes commits. Whoever reads or writes the table
at its former place finds the mark and is refused, retention included. Tables with a mark need
protocol 11, which older readers and writers refuse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import msgspec

from rowsieve.decoded_types import described
from rowsieve.errors import CorruptData, InvalidInput, TableMoved
from rowsieve.objects import ObjectStore, table_store
from rowsieve.objects.ref_store import member_uri
from rowsieve.objects.shared.section_store import SectionStore
from rowsieve.properties import MOVED
from rowsieve.storage.snapshot import MOVES_PROTOCOL, Snapshot, TableInfo

OPERATION: Final = "move"


class Mark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The URI of the database that a table is in, and its id there."""

    database: str
    table: str


def mark_of(properties: Mapping[str, str]) -> Mark | None:
    """Where a table has moved; None for one whose own log goes on. CorruptData if damaged."""
    text = properties.get(MOVED)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=described(Mark))
    except msgspec.MsgspecError as error:
        raise CorruptData(
            f"table property {MOVED} is {text[:200]!r}, which is damaged ({error}); restore the "
            "log from a copy"
        ) from error


def with_mark(info: TableInfo, mark: Mark | None) -> TableInfo:
    """Return the table information with a mark, or without one."""
    properties = {name: text for name, text in info.properties.items() if name != MOVED}
    if mark is None:
        return replace(info, properties=properties)
    properties[MOVED] = msgspec.json.encode(mark).decode()
    return replace(
        info,
        properties=properties,
        reader_version=max(info.reader_version, MOVES_PROTOCOL),
        writer_version=max(info.writer_version, MOVES_PROTOCOL),
    )


def check_place(store: ObjectStore, info: TableInfo) -> None:
    """Raise TableMoved unless the log of this store is the one that goes on."""
    if MOVED not in info.properties or (mark := mark_of(info.properties)) is None:
        return
    place_store = table_store(store)
    if isinstance(place_store, SectionStore):
        member = place_store.member
        if (member.log.store.uri, member.table) == (mark.database, mark.table):
            return
    uri = member_uri(place_store.uri, mark.database, mark.table)
    raise TableMoved(
        f"the table at {place_store.uri} has moved into the database {mark.database}, whose log "
        f"has its newer versions: open it there by its name, or at {uri}",
        uri=uri,
        database=mark.database,
    )


def check_arrived(store: ObjectStore, former: str) -> None:
    """Raise TableMoved if the database of a table's mark does not know the table yet."""
    if not isinstance(place_store := table_store(store), SectionStore):
        return
    log = place_store.member.log
    if log.table(place_store.member.table, log.latest()) is None:
        raise TableMoved(
            f"the table at {former} is on its way into the database {log.store.uri}, which does "
            "not have it yet: a move_in was interrupted, or is running. Call move_in again, with "
            "this name or another one",
            uri=place_store.uri,
            database=log.store.uri,
        )


def check_mark_kept(operation: str, info: TableInfo, head: Snapshot) -> None:
    """Raise InvalidInput if new table information changes where the head's table is."""
    if operation != OPERATION and info.properties.get(MOVED) != head.table.properties.get(MOVED):
        raise InvalidInput(
            f"this {operation} changes {MOVED}, which only move_in and move_out of a database may "
            "change; nothing was committed"
        )
