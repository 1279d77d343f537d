"""A bucket in memory, and each process's store over it: every request asks the scheduler first.

A store draws a fault for each request from its process's `FaultPlan`; the bucket remembers all
objects that it ever had, for the judge and for stale listings.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NoReturn

from rowsieve.errors import CorruptData, StoreError
from rowsieve.objects.range_file import open_ranges
from rowsieve.objects.store import (
    Details,
    NativeFile,
    NotCreated,
    ObjectDetail,
    ObjectExists,
    ObjectNotFound,
    Paths,
    Place,
    SyncFailed,
    within,
)
from tests.faults.vocabulary import Crash, Fault
from tests.simulation.scheduler import Process, Scheduler

LONGEST_ANSWER_S: Final = 3.0
DENIED_REQUESTS: Final = 12  # after one that is denied
MOST_STALE: Final = 8  # changes that a stale listing lacks
ON_PUT: Final = (
    Fault.UNAVAILABLE,
    Fault.LOST_ANSWER,
    Fault.EXISTS_AFTER,
    Fault.APPLIED_LATE,
    Fault.DUPLICATE,
    Fault.NO_SPACE,
    Fault.IO_ERROR,
    Fault.SLOW,
    Fault.DENIED,
    Fault.EXPIRED_TOKEN,
)
ON_READ: Final = (Fault.UNAVAILABLE, Fault.SLOW, Fault.DENIED, Fault.EXPIRED_TOKEN)
ON_GET: Final = (*ON_READ, Fault.TRUNCATED)
ON_LIST: Final = (*ON_READ, Fault.STALE_LIST)
ON_DELETE: Final = (*ON_READ, Fault.LOST_ANSWER)


class Bucket:
    """Objects by path, as they are and as they were."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.objects: dict[str, ObjectDetail] = {}
        self.ever: dict[str, bytes] = {}
        self.replaced: list[tuple[str, bytes]] = []
        """What `ever` had under a name that was deleted and created again."""
        self.late: list[tuple[str, bytes | None]] = []
        """Puts under way whose clients have gone; deletions without bytes."""
        self._changes: list[tuple[bool, str]] = []
        self._scheduler = scheduler

    def restored(self, scheduler: Scheduler) -> Bucket:
        """Copy the bucket for another run."""
        copy = Bucket(scheduler)
        copy.objects, copy.ever = dict(self.objects), dict(self.ever)
        copy.replaced = list(self.replaced)
        copy._changes = list(self._changes)
        return copy

    def put(self, path: str, data: bytes) -> bool:
        """Create an object; False if the name is taken."""
        if path in self.objects:
            return False
        self.objects[path] = ObjectDetail(len(data), self._scheduler.now_us)
        if path in self.ever:
            self.replaced.append((path, self.ever[path]))
        self.ever[path] = data
        self._changes.append((True, path))
        return True

    def delete(self, path: str) -> None:
        """Delete an object if it exists."""
        if self.objects.pop(path, None) is not None:
            self._changes.append((False, path))

    def names(self, stale: int = 0) -> set[str]:
        """Return all names, or those before the last changes."""
        names = set(self.objects)
        for created, path in reversed(self._changes[len(self._changes) - stale :] if stale else ()):
            (names.discard if created else names.add)(path)
        return names

    def apply_late(self, number: int) -> None:
        """Apply one of the requests whose clients have gone."""
        path, data = self.late.pop(number)
        if data is None:
            self.delete(path)
            self._scheduler.note(f"late delete of {path}")
            return
        applied = self.put(path, data)
        self._scheduler.note(f"late put of {path}: {'applied' if applied else 'refused'}")


@dataclass
class FaultPlan:
    """How often a process's requests meet each fault, and at which request it dies."""

    chances: Mapping[Fault, float] = field(default_factory=dict)
    dies_at: int | None = None
    death: Fault = Fault.CRASH_BEFORE
    """CRASH_LATE: the request is under way, and applied some time after the death."""


@dataclass
class Requests:
    """The requests of a process, by all its stores."""

    count: int = 0
    injected: int = 0
    """Faults that they have met."""
    denied: int = 0


