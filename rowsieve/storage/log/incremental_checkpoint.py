"""Incremental checkpoints: the parts removed and added since a checkpoint, in one file.

    _rowsieve/checkpoints/<version>.<version of the checkpoint>.json    20 digits each

They have the lines of a checkpoint; `since` names the checkpoint, and `add` has added parts only.
A table of many parts has them at every second version on a store across a network, so that opening
it reads a checkpoint, one of these, and at most one entry.

Soundness: as for checkpoints, the log is authoritative, and a missing file changes no result. No
expiry relies on one, and a reader applies it only to the checkpoint whose commit it names. The
digest of the ids proves that the result has the parts of the version. Older releases ignore them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import msgspec

from rowsieve.errors import RowsieveError
from rowsieve.objects import ObjectStore, in_background, put_if_absent, reading_whole
from rowsieve.storage.changes_since import ChangesSince
from rowsieve.storage.log.checkpoint import (
    CHECKPOINTS,
    checkpoint_lines,
    read_parts,
    read_state,
    write_due_checkpoint,
)
from rowsieve.storage.log.checkpoint_turns import (
    has_checkpoint,
    is_early_turn,
    is_incremental_turn,
)
from rowsieve.storage.log.inline_parts import short_list
from rowsieve.storage.log.log_entry import convert, lines_by_kind, read_added_file
from rowsieve.storage.log.sealed_lines import damaged, seal
from rowsieve.storage.manifests.shards import digest_of_ids
from rowsieve.storage.snapshot import Snapshot

_NAME = re.compile(rf"{CHECKPOINTS}/(\d{{20}})\.(\d{{20}})\.json")
_KINDS: Final = ("checkpoint", "protocol", "table", "schema", "tokens", "since", "add")
_LIST_BYTES: Final = 64 * 1024  # of the compressed list of added parts
_log = logging.getLogger(__name__)


class _SinceLine(msgspec.Struct, forbid_unknown_fields=True):
    """The checkpoint, the ids of its removed parts, and the digest of all ids of the version."""

    version: int
    commit_id: str
    removed: tuple[str, ...]
    ids: str


def incremental_path(version: int, base: int) -> str:
    """Return the path of a version's incremental checkpoint after the checkpoint `base`."""
    return f"{CHECKPOINTS}/{version:020d}.{base:020d}.json"


def versions_of_incremental(path: str) -> tuple[int, int] | None:
    """Return the version and the one of its checkpoint; None for any other file."""
    match = _NAME.fullmatch(path)
    return (int(match[1]), int(match[2])) if match else None


def newest_incremental(paths: Iterable[str], checkpoints: Iterable[int]) -> tuple[int, int] | None:
    """Return the newest one whose checkpoint is listed, if no checkpoint is as new."""
    bases = set(checkpoints)
    versions = (each for path in paths if (each := versions_of_incremental(path)) is not None)
    newest = max((each for each in versions if each[1] in bases), default=None)
    return newest if newest is not None and newest[0] > max(bases) else None


def begin_due_checkpoint(store: ObjectStore, snapshot: Snapshot, before: Snapshot) -> Snapshot:
    """Begin to write the checkpoint of a new version, if one is due, and return the version.

    `before`: its predecessor. A failure is logged.
    """
    overlaps = store.overlaps
    if has_checkpoint(snapshot, before) or (overlaps and is_early_turn(snapshot)):
        if overlaps:
            since = ChangesSince(snapshot.version, snapshot.commit_id)
            snapshot = replace(snapshot, since=since)
        in_background(store, partial(write_due_checkpoint, store, snapshot))
    elif overlaps and is_incremental_turn(snapshot):
        in_background(store, partial(write_incremental, store, snapshot))
    return snapshot


def write_incremental(store: ObjectStore, snapshot: Snapshot) -> None:
    """Write the incremental checkpoint of a new version unless it is long; log a failure."""
    since = snapshot.since
    if since is None:
        return
    try:
        added = since.added
        file = None if added is None else short_list(added, snapshot.table, _LIST_BYTES)
        if added is not None and file is None:
            return
        ids = digest_of_ids(snapshot.parts)
        line = _SinceLine(since.version, since.commit_id, since.removed, ids)
        lines = [*checkpoint_lines(snapshot), {"since": line}]
        data = seal(lines if file is None else [*lines, {"add": file}])
        put_if_absent(store, incremental_path(snapshot.version, since.version), data)
    except RowsieveError as error:
        _log.warning("no checkpoint of version %d of %s: %s", snapshot.version, store.uri, error)


def read_incremental_lines(store: ObjectStore, version: int, base: int) -> Mapping[str, Any]:
    """Read and verify the file; CorruptData if it is damaged."""
    path = incremental_path(version, base)
    where = f"{path} in {store.uri}"
    return reading_whole(store, lambda: lines_by_kind(store.get(path), where, _KINDS))


def apply_incremental(
    store: ObjectStore, base: Snapshot, version: int, lines: Mapping[str, Any]
) -> Snapshot:
    """Return the version that the lines make of their checkpoint; CorruptData if they do not fit.

    `lines`: those of the incremental checkpoint of `version`.
    """
    where = f"{incremental_path(version, base.version)} in {store.uri}"
    if "since" not in lines:
        raise damaged(f"{where} lacks a required line")
    line = convert(lines["since"]["since"], _SinceLine, where)
    if (line.version, line.commit_id) != (base.version, base.commit_id):
        raise damaged(f"{where} does not follow the checkpoint of version {base.version}")
    file = read_added_file(lines, where)
    added = () if file is None else (read_parts(store, CHECKPOINTS, file),)
    since = ChangesSince(base.version, base.commit_id, line.removed, added)
    snapshot = read_state(lines, version, where, since.applied_to(base.parts), since)
    if snapshot.table.uuid != base.table.uuid or digest_of_ids(snapshot.parts) != line.ids:
        raise damaged(f"{where} does not make version {version} of its checkpoint")
    return snapshot
