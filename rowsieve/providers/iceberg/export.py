"""Write Iceberg metadata over the files of one version of a table: `table.export("iceberg")`.

The metadata are those of format version 2: the schema with the field ids that the files have, a
snapshot with manifests, and statistics of the files. No data is copied. An export adds a snapshot.
Soundness: rows that newer versions or deletes hide become position deletes, and files without
visible rows are omitted. Files of earlier columns are exported only if Iceberg's rules read them as
ours do. Anything else is refused, with what to do.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from rowsieve.bridges.extras import imported
from rowsieve.errors import CommitConflict, UnsupportedOperation
from rowsieve.executor.visible_by_part import visible_by_part
from rowsieve.objects import ObjectExists, ObjectStore
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.providers.iceberg.clean import check_exportable
from rowsieve.providers.iceberg.file_metrics import FileMetrics, file_metrics
from rowsieve.providers.iceberg.iceberg_schema import iceberg_schema
from rowsieve.providers.iceberg.manifest_files import (
    METADATA,
    ManifestFiles,
    SnapshotFiles,
    location_of,
)
from rowsieve.providers.iceberg.position_deletes import position_deletes
from rowsieve.storage.manifests.manifest import FileRef
from rowsieve.storage.snapshot import Snapshot

_NAME: Final = re.compile(rf"{METADATA}/v([1-9][0-9]{{0,17}})\.metadata\.json", re.ASCII)
_TABLE: Final = "rowsieve.table"
_VERSION: Final = "rowsieve.version"
_MAX_OLD_METADATA: Final = 100


@dataclass(frozen=True, slots=True)
class _Before:
    """The newest metadata of the target: number 0 and an empty document if there are none."""

    number: int
    metadata: Mapping[str, Any]

    @property
    def snapshot(self) -> Mapping[str, Any] | None:
        """The current snapshot."""
        return self.metadata["snapshots"][-1] if self.number else None


def export_metadata(target: ObjectStore, snapshot: Snapshot, source: ObjectStore) -> int:
    """Write the version as the next metadata file in `target`; return its number.

    Returns the newest number if its file has this version already. UnsupportedOperation if readers
    of Iceberg would read other rows than we do; CommitConflict if another process wrote that file.
    """
    check_exportable(snapshot, source)
    schema = iceberg_schema(snapshot.schema, snapshot.table.key)
    before = _read(target, snapshot)
    number, latest = before.number + 1, before.snapshot
    if latest is not None and latest["summary"][_VERSION] == str(snapshot.version):
        return before.number
    sequence_number = before.metadata.get("last-sequence-number", 0) + 1
    snapshot_id = uuid.uuid4().int >> 65
    files, deletes = _files(target, snapshot, source)
    written = ManifestFiles(target, msgspec.json.encode(schema).decode()).write(
        files,
        deletes,
        None if latest is None else latest["manifest-list"],
        snapshot_id,
        None if latest is None else latest["snapshot-id"],
        sequence_number,
    )
    moment_ms = max(snapshot.timestamp_us // 1000, before.metadata.get("last-updated-ms", 0))
    new = {
        "snapshot-id": snapshot_id,
        "sequence-number": sequence_number,
        "timestamp-ms": moment_ms,
        "manifest-list": written.manifest_list,
        "schema-id": schema["schema-id"],
        "summary": _summary(snapshot, written, files, deletes),
    }
    if latest is not None:
        new["parent-snapshot-id"] = latest["snapshot-id"]
    document = _document(target, snapshot, before, schema, new)
    try:
        target.put_new(f"{METADATA}/v{number}.metadata.json", msgspec.json.encode(document))
    except ObjectExists as error:
        raise CommitConflict(
            f"export: another process wrote metadata {number} of {target.uri}; call it again"
        ) from error
    return number


def _read(target: ObjectStore, snapshot: Snapshot) -> _Before:
    """The newest metadata that an export of this table wrote in the target."""
    names = [name for name in target.list(METADATA) if name.endswith(".metadata.json")]
    numbers = [None if (m := _NAME.fullmatch(name)) is None else int(m[1]) for name in names]
    if not names:
        return _Before(0, {})
    known = [number for number in numbers if number is not None]
    if len(known) == len(numbers):
        number = max(known)
        metadata = msgspec.json.decode(target.get(f"{METADATA}/v{number}.metadata.json"))
        own = metadata.get("properties", {}).get(_TABLE) == snapshot.table.uuid
        snapshots = metadata.get("snapshots") or [{}]
        last = snapshots[-1]
        if (
            own
            and _VERSION in last.get("summary", {})
            and last["snapshot-id"] == metadata.get("current-snapshot-id")
        ):
            return _Before(number, metadata)
    raise UnsupportedOperation(
        f"export: {target.uri}/{METADATA} has an Iceberg table of another writer or of another "
        "table; export to a folder without an Iceberg table"
    )


def _files(
    target: ObjectStore, snapshot: Snapshot, source: ObjectStore
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The data files with visible rows, and the files that hide rows of them, by location."""
    root, parts = location_of(source.uri), snapshot.parts
    plan = plan_scan(snapshot, source.uri, now_us=0)
    visible = {part.part_id: rows for part, rows in visible_by_part(plan, source)}
    files: dict[str, Any] = {}
    deletes: dict[str, Any] = {}
    metrics = file_metrics(parts, snapshot.schema)
    for part_id, ref, own in zip(parts.part_ids, parts.files("data"), metrics, strict=True):
        if ref is None or part_id not in visible:
            continue
        location, rows = f"{root}/{ref.path}", visible[part_id]
        if rows is not None and rows.is_empty:
            continue
        files[location] = _data_file(location, ref, own)
        if rows is not None and not rows.is_full:
            hidden = position_deletes(target, part_id, location, rows.complement().to_ids())
            deletes[hidden.file_path] = hidden
    return files, deletes


