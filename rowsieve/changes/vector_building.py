"""Build the stored deletion vectors of a table with a key.

A commit of vectors removes the entries of some parts and adds them again with their vectors; files
of rows stay as they are.

Soundness (invariants I3 and I4): a vector is complete through the version that it was computed
from. Later upserts and deletes only hide more rows, which readers find from keys, so the commit may
follow them. It conflicts with each operation that replaces parts: rewrite, restore, overwrite
(invariant 13). A writer that does not know the vectors would keep one where a restore makes rows
visible again, so a table that has them requires a writer of protocol 4.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from rowsieve.changes.change import Question
from rowsieve.changes.mutation import Mutation, never
from rowsieve.config import DEFAULT
from rowsieve.errors import CorruptData, SnapshotExpired
from rowsieve.executor.execute import Execution
from rowsieve.executor.read_ahead import PREFETCH_DIVISOR
from rowsieve.executor.stored_vectors import complete_through, few_are_fresh, readable
from rowsieve.objects import FetchingStore, ObjectStore, Uploads
from rowsieve.parquet.footer import expect_tails
from rowsieve.planner.overlap import overlap_groups
from rowsieve.planner.part_facts import planned_parts
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.planner.split import PlannedPart
from rowsieve.predicate.rowset import RowSet
from rowsieve.storage.log.commit_request import CommitRequest
from rowsieve.storage.log.conflicts import Kind
from rowsieve.storage.log.log_reader import LogReader
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.manifests.vector_columns import VectorRef
from rowsieve.storage.parts.vector_files import places_of_vectors, write_vectors
from rowsieve.storage.snapshot import VECTORS_WRITER, Snapshot, TableInfo
from rowsieve.types.ordering.keys import KeyOrder

_WHOLE = 2**62  # bytes of a split: parts are never cut
FILE_BYTES: Final = 16 * 1024 * 1024  # of bitmaps in memory; then a new file begins


def plan_vectors(
    store: ObjectStore,
    snapshot: Snapshot,
    question: Question | None,
    metadata: Mapping[str, str],
    *,
    if_many: bool = False,
) -> Mutation | None:
    """Store the vectors of all parts whose vectors are not complete; None if there are none.

    `question`: only overlap groups with a part that may hold a row for which it is TRUE. `if_many`:
    only groups where too many keys are not covered by vectors to look them up. The caller commits.
    """
    groups = list(overlapping_parts(store, snapshot, question))
    if if_many:
        groups = [group for group in groups if not few_keys_are_new(snapshot, group)]
    uploads, refs = Uploads(store), dict[int, VectorRef]()
    waiting: dict[int, RowSet] = {}

    def store_waiting() -> None:
        vector_refs = write_vectors(
            uploads, list(waiting.values()), snapshot.version, snapshot.version
        )
        refs.update(zip(waiting, vector_refs, strict=True))
        waiting.clear()

    for group in groups:
        waiting.update(_hidden_rows(store, snapshot, [group]))
        if sum(rows.size_bytes for rows in waiting.values()) >= FILE_BYTES:
            store_waiting()
    store_waiting()
    return vectors_mutation("build_deletion_vectors", snapshot, refs, metadata, uploads)


def with_eager_vectors(store: ObjectStore, head: Snapshot, request: CommitRequest) -> CommitRequest:
    """Return the request with the vectors that become necessary by its new parts.

    For the commit right after `head`, if the table's property `visibility` is "eager"; otherwise
    the request itself. Also the request itself if another commit already follows `head`: a file may
    be gone then, and the caller computes the request again. Reads the keys of the new parts, from
    memory while their uploads run, and those of older parts that may be equal.
    """
    added, table = request.added, head.table
    if not added or not table.is_eager:
        return request
    if table.writer_version < VECTORS_WRITER or request.removed or request.schema is not None:
        return request
    try:
        return _with_vectors(store, head, request, added)
    except (SnapshotExpired, CorruptData):
        if LogReader(store).latest().version <= head.version:
            raise
        return request


def _with_vectors(
    store: ObjectStore, head: Snapshot, request: CommitRequest, added: PartTable
) -> CommitRequest:
    version = head.version + 1
    added_then = added.with_commit_ts(version)
    after = head.parts.append(added_then)
    then = dataclasses.replace(head, version=version, parts=after)
    ids, fresh = after.part_ids, frozenset(added.part_ids)
    groups = [
        group
        for group in overlapping_parts(store, then, None)
        if not fresh.isdisjoint(ids[i] for i in group)
    ]
    if not groups:
        return request
    reading = _beside_uploads(store, request.uploads, added_then)
    hidden = dict(_hidden_rows(reading, then, groups))
    if not hidden:
        return request
    uploads = request.uploads or Uploads(store)
    refs = write_vectors(uploads, list(hidden.values()), version, head.version)
    entries = after.take(np.array(list(hidden)))
    return dataclasses.replace(
        request,
        added=added.append(entries.with_vectors(refs)),
        removed=entries.part_ids,
        uploads=uploads,
    )


def _beside_uploads(store: ObjectStore, uploads: Uploads | None, added: PartTable) -> ObjectStore:
    """A store with the files of these parts, in memory while they are uploaded."""
    if uploads is None:
        return store
    files = [
        ref.path
        for part in planned_parts(added, range(len(added)))
        for ref in (part.data, part.deletes)
        if ref is not None and not ref.in_memory
    ]
    if not store.overlaps or not uploads.recent.keys() >= set(files):
        uploads.wait()
        return store
    fetching = FetchingStore(store, DEFAULT.memory_bytes // PREFETCH_DIVISOR)
    for path in files:
        fetching.supply(path, uploads.recent[path])
    return fetching


def with_vectors_protocol(info: TableInfo) -> TableInfo:
    """Return the table information with the protocol that stored vectors require."""
    return dataclasses.replace(info, writer_version=max(info.writer_version, VECTORS_WRITER))


def overlapping_parts(
    store: ObjectStore, snapshot: Snapshot, question: Question | None
) -> Iterator[list[int]]:
    """The overlap groups of several parts; with a question, those that may hold a row of it."""
    order = KeyOrder.of(snapshot.schema, snapshot.table.key)
    chosen = chosen_parts(store, snapshot, question)
    ids = snapshot.parts.part_ids
    for group in overlap_groups(snapshot.parts.select("key.").table, order):
        if len(group) > 1 and (chosen is None or any(ids[i] in chosen for i in group)):
            yield group


def chosen_parts(
    store: ObjectStore, snapshot: Snapshot, question: Question | None
) -> frozenset[str] | None:
    """The ids of the parts that may hold a row of the question; None without a question."""
    if question is None:
        return None
    plan = plan_scan(
        snapshot,
        store.uri,
        predicate=question.predicate,
        semantics=question.semantics,
        now_us=question.now_us,
    )
    pieces = (piece for split in plan.splits for piece in split.pieces)
    return frozenset(piece.parts[r.part].part_id for piece in pieces for r in piece.reads)


def few_keys_are_new(snapshot: Snapshot, group: Sequence[int]) -> bool:
    """Return whether a first read of an overlap group looks few keys up, or none; reads no file."""
    parts = planned_parts(snapshot.parts, sorted(group))
    return few_are_fresh(sorted(parts, key=lambda part: part.commit_ts, reverse=True))


def groups_plan(
    store: ObjectStore, snapshot: Snapshot, groups: Iterable[Sequence[int]]
) -> tuple[ScanPlan, dict[str, int]]:
    """The plan of all rows of overlap groups, and the newest commit of its group by part id."""
    newest: dict[str, int] = {}
    for group in groups:
        members = planned_parts(snapshot.parts, sorted(group))
        last = max(part.commit_ts for part in members)
        newest.update((part.part_id, last) for part in members)
    places = [i for i, part_id in enumerate(snapshot.parts.part_ids) if part_id in newest]
    only = dataclasses.replace(snapshot, parts=snapshot.parts.take(np.array(places)))
    return plan_scan(only, store.uri, now_us=0, split_bytes=_WHOLE), newest


def lacking_rows(
    store: ObjectStore, plan: ScanPlan, newest: Mapping[str, int]
) -> Iterator[tuple[str, RowSet]]:
    """Return, by part id, the rows that newer parts hide, for parts whose vector lacks some.

    `newest`: the newest commit of the parts that overlap a part, directly or through others.
    """
    pieces = (piece for split in plan.splits for piece in split.pieces)
    parts = list({part.part_id: part for piece in pieces for part in piece.parts}.values())
    if store.overlaps and not isinstance(store, FetchingStore):
        store = FetchingStore(store, DEFAULT.memory_bytes // PREFETCH_DIVISOR)
    _expect(store, parts, with_tails=any(_lacks_some(newest, part) for part in parts))
    lacking = {part.part_id for part in readable(store, parts) if _lacks_some(newest, part)}
    if not lacking:
        return
    for source, visible in Execution(plan, store).visible_parts():
        if source.part.part_id in lacking:
            hidden = RowSet.empty(source.row_count) if visible is None else visible.complement()
            yield source.part.part_id, hidden


def _lacks_some(newest: Mapping[str, int], part: PlannedPart) -> bool:
    return complete_through(part) < newest[part.part_id]


def _expect(store: ObjectStore, parts: Sequence[PlannedPart], *, with_tails: bool) -> None:
    """Prefetch stored vectors, which are read twice, and the ends of files beside them."""
    stored = [part.vector for part in parts if part.vector is not None]
    store.expect(places_of_vectors(stored), keep=True)
    if with_tails:
        refs = (ref for part in parts for ref in (part.data_with_keys, part.deletes))
        expect_tails(store, (ref for ref in refs if ref is not None))


def _hidden_rows(
    store: ObjectStore, snapshot: Snapshot, groups: Sequence[list[int]]
) -> Iterator[tuple[int, RowSet]]:
    """Return the rows that newer parts hide, by the part's index in the snapshot."""
    ids = snapshot.parts.part_ids
    places = {ids[i]: i for group in groups for i in group}
    for part_id, hidden in lacking_rows(store, *groups_plan(store, snapshot, groups)):
        yield places[part_id], hidden


def vectors_request(
    operation: str,
    snapshot: Snapshot,
    refs: Mapping[int, VectorRef | None],
    metadata: Mapping[str, str],
    uploads: Uploads | None = None,
) -> CommitRequest:
    """Return the request that sets the vectors of the parts at these indices."""
    places = sorted(refs)
    entries = snapshot.parts.take(np.array(places))
    info = with_vectors_protocol(snapshot.table)
    return CommitRequest(
        operation=operation,
        added=entries.with_vectors([refs[i] for i in places]),
        removed=entries.part_ids,
        metadata=metadata,
        info=None if info == snapshot.table else info,
        uploads=uploads,
    )


def vectors_mutation(
    operation: str,
    snapshot: Snapshot,
    refs: Mapping[int, VectorRef | None],
    metadata: Mapping[str, str],
    uploads: Uploads,
) -> Mutation | None:
    """Return the mutation that sets the vectors of the parts at these indices; None without any."""
    if not refs:
        return None
    request = vectors_request(operation, snapshot, refs, metadata, uploads)
    return Mutation(request, Kind.REWRITING, touched_by=never)
