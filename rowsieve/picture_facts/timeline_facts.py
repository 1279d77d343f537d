"""The newest versions of a table, with the bytes that each added and removed, and what keeps them.

Reads the entries of these versions with their lists of parts; lists leases and checkpoints.

Soundness: what is not known, such as the size of a part that came before these versions, is shown
as unknown and never as nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from rowsieve.changes.table_handle import Handle
from rowsieve.errors import CorruptData, SnapshotExpired
from rowsieve.objects import table_store
from rowsieve.pictures.timeline import Timeline, VersionMark
from rowsieve.refs.registering import list_refs
from rowsieve.retention.leases import NO_VERSION, lease_files
from rowsieve.storage.log.checkpoint import CHECKPOINTS, checkpoint_version_of
from rowsieve.storage.log.conflicts import OPERATIONS, Kind
from rowsieve.storage.log.floors import floors_of
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.refs import own_ref
from rowsieve.storage.manifests.manifest import PartTable

DEFAULT_VERSIONS: Final = 100
_Bytes = tuple[int | None, int | None]


def timeline_of(handle: Handle, limit: int) -> Timeline:
    """Return the newest versions of a table; `limit` of them at most."""
    handle.require_committed("timeline")
    commits = handle.log.history(limit)
    sizes, notes = _sizes(handle, commits)
    head = handle.committed()
    return Timeline(
        handle.store.uri,
        marks_of(commits, sizes, _labels(handle), calls_of(handle)),
        floors_of(head.table.properties).oldest_version or None,
        notes,
    )


def calls_of(handle: Handle) -> str:
    """The call that opens a version, with `{}` in place of its number."""
    own_ref_ = own_ref(handle.pinned.table.properties)
    ref = "" if own_ref_ is None else f", ref={own_ref_.name!r}"
    uri = table_store(handle.store).uri.replace("{", "{{").replace("}", "}}")
    return f"rs.open_table({uri!r}{ref}, version={{}})"


def marks_of(
    commits: Iterable[Commit],
    sizes: Mapping[int, _Bytes],
    labels: Mapping[int, list[str]],
    call: str,
) -> tuple[VersionMark, ...]:
    """The commits, newest first, as marks, oldest first."""
    return tuple(
        VersionMark(
            each.version,
            f"{each.timestamp:%Y-%m-%d %H:%M:%S}",
            each.operation,
            each.rows_written,
            each.rows_deleted,
            each.parts_added,
            each.parts_removed,
            *sizes.get(each.version, (None, None)),
            OPERATIONS.get(each.operation) is Kind.REWRITING,
            tuple(labels.get(each.version, ())),
            call.format(each.version),
        )
        for each in reversed(list(commits))
    )


def _sizes(handle: Handle, commits: list[Commit]) -> tuple[dict[int, _Bytes], tuple[str, ...]]:
    """The bytes that each version added and removed; unknown ones are None."""
    versions = [each.version for each in reversed(commits)]
    if not versions:
        return {}, ()
    try:
        known = _bytes_by_part(handle.log.at(versions[0] - 1).parts) if versions[0] else {}
    except (SnapshotExpired, CorruptData):
        known = {}
    try:
        entries = handle.log.loaded_entries(versions)
    except SnapshotExpired:
        return {}, ("Bytes are not known: lists of parts of these versions have expired.",)
    sizes: dict[int, _Bytes] = {}
    for entry in entries:
        if entry is None:
            continue
        removed = [known.get(part) for part in entry.removed]
        gone = [size for size in removed if size is not None]
        added = {} if entry.added is None else _bytes_by_part(entry.added)
        known.update(added)
        sizes[entry.version] = (
            sum(added.values()),
            sum(gone) if len(gone) == len(removed) else None,
        )
    return sizes, ()


def _bytes_by_part(parts: PartTable) -> dict[str, int]:
    sizes = parts.numbers("data.size_bytes") + parts.numbers("deletes.size_bytes")
    return dict(zip(parts.part_ids, sizes.tolist(), strict=True))


def _labels(handle: Handle) -> dict[int, list[str]]:
    """What keeps or holds a version: tags, branches, leases and checkpoints."""
    labels: defaultdict[int, list[str]] = defaultdict(list)
    ref = own_ref(handle.pinned.table.properties)
    line = "main" if ref is None else ref.name
    rows: list[dict[str, Any]] = list_refs(handle).to_pylist()
    for row in rows:
        if row["of"] == line:
            labels[row["base_version"]].append(f"{row['kind']} {row['name']}")
    leases = lease_files(handle.store)
    for lease in (each for each in leases if each.version != NO_VERSION):
        labels[lease.version].append("lease")
    for path in handle.store.details(CHECKPOINTS):
        if (version := checkpoint_version_of(path)) is not None:
            labels[version].append("checkpoint")
    return labels