def _data_file(location: str, ref: FileRef, metrics: FileMetrics) -> Any:
    manifest: Any = imported("pyiceberg.manifest", "iceberg")
    typedef: Any = imported("pyiceberg.typedef", "iceberg")
    return manifest.DataFile.from_args(
        _table_format_version=2,
        content=manifest.DataFileContent.DATA,
        file_path=location,
        file_format=manifest.FileFormat.PARQUET,
        partition=typedef.Record(),
        record_count=ref.rows,
        file_size_in_bytes=ref.size_bytes,
        column_sizes={},  # unknown; pyiceberg lists no files without it
        value_counts=metrics.value_counts,
        null_value_counts=metrics.null_value_counts,
        nan_value_counts=metrics.nan_value_counts,
        lower_bounds=metrics.lower_bounds,
        upper_bounds=metrics.upper_bounds,
    )


def _summary(
    snapshot: Snapshot,
    written: SnapshotFiles,
    files: Mapping[str, Any],
    deletes: Mapping[str, Any],
) -> dict[str, str]:
    operation = "overwrite"
    if not written.removed and not written.added_deletes and not written.removed_deletes:
        operation = "append"
    elif not written.added and not written.removed_deletes:
        operation = "delete"
    counts = {
        "added-data-files": len(written.added),
        "added-records": _records(written.added),
        "deleted-data-files": len(written.removed),
        "deleted-records": _records(written.removed),
        "added-delete-files": len(written.added_deletes),
        "removed-delete-files": len(written.removed_deletes),
        "total-data-files": len(files),
        "total-records": _records(files.values()),
        "total-files-size": sum(file.file_size_in_bytes for file in files.values()),
        "total-delete-files": len(deletes),
        "total-position-deletes": _records(deletes.values()),
        _VERSION: snapshot.version,
    }
    return {"operation": operation, **{name: str(count) for name, count in counts.items()}}


def _records(files: Iterable[Any]) -> int:
    return sum(file.record_count for file in files)


def _document(
    target: ObjectStore,
    snapshot: Snapshot,
    before: _Before,
    schema: dict[str, Any],
    new: dict[str, Any],
) -> dict[str, Any]:
    """The metadata file: that of the export before, with the schema and the snapshot."""
    old = before.metadata
    root = location_of(target.uri)
    moment = {"timestamp-ms": new["timestamp-ms"]}
    log = [*old.get("metadata-log", ())]
    if before.number:
        name = f"{root}/{METADATA}/v{before.number}.metadata.json"
        log.append({"timestamp-ms": old["last-updated-ms"], "metadata-file": name})
    others = [each for each in old.get("schemas", ()) if each["schema-id"] != schema["schema-id"]]
    return {
        "format-version": 2,
        "table-uuid": old.get("table-uuid", str(uuid.uuid4())),
        "location": root,
        "last-sequence-number": new["sequence-number"],
        "last-updated-ms": new["timestamp-ms"],
        "last-column-id": max(old.get("last-column-id", 0), snapshot.next_field_id - 1),
        "schemas": [*others, schema],
        "current-schema-id": schema["schema-id"],
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {_TABLE: snapshot.table.uuid},
        "snapshots": [*old.get("snapshots", ()), new],
        "current-snapshot-id": new["snapshot-id"],
        "refs": {"main": {"snapshot-id": new["snapshot-id"], "type": "branch"}},
        "snapshot-log": [
            *old.get("snapshot-log", ()),
            {**moment, "snapshot-id": new["snapshot-id"]},
        ],
        "metadata-log": log[-_MAX_OLD_METADATA:],
    }
