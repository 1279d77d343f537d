"""Manifests and manifest lists: read those of the snapshot before, and write the next ones.

A manifest that loses no file is used again. One that does is written again, together with what the
snapshot adds; if there are many small ones, all of them are.

Soundness: a manifest that somebody else wrote is refused, because its entries are copied as bytes.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, NamedTuple

from rowsieve.errors import CorruptData, UnsupportedOperation
from rowsieve.objects import put_fresh, together
from rowsieve.publication.iceberg.avro_files import (
    NULL,
    Cursor,
    container,
    data,
    long,
    optional_long,
    read_container,
)
from rowsieve.publication.iceberg.avro_schemas import ENTRY, MANIFEST
from rowsieve.publication.iceberg.manifest_entries import (
    Content,
    ManifestEntry,
    Status,
    live_entries,
)
from rowsieve.publication.places import Folder, stored_file

METADATA: Final = "metadata"
_OURS: Final = "rowsieve.manifest"  # in the header of our manifests
_FORM: Final = b"1"
_MAX_ENTRIES: Final = 512  # of a manifest that is written
_MAX_MANIFESTS: Final = 48  # if there are more, the small ones become one
_MERGED_BELOW_ENTRIES: Final = _MAX_ENTRIES // 2


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest as a manifest list names it; `entries` are the live ones, once they are read."""

    path: str
    size_bytes: int
    content: Content
    sequence: int
    least_sequence: int
    snapshot_id: int
    files: tuple[int, int, int]  # added, existing, deleted
    rows: tuple[int, int, int]
    first_row_id: int | None
    entries: tuple[ManifestEntry, ...] = field(default=(), compare=False, repr=False)

    def with_entries(self, entries: Sequence[ManifestEntry]) -> Manifest:
        """Return the manifest with its live entries."""
        return replace(self, entries=tuple(entries))

    def encoded(self) -> bytes:
        """The manifest as a manifest list has it."""
        added, existing, deleted = self.rows
        numbers = (
            self.size_bytes,
            0,  # the partition spec
            self.content,
            self.sequence,
            self.least_sequence,
            self.snapshot_id,
            *self.files,
            added,
            existing,
            deleted,
        )
        return b"".join(
            (
                data(self.path.encode()),
                *map(long, numbers),
                2 * NULL,  # partitions, key_metadata
                optional_long(self.first_row_id),
            )
        )


class Numbers(NamedTuple):
    """The id and the sequence number of a snapshot, its schema, and the next row id."""

    snapshot_id: int
    parent_id: int | None
    sequence: int
    schema: bytes
    schema_id: int
    next_row_id: int


class Changed(NamedTuple):
    """What a snapshot adds to the one before and removes from it, for one kind of manifests."""

    added: Sequence[ManifestEntry]
    gone: AbstractSet[str]  # keys of entries


class WrittenManifests(NamedTuple):
    """A manifest list, the next row id, and the manifests."""

    path: str
    next_row_id: int
    manifests: Sequence[Manifest]


def read_list(folder: Folder, manifest_list: str) -> list[Manifest]:
    """Read a manifest list, and none of its manifests."""
    name = folder.relative(manifest_list)
    file = read_container(stored_file(folder.store, name), name)
    _check_ours(file.metadata, manifest_list)
    try:
        cursor = Cursor(file.objects)
        return [_decoded(cursor) for _ in range(file.object_count)]
    except (IndexError, OverflowError, ValueError) as error:
        raise _unreadable(manifest_list) from error


def read_manifests(folder: Folder, listed: Sequence[Manifest]) -> list[Manifest]:
    """Read manifests of a list; without those that have no live entry."""
    live = [each for each in listed if each.files[0] + each.files[1]]
    return together(folder.store, [partial(_with_entries, folder, each) for each in live])


