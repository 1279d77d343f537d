"""The log of a catalog: names that differ from the folders, and the catalog's properties.

    _catalog/<version, 20 digits>.json, in sealed JSON lines:
    {"change": {"version", "id", "predecessor", "operation", "timestamp_us"}}
    {"locations": {"db.flights": "db/air" | "s3://…" | null}}
    {"properties": {"checkpoint_interval": "64"}}
    {"namespaces": {"db": true, "old": false}}
    {"shared": ["shop"]}

A table `db.t` in the folder `db/t` needs no line. A location is a folder below the catalog, a URI,
or NULL for a name whose table was dropped or renamed. The name `purge:db/t` with NULL says that the
files in this folder, which no name has any more, are being deleted, and `delete:db/t` that another
call has begun to delete them, so that no name can come back. A namespace with a folder or a
table needs no line either: true means that it was created, false that it was dropped, even if it
has a folder. A namespace in `shared` is a database in its folder, which knows the names in it. An
entry without the last line has protocol 2, and one without the last two lines has protocol 1.

Soundness: every change is one create-only put of the next number with the whole new state, so
concurrent changes are serial. After an error of the put, the stored entry decides by its id
(invariants, rule 1). Nothing is overwritten or deleted.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import msgspec

from rowsieve import clock
from rowsieve.decoded_types import described
from rowsieve.errors import CorruptData, StoreError, UnsupportedProtocol
from rowsieve.objects import (
    NotCreated,
    ObjectExists,
    ObjectNotFound,
    ObjectStore,
    SyncFailed,
    together,
)
from rowsieve.objects.durable import Patience, stating_outcome
from rowsieve.storage.log.create_only import prove_create_only
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S, Retries
from rowsieve.storage.log.sealed_lines import damaged, seal, unseal

FOLDER: Final = "_catalog"
_PROTOCOL: Final = 3
_ATTEMPTS: Final = 6
_PURGE: Final = "purge:"
_DELETE: Final = "delete:"
_ENTRY: Final = re.compile(rf"{FOLDER}/(\d{{20}})\.json")
_FOLDER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class CatalogState:
    """One version of a catalog; version 0 is a catalog without a log."""

    locations: Mapping[str, str | None] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    namespaces: Mapping[str, bool] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    version: int = 0
    change_id: str | None = None

    def is_dropped(self, namespace: str) -> bool:
        """Return whether the namespace was dropped: tables in its folder have no names."""
        return self.namespaces.get(namespace) is False

    def has_folders(self, namespace: str) -> bool:
        """Return whether tables in folders of the namespace have names."""
        return namespace not in self.shared and not self.is_dropped(namespace)

    def placed(self, locations: Mapping[str, str | None]) -> CatalogState:
        """The state with names at these locations; restores dropped namespaces of these names."""
        back = {name.partition(".")[0] for name, place in locations.items() if place is not None}
        namespaces = {
            name: there for name, there in self.namespaces.items() if there or name not in back
        }
        return replace(self, locations={**self.locations, **locations}, namespaces=namespaces)

    @property
    def protocol(self) -> int:
        """The first protocol that knows all that the state has."""
        if self.shared:
            return _PROTOCOL
        return 2 if self.namespaces else 1

    @property
    def purged(self) -> frozenset[str]:
        """The folders whose files are being deleted."""
        return frozenset(
            name.removeprefix(_PURGE) for name in self.locations if name.startswith(_PURGE)
        )

    def with_purge(self, folder: str) -> CatalogState:
        """The state in which the files of a folder are being deleted."""
        return replace(self, locations={**self.locations, f"{_PURGE}{folder}": None})

    def without_purge(self, folder: str) -> CatalogState:
        """The state after the files of a folder were deleted, or are kept after all."""
        gone = (f"{_PURGE}{folder}", f"{_DELETE}{folder}")
        return replace(
            self, locations={name: at for name, at in self.locations.items() if name not in gone}
        )

    def with_deletion(self, folder: str) -> CatalogState:
        """The state in which the files of a purged folder can no longer be kept."""
        return replace(self, locations={**self.locations, f"{_DELETE}{folder}": None})

    def is_deleted(self, folder: str) -> bool:
        """Return whether the files of a folder can no longer be kept."""
        return f"{_DELETE}{folder}" in self.locations


class _Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first line of an entry."""

    version: int
    id: str
    predecessor: str | None
    operation: str
    timestamp_us: int
    protocol: int = 1


