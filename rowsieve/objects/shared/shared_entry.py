r"""One entry of a shared log, and the file that holds it.

    rowsieve database entry 1\n, the entry in MessagePack, its checksum in 16 bytes

Soundness: a file that does not match its checksum raises CorruptData; one of a newer format raises
UnsupportedProtocol before anything else in it is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeVar

import msgspec
import xxhash

from rowsieve.decoded_types import described
from rowsieve.errors import CorruptData, UnsupportedProtocol

LOG: Final = "_database/log"
LARGEST_BYTES: Final = 64 * 1024 * 1024
_FORMAT: Final = 2
FIRST_FORMAT: Final = 1
_DIGEST_BYTES: Final = 16
_T = TypeVar("_T")


class Section(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What an entry says of one table.

    `number` and `data`: the table's own log entry, as the table wrote it. `name`: its name from now
    on; `former`: the name that it loses. `is_dropped`: it has no name any more. `gone_below`: its
    own entries below are gone. `place`: the URI of a table that has moved in; its entries from
    `starts_at` on are in this log. `leaves`: this is its last entry here; it goes on in its folder.
    """

    table: str
    number: int | None = None
    data: bytes = b""
    name: str | None = None
    former: str | None = None
    is_dropped: bool = False
    gone_below: int | None = None
    place: str | None = None
    starts_at: int | None = None
    leaves: bool = False

    def without_data(self) -> Section:
        """The section without the table's entry."""
        return msgspec.structs.replace(self, data=b"") if self.data else self


class SharedEntry(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One version of a database: a commit of all the tables in its sections.

    `recent`: the entries since the last root, without data, so that a reader needs not read each.
    """

    version: int
    commit_id: str
    predecessor: str | None
    database: str
    timestamp_us: int
    sections: tuple[Section, ...]
    recent: tuple[SharedEntry, ...] = ()

    @property
    def format(self) -> int:
        """The first format that has what the entry says: tables that move came with the second."""
        entries = (self, *self.recent)
        moves = any(s.place is not None or s.leaves for each in entries for s in each.sections)
        return _FORMAT if moves else FIRST_FORMAT

    def without_data(self) -> SharedEntry:
        """The entry without the entries of tables in it, and without those before it."""
        return SharedEntry(
            self.version,
            self.commit_id,
            self.predecessor,
            self.database,
            self.timestamp_us,
            tuple(each.without_data() for each in self.sections),
        )

    def section_of(self, table: str) -> Section | None:
        """Return what the entry says of a table."""
        return next((each for each in self.sections if each.table == table), None)


def entry_path(version: int) -> str:
    """Return the path of a version's entry."""
    return f"{LOG}/{version:020d}"


def listed_versions(paths: Iterable[str]) -> tuple[list[int], list[int]]:
    """The versions of the entries and of the roots in a listing of the log, ascending."""
    entries: list[int] = []
    roots: list[int] = []
    for path in paths:
        number, dot, _ = path.removeprefix(f"{LOG}/").partition(".")
        if number.isdigit():
            (roots if dot else entries).append(int(number))
    return sorted(entries), sorted(roots)


def packed(kind: str, value: Any, format_: int = FIRST_FORMAT) -> bytes:
    """Encode a value of a kind of file, with its checksum."""
    body = b"rowsieve database %b %d\n" % (kind.encode(), format_) + msgspec.msgpack.encode(value)
    return body + xxhash.xxh3_128(body).digest()


def unpacked(kind: str, data: bytes, type_: type[_T], where: str) -> _T:
    """Verify and decode a file of a kind; `where` names it in errors."""
    head, _, rest = data[:64].partition(b"\n")
    start = b"rowsieve database %b " % kind.encode()
    number = head.removeprefix(start)
    if not head.startswith(start) or not number.isdigit() or not rest:
        raise CorruptData(f"{where} is not a {kind} of a database; restore it from a copy")
    if int(number) > _FORMAT:
        raise UnsupportedProtocol(
            f"{where} has format {int(number)}; this version of rowsieve knows up to {_FORMAT}: "
            "upgrade rowsieve"
        )
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if xxhash.xxh3_128(body).digest() != digest:
        raise CorruptData(f"{where} does not match its checksum; restore it from a copy")
    try:
        return msgspec.msgpack.decode(body[len(head) + 1 :], type=described(type_))
    except msgspec.MsgspecError as error:
        raise CorruptData(f"{where} is damaged: {error}; restore it from a copy") from error
