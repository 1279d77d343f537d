"""Pages: the tables of a database at a version, so that opening one reads only its page.

A table is in the page of the first bits of its id, a name in the page of the first bits of its
hash; the id of a table begins with the hash of its first name, so that one page usually has both.
A root names the pages of a version. Pages are written once; a new root names the old pages of all
tables that did not change.

Soundness: a root is put after all of its pages were read back.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import xxhash

from rowsieve.checksums import checksum
from rowsieve.errors import CorruptData
from rowsieve.objects.durable import put_fresh, reading_whole
from rowsieve.objects.shared.shared_entry import FIRST_FORMAT, entry_path, packed, unpacked
from rowsieve.objects.shared.table_log import Place, TableLog
from rowsieve.objects.store import ObjectStore

PAGES: Final = "_database/pages"
_TABLES_PER_PAGE: Final = 64
_HASH_BITS: Final = 32
CARRIED_BYTES: Final = 16 * 1024
"""Entries up to this size stand in the pages, too, so that old shared entries can go."""


class PageRef(msgspec.Struct, frozen=True, array_like=True):
    """A file of a page, and how many tables it has."""

    file: str
    size: int
    checksum: str
    tables: int


class Root(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The pages of a version: 2^n of them; None for an empty one."""

    version: int
    commit_id: str
    timestamp_us: int
    database: str
    pages: tuple[PageRef | None, ...]

    def number_of(self, hashed: int) -> int:
        """The number of the page for a hash of 32 bits."""
        return hashed >> (_HASH_BITS - (len(self.pages) - 1).bit_length())


class Page(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Some tables by id, and some names with the ids of their tables."""

    tables: dict[str, TableLog] = {}
    names: dict[str, str] = {}

    @property
    def format(self) -> int:
        """The first format that has what the page says."""
        return max((each.format for each in self.tables.values()), default=FIRST_FORMAT)


def root_path(version: int) -> str:
    """Return the path of a version's root, which is listed together with its entry."""
    return f"{entry_path(version)}.root"


def hash_of_name(name: str) -> int:
    """The 32 bits by which a name finds its page."""
    return xxhash.xxh32_intdigest(name.encode())


def hash_of_table(table: str) -> int:
    """The 32 bits by which the id of a table finds its page."""
    return int(table[:8], 16)


def new_table_id(name: str) -> str:
    """A fresh id, in the page of the name."""
    return f"{hash_of_name(name):08x}{uuid.uuid4().hex[8:]}"


def read_root(store: ObjectStore, version: int) -> Root:
    """Read the root of a version."""
    path = root_path(version)
    where = f"{path} in {store.uri}"
    return reading_whole(store, lambda: unpacked("root", store.get(path), Root, where))


def read_page(store: ObjectStore, ref: PageRef | None) -> Page:
    """Read and verify a page."""
    if ref is None:
        return Page()
    path = f"{PAGES}/{ref.file}"
    where = f"{path} in {store.uri}"

    def read() -> Page:
        data = store.get(path)
        if len(data) != ref.size or checksum(data) != ref.checksum:
            raise CorruptData(f"{where} does not match its checksum; restore it from a copy")
        return unpacked("page", data, Page, where)

    return reading_whole(store, read)


def put_page(store: ObjectStore, page: Page) -> PageRef | None:
    """Write a page and read it back."""
    if not page.tables and not page.names:
        return None
    data, file = packed("page", page, page.format), uuid.uuid4().hex
    put_fresh(store, f"{PAGES}/{file}", data)
    ref = PageRef(file, len(data), checksum(data), len(page.tables))
    read_page(store, ref)
    return ref


def page_count(table_count: int) -> int:
    """How many pages so many tables have: a power of two."""
    return 1 << max(0, -(-table_count // _TABLES_PER_PAGE) - 1).bit_length()


def split(pages: Mapping[int, Page], count: int) -> list[Page]:
    """Distribute tables and names over another number of pages."""
    bits = _HASH_BITS - (count - 1).bit_length()
    parts: list[tuple[dict[str, TableLog], dict[str, str]]] = [({}, {}) for _ in range(count)]
    for page in pages.values():
        for table, log in page.tables.items():
            parts[hash_of_table(table) >> bits][0][table] = log
        for name, table in page.names.items():
            parts[hash_of_name(name) >> bits][1][name] = table
    return [Page(tables, names) for tables, names in parts]


def carrying(log: TableLog, data: Sequence[bytes | None]) -> TableLog:
    """The table with those of its newest entries that are small; `data` is of its last places.

    What a page carries, later pages carry too, because the shared entry that held it may be gone.
    """
    before = log.places[: len(log.places) - len(data)]
    left = CARRIED_BYTES - sum(len(place.data or b"") for place in before)
    places = []
    for place, each in zip(reversed(log.places), reversed(data), strict=False):
        carried = each if each is not None and len(each) <= left else None
        left -= len(carried or b"")
        places.append(Place(place.version, place.timestamp_us, carried))
    return msgspec.structs.replace(log, places=(*before, *reversed(places)))
