"""The store of one table of a database: its log entries are sections of the shared log.

Soundness: only the numbered entries of the log are sections. Everything else is an object below the
table's folder, as without a database, and is passed on. An entry that is newer than the version
that this process has read is looked for in the store. The entries of a table that moved in are
objects of its folder up to that commit. Those of one that has left are, too, after that commit, and
before the first of them is put, all others are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rowsieve.errors import InvalidInput, TableNotFound
from rowsieve.objects.durable import put_if_absent
from rowsieve.objects.shared.group_commit import Overtaken
from rowsieve.objects.shared.shared_entry import Section, entry_path
from rowsieve.objects.shared.shared_log import SharedLog
from rowsieve.objects.shared.table_log import TableLog
from rowsieve.objects.store import (
    Details,
    ObjectDetail,
    ObjectExists,
    ObjectNotFound,
    ObjectStore,
    Paths,
    checked_range,
    within,
)

_FOLDER: Final = "_rowsieve/log"
_ENTRY: Final = re.compile(rf"{_FOLDER}/(\d{{20}})\.json")
_AFTER_NUMBERS: Final = f"{_FOLDER}/0000001"
_PROBE: Final = "_rowsieve/create-only"  # the store of the database is probed, not each table

Committer = Callable[[Section], None]
"""Commits a section; `Overtaken` if its number is taken."""


@dataclass(frozen=True, slots=True)
class Membership:
    """A table's place in a database: its id, the shared log, and how sections are committed.

    `reserved`: by id, the names that new tables get with their first entries.
    """

    table: str
    log: SharedLog
    commit: Committer
    reserved: Mapping[str, str]
    is_alone: bool = True
    """Whether sections are committed at once, and not held for those of other tables."""


class SectionStore:
    """A table's store in a database; `inner` is the store of the table's folder. Thread-safe.

    Methods that do not depend on entries of the log are those of `inner`.
    """

    def __init__(self, inner: ObjectStore, member: Membership, uri: str | None = None) -> None:
        self._inner = inner
        self._member = member
        self._uri = uri or inner.uri
        self._is_whole = False  # all entries of a table that has left are in its folder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def uri(self) -> str:
        """The URI of the table's folder, which names the database, too, if the table moved in."""
        return self._uri

    @property
    def inner(self) -> ObjectStore:
        """The store of the table's folder."""
        return self._inner

    @property
    def member(self) -> Membership:
        """The table's place in the database."""
        return self._member

    def get(self, path: str) -> bytes:
        """Return all bytes of an object."""
        if (number := _number_of(path)) is None:
            return self._inner.get(path)
        return self._entry(number, path)

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        """Return bytes `[start, stop)` of an object."""
        if (number := _number_of(path)) is None:
            return self._inner.get_range(path, start, stop)
        checked_range(path, start, stop)
        return self._entry(number, path)[start:stop]

    def size(self, path: str) -> int:
        """Return the size of the object in bytes."""
        number = _number_of(path)
        return self._inner.size(path) if number is None else len(self._entry(number, path))

    def exists(self, path: str) -> bool:
        """Return whether an object exists at `path`."""
        if (number := _number_of(path)) is None:
            return self._inner.exists(path)
        log = self._log_with(number)
        return log.place(number) is not None or (log.keeps(number) and self._inner.exists(path))

    def put_new(self, path: str, data: bytes | memoryview) -> None:
        """Create an object durably; a numbered entry of the log is committed to the database."""
        if path == _PROBE:
            self._member.log.store.put_new(path, data)
            return
        if (number := _number_of(path)) is None:
            self._inner.put_new(path, data)
            return
        if self._known().has_left:
            if not self._member.is_alone:
                raise TableNotFound(
                    f"the table at {self.uri} has left the database meanwhile; nothing was "
                    "committed"
                )
            self.complete()
            self._inner.put_new(path, data)
            return
        name = self._member.reserved.get(self._member.table) if number == 0 else None
        if number == 0 and name is None:
            raise InvalidInput(
                f"{self.uri} is the place of a table in a database: create tables by the "
                "database's create_table, which gives them a name"
            )
        try:
            self._member.commit(Section(self._member.table, number, bytes(data), name))
        except Overtaken as error:
            raise ObjectExists(f"{path} of {self.uri} exists", path=path) from error

    def make_durable(self, path: str) -> None:
        """Make durable an object that exists although its put raised."""
        if (number := _number_of(path)) is None:
            self._inner.make_durable(path)
        elif (place := self._log_with(number).place(number)) is not None:
            self._member.log.store.make_durable(entry_path(place.version))
        else:
            self._inner.make_durable(path)

    def list(self, prefix: str, after: str | None = None, until: str | None = None) -> Paths:
        """List the objects under a folder, sorted, with `after` < path < `until`."""
        if prefix.rstrip("/") != _FOLDER:
            return self._inner.list(prefix, after, until)
        log = self._now()
        only_numbers = until is not None and until <= _AFTER_NUMBERS
        is_ours = only_numbers and log.place_uri is None and not log.has_left
        listed = [] if is_ours else self._inner.list(prefix, after, until)
        paths = (path for path, _ in _entries_of(log) if within(path, after, until))
        return sorted({*listed, *paths})

    def details(self, prefix: str, most: int | None = None) -> Details:
        """List the objects under a folder with their sizes and times; with `most`, the first."""
        listed = self._inner.details(prefix, most)
        if prefix.rstrip("/") != _FOLDER:
            return listed
        return dict(sorted({**listed, **dict(_entries_of(self._now()))}.items()))

    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects; of entries, the shared log notes up to which number they are gone."""
        log = self._log_with(-1)
        sections = [
            number
            for path in paths
            if (number := _number_of(path)) is not None and not log.keeps(number)
        ]
        self._inner.delete(
            [path for path in paths if (number := _number_of(path)) is None or log.keeps(number)]
        )
        if sections and max(sections) >= log.first:
            self._member.commit(Section(self._member.table, gone_below=max(sections) + 1))

    def has_left(self) -> bool:
        """Return whether the table has a log of its own again, in its folder."""
        return self._now().has_left

    def complete(self) -> None:
        """Put the entries of a table that has left into its folder; may be repeated."""
        log = self._known()
        if self._is_whole or not log.has_left:
            return
        for number in range(log.first, log.next_number):
            path = f"{_FOLDER}/{number:020d}.json"
            try:
                data = self._section(log, number, path)
            except ObjectNotFound:
                if self._now().place(number) is not None:
                    raise
                continue  # another call has completed it, and retention has deleted the entry
            put_if_absent(self._inner, path, data)  # an earlier call may have been interrupted
        if log.places:
            gone = Section(log.table, gone_below=log.next_number)
            self._member.commit(gone)
        self._is_whole = True

    def _entry(self, number: int, path: str) -> bytes:
        log = self._log_with(number)
        if log.place(number) is None and log.keeps(number):
            return self._inner.get(path)
        return self._section(log, number, path)

    def _section(self, log: TableLog, number: int, path: str) -> bytes:
        shared = self._member.log
        try:
            data = shared.data(log, number, shared.known())
        except ObjectNotFound:  # the shared entry has gone since; a newer root has what it said
            log = self._now()
            if log.place(number) is None and log.keeps(number):
                return self._inner.get(path)
            data = shared.data(log, number, shared.known())
        if data is None:
            raise ObjectNotFound(f"{path} of {self.uri} does not exist", path=path)
        return data

    def _known(self) -> TableLog:
        shared = self._member.log
        return shared.table(self._member.table, shared.known()) or TableLog(self._member.table)

    def _log_with(self, number: int) -> TableLog:
        """The table's entries as this process knows them, or as they are now if it needs more.

        A table that has left has no more entries here.
        """
        log = self._known()
        return log if number < log.next_number or log.has_left else self._now()

    def _now(self) -> TableLog:
        shared = self._member.log
        if (known := self._known()).has_left and not known.places:
            return known
        return shared.table(self._member.table, shared.latest()) or TableLog(self._member.table)


def _entries_of(log: TableLog) -> Iterable[tuple[str, ObjectDetail]]:
    """The entries in the database's log."""
    for number, place in enumerate(log.places, log.first):
        size_bytes = len(place.data or b"")
        yield f"{_FOLDER}/{number:020d}.json", ObjectDetail(size_bytes, place.timestamp_us)


def _number_of(path: str) -> int | None:
    """The number of a log entry's path; None for any other object."""
    match = _ENTRY.fullmatch(path)
    return int(match[1]) if match else None
