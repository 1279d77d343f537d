"""Open the shared log of a database, once per process and place, and the stores of its tables."""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Mapping
from typing import Any, Final

from rowsieve.checksums import checksum
from rowsieve.locks import ForkSafeLock
from rowsieve.objects.ref_store import member_uri
from rowsieve.objects.shared.group_commit import GroupCommit
from rowsieve.objects.shared.joint import JointCommit
from rowsieve.objects.shared.section_store import Committer, Membership, SectionStore
from rowsieve.objects.shared.shared_entry import Section
from rowsieve.objects.shared.shared_log import SharedLog
from rowsieve.objects.store import ObjectStore

TABLES: Final = "_tables"
_MEMBER = re.compile(rf"(?P<database>.+)/{TABLES}/(?P<table>[0-9a-f]{{32}})/?")


class SharedTables:
    """The shared log at one place, and the queue of this process to it."""

    def __init__(self, store: ObjectStore) -> None:
        self.log = SharedLog(store)
        self.group = GroupCommit(self.log)
        self.reserved: dict[str, str] = {}
        """By id, the names of tables that are being created."""
        self.joint: dict[str, JointCommit] = {}
        """By id, the commits of several tables that tables are created in."""

    def member(
        self,
        inner: ObjectStore,
        table: str,
        commit: Committer | None = None,
        uri: str | None = None,
    ) -> SectionStore:
        """The store of a table, whose folder is `inner`, and its URI, if that is another one."""
        is_alone = commit is None
        place = Membership(table, self.log, commit or self.commit_one, self.reserved, is_alone)
        return SectionStore(inner, place, uri)

    def place_of(self, table: str) -> str:
        """The URI of a table, which may be a new one."""
        known = self.log.table(table, self.log.known())
        if known is not None and known.place_uri is not None:
            return member_uri(known.place_uri, self.log.store.uri, table)
        return f"{self.log.store.uri}/{TABLES}/{table}"

    def commit_one(self, section: Section) -> None:
        """Commit a section; `Overtaken` if its number is taken."""
        if (joint := self.joint.get(section.table)) is not None:
            joint.hold(section)
        else:
            self.group.commit([section])


_lock = ForkSafeLock()
_open: weakref.WeakValueDictionary[tuple[str, str, int], SharedTables] = (
    weakref.WeakValueDictionary()
)
"""By URI, storage options and process."""


def shared_tables(store: ObjectStore, options: Mapping[str, Any] | None) -> SharedTables:
    """The shared log in `store`; all callers of a process with equal options share one."""
    options_checksum = checksum(repr(sorted((options or {}).items(), key=repr)).encode())
    key = (store.uri, options_checksum, os.getpid())
    with _lock.mutex:
        tables = _open.get(key)
        if tables is None:
            tables = _open[key] = SharedTables(store)
    return tables


def member_of(uri: str) -> tuple[str, str] | None:
    """The URI of the database and the id of the table that a URI is the place of, if any."""
    match = _MEMBER.fullmatch(uri)
    return (match["database"], match["table"]) if match else None
