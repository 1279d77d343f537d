"""Find and read the newest version of a table in its log, and its entries.

A version is a checkpoint plus the entries after it.

Soundness (invariants, rule 5): a listing is only a hint of the head. Listings are sorted here; an
unlisted number below the head is fetched directly and must exist; the number after the last listed
one is probed; and no read returns a version older than one that this process has seen. Checkpoints
determine which entries must exist: entries expire in ascending order and only below a checkpoint
(rule 6), so the entry of the newest checkpoint and all later ones exist, and so do all entries
between an existing entry and the head. An expired entry is `SnapshotExpired`; a lost entry is
`CorruptData` that names it. Neither is ever an empty result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Final, TypeAlias

from rowsieve import clock
from rowsieve.byte_cache import ByteCache
from rowsieve.errors import CorruptData, NotFound, TableNotFound
from rowsieve.locks import ForkSafeLock
from rowsieve.objects import (
    ObjectNotFound,
    ObjectStore,
    begin,
    in_background,
    in_thread,
    reading_whole,
    together,
)
from rowsieve.properties import MOVED
from rowsieve.storage.changes_since import ChangesSince
from rowsieve.storage.log.checkpoint import (
    CHECKPOINTS,
    checkpoint_path,
    checkpoint_version_of,
    read_checkpoint,
    read_parts,
)
from rowsieve.storage.log.checkpoint_turns import is_turn, owes_after
from rowsieve.storage.log.floors import check_not_dropped, floors_of, reads_expired_files
from rowsieve.storage.log.incremental_checkpoint import (
    apply_incremental,
    newest_incremental,
    read_incremental_lines,
    versions_of_incremental,
)
from rowsieve.storage.log.kept_snapshots import forget_snapshot, keep_snapshot, kept_snapshot
from rowsieve.storage.log.log_entry import (
    LOG,
    LogEntry,
    decode_entry,
    log_path,
    version_of,
)
from rowsieve.storage.log.moves import check_place
from rowsieve.storage.log.no_table import no_table
from rowsieve.storage.log.replay import check_links, replay
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import Snapshot

_END_OF_NUMBERS: Final = "0000001"  # sorts after every numbered name, before nearly every uuid
_FOLLOWED: Final = 64  # entries that a refresh reads at most before it uses a checkpoint
_ATTEMPTS: Final = 4  # attempts to read a log whose oldest entries are being removed
_AHEAD: Final = 16  # entries that a refresh requests at once, after it met one
_LISTED: Final = 900  # entries that fit in one page of a listing for certain
_GUESSED: Final = 40  # entries at most that are read before it is known how many there are
_PARTS_OF_PREDECESSOR: Final = 10_000  # at most, of one that stays in memory
_AT_ONCE_S: Final = 10.0  # longer batches do not count as simultaneous
Loading: TypeAlias = Mapping[str, Future[LogEntry]]
"""Entries whose parts are loading, by commit id."""
_Located: TypeAlias = tuple[Snapshot | None, list[int], dict[int, LogEntry | None], Loading]
"""The newest checkpoint; existing versions; entries read so far; entries with loading parts."""

_TABLES_SEEN: Final = 8  # at one place, one after another
_SEEN_BYTES: Final = 1_200  # the versions of so many tables

_seen_lock = ForkSafeLock()
_seen: Final[ByteCache[str, dict[str, int]]] = ByteCache(
    16 * 1024 * 1024, "versions seen", keeps_unused=True
)
"""By store: the highest version that this process has read of each table there, by its uuid."""


class _EntryMissing(Exception):
    """An entry below the head is absent: it has just expired, or it was lost."""

    def __init__(self, message: str, advice: str = "restore it from a copy") -> None:
        super().__init__(message)
        self.advice = advice


class LogHead:
    """The newest version of the table in `store`, and the entries of its log."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._decoded: dict[int, tuple[bytes, LogEntry]] = {}  # the last two, by version
        # so that `at` need not read the whole log again: the newest version, the one right before
        self._newest: Snapshot | None = None
        self._predecessor: Snapshot | None = None

    @property
    def store(self) -> ObjectStore:
        """The store of this log."""
        return self._store

    def latest(self, known: Snapshot | None = None) -> Snapshot:
        """Read the newest version; `known`, an earlier result, saves reading what precedes it."""
        if known is None and (opened := self._from_cache()) is not None:
            return opened
        followed = None if known is None else self._follow(known)
        if known and followed:
            newest = followed[0]
            if newest is known or not reads_expired_files(known, newest):
                return newest
        for _ in range(_ATTEMPTS):
            try:
                snapshot = self._load(known)
                break
            except (_EntryMissing, ObjectNotFound) as error:
                missing = error  # the oldest entries may just have expired: read again
        else:
            advice = getattr(missing, "advice", "restore it from a copy")
            raise CorruptData(f"the log of {self._store.uri} has a hole: {missing}; {advice}")
        if known is None:
            in_background(self._store, partial(keep_snapshot, self._store, snapshot))
        return snapshot

    def _from_cache(self) -> Snapshot | None:
        """The newest version, read on from the one in the cache; None if that is not safe."""
        if (remembered := kept_snapshot(self._store)) is None:
            return None
        try:
            followed = self._follow(remembered)
        except (CorruptData, NotFound):  # another table is here now
            followed = None
        if followed is None or reads_expired_files(remembered, followed[0]):
            forget_snapshot(self._store)
            return None
        if followed[1]:
            in_background(self._store, partial(keep_snapshot, self._store, followed[0]))
        return followed[0]

    def replayed(self, entries: Sequence[LogEntry]) -> Snapshot:
        """The version that entries make which are known to be all, from entry 0 on."""
        snapshot, _ = self._replay(None, entries)
        return self.remember(snapshot)

    def entry(self, version: int) -> LogEntry | None:
        """Read one entry without its parts; None if it is absent."""
        path = log_path(version)

        def read() -> LogEntry:
            data = self._store.get(path)
            before, entry = self._decoded.get(version, (None, None))
            if entry is None or before != data:
                entry = decode_entry(data, version, f"{path} in {self._store.uri}")
                self._note_decoded(data, entry)
            return entry

        try:
            return reading_whole(self._store, read)
        except ObjectNotFound:
            return None

    def _note_decoded(self, data: bytes, entry: LogEntry) -> None:
        """Keep an entry, so that the same bytes are not decoded again; and the last one before."""
        others = list(self._decoded.items())[-1:]  # a new dict: other threads read the old one
        self._decoded = {**dict(others), entry.version: (data, entry)}

    def check_in_place(self, snapshot: Snapshot) -> None:
        """Raise TableMoved if newer versions are in the log of a database."""
        check_place(self._store, snapshot.table)

    def remember(self, snapshot: Snapshot) -> Snapshot:
        """Record a version as seen, so that no later read of this process returns an older one.

        The version right before stays in memory if it is small.
        """
        if MOVED in snapshot.table.properties:
            self.check_in_place(snapshot)
        uuid = snapshot.table.uuid
        with _seen_lock.mutex:
            versions = _seen.get(self._store.uri)
            if versions is None:
                versions = {}
                _seen.put(self._store.uri, versions, _SEEN_BYTES + len(self._store.uri))
            versions[uuid] = max(snapshot.version, versions.pop(uuid, -1))
            if len(versions) > _TABLES_SEEN:
                del versions[next(iter(versions))]
        before, self._newest = self._newest, snapshot
        if before is not None and before.version == snapshot.version - 1:
            is_small = len(before.parts) <= _PARTS_OF_PREDECESSOR
            self._predecessor = before if is_small else None
        return snapshot

    def _seen_versions(self) -> dict[str, int]:
        """Return the highest version read so far, by table uuid.

        A reader must call this before it reads, and then compare: versions that other threads see
        during the read do not matter to it.
        """
        with _seen_lock.mutex:
            seen = dict(_seen.get(self._store.uri) or {})
        if (newest := self._newest) is not None:  # of this object, even if the cache is full
            uuid = newest.table.uuid
            seen[uuid] = max(newest.version, seen.get(uuid, -1))
        return seen

    def _follow(self, known: Snapshot) -> tuple[Snapshot, tuple[LogEntry, ...]] | None:
        """Read the entries after a snapshot without listing the log; None if that is not safe.

        Entries expire in ascending order (invariants, rule 6). So if the number after the last
        entry is absent and the last entry still exists afterwards, that number was never written.
        Where a network store deletes in another order, `_reread_last` sees it by the checkpoints.
        """
        seen = self._seen_versions().get(known.table.uuid, -1)
        first, newest_checkpoint = None, -1
        if self._store.overlaps:
            first, newest_checkpoint, is_head = self._probe_after(known)
            if is_head:
                return None if known.version < seen else (self.remember(known), ())
        entries, loading = self._read_on(known, first)
        if len(entries) > _FOLLOWED:
            return None
        version, commit_id = known.version, known.commit_id
        if entries:
            version, commit_id = entries[-1].version, entries[-1].commit_id
        if newest_checkpoint > version:
            return None
        last, is_lost = self._reread_last(version, known, entries)
        if last is None or version < seen:
            return None
        for entry in (last, *entries[:1]):
            if entry.table_uuid != known.table.uuid:
                raise self._replaced(known.table.uuid, entry.table_uuid)
        if last.commit_id != commit_id or is_lost:
            return None
        if not entries:
            return self.remember(known), ()
        try:
            snapshot, loaded = self._replay(known, entries, loading)
        except ObjectNotFound:
            return None
        except CorruptData:  # a late writer has put an entry where an expired one was
            if floors_of(self._load(known).table.properties).oldest_version <= known.version:
                raise
            return None
        return self.remember(snapshot), loaded

    def _probe_after(self, known: Snapshot) -> tuple[LogEntry | None, int, bool]:
        """Return the next entry, the newest later checkpoint (or -1), and whether `known` is head.

        Takes one round trip. The requests are simultaneous, so the next entry may be absent because
        it expired after the last entry was read. But then a later checkpoint exists, and existed
        before any entry was removed (invariants, rules 6 and 16), so the listing shows it. A writer
        that commits on this head checks the log once more after its put.
        """
        start_s = clock.monotonic_s()
        version = known.version
        requests: list[Callable[[], object]] = [
            partial(self.entry, version + 1),
            partial(self.entry, version),
            partial(self._versions, CHECKPOINTS, checkpoint_path(version), checkpoint_version_of),
        ]
        following, last, checkpoints = together(self._store, requests)
        assert following is None or isinstance(following, LogEntry)
        assert last is None or isinstance(last, LogEntry)
        assert isinstance(checkpoints, list)
        is_head = (
            following is None
            and not checkpoints
            and last is not None
            and (last.table_uuid, last.commit_id) == (known.table.uuid, known.commit_id)
            and clock.monotonic_s() - start_s < _AT_ONCE_S
        )
        return following, max(checkpoints, default=-1), is_head

    def _read_on(
        self, known: Snapshot, first: LogEntry | None
    ) -> tuple[list[LogEntry], dict[str, Future[LogEntry]]]:
        """Read the entries after a snapshot and begin to load their parts.

        `first` is the entry directly after the snapshot, if already read.
        """
        entries: list[LogEntry] = []
        loading: dict[str, Future[LogEntry]] = {}
        ahead = _AHEAD if self._store.overlaps else 1
        block = [first if first is not None else self.entry(known.version + 1)]
        while True:
            for entry in block:
                if entry is None:
                    return entries, loading
                entries.append(entry)
                loading |= self._begin_loading([entry])
            if len(entries) > _FOLLOWED:
                return entries, loading
            version = entries[-1].version
            block = self._entries(range(version + 1, version + 1 + ahead))

    def _reread_last(
        self, version: int, known: Snapshot, entries: Sequence[LogEntry]
    ) -> tuple[LogEntry | None, bool]:
        """Read the last entry once more; also return whether its successor is known to exist.

        A network store deletes up to 1,000 entries in any order, so that the last entry may outlive
        its successor. But a later checkpoint existed before any of them went, and is listed here.
        """
        if not self._store.overlaps:
            return self.entry(version), self._has_checkpoint_after(version, known, entries)
        requests: list[Callable[[], object]] = [
            partial(self.entry, version),
            partial(self._versions, CHECKPOINTS, checkpoint_path(version), checkpoint_version_of),
        ]
        last, later = together(self._store, requests)
        assert last is None or isinstance(last, LogEntry)
        return last, bool(later)

    def _load(self, known: Snapshot | None = None) -> Snapshot:
        """Read the newest version from its checkpoint.

        TableNotFound if it is of another table than `known`. That version is not remembered, or
        later calls would read the other table.
        """
        seen = self._seen_versions()
        located = self._locate_concurrently() if self._store.overlaps else self._locate_in_turn()
        try:
            snapshot = self._loaded(located, seen)
        except (CorruptData, _EntryMissing):
            if located[0] is not None:
                self.check_in_place(located[0])  # then the entries are in a database
            raise
        if known is not None and snapshot.table.uuid != known.table.uuid:
            raise self._replaced(known.table.uuid, snapshot.table.uuid)
        return self.remember(snapshot)

    def _loaded(self, located: _Located, seen: Mapping[str, int]) -> Snapshot:
        """The newest version; `seen` are the highest versions that were read before, by table."""
        base, listed, known, loading = located
        after = -1 if base is None else base.version
        head = max([after, *listed])
        if base is not None:
            head = max(head, seen.get(base.table.uuid, -1))
        numbers = range(after + 1, head + 1)  # unlisted numbers are fetched too
        unknown = [number for number in numbers if number not in known]
        known |= zip(unknown, self._entries(unknown), strict=True)
        present = [entry for number in numbers if (entry := known[number]) is not None]
        if len(present) < len(numbers):
            hole = next(number for number in numbers if known[number] is None)
            check_not_dropped(self._store.uri, present[-1].info if present else None)
            raise _EntryMissing(f"{log_path(hole)} is absent")
        while (entry := self._known_or_read(head + 1, known)) is not None:  # a listing may lag
            present.append(entry)
            head += 1
        if not present:
            if base is None:
                raise no_table(self._store)
            self._check_head(base, self._known_or_read(base.version, known))
        snapshot, _ = self._replay(base, present, loading)
        if snapshot.version < seen.get(snapshot.table.uuid, -1):
            raise _EntryMissing(
                f"{log_path(snapshot.version + 1)} was read before and is absent",
                "restore it from a copy. If you have put an older copy of the table here, open it "
                "in a new process",
            )
        return snapshot

    def _locate_in_turn(self) -> _Located:
        """Load the newest checkpoint and list the entries after it, one request at a time."""
        checkpoints = self._checkpoints()
        base = self._newest_readable(checkpoints)
        after = None if base is None else log_path(base.version)
        return base, [*checkpoints, *self._versions(LOG, after, version_of)], {}, {}

    def _locate_concurrently(self) -> _Located:
        """Like `_locate_in_turn`, in three round trips; also read entries and begin to load parts.

        The first round trip lists both folders. The second reads the checkpoint, the entries after
        it and the number after the last one. The third reads lists of parts that are files. If the
        log does not fit in one page of a listing, the second reads as many entries as usually
        follow a checkpoint; the last of them is usually absent. The checkpoint's own entry is
        needed only if no other follows it.
        """
        until = log_path(_LISTED)
        names = partial(self._store.list, CHECKPOINTS, None, f"{CHECKPOINTS}/{_END_OF_NUMBERS}")
        entries = partial(self._versions, LOG, None, version_of, until)
        requests: list[Callable[[], object]] = [names, entries]
        paths, listed = together(self._store, requests)
        assert isinstance(paths, list)
        assert isinstance(listed, list)
        checkpoints = sorted(v for path in paths if (v := checkpoint_version_of(path)) is not None)
        incremental = newest_incremental(paths, checkpoints)
        last = max(checkpoints, default=-1)
        newest = last if incremental is None else incremental[0]  # it may be of a dropped table
        base = in_thread(partial(self._base, checkpoints, incremental))
        head = max([newest, *listed])
        is_long = head >= _LISTED - 1
        first = newest + 1 if head > newest else max(newest, 0)
        numbers = range(first, (newest + _following(paths) if is_long else head + 1) + 1)
        after = None if last < 0 else log_path(last)  # an incremental one may not fit
        rest = begin(partial(self._versions, LOG, after, version_of)) if is_long else None
        known = dict(zip(numbers, self._entries(numbers), strict=True))
        loading = self._begin_loading(
            [entry for number, entry in known.items() if entry is not None and number > newest]
        )
        if rest is not None:
            listed = rest.result()
            known = {  # an entry that was absent but is listed now is read again
                number: entry
                for number, entry in known.items()
                if entry is not None or number > max(listed, default=-1)
            }
        return base.result(), [last, *listed], known, loading

    def _base(
        self, checkpoints: Sequence[int], incremental: tuple[int, int] | None
    ) -> Snapshot | None:
        """The version of the newest readable checkpoint, or of the incremental one after it."""
        if incremental is not None:
            version, after = incremental
            reading = begin(partial(read_incremental_lines, self._store, version, after))
            base = self._newest_readable([each for each in checkpoints if each <= after])
            try:
                lines = reading.result()
                if base is not None and base.version == after:
                    return apply_incremental(self._store, base, version, lines)
            except (CorruptData, ObjectNotFound):
                pass  # it is damaged, or has just expired
        base = self._newest_readable(checkpoints)
        return base and replace(base, since=ChangesSince(base.version, base.commit_id))

    def _known_or_read(self, version: int, known: Mapping[int, LogEntry | None]) -> LogEntry | None:
        return known[version] if version in known else self.entry(version)

    def _check_head(self, checkpoint: Snapshot, entry: LogEntry | None) -> None:
        """Check that the entry of the newest checkpoint exists and has its commit id."""
        version = checkpoint.version
        if entry is None:
            check_not_dropped(self._store.uri, checkpoint.table)
            raise _EntryMissing(f"{log_path(version)} is absent, but its checkpoint exists")
        if entry.commit_id != checkpoint.commit_id:
            raise CorruptData(
                f"{log_path(version)} in {self._store.uri} is commit {entry.commit_id}, but the "
                f"checkpoint of version {version} is of commit {checkpoint.commit_id}: the entry "
                "was lost and its number was reused; restore it from a copy"
            )

    def _versions(
        self,
        folder: str,
        after: str | None,
        version: Callable[[str], int | None],
        until: str | None = None,
    ) -> list[int]:
        """List the versions in a folder, ascending; `version` parses a path."""
        paths = self._store.list(folder, after, until or f"{folder}/{_END_OF_NUMBERS}")
        return sorted(number for path in paths if (number := version(path)) is not None)

    def _newest_checkpoint(self, at_most: int | None = None) -> Snapshot | None:
        """Load the newest readable checkpoint up to `at_most`; skip damaged ones."""
        return self._newest_readable(
            [version for version in self._checkpoints() if at_most is None or version <= at_most]
        )

    def _newest_readable(self, versions: Sequence[int]) -> Snapshot | None:
        for version in reversed(versions):
            try:
                return read_checkpoint(
                    self._store, version, partial(self._parts_without_checkpoint, version)
                )
            except (CorruptData, ObjectNotFound):
                continue
        return None

    def _has_checkpoint_after(
        self, version: int, known: Snapshot, entries: Sequence[LogEntry]
    ) -> bool:
        """Return whether a checkpoint proves that `version + 1` was committed."""
        properties, owed = known.table.properties, known.owes_checkpoint
        for entry in entries:
            owed = owes_after(entry, properties, owed=owed)
        due = owed or is_turn(version + 1, properties)
        return due and self._store.exists(checkpoint_path(version + 1))

    def _is_hole(self, version: int) -> bool:
        """Return whether an absent entry was lost rather than expired (invariants, rule 6).

        Below the floor of the newest version known it has expired, even if older entries still
        exist: a network store deletes entries in any order, and may fail half way.
        """
        newest = self._newest
        if newest and version < floors_of(newest.table.properties).oldest_version:
            return False
        if all(checkpoint <= version for checkpoint in self._checkpoints()):
            return True
        older = self._store.list(LOG, None, log_path(version))
        numbers = (number for path in older if (number := version_of(path)) is not None)
        return any(self.entry(number) is not None for number in numbers)  # listings may lag

    def _parts_without_checkpoint(self, version: int) -> PartTable:
        """Rebuild a version's parts without its own checkpoint: from an older one or the log."""
        base = self._newest_checkpoint(version - 1)
        start = 0 if base is None else base.version + 1
        entries = self._entries(range(start, version + 1))
        present = [entry for entry in entries if entry is not None]
        if len(present) < len(entries):
            raise CorruptData(f"{log_path(start + entries.index(None))} is absent")
        return self._replay(base, present)[0].parts

    def _checkpoints(self) -> list[int]:
        return self._versions(CHECKPOINTS, None, checkpoint_version_of)

    def _entries(self, versions: Sequence[int]) -> list[LogEntry | None]:
        return together(self._store, [partial(self.entry, version) for version in versions])

    def _replay(
        self, base: Snapshot | None, entries: Sequence[LogEntry], loading: Loading | None = None
    ) -> tuple[Snapshot, tuple[LogEntry, ...]]:
        """Apply entries to a base; check their links before their parts are read."""
        check_links(base, entries)
        loaded = self._with_parts(entries, loading or {})
        return replay(base, loaded), loaded

    def _begin_loading(self, entries: Sequence[LogEntry]) -> Loading:
        """Begin to load parts in the background, if the store overlaps requests."""
        if not self._store.overlaps:
            return {}
        return {entry.commit_id: begin(partial(self._entry_with_parts, entry)) for entry in entries}

    def _with_parts(
        self, entries: Sequence[LogEntry], loading: Loading | None = None
    ) -> tuple[LogEntry, ...]:
        """Load the parts that the entries add; commit_ts is the version (invariant I1)."""
        loading = loading or {}
        rest = [entry for entry in entries if entry.commit_id not in loading]
        loaded = together(self._store, [partial(self._entry_with_parts, entry) for entry in rest])
        with_parts = {entry.commit_id: entry for entry in loaded}
        return tuple(
            loading[entry.commit_id].result()
            if entry.commit_id in loading
            else with_parts[entry.commit_id]
            for entry in entries
        )

    def _entry_with_parts(self, entry: LogEntry) -> LogEntry:
        if entry.file is None:
            return entry
        return replace(entry, added=read_parts(self._store, LOG, entry.file, entry.version))

    def _hole(self, version: int) -> CorruptData | TableNotFound:
        """Build the error for a lost entry; TableNotFound if its table was dropped with its log."""
        try:
            check_not_dropped(self._store.uri, self._load(self._newest).table)
        except TableNotFound as error:
            return error
        except (CorruptData, ObjectNotFound, _EntryMissing):
            pass
        return CorruptData(
            f"the log of {self._store.uri} has a hole: {log_path(version)} is absent, the entry of "
            f"version {version}; restore it from a copy"
        )

    def _replaced(self, known: str, other: str) -> TableNotFound:
        return TableNotFound(
            f"table {known} is gone from {self._store.uri}: table {other} has replaced it; open "
            "the table again"
        )


def _following(paths: Sequence[str]) -> int:
    """How many entries usually follow the newest checkpoint: as many as followed the last ones."""
    versions = {
        version
        for path in paths
        for version in (checkpoint_version_of(path), *(versions_of_incremental(path) or ())[:1])
        if version is not None
    }
    last = sorted(versions)[-4:]
    between = [after - before for before, after in pairwise(last)]
    return min(max(between, default=_GUESSED), _GUESSED)
