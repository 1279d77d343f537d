"""Iceberg's manifests and manifest lists, written and read by pyiceberg over our object stores.

They are made in memory and put like all our files, so that stores, credentials and durability are
those of the table. `Locations` are the absolute names that Iceberg's metadata uses for files.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rowsieve.bridges.extras import imported
from rowsieve.errors import CorruptData
from rowsieve.objects import Location, ObjectStore, table_uri_of

METADATA: Final = "metadata"
_MAX_MANIFESTS: Final = 100
"""If a snapshot has more manifests than this, the next one rewrites them as one."""


def location_of(uri: str) -> str:
    """A table's folder as Iceberg names it: not percent-encoded, a plain path on local disk."""
    location = Location.parse(table_uri_of(uri))
    if location.scheme == "file":
        return location.path
    return f"{location.scheme}://{location.authority}/{location.path}"


@dataclass(frozen=True, slots=True)
class SnapshotFiles:
    """The manifest list of a snapshot, and what it adds to and removes from the one before."""

    manifest_list: str
    added: Sequence[Any]
    added_deletes: Sequence[Any]
    removed: Sequence[Any]
    removed_deletes: Sequence[Any]


class ManifestFiles:
    """Reads and writes the manifests of an export in the folder `target`."""

    def __init__(self, target: ObjectStore, schema_json: str) -> None:
        self._target = target
        self._root = location_of(target.uri)
        self._manifest: Any = imported("pyiceberg.manifest", "iceberg")
        schemas: Any = imported("pyiceberg.schema", "iceberg")
        partitioning: Any = imported("pyiceberg.partitioning", "iceberg")
        self._schema = schemas.Schema.model_validate_json(schema_json)
        self._spec = partitioning.UNPARTITIONED_PARTITION_SPEC

    def write(
        self,
        files: Mapping[str, Any],
        deletes: Mapping[str, Any],
        previous: str | None,
        snapshot_id: int,
        parent_id: int | None,
        sequence_number: int,
    ) -> SnapshotFiles:
        """Write the manifests of a snapshot with these data files and delete files, by location.

        `previous` is the manifest list of the snapshot before: its files that stay keep their
        sequence numbers, and its manifests that lose no file are used again.
        """
        before = [] if previous is None else self._manifests(previous)
        manifests, added, removed = [], [], []
        for is_deletes, own in ((False, files), (True, deletes)):
            same = [each for each in before if self._is_deletes(each) == is_deletes]
            kept, entries, gone, known = self._split(same, own)
            new = [file for location, file in own.items() if location not in known]
            manifests += kept
            if entries or gone:
                manifests.append(self._rewritten(entries, gone, snapshot_id, is_deletes))
            if new:
                manifests.append(self._added(new, snapshot_id, is_deletes))
            added.append(new)
            removed.append([entry.data_file for entry in gone])
        name = f"snap-{snapshot_id}-{uuid.uuid4().hex}.avro"
        output = _Output(f"{self._root}/{METADATA}/{name}")
        with self._manifest.write_manifest_list(
            2, output, snapshot_id, parent_id, sequence_number, "deflate"
        ) as writer:
            writer.add_manifests(manifests)
        self._put(output)
        return SnapshotFiles(output.location, *added, *removed)

    def _split(
        self, manifests: Sequence[Any], files: Collection[str]
    ) -> tuple[list[Any], list[Any], list[Any], set[str]]:
        """Manifests to use again, entries to write again and to remove, and all known locations."""
        kept: list[Any] = []
        entries: list[Any] = []
        removed: list[Any] = []
        known: set[str] = set()
        for manifest in manifests:
            own = manifest.fetch_manifest_entry(self)
            known.update(entry.data_file.file_path for entry in own)
            gone = [entry for entry in own if entry.data_file.file_path not in files]
            if own and not gone and len(manifests) <= _MAX_MANIFESTS:
                kept.append(manifest)
            else:
                entries += [entry for entry in own if entry.data_file.file_path in files]
                removed += gone
        return kept, entries, removed, known

    def _manifests(self, manifest_list: str) -> list[Any]:
        return list(self._manifest.read_manifest_list(self.new_input(manifest_list)))

    def _is_deletes(self, manifest: Any) -> bool:
        return bool(manifest.content == self._manifest.ManifestContent.DELETES)

    def _added(self, files: Sequence[Any], snapshot_id: int, is_deletes: bool) -> Any:
        with self._writer(snapshot_id, is_deletes) as writer:
            for file in files:
                entry = self._manifest.ManifestEntry.from_args(
                    status=self._manifest.ManifestEntryStatus.ADDED,
                    snapshot_id=snapshot_id,
                    data_file=file,
                )
                writer.add(entry)
        return self._written(writer)

    def _rewritten(
        self, entries: Sequence[Any], removed: Sequence[Any], snapshot_id: int, is_deletes: bool
    ) -> Any:
        with self._writer(snapshot_id, is_deletes) as writer:
            for entry in entries:
                writer.existing(entry)
            for entry in removed:
                writer.delete(entry)
        return self._written(writer)

    def _writer(self, snapshot_id: int, is_deletes: bool) -> Any:
        output = _Output(f"{self._root}/{METADATA}/{uuid.uuid4().hex}-m0.avro")
        kind = self._manifest.ManifestWriterV2
        if is_deletes:
            kind = _delete_writer(kind, self._manifest.ManifestContent.DELETES)
        return kind(self._spec, self._schema, output, snapshot_id, "deflate")

    def _written(self, writer: Any) -> Any:
        self._put(writer._output_file)  # the stream that we gave it
        return writer.to_manifest_file()

    def _put(self, output: _Output) -> None:
        self._target.put_new(output.location.removeprefix(f"{self._root}/"), output.data)

    def new_input(self, location: str) -> _Input:
        """Part of pyiceberg's `FileIO`: a file of this folder; CorruptData for any other."""
        prefix = f"{self._root}/"
        if not location.startswith(prefix):
            raise CorruptData(
                f"export: the Iceberg metadata in {self._target.uri} refers to {location}, which "
                "is in another folder; was the folder moved? Export to an empty one"
            )
        return _Input(location, self._target.get(location.removeprefix(prefix)))


def _delete_writer(plain: Any, content: Any) -> Any:
    """The class of pyiceberg's writers, for manifests of delete files, which it lacks."""
    meta = property(lambda self: {**plain._meta.fget(self), "content": "deletes"})
    return type("DeleteManifestWriter", (plain,), {"content": lambda _: content, "_meta": meta})


class _Output:
    """pyiceberg's `OutputFile` in memory."""

    def __init__(self, location: str) -> None:
        self.location: Final = location
        self.data = b""

    def create(self, overwrite: bool = False) -> _Stream:  # their signature
        """Begin to write the file."""
        del overwrite
        return _Stream(self)

    def __len__(self) -> int:
        return len(self.data)


class _Stream(io.BytesIO):
    """Gives its bytes to the output when it is closed."""

    def __init__(self, output: _Output) -> None:
        super().__init__()
        self._output = output

    def close(self) -> None:
        """Keep the bytes."""
        if not self.closed:
            self._output.data = self.getvalue()
        super().close()


class _Input:
    """pyiceberg's `InputFile` in memory."""

    def __init__(self, location: str, data: bytes) -> None:
        self.location: Final = location
        self._data = data

    def open(self, seekable: bool = True) -> io.BytesIO:  # their signature
        """Read the file."""
        del seekable
        return io.BytesIO(self._data)

    def __len__(self) -> int:
        return len(self._data)
