"""The shared log of a database: read its newest version, and put the next one.

Soundness (invariants, I6, rules 1, 5, 6): a commit is one create-only put of the next numbered
entry, and after any error the entry at the number decides by its commit id. A listing is only a
hint of the newest version: the number after it is probed, unlisted numbers are fetched and must
exist, and no read returns a version older than one that this process has seen.
"""

from __future__ import annotations

import logging
import uuid
from functools import partial
from typing import Final

from rowsieve import clock
from rowsieve.byte_cache import ByteCache
from rowsieve.errors import CorruptData, RowsieveError, StoreError, TableExists, TableNotFound
from rowsieve.locks import ForkSafeLock
from rowsieve.objects.durable import Patience
from rowsieve.objects.fetching import in_background, together
from rowsieve.objects.shared.roots import write_root
from rowsieve.objects.shared.shared_entry import (
    LARGEST_BYTES,
    LOG,
    SharedEntry,
    entry_path,
    listed_versions,
    packed,
)
from rowsieve.objects.shared.shared_reader import SharedReader
from rowsieve.objects.shared.shared_state import State
from rowsieve.objects.shared.table_pages import Root, read_root
from rowsieve.objects.store import NotCreated, ObjectExists, ObjectNotFound, ObjectStore, SyncFailed

ROOT_INTERVAL: Final = 64
_ATTEMPTS: Final = 6
_LOADS: Final = 4  # attempts to read a log whose oldest entries are being removed
_seen: Final[ByteCache[tuple[str, str], list[int]]] = ByteCache(
    4 * 1024 * 1024, "database versions seen", keeps_unused=True
)
"""The highest version that this process has read, by store and database."""
_log = logging.getLogger(__name__)


