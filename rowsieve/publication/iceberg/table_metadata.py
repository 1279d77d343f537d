"""Metadata files of Iceberg: `metadata/v<number>.metadata.json`, and the hint to the newest one.

The number is that of the version of the table, plus one. So a version is published once, and an
older one never takes the place of a newer one: the names are created, never overwritten.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from rowsieve.errors import CorruptData, UnsupportedOperation
from rowsieve.objects import ObjectNotFound
from rowsieve.publication.iceberg.manifests import METADATA
from rowsieve.publication.places import Folder, stored_file
from rowsieve.storage.snapshot import Snapshot

FORMAT_VERSION: Final = 3
TABLE: Final = "rowsieve.table"
VERSION: Final = "rowsieve.version"
COMMIT: Final = "rowsieve.commit"
FILES: Final = "rowsieve.files"
"""The property that has the folder of the table's own files."""
_NAME: Final = re.compile(rf"{METADATA}/v([1-9][0-9]{{0,17}})\.metadata\.json", re.ASCII)
HINT: Final = f"{METADATA}/version-hint.text"
CATALOG_FOLDER: Final = f"{METADATA}/catalog"
"""Where a catalog puts metadata files of its own."""
_MAX_OLD_METADATA: Final = 100
_MAX_SNAPSHOTS: Final = 100


@dataclass(frozen=True, slots=True)
class Before:
    """The newest metadata of a folder: number 0 and an empty document if there are none."""

    number: int
    metadata: Mapping[str, Any]

    @property
    def snapshot(self) -> Mapping[str, Any] | None:
        """The current snapshot."""
        return self.metadata["snapshots"][-1] if self.number else None

    @property
    def version(self) -> int:
        """The version of the table that it is; -1 if there is none."""
        return -1 if self.snapshot is None else int(self.snapshot["summary"][VERSION])

    @property
    def files(self) -> str | None:
        """The folder of the table's own files; None if the metadata does not say it."""
        location: str | None = self.metadata.get("properties", {}).get(FILES)
        return location

    @property
    def is_continued(self) -> bool:
        """True if its manifests are those that are written here."""
        return bool(self.number) and self.metadata["format-version"] == FORMAT_VERSION


def number_of(version: int) -> int:
    """The number of the metadata file of a version."""
    return version + 1


def name_of(number: int) -> str:
    """The path of a metadata file."""
    return f"{METADATA}/v{number}.metadata.json"


def read_newest(folder: Folder, table_uuid: str) -> Before:
    """The newest metadata of the folder, which must be that of a publication of this table."""
    names = [
        name
        for name in folder.store.list(METADATA)
        if name.endswith(".metadata.json") and not name.startswith(f"{CATALOG_FOLDER}/")
    ]
    if not names:
        return Before(0, {})
    numbers = [0 if (m := _NAME.fullmatch(name)) is None else int(m[1]) for name in names]
    if not all(numbers):
        raise _of_another(folder)
    return read_numbered(folder, max(numbers), table_uuid)


def read_numbered(folder: Folder, number: int, table_uuid: str) -> Before:
    """The metadata of a number, which must be that of a publication of this table."""
    try:
        metadata = msgspec.json.decode(stored_file(folder.store, name_of(number)))
    except msgspec.DecodeError as error:
        raise CorruptData(
            f"publish: {name_of(number)} in {folder.store.uri} cannot be read; restore it "
            "from a copy, or publish into another folder"
        ) from error
    if not _is_ours(metadata, table_uuid):
        raise _of_another(folder)
    return Before(number, metadata)


def _of_another(folder: Folder) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"publish: {folder.store.uri}/{METADATA} has an Iceberg table of another writer or of "
        "another table; publish into a folder without an Iceberg table"
    )


def newest_number(folder: Folder) -> int:
    """The number of the newest metadata file that this writer names; 0 if there is none."""
    matches = map(_NAME.fullmatch, folder.store.list(METADATA))
    return max((int(match[1]) for match in matches if match is not None), default=0)


