"""Leases: small files that protect the files of a version, and of all later ones, from deletion.

    _rowsieve/leases/<version, 20 digits>.<duration in ms>.<lease id>.<renewal>.json
    _rowsieve/leases/dropping.<duration in ms>.<lease id>.<renewal>.json

The name has all that deletion needs, so one listing shows every lease. The content is for people,
except `since`: the holder reads a differential table at no earlier time (`since_of`).

The second form protects no version: a call that drops the table has it (`dropping.alone`).

A renewal is a new file under the next number. Only the renewal after it deletes the old one, so a
listing that began before a file was put still meets the one before.

Soundness (invariants, rules 12 and 16): a holder creates its file and only then reads the table's
floor. An expiry commits the floor and only then lists the leases. So either the holder sees that
its version is gone, or the expiry sees the lease. Deleting a lease too early makes a read fail with
SnapshotExpired; it never changes a result. A lease is over only if

- more than its duration has passed since its last renewal, both times being the store's own: that
  of the lease's file and that of a file which the expiry has just created; and
- it has not been renewed while the expiry then waited for its grace period, a second at least.

A holder looks at its clock several times in that second. After the clock has jumped, or the machine
has slept, a lease may seem over; the holder then renews it before the second listing.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import threading
import uuid
from collections.abc import Collection, Iterable
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from rowsieve import clock
from rowsieve.errors import InvalidInput, RowsieveError, StoreError, UnsupportedOperation
from rowsieve.objects import ObjectNotFound, ObjectStore, put_fresh, put_if_absent
from rowsieve.storage.log.sealed_lines import seal, unseal

LEASES: Final = "_rowsieve/leases"
LEASE_S: Final = 600.0
"""The duration of a lease without renewal, unless its holder says otherwise."""

NO_VERSION: Final = 2**62
"""The version of a lease that protects none: above every version."""

SECOND_LOOK_S = 1.0
"""The least time between the two listings that find a lease over."""

LONGEST_S: Final = 30 * 86_400.0
_SHORTEST_S: Final = 0.1
_RENEWALS: Final = 3  # per duration, so that one may fail
_LISTINGS: Final = 3  # that may miss a lease which is just being renewed
_LOOK_S: Final = 0.25  # between two looks of a holder at its clock
_DROPPING: Final = "dropping"
_NAME: Final = re.compile(
    rf"{LEASES}/(?P<version>\d{{20}}|{_DROPPING})\.(?P<duration_ms>\d{{1,12}})\.(?P<id>[0-9a-f]{{32}})"
    r"\.(?P<renewal>\d{1,9})\.json",
    re.ASCII,
)
_HOLD: Final = re.compile(
    rf"{LEASES}/(?P<version>\d{{20}})\.published-(?P<id>[0-9a-f]{{16}})\.json", re.ASCII
)
_ENDLESS_US: Final = 2**62
_log = logging.getLogger(__name__)


class LeaseFile(NamedTuple):
    """One lease as it is listed; `version` and all later ones are protected.

    `files`: the paths of the renewals that the listing shows, with their sizes in bytes.
    """

    version: int
    duration_us: int
    id: str
    renewal: int
    modified_us: int
    files: dict[str, int]

    def seems_over(self, now_us: int) -> bool:
        """Return whether its duration has passed at a time of the store's clock."""
        return now_us - self.modified_us > self.duration_us


def lease_files(store: ObjectStore, *, published: bool = True) -> list[LeaseFile]:
    """List the leases, each by its last renewal; and the holds of what is `published`."""
    leases: dict[str, LeaseFile] = {}
    for path, detail in store.details(LEASES).items():
        if published and (hold := _HOLD.fullmatch(path)) is not None:
            version, file_name = int(hold["version"]), f"{hold['id']}.{hold['version']}"
            leases[file_name] = LeaseFile(
                version, _ENDLESS_US, file_name, 0, detail.modified_us, {}
            )
        if (name := _NAME.fullmatch(path)) is None:
            continue
        renewal = LeaseFile(
            _version_of(name["version"]),
            int(name["duration_ms"]) * 1000,
            name["id"],
            int(name["renewal"]),
            detail.modified_us,
            {path: detail.size_bytes},
        )
        known = leases.get(renewal.id, renewal)
        newest = max(known, renewal, key=lambda each: each.renewal)
        leases[renewal.id] = newest._replace(files={**known.files, **renewal.files})
    return list(leases.values())


def leased_version_of(path: str) -> int | None:
    """The version that a lease of this name protects; None without one, or for another file."""
    match = _NAME.fullmatch(path) or _HOLD.fullmatch(path)
    version = NO_VERSION if match is None else _version_of(match["version"])
    return None if version == NO_VERSION else version


