"""Create branches and tags, list them, and drop them.

Soundness (invariants 16 and 42): a lease protects the version until the commit that registers the
ref, and the log of the ref is complete before that commit. Retention reads the registered refs
after it has listed the leases, so it sees one or the other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
import pyarrow as pa

from rowsieve.arguments.annotations import Metadata, Moment
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import CommitConflict, InvalidInput, UnsupportedOperation
from rowsieve.objects import ObjectNotFound, ObjectStore, RefStore
from rowsieve.objects.ref_store import tag_of
from rowsieve.objects.shared.shown_place import shown_place
from rowsieve.refs.opening_refs import handle_at, ref_snapshot, table_log
from rowsieve.retention.dropped_refs import remove_dropped
from rowsieve.retention.retaining import leased
from rowsieve.storage.log.commit_log import CommitLog, check_writable
from rowsieve.storage.log.commit_request import CommitRequest
from rowsieve.storage.log.floors import floors_of
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.refs import (
    OwnRef,
    Ref,
    RefKind,
    checked_ref_name,
    dropped_of,
    new_folder,
    ref_named,
    refs_of,
    store_of,
    with_refs,
)
from rowsieve.storage.log.retries import Retries
from rowsieve.storage.planting import plant
from rowsieve.storage.snapshot import Snapshot
from rowsieve.storage.versioned_names import base_of_id

REFS: Final = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
        pa.field("base_version", pa.int64(), nullable=False),
        pa.field("of", pa.string(), nullable=False),
        pa.field("timestamp", pa.timestamp("us", "UTC"), nullable=False),
    ]
)
"""The columns of the list of branches and tags."""

_TRIES: Final = 3


def create_ref(
    handle: Handle,
    kind: RefKind,
    name: str,
    version: int | str | None,
    as_of: Moment | None,
    metadata: Metadata | None,
) -> tuple[Commit, Handle]:
    """Register a branch or tag of a version, and open it."""
    operation = f"create_{kind.value}"
    checked_ref_name(name)
    log = table_log(handle)
    with (
        handle.changing(operation),
        leased(handle, version=version, as_of=as_of, holder=operation) as origin,
    ):
        for _ in range(_TRIES):
            head = log.latest()
            check_writable(operation, head)
            _check_free(name, head, log.store)
            try:
                ref = _planted(log, head, origin, kind, name)
                commit = _registered(handle, log, head, operation, name, ref, origin, metadata)
            except _GivenUp:
                continue
            return commit, handle_at(handle, name)
    raise CommitConflict(
        f"{operation}: remove_orphans ran {_TRIES} times meanwhile, and nothing was created; call "
        "it again"
    )


class _GivenUp(CommitConflict):
    """The floor of the table refuses the folder: it may be deleted at any time."""


def _planted(log: CommitLog, head: Snapshot, origin: Handle, kind: RefKind, name: str) -> Ref:
    """Begin the log of a ref with the version of a handle.

    A branch of a branch has the base of that one: what is published of it is all that both have
    changed since.
    """
    version, folder = origin.pinned, new_folder(name, head.version)
    source = _source(origin, head)
    commit_id, of = version.commit_id, ""
    if source is not None:
        of = source.of if source.is_tag else source.folder
        commit_id = source.commit_id if source.is_tag else commit_id
    ref = Ref(kind, folder, version.version, commit_id, version.timestamp_us, of)
    if source is not None and kind is RefKind.BRANCH and not source.is_tag:
        known = tuple(each for each in source.published if each.of_branch <= version.version)
        ref = msgspec.structs.replace(source, folder=folder, published=known)
    notes = {"ref": name, "of": origin.store.uri}
    try:
        plant(CommitLog(store_of(log.store, folder)), version, notes, OwnRef(kind, name))
    except (ObjectNotFound, UnsupportedOperation):  # its files went while they were written
        _check_not_given_up(name, folder, log.latest())
        raise
    return ref


def _check_not_given_up(name: str, folder: str, newest: Snapshot) -> None:
    base = base_of_id(tag_of(folder))
    if base is None or base < floors_of(newest.table.properties).oldest_base:
        raise _GivenUp(f"the folder of {name!r} was given up meanwhile")


def _source(origin: Handle, head: Snapshot) -> Ref | None:
    """The branch or tag whose version a handle has; None for the table itself.

    A tag has a version of another log, in whose numbers it counts.
    """
    if not isinstance(origin.store, RefStore):
        return None
    for ref in refs_of(head.table.properties).values():
        if ref.folder == origin.store.folder:
            return ref
    raise CommitConflict(
        f"the branch or tag at {origin.store.uri} was dropped meanwhile; refs() lists those that "
        "there are"
    )


def _registered(
    handle: Handle,
    log: CommitLog,
    head: Snapshot,
    operation: str,
    name: str,
    ref: Ref,
    origin: Handle,
    metadata: Metadata | None,
) -> Commit:
    def info_for(newest: Snapshot) -> tuple[dict[str, Ref], tuple[str, ...]]:
        properties = newest.table.properties
        _check_free(name, newest, log.store)
        _check_not_given_up(name, ref.folder, newest)
        refs, dropped = refs_of(properties), dropped_of(properties)
        _source(origin, newest)
        return {**refs, name: ref}, dropped

    notes = {**(metadata or {}), "ref": name, "version": str(ref.version)}
    return commit_refs(handle, log, head, operation, notes, info_for)


def commit_refs(
    handle: Handle,
    log: CommitLog,
    head: Snapshot,
    operation: str,
    metadata: Mapping[str, str],
    refs_for: Callable[[Snapshot], tuple[Mapping[str, Ref], tuple[str, ...]]],
) -> Commit:
    """Commit other refs of the table; `refs_for` returns them and the dropped folders."""
    started_s = time.perf_counter()

    def request_for(newest: Snapshot) -> CommitRequest:
        info = with_refs(newest.table, *refs_for(newest))
        return CommitRequest(operation, info=info, metadata=metadata)

    def again(newest: Snapshot, _: object) -> CommitRequest:
        return request_for(newest)

    commit, snapshot = log.commit(request_for(head), head, again, Retries(operation))
    if log is handle.log and not handle.read_only:
        handle.pin(snapshot)
    return handle.reported(commit, started_s)


def _check_free(name: str, head: Snapshot, store: ObjectStore) -> None:
    if (ref := refs_of(head.table.properties).get(name)) is not None:
        raise InvalidInput(
            f"{shown_place(store)} has a {ref.kind.value} {name!r} already, of version "
            f"{ref.version}; drop it first, or choose another name"
        )


def drop_ref(handle: Handle, name: str, kind: RefKind | None, metadata: Metadata | None) -> Commit:
    """Remove a branch or tag, and delete the files that nothing else needs.

    What a lease protects is deleted by a later `vacuum`. VersionNotFound if there is none.
    """
    with handle.changing("drop_ref" if kind is None else f"drop_{kind.value}"):
        commit = unregister_ref(handle, name, kind, metadata)
        log = table_log(handle)
        remove_dropped(log.store, log)
        return commit


def unregister_ref(
    handle: Handle, name: str, kind: RefKind | None, metadata: Metadata | None
) -> Commit:
    """Remove a branch or tag from the table; its files stay until `remove_dropped`."""
    log = table_log(handle)
    head = log.latest()
    known = ref_named(name, head, shown_place(log.store))
    operation = f"drop_{known.kind.value}"
    check_writable(operation, head)
    if kind is not None and known.kind is not kind:
        raise InvalidInput(
            f"drop_{kind.value}: {name!r} is a {known.kind.value}, not a {kind.value}; use "
            f"drop_{known.kind.value}"
        )

    def refs_for(newest: Snapshot) -> tuple[Mapping[str, Ref], tuple[str, ...]]:
        properties = newest.table.properties
        ref = ref_named(name, newest, shown_place(log.store))
        left = {each: other for each, other in refs_of(properties).items() if each != name}
        return left, (*dropped_of(properties), ref.folder)

    notes = {**(metadata or {}), "ref": name}
    return commit_refs(handle, log, head, operation, notes, refs_for)


def list_refs(handle: Handle) -> pa.Table:
    """The branches and tags with the newest version of each; reads the log of each branch."""
    log = table_log(handle)
    refs = refs_of(log.newest().table.properties)
    names = {ref.folder: name for name, ref in refs.items()}
    rows = []
    for name, ref in sorted(refs.items()):
        newest = ref.version, ref.timestamp_us
        if not ref.is_tag:
            snapshot = ref_snapshot(log.store, name, ref)[1]
            newest = snapshot.version, snapshot.timestamp_us
        of = "main" if not ref.of else names.get(ref.of, "a dropped branch")
        rows.append((name, ref.kind.value, newest[0], ref.version, of, newest[1]))
    return pa.Table.from_pylist([dict(zip(REFS.names, row, strict=True)) for row in rows], REFS)