def has_hint(folder: Folder, number: int) -> bool:
    """Return whether the hint names the metadata file of this number."""
    try:
        return folder.store.get(HINT) == str(number).encode()
    except ObjectNotFound:
        return False


def _is_ours(metadata: Any, table_uuid: str) -> bool:
    if not isinstance(metadata, dict):
        return False
    last = (metadata.get("snapshots") or [{}])[-1]
    return (
        metadata.get("properties", {}).get(TABLE) == table_uuid
        and VERSION in last.get("summary", {})
        and last["snapshot-id"] == metadata.get("current-snapshot-id")
    )


def document(
    folder: Folder,
    files: str,
    snapshot: Snapshot,
    before: Before,
    schema: Mapping[str, Any],
    new: Mapping[str, Any],
    next_row_id: int,
    oldest_version: int,
    tags: Mapping[str, int],
) -> dict[str, Any]:
    """The next metadata file: that before, with the schema and the snapshot.

    `files` is the folder of the table's own files. `tags` are versions by name. Snapshots of
    versions before `oldest_version` are left out, unless a tag reads them.
    """
    old = before.metadata
    others = [each for each in old.get("schemas", ()) if each["schema-id"] != schema["schema-id"]]
    snapshots = [*_snapshots_to_name(before, oldest_version, frozenset(tags.values())), new]
    by_version = {int(each["summary"][VERSION]): each["snapshot-id"] for each in snapshots}
    used = {each["schema-id"] for each in snapshots}
    ids = set(by_version.values())
    snapshot_log = [
        *(each for each in old.get("snapshot-log", ()) if each["snapshot-id"] in ids),
        {"timestamp-ms": new["timestamp-ms"], "snapshot-id": new["snapshot-id"]},
    ]
    return {
        "format-version": FORMAT_VERSION,
        "table-uuid": old.get("table-uuid", str(uuid.UUID(snapshot.table.uuid))),
        "location": folder.root,
        "last-sequence-number": new["sequence-number"],
        "last-updated-ms": new["timestamp-ms"],
        "last-column-id": max(old.get("last-column-id", 0), snapshot.next_field_id - 1),
        "schemas": [*(each for each in others if each["schema-id"] in used), schema],
        "current-schema-id": schema["schema-id"],
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {TABLE: snapshot.table.uuid, FILES: files},
        "snapshots": snapshots,
        "current-snapshot-id": new["snapshot-id"],
        "refs": _refs(new, by_version, tags),
        "snapshot-log": snapshot_log,
        "metadata-log": _metadata_log(folder, before),
        "next-row-id": next_row_id,
    }


def _refs(
    new: Mapping[str, Any], by_version: Mapping[int, int], tags: Mapping[str, int]
) -> dict[str, Any]:
    """The branch `main` at the new snapshot, and the tags of published versions."""
    refs = {
        name: {"snapshot-id": by_version[version], "type": "tag"}
        for name, version in tags.items()
        if version in by_version
    }
    return {"main": {"snapshot-id": new["snapshot-id"], "type": "branch"}, **refs}


def _metadata_log(folder: Folder, before: Before) -> list[Any]:
    """The last metadata files, that of `before` included."""
    log = [*before.metadata.get("metadata-log", ())]
    if before.number:
        name = folder.location(name_of(before.number))
        log.append({"timestamp-ms": before.metadata["last-updated-ms"], "metadata-file": name})
    return log[-_MAX_OLD_METADATA:]


def _snapshots_to_name(
    before: Before, oldest_version: int, tagged: AbstractSet[int]
) -> Sequence[Mapping[str, Any]]:
    if not before.is_continued:
        return ()
    snapshots = before.metadata["snapshots"]
    versions = [int(each["summary"][VERSION]) for each in snapshots]
    recent = {version for version in versions if version >= oldest_version}
    named = tagged | set(sorted(recent)[1 - _MAX_SNAPSHOTS :])
    return [each for each, at in zip(snapshots, versions, strict=True) if at in named]