class SimulatedStore:
    """The bucket as one process sees it: an ObjectStore."""

    def __init__(
        self,
        bucket: Bucket,
        scheduler: Scheduler,
        process: Process,
        uri: str,
        *,
        overlaps: bool,
        plan: FaultPlan,
        draws: random.Random,
    ) -> None:
        self.uri, self.overlaps = uri, overlaps
        self.requests = Requests()
        self._folder = ""
        self._bucket, self._scheduler, self._process = bucket, scheduler, process
        self._plan, self._draws = plan, draws

    def inside(self, uri: str) -> SimulatedStore:
        """Return the store of the same process for a URI, which has a folder of its own."""
        if uri == self.uri:
            return self
        store = copy.copy(self)
        store.uri, store._folder = uri, f"{uri.removeprefix('memory:///')}/"
        return store

    @property
    def injected(self) -> int:
        """The faults that requests of the process have met."""
        return self.requests.injected

    def __repr__(self) -> str:
        return f"<store of {self._process.name}>"

    def expect(self, places: Iterable[Place], *, keep: bool = False) -> None:
        """Do nothing: the reader decides."""

    def get(self, path: str) -> bytes:
        """Return all bytes of an object."""
        fault = self._request("get", path, ON_GET if self.overlaps else ON_READ)
        data = self._data(path)
        if fault is Fault.TRUNCATED:
            return data[: self._draws.randrange(len(data) + 1)]
        return data

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        """Return bytes `[start, stop)`; CorruptData if the object is shorter."""
        self._request("get", path, ON_READ)
        data = self._data(path)
        if stop > len(data):
            raise CorruptData(f"{path} has {len(data)} bytes, not {stop}")
        return data[start:stop]

    def size(self, path: str) -> int:
        """Return the size of the object in bytes."""
        self._request("size", path, ON_READ)
        return len(self._data(path))

    def exists(self, path: str) -> bool:
        """Return whether an object exists at `path`."""
        self._request("exists", path, ON_READ)
        return self._folder + path in self._bucket.objects

    def put_new(self, path: str, data: bytes | memoryview) -> None:
        """Create an object; ObjectExists if the name is taken."""
        whole = bytes(data)
        fault = self._request("put", path, ON_PUT, late=(self._folder + path, whole))
        if fault in (Fault.UNAVAILABLE, Fault.NO_SPACE, Fault.IO_ERROR):
            self._refuse_put(fault, path, whole)
        if fault in (Fault.APPLIED_LATE, Fault.DUPLICATE):
            self._bucket.late.append((self._folder + path, whole))
        if fault is not Fault.APPLIED_LATE:
            created = self._bucket.put(self._folder + path, whole)
            self._end_request(path)
        if fault in (Fault.APPLIED_LATE, Fault.LOST_ANSWER):
            raise StoreError(f"put of {path}: {fault.value}")
        if not created or fault is Fault.EXISTS_AFTER:
            raise ObjectExists(f"{path} exists already", path=path)

    def put_hint(self, path: str, data: bytes) -> None:
        """Replace an object."""
        self._request("put", path, ())
        self._bucket.delete(self._folder + path)
        self._bucket.put(self._folder + path, bytes(data))

    def make_durable(self, path: str) -> None:
        """Do nothing: objects are durable."""
        self._request("sync", path, ())

    def list(self, prefix: str, after: str | None = None, until: str | None = None) -> Paths:
        """List the objects under a folder, sorted."""
        names = self._listed("list", prefix)
        return [path for path in names if within(path, after, until)]

    def children(self, prefix: str = "") -> Paths:
        """List the names directly under a folder, sorted."""
        return _firsts(self._listed("list", prefix), prefix)

    def folders(self, prefix: str = "") -> Paths:
        """List the folders directly under a folder, sorted."""
        names = self._listed("list", prefix)
        start = len(prefix) + 1 if prefix else 0
        return _firsts([path for path in names if "/" in path[start:]], prefix)

    def details(self, prefix: str, most: int | None = None) -> Details:
        """List the objects under a folder with their sizes and times."""
        bucket = self._bucket
        return {
            path: bucket.objects.get(whole) or ObjectDetail(len(bucket.ever[whole]), 0)
            for path in self._listed("list", prefix)
            for whole in (self._folder + path,)
        }

    def leftovers(self) -> Details:
        """Return nothing: puts are whole."""
        return {}

    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects one by one, in any order where requests overlap; others may go between."""
        order = self._draws.sample(paths, len(paths)) if self.overlaps else list(paths)
        for number, path in enumerate(order):
            possible, whole = () if number else ON_DELETE, self._folder + path
            fault = self._request("delete", path, possible, late=(whole, None))
            if fault is Fault.LOST_ANSWER:
                for lost in order[: self._draws.randrange(len(order) + 1)]:
                    self._bucket.delete(self._folder + lost)
                raise StoreError(f"delete of {len(order)} objects: {fault.value}")
            self._bucket.delete(whole)
            self._end_request(path)

    def open_input(self, path: str, size_bytes: int | None = None) -> NativeFile:
        """Open an object whose reads are requests."""
        return open_ranges(self, path, size_bytes)

    def _data(self, path: str) -> bytes:
        if self._folder + path not in self._bucket.objects:
            raise ObjectNotFound(f"no object {path}", path=path)
        return self._bucket.ever[self._folder + path]

    def _listed(self, kind: str, prefix: str) -> Paths:
        fault = self._request(kind, prefix, ON_LIST)
        stale = self._draws.randrange(1, MOST_STALE) if fault is Fault.STALE_LIST else 0
        folder = self._folder + (f"{prefix}/" if prefix else "")
        start = len(self._folder)
        return sorted(n[start:] for n in self._bucket.names(stale) if n.startswith(folder))

    def _request(
        self,
        kind: str,
        path: str,
        possible: Sequence[Fault],
        late: tuple[str, bytes | None] | None = None,
    ) -> Fault | None:
        """Give way, then draw what happens to the request; raises if it fails as a whole."""
        self._scheduler.park(f"{kind} {self._folder}{path}")
        mine = self.requests
        mine.count += 1
        if mine.count == self._plan.dies_at and self._plan.death is not Fault.CRASH_AFTER:
            if self._plan.death is Fault.CRASH_LATE and late is not None:
                self._bucket.late.append(late)
            self._die(path)
        if mine.denied:
            mine.denied -= 1
            self._fail(Fault.DENIED, kind, path)
        fault = self._fault(possible)
        if fault is None:
            return None
        if fault in (Fault.DENIED, Fault.EXPIRED_TOKEN):
            mine.denied = DENIED_REQUESTS
            self._fail(fault, kind, path)
        if fault is Fault.UNAVAILABLE and kind != "put":
            self._fail(fault, kind, path)
        self._note(fault, kind, path)
        if fault is Fault.SLOW:
            stall_us = self._draws.randrange(round(LONGEST_ANSWER_S * 1e6))
            self._scheduler.park("slow", lambda: False, self._scheduler.now_us + stall_us)
            return None
        return fault

    def _note(self, fault: Fault, kind: str, path: str) -> None:
        self.requests.injected += 1
        self._scheduler.note(f"{self._process.name} {fault.name} {kind} {path}")

    def _fail(self, fault: Fault, kind: str, path: str) -> NoReturn:
        self._note(fault, kind, path)
        raise StoreError(f"{kind} of {path}: {fault.value}")

    def _fault(self, possible: Sequence[Fault]) -> Fault | None:
        for fault, chance in self._plan.chances.items():
            if fault in possible and self._draws.random() < chance:
                return fault
        return None

    def _refuse_put(self, fault: Fault, path: str, data: bytes) -> NoReturn:
        if fault is Fault.NO_SPACE:
            raise NotCreated(f"put of {path}: {fault.value}")
        if fault is Fault.IO_ERROR:
            visible = self._draws.random() < 0.5 and self._bucket.put(self._folder + path, data)
            raise SyncFailed(f"put of {path}: {fault.value}", path=path, is_visible=visible)
        raise StoreError(f"put of {path}: {fault.value}")

    def _end_request(self, path: str) -> None:
        is_last = self.requests.count == self._plan.dies_at
        if is_last and self._plan.death is Fault.CRASH_AFTER:
            self._die(path)

    def _die(self, path: str) -> NoReturn:
        self._process.is_dead = True
        self._scheduler.note(f"{self._process.name} dies at {path}")
        raise Crash


def _firsts(paths: Iterable[str], prefix: str) -> Paths:
    start = len(prefix) + 1 if prefix else 0
    return sorted({path[start:].partition("/")[0] for path in paths})
