"""Begin a log with a version of another log: a copy of a table, a branch or a tag.

The checkpoint comes first: the entry completes the log, so that a call that dies leaves no table.

Soundness: the checkpoint has the ids of the new table and of its only commit. A call that meets the
checkpoint of the same version, from a call that died or runs at the same time, continues with these
ids. So all of them put one and the same entry. Beside any other checkpoint or entry no copy goes
on: each looks after it has put its own, so that of two at least one sees the other. A creation of a
new table looks only before: if a copy begins after that look, only one of the two tables can be
opened, or none.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from rowsieve.checksums import checksum
from rowsieve.errors import CorruptData, NotFound
from rowsieve.objects import ObjectStore, reading_whole
from rowsieve.properties import MOVED, OLDEST_BASE
from rowsieve.storage.log.checkpoint import read_checkpoint, write_checkpoint
from rowsieve.storage.log.commit_log import CommitLog, Draft
from rowsieve.storage.log.commit_request import CommitRequest, check_request
from rowsieve.storage.log.create_only import prove_create_only
from rowsieve.storage.log.floors import raised
from rowsieve.storage.log.inline_parts import LIST_BYTES, short_list
from rowsieve.storage.log.log_entry import LOG, AddedFile, LogEntry
from rowsieve.storage.log.refs import OwnRef, as_own_ref, without_refs
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.manifests.shards import digest_of_ids
from rowsieve.storage.snapshot import Snapshot, TableInfo


def check_plantable(log: CommitLog, version: Snapshot) -> None:
    """Check that the folder is vacant, or that a copy of this version has begun there.

    TableExists, InvalidInput or CorruptData otherwise.
    """
    planted = replace(version, table=_floored(version))
    if _begun(log, planted) is None or log.has_entries():
        log.check_vacant()


def plant(
    log: CommitLog, version: Snapshot, metadata: Mapping[str, Any], ref: OwnRef | None = None
) -> Snapshot:
    """Begin a log with a version of another one, whose data files are here already.

    It keeps its number, so that rows keep their commit_ts (invariant I1), under a new table id;
    earlier versions are gone. `ref`: it is that of a branch or tag, whose folder is new and whose
    data files have bases of their own. TableExists or CorruptData if another log begins here.
    """
    if ref is None:
        check_plantable(log, version)
    info = _floored(version) if ref is None else as_own_ref(_floored(version, OLDEST_BASE), ref)
    prove_create_only(log.store, info.uuid)
    request = CommitRequest("create", restored=version.parts, metadata=metadata)
    check_request(request)
    draft = log.store_parts(request, info, version.version)
    planted = replace(version, commit_id=draft.commit_id, table=info)
    if not write_checkpoint(log.store, planted):
        planted, draft = _continued(log, planted, draft)
    if ref is None:
        log.check_alone(version.version)
    entry = LogEntry(
        version=version.version,
        commit_id=planted.commit_id,
        predecessor=version.commit_id if version.version else None,
        table_uuid=planted.table.uuid,
        timestamp_us=version.timestamp_us,
        operation=request.operation,
        rows_written=version.parts.row_count,
        metadata=metadata,
        info=planted.table,
        schema=version.schema,
        next_field_id=version.next_field_id,
        file=draft.file,
    )
    if log.publish(entry) is None:
        raise log.table_exists()
    return log.latest(planted)


def _floored(version: Snapshot, *dropped: str) -> TableInfo:
    """The facts of the new table, with an id of its own and no version before this one."""
    properties = without_refs(version.table.properties)
    for name in (MOVED, *dropped):  # MOVED is of the log that it begins from
        properties.pop(name, None)
    info = replace(version.table, uuid=uuid.uuid4().hex, properties=properties)
    return raised(info, oldest_version=version.version)


def _begun(log: CommitLog, planted: Snapshot) -> Snapshot | None:
    """The checkpoint of another call that plants the same; None if there is none, or another."""
    try:
        begun = read_checkpoint(log.store, planted.version)
    except (CorruptData, NotFound):
        return None
    is_same = _facts(begun) == _facts(planted)
    return begun if is_same and digest_of_ids(begun.parts) == digest_of_ids(planted.parts) else None


def _facts(version: Snapshot) -> tuple[object, ...]:
    table = replace(version.table, uuid="")
    return version.timestamp_us, table, version.schema, version.next_field_id, version.tokens


def _continued(log: CommitLog, planted: Snapshot, draft: Draft) -> tuple[Snapshot, Draft]:
    """Take the ids of the checkpoint that is there, and the list of parts that it came after."""
    begun = _begun(log, planted)
    if begun is None:
        log.check_vacant()
        raise log.table_exists()
    parts = draft.parts
    file = None if parts is None else short_list(parts, begun.table, LIST_BYTES)
    if parts is not None and file is None:
        name = f"{begun.commit_id}.arrow"
        data = reading_whole(log.store, partial(_list_of, parts, log.store, f"{LOG}/{name}"))
        file = AddedFile(name, len(data), checksum(data), len(parts), parts.row_count)
    planted = replace(planted, commit_id=begun.commit_id, table=begun.table)
    return planted, replace(draft, commit_id=begun.commit_id, file=file)


def _list_of(parts: PartTable, store: ObjectStore, path: str) -> bytes:
    """Read a list of these parts; CorruptData if it is not, such as a cut answer.

    Only the entry, which is to be written, has the checksum of the list.
    """
    data = store.get(path)
    if digest_of_ids(PartTable.from_ipc(data)) != digest_of_ids(parts):
        raise CorruptData(f"{path} in {store.uri} does not list the parts of the copy")
    return data