class SharedLog(SharedReader):
    """The shared log in `store`, the folder of a database. Thread-safe."""

    def __init__(self, store: ObjectStore) -> None:
        super().__init__(store)
        self._state: State | None = None
        self._lock = ForkSafeLock()

    def create(self) -> State:
        """Create an empty database; TableExists if one exists here."""
        entry = SharedEntry(0, uuid.uuid4().hex, None, uuid.uuid4().hex, clock.now_us(), ())
        if self.store.list(LOG) or not self.put(entry):
            raise TableExists(f"a database already exists at {self.store.uri}; open it")
        return self.remember(_first(entry))

    def known(self) -> State:
        """The newest version that this object has read; reads it if it has read none."""
        return self._state or self.latest()

    def latest(self) -> State:
        """Read the newest version; TableNotFound if there is no database here."""
        state = self._state
        if state is not None and (newer := self._follow(state)) is not None:
            return self.remember(newer)
        problem: Exception | None = None
        for _ in range(_LOADS):
            try:
                return self.remember(self._load())
            except ObjectNotFound as error:  # the oldest entries may just have gone: read again
                problem = error
        raise CorruptData(f"the log of {self.store.uri} has a hole: {problem}") from problem

    def at(self, version: int) -> State:
        """Read an older version; ObjectNotFound if its entries are gone."""
        _, roots = listed_versions(self.store.list(LOG))
        older = [each for each in roots if each <= version]
        state = self._newest_root(older) or _first(self.entry(0))
        return self._up_to(version, state)

    def remember(self, state: State) -> State:
        """Note a version as seen; return the newest one that this object has read."""
        with self._lock.mutex:
            newest = self._state
            is_other = newest is None or newest.database != state.database
            if newest is None or is_other or newest.version < state.version:
                self._state = newest = state
        seen = _seen.get((self.store.uri, state.database))
        if seen is None:
            seen = [state.version]
            _seen.put((self.store.uri, state.database), seen, 400 + len(self.store.uri))
        seen[0] = max(seen[0], state.version)
        return newest

    def put(self, entry: SharedEntry) -> bool:
        """Put an entry at its number; return whether it is ours that stands there.

        StoreError if that is not known, or if it may not be durable.
        """
        path, data = entry_path(entry.version), packed("entry", entry, entry.format)
        if len(data) > LARGEST_BYTES:
            raise NotCreated(
                f"a commit of {len(data):,} bytes is larger than an entry of a database may be "
                f"({LARGEST_BYTES:,}): change fewer rows or tables at once"
            )
        patience = Patience(_ATTEMPTS)
        while True:
            problem: Exception
            try:
                self.store.put_new(path, data)
            except (SyncFailed, NotCreated):
                raise
            except (ObjectExists, StoreError) as error:
                problem = error
            else:
                break
            stored = self.entry_or_none(entry.version)
            if stored is None:  # absent: put the same bytes at the same number again
                if patience.again():
                    continue
                raise StoreError(
                    f"commit {entry.commit_id} could not be written to {path} in "
                    f"{self.store.uri}: {problem}"
                ) from problem
            if stored.commit_id != entry.commit_id:
                return False
            self.store.make_durable(path)
            break
        self.keep(entry)
        return True

    def advance(self, entry: SharedEntry, state: State) -> State:
        """The version that our entry made; writes its pages if they are due."""
        newer = state.after(entry)
        self.remember(newer)
        if newer.version - newer.root.version >= ROOT_INTERVAL:
            in_background(self.store, partial(self._write_pages_if_possible, newer))
        return self.known()

    def write_pages(self, state: State) -> State:
        """Write the pages of a version, and continue from them."""
        written = State.of(write_root(self, state))
        with self._lock.mutex:
            if self._state is not None and self._state.version == state.version:
                self._state = written
        return written

    def _write_pages_if_possible(self, state: State) -> None:
        """Write the pages; log a failure and return: the log says all that they say."""
        try:
            self.write_pages(state)
        except RowsieveError as error:
            _log.warning("no pages of version %d of %s: %s", state.version, self.store.uri, error)

    def _follow(self, state: State) -> State | None:
        """Read the entries after a version; None if that is not safe, or too many."""
        version = state.version
        reads = [partial(self.entry_or_none, version + 1), partial(self.entry_or_none, version)]
        following, last = together(self.store, reads)
        if last is None or last.commit_id != state.commit_id:
            return None
        while following is not None:
            if following.version - version > ROOT_INTERVAL:
                return None
            state = _linked(state, following, self.store.uri)
            following = self.entry_or_none(state.version + 1)
        return state

    def _load(self) -> State:
        listed, roots = listed_versions(self.store.list(LOG))
        state = self._newest_root(roots)
        if state is None:
            if not listed:
                raise TableNotFound(
                    f"there is no database at {self.store.uri}; its first table makes one"
                )
            state = _first(self.entry(0))
        seen = _seen.get((self.store.uri, state.database)) or ()
        state = self._up_to(max([state.version, *listed, *seen]), state)
        while (following := self.entry_or_none(state.version + 1)) is not None:
            state = _linked(state, following, self.store.uri)
        return state

    def _up_to(self, version: int, state: State) -> State:
        """Apply the entries after a state; the last one usually tells what the others say."""
        if version == state.version:
            return state
        last = self.entry(version)
        known = {each.version: each for each in last.recent}
        numbers = range(state.version + 1, version)
        unknown = [number for number in numbers if number not in known]
        read = together(self.store, [partial(self.entry, number) for number in unknown])
        known |= {entry.version: entry for entry in read}
        for number in numbers:
            state = _linked(state, known[number], self.store.uri)
        return _linked(state, last, self.store.uri)

    def _newest_root(self, versions: list[int]) -> State | None:
        for version in reversed(versions):
            try:
                return State.of(read_root(self.store, version))
            except (CorruptData, ObjectNotFound):
                continue
        return None


def _first(entry: SharedEntry) -> State:
    """The state of version 0, which has no tables."""
    return State.of(Root(0, entry.commit_id, entry.timestamp_us, entry.database, (None,)))


def _linked(state: State, entry: SharedEntry, uri: str) -> State:
    if entry.predecessor != state.commit_id or entry.database != state.database:
        raise CorruptData(
            f"{entry_path(entry.version)} in {uri} does not follow commit {state.commit_id}; "
            "restore it from a copy"
        )
    return state.after(entry)
