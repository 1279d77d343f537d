"""The store of a branch or tag: a log of its own in the folder of its table, over shared data.

    _rowsieve/refs/<name>.<tag>/log, checkpoints, leases     what lies in `_rowsieve/` of a table

All other paths are those of the table. The URI of the store is that of its folder, so `open_store`
opens it again in any process. Data files that are written through it have its tag in their names
(`rowsieve.storage.versioned_names`), so that each log knows its own.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from rowsieve.objects.store import Details, NativeFile, ObjectStore, Paths, Place

OWN: Final = "_rowsieve/"
REFS: Final = f"{OWN}refs"
_URI: Final = re.compile(rf"(?P<table>.+)/{REFS}/(?P<folder>[A-Za-z0-9_.-]+\.[0-9a-f]{{32}})/?")


MEMBERS: Final = f"{OWN}shared"
_MEMBER_URI: Final = re.compile(
    rf"(?P<table>.+)/{MEMBERS}/(?P<database>[A-Za-z0-9_-]+)\.(?P<id>[0-9a-f]{{32}})/?"
)


class MemberPlace(NamedTuple):
    """The URI of a table that moved into a database, that of the database, and its id there."""

    table_uri: str
    database_uri: str
    table: str


def member_uri(table_uri: str, database_uri: str, table: str) -> str:
    """The URI of a table whose files are at one place, and whose log is that of a database."""
    encoded = base64.urlsafe_b64encode(database_uri.encode()).decode().rstrip("=")
    return f"{table_uri}/{MEMBERS}/{encoded}.{table}"


def member_place(uri: str) -> MemberPlace | None:
    """Split such a URI; None for any other URI."""
    if MEMBERS not in uri or (match := _MEMBER_URI.fullmatch(uri)) is None:
        return None
    encoded = match["database"]
    try:
        database = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except ValueError:
        return None
    return MemberPlace(match["table"], database, match["id"])


class RefPlace(NamedTuple):
    """The URI of a table, and the folder of one of its branches or tags."""

    table_uri: str
    folder: str


def ref_place(uri: str) -> RefPlace | None:
    """Split the URI of a branch or tag; None for any other URI."""
    if REFS not in uri or (match := _URI.fullmatch(uri)) is None:
        return None
    return RefPlace(match["table"], match["folder"])


def table_uri_of(uri: str) -> str:
    """Return the URI of the folder in which the data files of a table, branch or tag lie.

    A table that moved into a database has its files at the place where it was.
    """
    place = ref_place(uri)
    table = uri if place is None else place.table_uri
    member = member_place(table)
    return table if member is None else table_uri_of(member.table_uri)


def ref_tag(uri: str) -> str | None:
    """Return the tag of a branch or tag in the names of its data files; None for a table."""
    place = ref_place(uri)
    return None if place is None else tag_of(place.folder)


def tag_of(folder: str) -> str:
    """Return the last 32 digits of a folder's name."""
    return folder.rpartition(".")[2]


def table_store(store: ObjectStore) -> ObjectStore:
    """Return the store of the table itself, for a store of it or of a branch or tag."""
    return store.table if isinstance(store, RefStore) else store


class RefStore:
    """The store of the branch or tag in `folder` below `_rowsieve/refs` of a table's store."""

    def __init__(self, table: ObjectStore, folder: str) -> None:
        self.table = table
        self.folder = folder
        self._root = f"{REFS}/{folder}/"

    @property
    def uri(self) -> str:
        """The table's URI with the folder."""
        return f"{self.table.uri}/{self._root}".rstrip("/")

    @property
    def overlaps(self) -> bool:
        """As the table's store."""
        return self.table.overlaps

    def expect(self, places: Iterable[Place], *, keep: bool = False) -> None:
        """Announce spans that will be read soon."""
        self.table.expect(
            [(self._inner(path), start, stop) for path, start, stop in places], keep=keep
        )

    def forget(self, path: str) -> bool:
        """Drop what the cache folder keeps of an object; return whether it kept any."""
        forget = getattr(self.table, "forget", None)
        return forget is not None and bool(forget(self._inner(path)))

    def get(self, path: str) -> bytes:
        """Return all bytes of an object."""
        return self.table.get(self._inner(path))

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        """Return bytes `[start, stop)`."""
        return self.table.get_range(self._inner(path), start, stop)

    def size(self, path: str) -> int:
        """Return the size of the object in bytes."""
        return self.table.size(self._inner(path))

    def exists(self, path: str) -> bool:
        """Return whether an object exists."""
        return self.table.exists(self._inner(path))

    def put_new(self, path: str, data: bytes | memoryview) -> None:
        """Create an object durably."""
        self.table.put_new(self._inner(path), data)

    def put_hint(self, path: str, data: bytes) -> None:
        """Replace an object that only says where others are."""
        self.table.put_hint(self._inner(path), data)

    def make_durable(self, path: str) -> None:
        """Make durable an object that exists although its put raised."""
        self.table.make_durable(self._inner(path))

    def list(self, prefix: str, after: str | None = None, until: str | None = None) -> Paths:
        """List the objects under a folder, sorted."""
        limits = (None if limit is None else self._inner(limit) for limit in (after, until))
        return [self._outer(path) for path in self.table.list(self._inner(prefix), *limits)]

    def children(self, prefix: str = "") -> Paths:
        """List names directly under a folder."""
        return self.table.children(self._inner(prefix))

    def folders(self, prefix: str = "") -> Paths:
        """List the names of the folders directly under a folder."""
        return self.table.folders(self._inner(prefix))

    def details(self, prefix: str, most: int | None = None) -> Details:
        """List the objects under a folder with their sizes and times; with `most`, the first."""
        details = self.table.details(self._inner(prefix), most)
        return {self._outer(path): detail for path, detail in details.items()}

    def leftovers(self) -> Details:
        """List temporary files of interrupted puts in its own folder."""
        return {
            self._outer(path): detail
            for path, detail in self.table.leftovers().items()
            if path.startswith(self._root)
        }

    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects, or leftovers."""
        self.table.delete([self._inner(path) for path in paths])

    def open_input(self, path: str, size_bytes: int | None = None) -> NativeFile:
        """Open a seekable file for pyarrow's readers."""
        return self.table.open_input(self._inner(path), size_bytes)

    def _inner(self, path: str) -> str:
        """The path in the table's store."""
        if path == OWN.rstrip("/"):
            return self._root.rstrip("/")
        return f"{self._root}{path[len(OWN) :]}" if path.startswith(OWN) else path

    def _outer(self, path: str) -> str:
        """The path that a table has in its place."""
        return f"{OWN}{path[len(self._root) :]}" if path.startswith(self._root) else path