def is_of_drop(path: str) -> bool:
    """Return whether a file is the lease of a call that drops the table."""
    return (name := _NAME.fullmatch(path)) is not None and name["version"] == _DROPPING


def oldest_leased(leases: Iterable[LeaseFile], over: Collection[LeaseFile] = ()) -> int | None:
    """Return the oldest version that a lease protects; `over` are leases to ignore."""
    versions = [lease.version for lease in leases if lease not in over]
    return min((version for version in versions if version != NO_VERSION), default=None)


def hold(store: ObjectStore, publication: str, version: int, of: str = "", place: str = "") -> None:
    """Keep a published version, and all later ones, until the hold of a later one is there.

    A hold is a lease without end: its holder creates it before it reads the floor. `publication` is
    the id of what was published, 16 hexadecimal digits; `of` that of a publication to which it
    belongs, such as the one that a catalog names; `place` the URI of its folder, empty for that of
    the table.
    """
    path = f"{LEASES}/{version:020}.published-{publication}.json"
    facts = {"version": version, "of": of, "place": place}
    put_if_absent(store, path, seal([{"published": facts}]))


def since_of(store: ObjectStore, lease: LeaseFile) -> int | None:
    """The earliest time that the holder still reads, in physical form; None if it names none.

    NotFound if the file is gone: the lease was renewed or ended since it was listed.
    """
    path = _path_of(lease.version, lease.duration_us // 1000, lease.id, lease.renewal)
    if path not in lease.files:  # a hold, which has no such line
        return None
    ((_, line),) = unseal(store.get(path), path)
    since = line["lease"].get("since")
    return since if isinstance(since, int) else None


def held_versions(store: ObjectStore, publication: str) -> dict[int, str]:
    """The versions that a publication holds, with the paths of the holds."""
    return {
        int(name["version"]): path
        for path in store.list(LEASES)
        if (name := _HOLD.fullmatch(path)) is not None and name["id"] == publication
    }


def holds_below(store: ObjectStore, publication: str) -> list[str]:
    """The paths of the holds that belong to a publication, those of catalogs among them."""
    paths = [path for path in store.list(LEASES) if _HOLD.fullmatch(path) is not None]
    versions = set(held_versions(store, publication).values())
    return [path for path in paths if path in versions or _fact(store, path, "of") == publication]


def check_published_here(store: ObjectStore) -> None:
    """Raise UnsupportedOperation if metadata in another folder names files of the table."""
    holds = [path for path in store.list(LEASES) if _HOLD.fullmatch(path) is not None]
    places = sorted({_fact(store, path, "place") for path in holds} - {""})
    if places:
        raise UnsupportedOperation(
            f"drop_table: {store.uri} is published in {', '.join(places[:5])}, whose readers need "
            "its files; call unpublish with that uri first"
        )


def _fact(store: ObjectStore, path: str, name: str) -> str:
    """What a hold says; empty if it is gone, or was written by an older version."""
    try:
        ((_, line),) = unseal(store.get(path), path)
    except ObjectNotFound:
        return ""
    return str(line["published"].get(name, ""))


class Lease:
    """A lease that this process holds and renews in a thread, until `end`.

    `version`: it and all later versions are protected. `since`: the earliest time of a differential
    table that the holder still reads, in physical form; None: that of the version. Use it in a
    `with` block. A fork of the process neither renews the lease nor ends it.
    """

    def __init__(
        self,
        store: ObjectStore,
        table_uuid: str,
        version: int,
        duration_s: float,
        holder: str,
        since: int | None = None,
    ) -> None:
        self.version = version
        self.since = since
        self.duration_s = checked_duration(duration_s)
        self._store = store
        self._id = uuid.uuid4().hex
        self._renewal = 0
        self._process = os.getpid()
        facts: dict[str, Any] = {"table": table_uuid, "version": version}
        facts["holder"] = holder or _process_name()
        if since is not None:
            facts["since"] = since
        self._content = seal([{"lease": {**facts, "duration_s": self.duration_s}}])
        self._ended = threading.Event()
        put_fresh(store, self.path, self._content)
        self._thread = threading.Thread(
            target=self._renew_until_end, name="rowsieve-lease", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def __repr__(self) -> str:
        state = "ended" if self.is_ended else f"for {self.duration_s:g} s after each renewal"
        return f"<rowsieve.Lease of version {self.version}, {state}>"

    @property
    def id(self) -> str:
        """The id in the names of its files."""
        return self._id

    @property
    def path(self) -> str:
        """The path of its last renewal."""
        return self._path_of(self._renewal)

    @property
    def is_ended(self) -> bool:
        """True if it protects nothing any more, because it was ended."""
        return self._ended.is_set()

    @property
    def _undeleted(self) -> range:
        """The renewals whose files are there: the last two."""
        return range(max(self._renewal - 1, 0), self._renewal + 1)

    def end(self) -> None:
        """Protect nothing any more. A failure to delete the file leaves it until it is over."""
        if os.getpid() != self._process or self._ended.is_set():
            return
        self._ended.set()
        self._thread.join()
        try:
            self._store.delete([self._path_of(each) for each in self._undeleted])
        except RowsieveError as error:
            _log.warning("lease %s is not deleted: %s", self.path, error)

    def _renew_until_end(self) -> None:
        """Renew until the end; a renewal that fails is tried again at the next time."""
        period_s = self.duration_s / _RENEWALS
        renewed = _clocks()
        while not clock.wait(self._ended, min(period_s, _LOOK_S)):
            now = _clocks()
            if max(after - before for before, after in zip(renewed, now, strict=True)) < period_s:
                continue
            renewed = now
            try:
                self._renew()
            except RowsieveError as error:
                _log.warning("lease %s could not be renewed: %s", self.path, error)

    def _renew(self) -> None:
        """Start the duration again; only the thread calls this."""
        before = self._undeleted
        put_fresh(self._store, self._path_of(self._renewal + 1), self._content)
        self._renewal += 1
        self._store.delete([self._path_of(each) for each in before if each not in self._undeleted])

    def _path_of(self, renewal: int) -> str:
        return _path_of(self.version, round(self.duration_s * 1000), self._id, renewal)


def _path_of(version: int, duration_ms: int, lease_id: str, renewal: int) -> str:
    protected = _DROPPING if version == NO_VERSION else f"{version:020d}"
    return f"{LEASES}/{protected}.{duration_ms}.{lease_id}.{renewal}.json"


def _version_of(protected: str) -> int:
    """The version in the name of a lease."""
    return NO_VERSION if protected == _DROPPING else int(protected)


def checked_duration(duration_s: float) -> float:
    """Return the duration of a lease; InvalidInput unless it is from 0.1 s to 30 days."""
    if not _SHORTEST_S <= duration_s <= LONGEST_S:  # NaN, too
        raise InvalidInput(
            f"a lease lasts from {_SHORTEST_S:g} to {LONGEST_S:g} seconds after each renewal, not "
            f"{duration_s!r}; it is renewed by itself while it is held"
        )
    return duration_s


def _clocks() -> tuple[float, float]:
    """The time by two clocks: one that may jump, and one that may stop during a sleep."""
    return clock.now_us() / 1e6, clock.monotonic_s()


def _process_name() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


class LeaseWatch:
    """All leases of other holders, as an expiry lists them before its commit and again after it.

    `own` is a lease of the expiry itself, just created: its file shows the time of the store's
    clock. Without `published`, holds of published versions are ignored, as a dropped table does.
    """

    def __init__(self, store: ObjectStore, own_lease: Lease, *, published: bool = True) -> None:
        self._store, self._lease, self._published = store, own_lease, published
        self._first, now_us = self._other_leases()
        self._suspects = [lease for lease in self._first if lease.seems_over(now_us)]

    @property
    def oldest(self) -> int | None:
        """The oldest version that a lease protects which does not seem over; None without one."""
        return oldest_leased(self._first, self._suspects)

    def look_again(self, grace_s: float) -> tuple[int | None, dict[str, int]]:
        """Wait, list once more; return the oldest protected version, and the leases that are over.

        The latter by path with their sizes.
        """
        living, over = self.living(grace_s)
        return oldest_leased(living), over

    def living(self, grace_s: float = 0.0) -> tuple[list[LeaseFile], dict[str, int]]:
        """Wait, list once more; return the leases that are not over, and the files of the others.

        The latter by path with their sizes.
        """
        pause_s = max(grace_s, SECOND_LOOK_S if self._suspects else 0.0)
        if pause_s:
            clock.sleep(pause_s)
        again, _ = self._other_leases()
        over = [lease for lease in again if lease in self._suspects]  # not renewed since
        files = {path: size for lease in over for path, size in lease.files.items()}
        return [lease for lease in again if lease not in over], files

    def _other_leases(self) -> tuple[list[LeaseFile], int]:
        """List the others; StoreError if the listing lacks our own lease, and so may lack more."""
        for _ in range(_LISTINGS):
            leases = lease_files(self._store, published=self._published)
            own_us = [lease.modified_us for lease in leases if lease.id == self._lease.id]
            if own_us:
                return [lease for lease in leases if lease.id != self._lease.id], max(own_us)
        raise StoreError(
            f"the listing of {LEASES} in {self._store.uri} lacks the lease {self._lease.path}, "
            "which was created before: the store's listings lag, so other leases may be missing. "
            "Nothing was deleted; try again later"
        )