class CatalogLog:
    """Reads and changes the state of the catalog in `store`. Thread-safe."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._known = CatalogState()

    @property
    def known(self) -> CatalogState:
        """The newest state that was read or put; reads nothing."""
        return self._known

    def read(self) -> CatalogState:
        """The newest state: an entry is newest if the number after it is absent.

        The listing and the entry after the known one are requested at once, and so are the newest
        listed entry and the one after it. Numbers are used in order and never freed.
        """
        known = self._known
        looks: list[Callable[[], object]] = [
            partial(self._store.list, FOLDER, after=_path(known.version)),
            partial(self._entry, known.version + 1),
        ]
        listed, later = together(self._store, looks)
        assert isinstance(listed, list)
        assert later is None or isinstance(later, CatalogState)
        versions = [int(match[1]) for path in listed if (match := _ENTRY.fullmatch(path))]
        newest = known if later is None else later
        if versions and versions[-1] > newest.version:
            entries = [partial(self._entry, versions[-1] + more) for more in (0, 1)]
            found_state, later = together(self._store, entries)
            if found_state is None:
                where = f"{_path(versions[-1])} in {self._store.uri}"
                raise CorruptData(f"{where} is listed but absent; restore it from a copy")
            newest = found_state if later is None else later
        while later is not None and (later := self._entry(newest.version + 1)) is not None:
            newest = later  # not listed yet
        if newest.version > self._known.version:
            self._known = newest
        return newest

    def change(
        self, operation: str, change: Callable[[CatalogState], CatalogState]
    ) -> CatalogState:
        """Compute the next state by `change` and put it; repeats this if another change wins."""
        retries = Retries(operation, RETRY_TIMEOUT_S)
        while True:
            before = self.read()
            wanted = change(before)
            prove_create_only(self._store, "catalog")
            line = _Change(
                before.version + 1,
                uuid.uuid4().hex,
                before.change_id,
                operation,
                clock.now_us(),
                wanted.protocol,
            )
            with stating_outcome(operation, "List the tables of the catalog"):
                is_ours = self._put(line, wanted)
            if is_ours:
                state = replace(wanted, version=line.version, change_id=line.id)
                if state.version > self._known.version:
                    self._known = state
                return state
            retries.wait()

    def _put(self, line: _Change, state: CatalogState) -> bool:
        """Put an entry at its number; False if another entry has it."""
        lines = [
            {"change": msgspec.to_builtins(line)},
            {"locations": dict(state.locations)},
            {"properties": dict(state.properties)},
        ]
        if state.namespaces:  # older versions of this library refuse the line
            lines.append({"namespaces": dict(state.namespaces)})
        if state.shared:
            lines.append({"shared": sorted(state.shared)})
        data = seal(lines)
        path = _path(line.version)
        patience = Patience(_ATTEMPTS)
        while True:
            problem: Exception
            try:
                self._store.put_new(path, data)
            except (NotCreated, SyncFailed):
                raise
            except (ObjectExists, StoreError) as error:
                problem = error
            else:
                return True
            stored = self._entry(line.version)
            if stored is not None:
                if stored.change_id == line.id:
                    self._store.make_durable(path)
                return stored.change_id == line.id
            if not patience.again():
                raise StoreError(
                    f"{line.operation}: {path} could not be written in {self._store.uri}: "
                    f"{problem}; list the tables of the catalog before trying again"
                ) from problem

    def _entry(self, version: int) -> CatalogState | None:
        path = _path(version)
        try:
            data = self._store.get(path)
        except ObjectNotFound:
            return None
        return _decoded(data, f"{path} in {self._store.uri}", version)


def _path(version: int) -> str:
    return f"{FOLDER}/{version:020d}.json"


def _decoded(data: bytes, where: str, version: int) -> CatalogState:
    lines: dict[str, Any] = {kind: line[kind] for kind, line in unseal(data, where)}
    first = lines.get("change")
    protocol = first.get("protocol", 1) if isinstance(first, dict) else 1
    if isinstance(protocol, int) and protocol > _PROTOCOL:
        raise UnsupportedProtocol(
            f"{where} has protocol {protocol}, and this version of rowsieve reads up to "
            f"{_PROTOCOL}; upgrade rowsieve"
        )
    try:
        if lines.keys() - {"namespaces", "shared"} != {"change", "locations", "properties"}:
            raise msgspec.ValidationError(f"its lines are {', '.join(lines)}")
        change = msgspec.convert(first, described(_Change))
        locations = msgspec.convert(lines["locations"], dict[str, str | None])
        properties = msgspec.convert(lines["properties"], dict[str, str])
        namespaces = msgspec.convert(lines.get("namespaces", {}), dict[str, bool])
        shared = msgspec.convert(lines.get("shared", []), frozenset[str])
    except msgspec.ValidationError as error:
        raise damaged(f"{where} is not an entry of a catalog: {error}") from error
    if change.version != version:
        raise damaged(f"{where} says that it is version {change.version}")
    for name, location in locations.items():
        if location is not None and "://" not in location and not _FOLDER.fullmatch(location):
            raise damaged(f"{where} places {name!r} at {location!r}, outside the catalog")
    return CatalogState(locations, properties, namespaces, shared, change.version, change.id)
