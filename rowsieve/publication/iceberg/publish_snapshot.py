"""Publish a version as a snapshot of Iceberg's format version 3.

Only the parts that changed since the snapshot before are looked at: their rows, their statistics
and the manifests that list them. The other manifests are used again.

Soundness (invariant 44): everything that Iceberg's readers would read otherwise is refused before
anything is written. The metadata file is created last, under the number of the version; what an
interrupted publication left behind is in no metadata file.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from rowsieve.errors import CommitConflict, UnsupportedOperation
from rowsieve.objects import ObjectStore, put_fresh, put_if_absent
from rowsieve.publication.earlier_versions import Versions
from rowsieve.publication.iceberg.dropped_snapshots import delete_dropped
from rowsieve.publication.iceberg.file_metrics import file_metrics
from rowsieve.publication.iceberg.iceberg_schema import iceberg_schema
from rowsieve.publication.iceberg.manifest_entries import (
    Content,
    ManifestEntry,
    data_entry,
    vector_entry,
)
from rowsieve.publication.iceberg.manifests import (
    METADATA,
    Changed,
    Manifest,
    ManifestWriter,
    Numbers,
    WrittenManifests,
    read_list,
    read_manifests,
)
from rowsieve.publication.iceberg.table_metadata import (
    COMMIT,
    HINT,
    VERSION,
    Before,
    document,
    has_hint,
    name_of,
    newest_number,
    number_of,
    read_newest,
    read_numbered,
)
from rowsieve.publication.places import Folder, check_unmoved, location_of, stored_file
from rowsieve.publication.publication import Publication
from rowsieve.publication.published_rows import PublishedPart, published_parts, published_paths
from rowsieve.publication.puffin import encoded_vector, puffin_file
from rowsieve.publication.readable_files import ICEBERG, check_readable
from rowsieve.publication.rows_beside import write_beside
from rowsieve.publication.touched_parts import Mask, touched_parts, unchecked_parts
from rowsieve.storage.snapshot import Snapshot

_CREATED_BY: Final = {"created-by": "rowsieve"}


def publish_snapshot(
    target: ObjectStore, snapshot: Snapshot, source: ObjectStore, versions: Versions
) -> Publication:
    """Write the version as the next metadata file in `target`; does nothing if it is there.

    UnsupportedOperation if readers of Iceberg would read other rows than we do, if the folder has a
    newer version, or a table of somebody else, or if it or the table was moved; CommitConflict if
    the log that it was published from was replaced.
    """
    folder = Folder.of(target)
    before = read_newest(folder, snapshot.table.uuid)
    _check_unmoved(folder, before, source)
    if before.version >= snapshot.version:
        return _published_already(folder, before, snapshot)
    writing = _Writing(folder, snapshot, source, before, versions.before(_commit_of(before)))
    return writing.publish(versions)


def _check_unmoved(folder: Folder, before: Before, source: ObjectStore) -> None:
    if not before.number:
        return
    check_unmoved(folder.store, before.metadata["location"], folder.root)
    if before.files is not None:
        check_unmoved(folder.store, before.files, location_of(source.uri))


def _commit_of(before: Before) -> tuple[int, str] | None:
    """The version of the newest snapshot, and the id of its commit.

    None if all parts have to be looked at: also if the metadata does not say where the files are.
    """
    if before.snapshot is None or not before.is_continued or before.files is None:
        return None
    return before.version, before.snapshot["summary"][COMMIT]


def _published_already(folder: Folder, before: Before, snapshot: Snapshot) -> Publication:
    assert before.snapshot is not None
    if before.version > snapshot.version:
        raise UnsupportedOperation(
            f"publish: {folder.store.uri} has version {before.version} already, and version "
            f"{snapshot.version} is older; publish the newest version"
        )
    commit = before.snapshot["summary"].get(COMMIT, snapshot.commit_id)
    if commit != snapshot.commit_id:
        raise _other_log(folder, snapshot.version)
    if not has_hint(folder, before.number):  # its put failed, or the process ended before it
        write_hint(folder, before.number)
    return _publication(folder, snapshot, before.number, before.snapshot["snapshot-id"])


def _publication(folder: Folder, snapshot: Snapshot, number: int, snapshot_id: int) -> Publication:
    place = folder.location(name_of(number))
    return Publication("iceberg", snapshot.version, folder.root, number, place, snapshot_id)


def _other_log(folder: Folder, version: int) -> CommitConflict:
    return CommitConflict(
        f"publish: version {version} in {folder.store.uri} is that of another commit: the log of "
        "the table was replaced since. Publish into another folder"
    )


@dataclass(slots=True)
class _Writing:
    """One publication; `earlier` is the version of the snapshot before, if it can be read."""

    folder: Folder
    snapshot: Snapshot
    source: ObjectStore
    before: Before
    earlier: Snapshot | None

    def publish(self, versions: Versions) -> Publication:
        snapshot, before = self.snapshot, self.before
        schema = iceberg_schema(snapshot.schema, snapshot.table.key)
        touched = touched_parts(self.earlier, snapshot)
        check_readable(snapshot, self.source, unchecked_parts(self.earlier, snapshot), ICEBERG)
        numbers = self._numbers(schema)
        manifests: Sequence[Manifest] = ()
        if before.is_continued and before.snapshot is not None:
            listed = read_list(self.folder, before.snapshot["manifest-list"])
            manifests = read_manifests(self.folder, listed)
        changes = self._changes(manifests, touched, numbers)
        written = ManifestWriter(self.folder, numbers).write(manifests, changes)
        new = self._new_snapshot(numbers, written, changes)
        metadata = document(
            self.folder,
            location_of(self.source.uri),
            snapshot,
            before,
            schema,
            new,
            written.next_row_id,
            versions.oldest,
            versions.tags,
        )
        number = number_of(snapshot.version)
        data = msgspec.json.encode(metadata)
        if not put_if_absent(self.folder.store, name_of(number), data):
            return self._written_meanwhile()
        write_hint(self.folder, number)
        if before.is_continued:
            delete_dropped(self.folder, before.metadata, metadata)
        return _publication(self.folder, snapshot, number, numbers.snapshot_id)

    def _written_meanwhile(self) -> Publication:
        uuid = self.snapshot.table.uuid
        now = read_newest(self.folder, uuid)
        if now.version < self.snapshot.version:  # the listing lags behind
            now = read_numbered(self.folder, number_of(self.snapshot.version), uuid)
        return _published_already(self.folder, now, self.snapshot)

    def _numbers(self, schema: Mapping[str, Any]) -> Numbers:
        metadata, latest = self.before.metadata, self.before.snapshot
        digest = hashlib.sha256(self.snapshot.commit_id.encode()).digest()
        return Numbers(
            int.from_bytes(digest[:8], "big") >> 1,
            None if latest is None else latest["snapshot-id"],
            metadata.get("last-sequence-number", 0) + 1,
            msgspec.json.encode(schema),
            self.snapshot.schema.id,
            metadata.get("next-row-id", 0),
        )

    def _changes(
        self, manifests: Sequence[Manifest], touched: Mask, numbers: Numbers
    ) -> dict[Content, Changed]:
        """What data files and what vectors the snapshot adds and removes."""
        known = {
            content: {
                entry.key: entry
                for manifest in manifests
                if manifest.content is content
                for entry in manifest.entries
            }
            for content in Content
        }
        root = location_of(self.source.uri)
        parts, published = published_parts(self.snapshot, self.source, touched)
        metrics = file_metrics(parts, self.snapshot.schema)
        rows = {
            self.folder.location(part.path) if part.is_beside else f"{root}/{part.path}": part
            for part in published
        }
        inside, beside = published_paths(self.snapshot)
        current = {f"{root}/{path}" for path in inside} | set(map(self.folder.location, beside))
        empty = {key for key, part in rows.items() if not part.has_rows}
        gone = known[Content.DATA].keys() - (current - empty)
        ids = numbers.snapshot_id, numbers.sequence
        added = [
            data_entry(key, part.file.rows, self._size(part), facts, *ids)
            for (key, part), facts in zip(rows.items(), metrics, strict=True)
            if part.has_rows and key not in known[Content.DATA]
        ]
        vectors = self._vectors(known[Content.DELETES], rows, gone, numbers)
        return {Content.DATA: Changed(added, gone), Content.DELETES: vectors}

    def _size(self, part: PublishedPart) -> int:
        if part.is_beside:
            return write_beside(self.folder.store, part.file, self.snapshot)
        return part.file.size_bytes

    def _vectors(
        self,
        known: Mapping[str, ManifestEntry],
        rows: Mapping[str, PublishedPart],
        gone: AbstractSet[str],
        numbers: Numbers,
    ) -> Changed:
        """The vectors that change: one file has all new ones, and no file has former ones."""
        new: dict[str, tuple[bytes, int]] = {}
        stored: dict[str, bytes] = {}
        without = {key for key in known if key in gone}
        for key, part in rows.items():
            if part.hidden is None or not part.has_rows:
                without |= known.keys() & {key}
                continue
            vector = encoded_vector(part.hidden.to_ids())
            if not self._is_stored(known.get(key), vector, stored):
                without |= known.keys() & {key}
                new[key] = vector, len(part.hidden)
        moved = self._neighbours(known, without, stored)
        new |= moved
        without |= moved.keys()
        if not new:
            return Changed((), without)
        file, places = puffin_file(new, _CREATED_BY)
        name = f"{METADATA}/{uuid.uuid4().hex}.puffin"
        put_fresh(self.folder.store, name, file)
        location = self.folder.location(name)
        ids = numbers.snapshot_id, numbers.sequence
        added = [
            vector_entry(location, count, len(file), key, places[key], *ids)
            for key, (_, count) in new.items()
        ]
        return Changed(added, without)

    def _neighbours(
        self, known: Mapping[str, ManifestEntry], gone: AbstractSet[str], stored: dict[str, bytes]
    ) -> dict[str, tuple[bytes, int]]:
        """The vectors that stay as they are, of files that also have one that goes.

        They move to the new file. pyiceberg 0.12 applies every vector of a file that an entry
        names, so a file with a former vector would hide rows that are visible again.
        """
        files = {known[key].path for key in gone}
        return {
            key: (self._stored_vector(entry, stored), entry.rows)
            for key, entry in known.items()
            if entry.path in files and key not in gone and entry.start is not None
        }

    def _is_stored(
        self, entry: ManifestEntry | None, vector: bytes, stored: dict[str, bytes]
    ) -> bool:
        """Return whether an entry has this vector already; `stored` are files that were read."""
        if entry is None or entry.start is None or entry.length != len(vector):
            return False
        return self._stored_vector(entry, stored) == vector

    def _stored_vector(self, entry: ManifestEntry, stored: dict[str, bytes]) -> bytes:
        if entry.path not in stored:
            stored[entry.path] = stored_file(self.folder.store, self.folder.relative(entry.path))
        assert entry.start is not None
        assert entry.length is not None
        return stored[entry.path][entry.start : entry.start + entry.length]

    def _new_snapshot(
        self, numbers: Numbers, written: WrittenManifests, changes: Mapping[Content, Changed]
    ) -> dict[str, Any]:
        snapshot, old = self.snapshot, self.before.metadata
        moment_ms = max(snapshot.timestamp_us // 1000, old.get("last-updated-ms", 0))
        new = {
            "snapshot-id": numbers.snapshot_id,
            "sequence-number": numbers.sequence,
            "timestamp-ms": moment_ms,
            "manifest-list": written.path,
            "schema-id": numbers.schema_id,
            "summary": _summary(snapshot, written, changes),
            "first-row-id": numbers.next_row_id,
            "added-rows": written.next_row_id - numbers.next_row_id,
        }
        parent = {} if not self.before.is_continued else {"parent-snapshot-id": numbers.parent_id}
        return {**new, **parent}


def write_hint(folder: Folder, number: int) -> None:
    """Tell readers without a catalog which metadata file is the newest.

    Looks again afterwards: another process may have published a newer version meanwhile, and the
    last one that writes the hint then names it.
    """
    newest = number
    while True:
        _put_hint(folder, newest)
        if (now := newest_number(folder)) <= newest:
            return
        newest = now


def _put_hint(folder: Folder, number: int) -> None:
    folder.store.put_hint(HINT, str(number).encode())


def _summary(
    snapshot: Snapshot, written: WrittenManifests, changes: Mapping[Content, Changed]
) -> dict[str, str]:
    live: dict[Content, list[ManifestEntry]] = {content: [] for content in Content}
    for manifest in written.manifests:
        live[manifest.content] += manifest.entries
    files, deletes = live[Content.DATA], live[Content.DELETES]
    data, vectors = changes[Content.DATA], changes[Content.DELETES]
    operation = "overwrite"
    if not data.gone and not vectors.added and not vectors.gone:
        operation = "append"
    elif not data.added and not vectors.gone - set(_keys(vectors.added)) - set(data.gone):
        operation = "delete"
    counts = {
        "added-data-files": len(data.added),
        "added-records": _records(data.added),
        "deleted-data-files": len(data.gone),
        "added-delete-files": len(vectors.added),
        "removed-delete-files": len(vectors.gone),
        "total-data-files": len(files),
        "total-records": _records(files),
        "total-files-size": sum(file.size_bytes for file in files),
        "total-delete-files": len(deletes),
        "total-position-deletes": _records(deletes),
        VERSION: snapshot.version,
    }
    return {
        "operation": operation,
        **{name: str(count) for name, count in counts.items()},
        COMMIT: snapshot.commit_id,
    }


def _keys(entries: Sequence[ManifestEntry]) -> list[str]:
    return [entry.key for entry in entries]


def _records(entries: Sequence[ManifestEntry]) -> int:
    return sum(entry.rows for entry in entries)
