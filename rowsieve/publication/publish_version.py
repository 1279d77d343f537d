"""Publish the newest version of a table: by a call, or after each commit.

Soundness (invariant 44): a publication after a commit never fails it, and a later commit or
`maintain` makes good what failed. The version is held before its metadata is written, and the floor
of retention is read after that (invariants, rule 16), so no file goes that a published snapshot
names. A branch's versions are held in its own log, which numbers them. A hold moves on once in 16
commits, since retention alone reads it.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from rowsieve.changes.change import send_failure
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import UnsupportedOperation
from rowsieve.objects import ObjectStore, table_store, table_uri_of
from rowsieve.properties import PUBLISH
from rowsieve.publication.delta.checkpoints import LAST as LAST_CHECKPOINT
from rowsieve.publication.delta.log_state import read_log
from rowsieve.publication.delta.publish_log import publish_log
from rowsieve.publication.earlier_versions import Versions
from rowsieve.publication.iceberg.publish_snapshot import publish_snapshot
from rowsieve.publication.iceberg.table_metadata import HINT, read_newest
from rowsieve.publication.places import Folder
from rowsieve.publication.publication import Publication
from rowsieve.retention.leases import held_versions, hold, holds_below
from rowsieve.retention.published_files import (
    PUBLISHED_FILES,
    ROWS_BESIDE,
    Format,
)
from rowsieve.storage.differential import refuse_differential
from rowsieve.storage.log.floors import check_kept
from rowsieve.storage.snapshot import Snapshot
from rowsieve.storage.versioned_names import PUBLISHED_FOLDERS

_HOLD_VERSIONS: Final = 16
_log = logging.getLogger(__name__)
_Publish = Callable[[ObjectStore, Snapshot, ObjectStore, Versions], Publication]
_PUBLISHERS: Final[Mapping[Format, _Publish]] = {
    "iceberg": publish_snapshot,
    "delta": publish_log,
}
_CHECKS: Final[Mapping[Format, Callable[[ObjectStore, str], object]]] = {
    "iceberg": lambda target, uuid: read_newest(Folder.of(target), uuid),
    "delta": read_log,
}
FORMATS: Final = tuple(_PUBLISHERS)


def published_formats(snapshot: Snapshot) -> list[Format]:
    """The formats as which each commit of the table is published."""
    text = snapshot.table.properties.get(PUBLISH, "")
    return [name for name in FORMATS if name in text]


def publish_version(
    handle: Handle, snapshot: Snapshot, format_: Format, target: ObjectStore, *, holds_all: bool
) -> Publication:
    """Publish a version in `target`; without `holds_all`, the hold may be up to 15 versions older.

    SnapshotExpired if the version has expired meanwhile.
    """
    refuse_differential("publish", snapshot.table)
    store, source = handle.store, table_store(handle.store)
    ref_id = _id_of(format_, target)
    holds = held_versions(store, ref_id)
    moves = not holds or holds_all or snapshot.version - min(holds) >= _HOLD_VERSIONS
    if moves and snapshot.version not in holds:
        hold(store, ref_id, snapshot.version, place=_place_of(handle, target))
        check_kept(snapshot.version, handle.latest())
    publish = _PUBLISHERS[format_]
    published = publish(target, snapshot, source, Versions.of(handle.log, snapshot))
    if moves:
        store.delete([path for version, path in holds.items() if version < snapshot.version])
    return published


@contextmanager
def held_for_catalog(
    handle: Handle, snapshot: Snapshot, target: ObjectStore, catalog: str
) -> Iterator[None]:
    """Hold the version that a catalog is about to name; if it does, the one before is let go.

    A folder may have newer versions than a catalog, whose readers still need that one.
    """
    of = _id_of("iceberg", target)
    digest = hashlib.sha256(f"{of} {catalog}".encode()).hexdigest()[:16]
    before = held_versions(handle.store, digest)
    if snapshot.version not in before:
        hold(handle.store, digest, snapshot.version, of, _place_of(handle, target))
        check_kept(snapshot.version, handle.latest())
    yield
    handle.store.delete([path for version, path in before.items() if version < snapshot.version])


def _id_of(format_: Format, target: ObjectStore) -> str:
    """The id of a publication, by which its holds are named."""
    return hashlib.sha256(f"{format_} {table_uri_of(target.uri)}".encode()).hexdigest()[:16]


def _place_of(handle: Handle, target: ObjectStore) -> str:
    """The folder of a publication as its hold names it: empty for that of the table."""
    table_uri = table_uri_of(table_store(handle.store).uri)
    return "" if table_uri_of(target.uri) == table_uri else target.uri


def unpublish_all(handle: Handle, format_: Format, target: ObjectStore) -> int:
    """Delete all that was published as a format in `target`; returns the number of files.

    What readers begin with goes first, and the holds go last, so a reader finds nothing or all.
    """
    if format_ in published_formats(handle.committed()) and not _place_of(handle, target):
        raise UnsupportedOperation(
            f"unpublish: the property {PUBLISH!r} publishes each commit as {format_}; change it "
            "first"
        )
    _CHECKS[format_](target, handle.committed().table.uuid)
    paths = [path for folder in PUBLISHED_FOLDERS for path in target.list(folder)]
    published = [path for path in paths if PUBLISHED_FILES[format_].fullmatch(path)]
    others = [name for name in FORMATS if name != format_]
    if not any(PUBLISHED_FILES[name].fullmatch(path) for name in others for path in paths):
        published += filter(ROWS_BESIDE.fullmatch, paths)
    first = [path for path in published if path.endswith("json") or path in (HINT, LAST_CHECKPOINT)]
    target.delete(first)
    target.delete(sorted(set(published) - set(first)))
    handle.store.delete(holds_below(handle.store, _id_of(format_, target)))
    return len(published)


def publish_as_configured(handle: Handle, *, holds_all: bool = False) -> None:
    """Publish the newest version as the table's property says; failures are reported.

    Not for branches, whose folder is another one, nor for a version that only a transaction has.
    """
    snapshot = handle.newest
    if PUBLISH not in snapshot.table.properties:
        return
    is_uncommitted = snapshot.based_on is not None
    if is_uncommitted or handle.read_only or handle.store is not table_store(handle.store):
        return
    for format_ in published_formats(snapshot):
        started_s = time.perf_counter()
        try:
            publish_version(handle, snapshot, format_, handle.store, holds_all=holds_all)
        except Exception as error:
            _log.warning("%s was not published as %s: %s", handle.store.uri, format_, error)
            what = f"publish {format_}"
            send_failure(handle.reporter, handle.store, snapshot.version, what, error, started_s)