class ManifestWriter:
    """Writes the manifests of one snapshot."""

    def __init__(self, folder: Folder, numbers: Numbers) -> None:
        self._folder = folder
        self._numbers = numbers
        self._next_row_id = numbers.next_row_id

    def write(
        self, before: Sequence[Manifest], changes: Mapping[Content, Changed]
    ) -> WrittenManifests:
        """Write what changes, and the manifest list, whose location is returned."""
        manifests: list[Manifest] = []
        for content, changed in changes.items():
            same = [each for each in before if each.content is content]
            manifests += self._next(content, same, changed)
        ids, name = self._numbers, f"{METADATA}/snap-{self._numbers.snapshot_id}-{_fresh()}.avro"
        header = {
            "avro.schema": MANIFEST,
            "snapshot-id": b"%d" % ids.snapshot_id,
            "parent-snapshot-id": b"null" if ids.parent_id is None else b"%d" % ids.parent_id,
            "sequence-number": b"%d" % ids.sequence,
            "first-row-id": b"%d" % ids.next_row_id,
            "format-version": b"3",
            _OURS: _FORM,
        }
        file = container(header, [each.encoded() for each in manifests])
        put_fresh(self._folder.store, name, file)
        return WrittenManifests(self._folder.location(name), self._next_row_id, manifests)

    def _next(
        self, content: Content, before: Sequence[Manifest], changed: Changed
    ) -> Iterator[Manifest]:
        merges = len(before) >= _MAX_MANIFESTS
        existing: list[ManifestEntry] = []
        deleted: list[ManifestEntry] = []
        for manifest in before:
            gone = [each for each in manifest.entries if each.key in changed.gone]
            if gone or (merges and len(manifest.entries) < _MERGED_BELOW_ENTRIES):
                deleted += gone
                existing += [each for each in manifest.entries if each.key not in changed.gone]
            else:
                yield manifest
        statuses = [(each, Status.EXISTING) for each in existing]
        statuses += [(each, Status.ADDED) for each in changed.added]
        statuses += [(each, Status.DELETED) for each in deleted]
        for start in range(0, len(statuses), _MAX_ENTRIES):
            yield self._written(content, statuses[start : start + _MAX_ENTRIES])

    def _written(
        self, content: Content, entries: Sequence[tuple[ManifestEntry, Status]]
    ) -> Manifest:
        ids = self._numbers
        objects = [
            self._deleted(entry) if status is Status.DELETED else entry.encoded(status)
            for entry, status in entries
        ]
        header = {
            "avro.schema": ENTRY,
            "schema": ids.schema,
            "schema-id": b"%d" % ids.schema_id,
            "partition-spec": b"[]",
            "partition-spec-id": b"0",
            "format-version": b"3",
            "content": content.name.lower().encode(),
            _OURS: _FORM,
        }
        file = container(header, objects)
        name = f"{METADATA}/{_fresh()}-m0.avro"
        put_fresh(self._folder.store, name, file)
        by_status = [
            [entry for entry, entry_status in entries if entry_status is status]
            for status in (Status.ADDED, Status.EXISTING, Status.DELETED)
        ]
        counts = [sum(each.rows for each in some) for some in by_status]
        first_row_id = self._next_row_id if content is Content.DATA else None
        if first_row_id is not None:
            self._next_row_id += counts[0] + counts[1]
        live = [*by_status[1], *_numbered(by_status[0], first_row_id)]
        return Manifest(
            self._folder.location(name),
            len(file),
            content,
            ids.sequence,
            min((each.sequence for each in live), default=ids.sequence),
            ids.snapshot_id,
            (len(by_status[0]), len(by_status[1]), len(by_status[2])),
            (counts[0], counts[1], counts[2]),
            first_row_id,
            tuple(live),
        )

    def _deleted(self, entry: ManifestEntry) -> bytes:
        """A removed entry names the snapshot that removes it."""
        return entry.of_snapshot(self._numbers.snapshot_id).encoded(Status.DELETED)


def _numbered(
    entries: Sequence[ManifestEntry], first_row_id: int | None
) -> Iterator[ManifestEntry]:
    """New entries of a manifest with the row ids that they inherit from it."""
    for entry in entries:
        yield entry if first_row_id is None else entry.numbered_from(first_row_id)
        if first_row_id is not None:
            first_row_id += entry.rows


def _decoded(cursor: Cursor) -> Manifest:
    path = cursor.data().decode()
    size_bytes, _spec = cursor.long(), cursor.long()
    content = Content(cursor.long())
    sequence, least, snapshot_id = cursor.long(), cursor.long(), cursor.long()
    files = cursor.long(), cursor.long(), cursor.long()
    rows = cursor.long(), cursor.long(), cursor.long()
    if cursor.take(2) != 2 * NULL:
        raise IndexError("a manifest list has fields that are not written here")
    row_id = cursor.optional_long()
    return Manifest(path, size_bytes, content, sequence, least, snapshot_id, files, rows, row_id)


def _with_entries(folder: Folder, manifest: Manifest) -> Manifest:
    name = folder.relative(manifest.path)
    file = read_container(stored_file(folder.store, name), name)
    _check_ours(file.metadata, manifest.path)
    try:
        entries = live_entries(
            file.objects, file.object_count, manifest.sequence, manifest.first_row_id
        )
    except (IndexError, OverflowError, ValueError) as error:
        raise _unreadable(manifest.path) from error
    return manifest.with_entries(entries)


def _check_ours(metadata: Mapping[str, bytes], location: str) -> None:
    if metadata.get(_OURS) != _FORM:
        raise UnsupportedOperation(
            f"publish: {location} was written by another writer of Iceberg; publish into a folder "
            "without an Iceberg table"
        )


def _unreadable(location: str) -> CorruptData:
    return CorruptData(
        f"publish: {location} cannot be read; restore it from a copy, or publish into another "
        "folder"
    )


def _fresh() -> str:
    return uuid.uuid4().hex
