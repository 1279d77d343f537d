"""Read any version of a table from its log: `at`, `as_of` and `history`.

Across a network an old version is read while the head is read: only the head says whether the table
still has that version, but nothing that is read depends on it.

Soundness: as in `rowsieve.storage.log.log_head`. `at` returns a version only if a head that was
read after the call began keeps it, or if no head can be read. An entry that is absent is
`SnapshotExpired` or `CorruptData`, never ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final

from rowsieve.errors import (
    CorruptData,
    InvalidInput,
    RowsieveError,
    SnapshotExpired,
    UnsupportedProtocol,
    VersionNotFound,
)
from rowsieve.objects import ObjectNotFound, ObjectStore, begin, in_thread, together
from rowsieve.storage.log.checkpoint import read_timestamp_us
from rowsieve.storage.log.floors import check_kept, floors_of
from rowsieve.storage.log.log_entry import (
    LOG,
    Commit,
    LogEntry,
    log_path,
    newest_absent,
    version_of,
)
from rowsieve.storage.log.log_head import Loading, LogHead
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.instants import from_microseconds

_HISTORY_BLOCK: Final = 32
_HISTORY_BLOCK_ACROSS_A_NETWORK: Final = 128
_TIMES_AT_ONCE: Final = 32  # checkpoints whose times are read at once


class LogReader(LogHead):
    """The versions of the table in `store`."""

    def __init__(self, store: ObjectStore) -> None:
        super().__init__(store)
        self._older: Snapshot | None = None

    def in_memory(self, version: int, table_uuid: str) -> Snapshot | None:
        """A version of the table that this object has read; it may have expired since."""
        known = (self._newest, self._predecessor, self._older)
        wanted = version, table_uuid
        return next((s for s in known if s and (s.version, s.table.uuid) == wanted), None)

    def newest(self) -> Snapshot:
        """Read the newest version; the last one read saves reading what precedes it."""
        return self.latest(self._newest)

    def at(self, version: int) -> Snapshot:
        """Read one version; VersionNotFound if it is after the head, SnapshotExpired if gone.

        A version below the table's floor is gone even while its files exist.
        """
        if isinstance(version, bool) or not isinstance(version, int):
            raise InvalidInput(f"version is {version!r}; give a whole number")
        if version < 0:
            raise VersionNotFound(
                f"{self._store.uri} has no version {version}: versions start at 0; history() lists "
                "them"
            )
        early, known = None, (self._newest, self._predecessor, self._older)
        if self._store.overlaps and all(each is None or each.version != version for each in known):
            early = in_thread(partial(self.read_version, version))
        head: Snapshot | None = None
        try:
            head = self.newest()
        except (CorruptData, UnsupportedProtocol):
            pass  # an older version can be read although the head is damaged or too new
        else:
            check_kept(version, head)
            if version == head.version:
                return head
            if (older := self.in_memory(version, head.table.uuid)) is not None:
                return older
        if early is not None:
            try:
                return self._keep(early.result(), head)
            except RowsieveError:
                pass  # another process may have changed the log: read it again
        listed: list[int] = []
        while True:
            try:
                return self._keep(self.read_version(version), head)
            except (CorruptData, SnapshotExpired):
                before, listed = listed, self._checkpoints()
                if listed == before:
                    raise  # otherwise checkpoints of older versions may just have expired

    def _keep(self, snapshot: Snapshot, head: Snapshot | None) -> Snapshot:
        """Keep the old version that was read last: a version never changes.

        TableNotFound if it is of another table than the head: one was dropped, the other created.
        """
        if head is not None and snapshot.table.uuid != head.table.uuid:
            raise self._replaced(snapshot.table.uuid, head.table.uuid)
        self._older = snapshot
        return snapshot

    def read_version(self, version: int) -> Snapshot:
        """Read one version from the log even if it is below the floor; errors as for `at`."""
        reads: list[Callable[[], object]] = [self._checkpoints, partial(self.entry, version)]
        listed, last = together(self._store, reads)
        assert isinstance(listed, list)
        assert last is None or isinstance(last, LogEntry)
        checkpoints = [each for each in listed if each <= version]
        if last is None:
            base = self._newest_readable(checkpoints[-1:])
            if base is not None and base.version == version:
                return base
            return self._head_if(version)
        base, entries, loading = self._up_to(last, checkpoints)
        start = version + 1 - len(entries)
        present = [entry for entry in entries if entry is not None]
        if len(present) < len(entries):
            raise self._absent(newest_absent(start, entries), f"version {version}")
        if base is not None and not present:
            return base
        try:
            return self._replay(base, present, loading)[0]
        except ObjectNotFound as error:
            raise self._expired(f"version {version}", error) from error

    def _up_to(
        self, last: LogEntry, checkpoints: Sequence[int]
    ) -> tuple[Snapshot | None, list[LogEntry | None], Loading]:
        """The newest readable checkpoint up to `last`, and the entries after it.

        Across a network they are read at once, and then all their parts.
        """
        newest = checkpoints[-1] if checkpoints else -1
        if not self._store.overlaps:
            base = self._newest_readable(checkpoints)
            return base, self._between(base, last), {}
        reading = in_thread(partial(self._newest_readable, checkpoints))
        entries = self._entries(range(newest + 1, last.version))
        entries += [last] if newest < last.version else []
        loading = self._begin_loading([entry for entry in entries if entry is not None])
        base = reading.result()
        if newest >= 0 and (base is None or base.version < newest):  # it is damaged
            entries = self._between(base, last)
        return base, entries, loading

    def _between(self, base: Snapshot | None, last: LogEntry) -> list[LogEntry | None]:
        """The entries after a version up to the last one."""
        start = 0 if base is None else base.version + 1
        if start > last.version:
            return []
        return [*self._entries(range(start, last.version)), last]

    def loaded_entries(self, versions: Sequence[int]) -> list[LogEntry | None]:
        """Read entries with their parts, across a network all at once; None for absent ones.

        SnapshotExpired if the parts of an entry are absent.
        """
        entries = self._entries(versions)
        try:
            loaded = iter(self._with_parts([entry for entry in entries if entry is not None]))
        except ObjectNotFound as error:
            shown = f"the changes of versions {versions[0]} to {versions[-1]}"
            raise self._expired(shown, error) from error
        return [None if entry is None else next(loaded) for entry in entries]

    def _head_if(self, version: int) -> Snapshot:
        """Return the head if it is this version, whose entry is absent; raise otherwise."""
        head = self.newest()
        if version > head.version:
            raise self._no_version(version, head)
        if version == head.version:
            return head
        raise self._absent(version, f"version {version}")

    def as_of(self, timestamp_us: int) -> Snapshot:
        """Read the newest version committed at or before a time (invariants, rule 8)."""
        listing = begin(self._checkpoints) if self._store.overlaps else None
        head = self.newest()
        if head.timestamp_us <= timestamp_us:
            return head
        checkpoints = self._checkpoints() if listing is None else listing.result()
        before = self._checkpoint_before(timestamp_us, checkpoints)
        oldest = floors_of(head.table.properties).oldest_version
        newest = None if before is None or before < oldest else before
        start = oldest if newest is None else newest + 1
        base = None
        if newest is not None and self._store.overlaps:
            base = in_thread(partial(self._newest_readable, [newest]))
        entries: list[LogEntry] = []
        for version, entry in self._in_order(range(start, head.version)):
            if entry is None:
                raise self._absent(version, f"the version of {from_microseconds(timestamp_us)}")
            if entry.timestamp_us > timestamp_us:
                break
            entries.append(entry)
            newest = version
        if newest is None and oldest:
            raise SnapshotExpired(
                f"the version of {from_microseconds(timestamp_us)} of {self._store.uri} has "
                f"expired; versions {oldest} to {head.version} are available"
            )
        if newest is None:
            raise VersionNotFound(
                f"{self._store.uri} did not exist at {from_microseconds(timestamp_us)}: it was "
                f"created at {from_microseconds(self._created_us())}; give a later time"
            )
        if base is not None and (checkpoint := base.result()) is not None:
            try:
                if checkpoint.table.uuid == head.table.uuid:
                    return self._replay(checkpoint, entries)[0]
            except ObjectNotFound:
                pass  # it may just have expired
        return self.at(newest)

    def history(self, limit: int | None = None) -> list[Commit]:
        """List commits newest first, back to the oldest version; CorruptData at a hole."""
        if limit is not None and limit < 0:
            raise InvalidInput(f"limit of history is {limit}; give a number of commits")
        head = self.newest()
        oldest = floors_of(head.table.properties).oldest_version - 1
        oldest = oldest if limit is None else max(oldest, head.version - limit)
        version, expected = head.version, head.commit_id
        commits: list[Commit] = []
        most = _HISTORY_BLOCK_ACROSS_A_NETWORK if self._store.overlaps else _HISTORY_BLOCK
        while version > oldest:
            block = range(version, max(oldest, version - most), -1)
            for number, entry in zip(block, self._entries(block), strict=True):
                if entry is None:
                    if self._is_hole(number):
                        raise self._hole(number)
                    return commits
                if entry.commit_id != expected:
                    raise CorruptData(
                        f"{log_path(entry.version)} in {self._store.uri} is commit "
                        f"{entry.commit_id}, but its successor follows {expected}; restore the log "
                        "from a copy"
                    )
                commits.append(entry.commit)
                expected = entry.predecessor or ""
            version = block.stop
        return commits

    def exists(self) -> bool:
        """Return whether a table exists here, readable or not."""
        if self._store.overlaps:
            return any(together(self._store, self.probes()))
        return any(probe() for probe in self.probes())

    def probes(self) -> Sequence[Callable[[], object]]:
        """Requests that look for a table; if one exists, at least one request finds something."""
        return [
            partial(self._store.exists, log_path(0)),
            partial(self._versions, LOG, None, version_of),
            self._checkpoints,
        ]

    def _checkpoint_before(self, timestamp_us: int, checkpoints: Sequence[int]) -> int | None:
        """Find the newest checkpoint at or before a time by a search: times are ascending.

        Skips checkpoints that cannot be read.
        """
        at_once = _TIMES_AT_ONCE if self._store.overlaps else 1
        newest: int | None = None
        left = list(checkpoints)  # checkpoints that may be after `newest`, but not after the time
        while left:
            step = -(-len(left) // (at_once + 1))
            places = list(islice(range(step - 1 if len(left) > 1 else 0, len(left), step), at_once))
            times = together(self._store, [partial(self._time_of, left[place]) for place in places])
            start, stop = 0, len(left)
            for place, time_us in zip(places, times, strict=True):
                if time_us is None:
                    continue
                if time_us > timestamp_us:
                    stop = place
                    break
                newest, start = left[place], place + 1
            unread = {
                left[place] for place, time_us in zip(places, times, strict=True) if time_us is None
            }
            left = [version for version in left[start:stop] if version not in unread]
        return newest

    def _time_of(self, checkpoint: int) -> int | None:
        try:
            return read_timestamp_us(self._store, checkpoint)
        except (CorruptData, ObjectNotFound):
            return None

    def _in_order(self, versions: range) -> Iterator[tuple[int, LogEntry | None]]:
        """Read entries as they are asked for; from a network store, a block of them at once."""
        for i in range(0, len(versions), _HISTORY_BLOCK):
            block = versions[i : i + _HISTORY_BLOCK]
            reads = [partial(self.entry, version) for version in block]
            if self._store.overlaps:
                reads = [begin(read).result for read in reads]  # type: ignore[misc]
            yield from ((version, read()) for version, read in zip(block, reads, strict=True))

    def _created_us(self) -> int:
        first = self.entry(0)
        if first is None:
            raise self._expired("the table's creation", None)
        return first.timestamp_us

    def _no_version(self, version: int, head: Snapshot) -> VersionNotFound:
        return VersionNotFound(
            f"{self._store.uri} has no version {version}: the newest is {head.version}; history() "
            "lists them"
        )

    def _absent(self, version: int, what: str) -> RowsieveError:
        """Build the error for an absent entry that `what` needs: lost, expired, or dropped."""
        return self._hole(version) if self._is_hole(version) else self._expired(what, None)

    def _expired(self, what: str, cause: Exception | None) -> SnapshotExpired:
        detail = f" ({cause})" if cause else ""
        return SnapshotExpired(
            f"{what} of {self._store.uri} can no longer be read: its log entries were removed"
            f"{detail}; read a newer version"
        )
