"""Publish a version as the next version of a Delta log over the same files.

A version adds the files that are new, removes those that are gone, and replaces the deletion vector
of files in which other rows are hidden now. Only the parts that changed since the version before
are looked at. Features of the protocol are added when a version needs them, so a table without
hidden rows and changed columns has readers of any age.

Soundness (invariant 44): everything that Delta's readers would read otherwise is refused before
anything is written. The entry of the log is created last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec

from rowsieve.errors import CommitConflict, UnsupportedOperation
from rowsieve.objects import ObjectStore, put_if_absent, table_uri_of
from rowsieve.publication.delta.checkpoints import INTERVAL, LOG, write_checkpoint
from rowsieve.publication.delta.delta_schema import delta_schema, has_local_time
from rowsieve.publication.delta.delta_vectors import descriptors
from rowsieve.publication.delta.log_state import (
    COMMIT,
    DOMAIN,
    ENGINE,
    FILES,
    TABLE,
    VERSION,
    LogState,
    read_log,
)
from rowsieve.publication.delta.physical_names import are_other_names, physical_names
from rowsieve.publication.earlier_versions import Versions
from rowsieve.publication.places import check_unmoved, location_of
from rowsieve.publication.publication import Publication
from rowsieve.publication.published_rows import PublishedPart, published_parts, published_paths
from rowsieve.publication.readable_files import DELTA, check_readable
from rowsieve.publication.rows_beside import write_beside
from rowsieve.publication.touched_parts import touched_parts, unchecked_parts
from rowsieve.storage.snapshot import Snapshot

_WRITER_FEATURES: Final = frozenset({"domainMetadata", "inCommitTimestamp"})
_IN_COMMIT: Final = "delta.enableInCommitTimestamps"


def publish_log(
    target: ObjectStore, snapshot: Snapshot, source: ObjectStore, versions: Versions
) -> Publication:
    """Write the version as the next version of the Delta log in `target`, unless it is there.

    UnsupportedOperation if Delta readers would read other rows than we do, if the log is not this
    table's, or has a newer version, or if the table was moved; CommitConflict if another process
    wrote another version there.
    """
    state = read_log(target, snapshot.table.uuid)
    files = _folder_of(target, source)
    if state.folder is not None:
        check_unmoved(target, state.folder or target.uri, files or target.uri)
    if state.version == snapshot.version and state.commit_id in ("", snapshot.commit_id):
        return _publication(target, snapshot, state.number - 1)
    if state.version >= snapshot.version:
        raise UnsupportedOperation(
            f"publish: {target.uri} has version {state.version} already, and version "
            f"{snapshot.version} is older, or of another log; publish the newest version, or into "
            "another folder"
        )
    commit = None if state.folder is None else (state.version, state.commit_id)
    earlier = versions.before(commit)
    lines = _Writing(target, snapshot, source, state, earlier).lines()
    data = b"\n".join(msgspec.json.encode(line) for line in lines)
    if not put_if_absent(target, f"{LOG}/{state.number:020}.json", data):
        now = read_log(target, snapshot.table.uuid)
        if now.version == snapshot.version and now.commit_id == snapshot.commit_id:
            return _publication(target, snapshot, now.number - 1)
        raise CommitConflict(
            f"publish: another process wrote version {state.number} of {target.uri}/{LOG}; call "
            "it again"
        )
    if state.number and state.number % INTERVAL == 0:
        _write_state(target, snapshot, state.number)
    return _publication(target, snapshot, state.number)


def _write_state(target: ObjectStore, snapshot: Snapshot, number: int) -> None:
    state = read_log(target, snapshot.table.uuid)
    if state.number == number + 1:  # no other publication followed
        others = [{name: action} for name, action in state.others.items()]
        write_checkpoint(target, number, [*others, *({"add": add} for add in state.files.values())])


def _publication(target: ObjectStore, snapshot: Snapshot, number: int) -> Publication:
    return Publication("delta", snapshot.version, location_of(target.uri), number)


@dataclass(slots=True)
class _Writing:
    """One publication; `earlier` is the version in the log before, if it can be read."""

    target: ObjectStore
    snapshot: Snapshot
    source: ObjectStore
    state: LogState
    earlier: Snapshot | None

    def lines(self) -> list[dict[str, Any]]:
        """The actions of the next version."""
        snapshot, state = self.snapshot, self.state
        mapping = self._mapping()
        schema = msgspec.json.encode(delta_schema(snapshot.schema, mapping)).decode()
        touched = touched_parts(self.earlier, snapshot)
        check_readable(snapshot, self.source, unchecked_parts(self.earlier, snapshot), DELTA)
        _, published = published_parts(snapshot, self.source, touched)
        changes = list(self._changes(published))
        moment_ms = max(snapshot.timestamp_us // 1000, state.timestamp_ms + 1)
        info = {
            "inCommitTimestamp": moment_ms,
            "timestamp": moment_ms,
            "operation": "WRITE",
            "engineInfo": ENGINE,
        }
        commit_info = {
            VERSION: str(snapshot.version),
            COMMIT: snapshot.commit_id,
            FILES: _folder_of(self.target, self.source),
        }
        domain = {
            "domain": DOMAIN,
            "configuration": msgspec.json.encode(commit_info).decode(),
            "removed": False,
        }
        return [
            {"commitInfo": info},
            *self._protocol(mapping, changes),
            *self._metadata(schema, mapping, moment_ms),
            {"domainMetadata": domain},
            *changes,
        ]

    def _mapping(self) -> dict[int, str] | None:
        """The names in the files; None if they are those of the columns, and always were."""
        names = physical_names(self.snapshot, self.source)
        is_mapped = "columnMapping" in self.state.features
        return names if is_mapped or are_other_names(self.snapshot.schema, names) else None

    def _changes(self, published: Sequence[PublishedPart]) -> Iterator[dict[str, Any]]:
        """Removes and adds of files; a file with another vector is removed and added."""
        known, moment_ms = self.state.files, self.snapshot.timestamp_us // 1000
        prefix = _folder_of(self.target, self.source)
        parts = {
            part.path if part.is_beside else _path(prefix, part.path): part for part in published
        }
        inside, beside = published_paths(self.snapshot)
        empty = {path for path, part in parts.items() if not part.has_rows}
        wanted = {path: part for path, part in parts.items() if part.has_rows}
        hidden = {p: part.hidden for p, part in wanted.items() if part.hidden is not None}
        vectors = descriptors(self.target, hidden, known)
        current = {_path(prefix, path) for path in inside} | beside
        gone = known.keys() - (current - empty)
        stored = {path: add.get("deletionVector") for path, add in known.items()}
        again = {path for path in wanted if path in known and stored[path] != vectors.get(path)}
        for path in sorted(gone | again):
            yield {"remove": _removed(path, stored[path], moment_ms)}
        for path, part in wanted.items():
            if path not in known or path in again:
                yield {"add": _added(path, self._size(part), part, vectors.get(path), moment_ms)}

    def _size(self, part: PublishedPart) -> int:
        if part.is_beside:
            return write_beside(self.target, part.file, self.snapshot)
        return part.file.size_bytes

    def _protocol(
        self, mapping: Mapping[int, str] | None, changes: Iterable[Mapping[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        """The protocol, if it is not that of the version before; features are never dropped."""
        needed = {
            "columnMapping": mapping is not None,
            "timestampNtz": has_local_time(self.snapshot.schema),
            "deletionVectors": any(each.get("add", {}).get("deletionVector") for each in changes),
        }
        state = self.state
        features = state.features | {name for name, is_needed in needed.items() if is_needed}
        writers = features | _WRITER_FEATURES | state.writer_features
        if state.features == features and state.writer_features == writers:
            return
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
        readers = {"readerFeatures": sorted(features)}
        if not features:
            protocol, readers = {**protocol, "minReaderVersion": 1}, {}
        yield {"protocol": {**protocol, **readers, "writerFeatures": sorted(writers)}}

    def _metadata(
        self, schema: str, mapping: Mapping[int, str] | None, moment_ms: int
    ) -> Iterator[dict[str, Any]]:
        """The metadata of the table, if it is not that of the version before."""
        state, snapshot = self.state, self.snapshot
        configuration = {TABLE: snapshot.table.uuid, _IN_COMMIT: "true"}
        if "deletionVectors" in state.features:
            configuration["delta.enableDeletionVectors"] = "true"
        if mapping is not None:
            configuration["delta.columnMapping.mode"] = "name"
            configuration["delta.columnMapping.maxColumnId"] = str(snapshot.next_field_id - 1)
        for name, value in (("Version", state.number), ("Timestamp", moment_ms)):
            key = f"delta.inCommitTimestampEnablement{name}"
            if state.number and _IN_COMMIT not in state.configuration:
                configuration[key] = str(value)
            elif (known := state.configuration.get(key)) is not None:
                configuration[key] = known
        if state.number and (schema, configuration) == (state.schema, state.configuration):
            return
        created_ms = snapshot.timestamp_us // 1000 if state.created_ms is None else state.created_ms
        yield {
            "metaData": {
                "id": state.table_id,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema,
                "partitionColumns": [],
                "configuration": configuration,
                "createdTime": created_ms,
            }
        }


def _folder_of(target: ObjectStore, source: ObjectStore) -> str:
    """The prefix of the paths of the table's own files; empty if the log lies beside them."""
    files = table_uri_of(source.uri)
    return "" if table_uri_of(target.uri) == files else f"{files}/"


def _path(prefix: str, path: str) -> str:
    return quote(f"{prefix}{path}", safe="/:=%@,") if prefix else path


def _removed(path: str, vector: Mapping[str, Any] | None, moment_ms: int) -> dict[str, Any]:
    removed = {"path": path, "deletionTimestamp": moment_ms, "dataChange": True}
    return removed if vector is None else {**removed, "deletionVector": vector}


def _added(
    path: str,
    size_bytes: int,
    part: PublishedPart,
    vector: Mapping[str, Any] | None,
    moment_ms: int,
) -> dict[str, Any]:
    added = {
        "path": path,
        "partitionValues": {},
        "size": size_bytes,
        "modificationTime": moment_ms,
        "dataChange": True,
        "stats": msgspec.json.encode({"numRecords": part.file.rows}).decode(),
    }
    return added if vector is None else {**added, "deletionVector": vector}
