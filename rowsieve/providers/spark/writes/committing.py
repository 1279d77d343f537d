"""Commits the parts of a write, on the driver.

Soundness (invariants, rule 10): the parts of one commit have no key twice. Disjoint key ranges
prove it. Where ranges overlap, a merge of the new keys finds any repeated key, and then nothing is
committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from rowsieve.changes.change import Change
from rowsieve.changes.mutation import Mutation, Stale, commit_mutation
from rowsieve.changes.operations import NewParts, is_emptied, overwrite_all
from rowsieve.changes.vector_building import with_eager_vectors
from rowsieve.errors import CommitConflict, EmptyData
from rowsieve.executor.merging.merge import repeated_key
from rowsieve.executor.merging.windows import Stream
from rowsieve.executor.part_sources import PartSource
from rowsieve.objects import ObjectStore, open_store
from rowsieve.planner.overlap import overlap_groups
from rowsieve.planner.pieces import planned_part
from rowsieve.providers.spark.writes.creating import create_with_parts
from rowsieve.providers.spark.writes.job import WriteJob, repeated_key_error
from rowsieve.providers.spark.writes.replacing import commit_replacing, keys_of_parts
from rowsieve.storage.log.commit_log import CommitLog, CommitRequest
from rowsieve.storage.log.conflicts import Kind
from rowsieve.storage.log.log_entry import LogEntry
from rowsieve.storage.log.retries import Retries
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import Snapshot


def already_committed(head: Snapshot, token: tuple[str, int] | None) -> bool:
    """Return whether a write with this idempotency token, or a later one, was committed."""
    if token is None or (last := head.tokens.get(token[0])) is None:
        return False
    return last.sequence >= token[1]


def commit_parts(
    job: WriteJob,
    parts: Sequence[PartTable],
    *,
    rows_written: int,
    rows_deleted: int,
    may_empty: bool = False,
) -> None:
    """Commit all parts in one version; without any, only the token of a merge.

    With `may_empty`, an overwrite without parts leaves an empty table.
    """
    if job.done:
        return
    store = open_store(job.table_uri, job.storage)
    log = CommitLog(store)
    added = parts[0].append(*parts[1:]) if parts else PartTable.empty()
    if job.creates is not None:
        _refuse_repeated(store, added, job)
        create_with_parts(job, log, added)
        return
    head = log.latest()
    if already_committed(head, job.token):
        return
    if job.merges and not parts:
        if job.token is not None:  # the merge may be repeated after others, which it would undo
            change = Change(store, job.operation, job.metadata, job.token)
            _commit_merge(job, log, store, change.request(None))
        return
    if not parts and not _empties(job, head, may_empty=may_empty):
        return
    _refuse_repeated(store, added, job)
    check = partial(_check_same_table, job)
    if job.replaces is not None:
        new = NewParts(added, rows_written, keys_of_parts(store, added, job.schema, job.order))
        commit_replacing(job, log, head, store, new, check)
        return
    change = Change(store, job.operation, job.metadata, job.token)
    request = change.request(added, rows_written=rows_written, rows_deleted=rows_deleted)
    if job.merges:
        _commit_merge(job, log, store, request)
        return

    def rebase(snapshot: Snapshot, _entries: Sequence[LogEntry] = ()) -> CommitRequest:
        check(snapshot)
        if job.operation == "overwrite":
            return overwrite_all(change, snapshot, added, rows_written)
        return with_eager_vectors(store, snapshot, request)

    log.commit(rebase(head), head, rebase)


def _empties(job: WriteJob, head: Snapshot, *, may_empty: bool) -> bool:
    """Return whether a job without parts commits an overwrite that leaves the table empty."""
    if job.operation != "overwrite":
        return False
    if not may_empty:
        raise EmptyData(
            "overwrite got no rows; nothing was committed. To empty the table, delete its rows"
        )
    return not is_emptied(head)


def merge_in_order(job: WriteJob, rows: pa.Table) -> None:
    """Commit the rows of a merge into a table with an event order; late ones have no effect."""
    store = open_store(job.table_uri, job.storage)
    log = CommitLog(store)
    if job.done or already_committed(log.latest(), job.token):
        return
    change = Change(store, job.operation, job.metadata, job.token)
    base = log.at(job.base_version)
    _check_same_table(job, base)
    _commit_merge(job, log, store, change.write(base, job.changes_of(rows)))


def _commit_merge(
    job: WriteJob, log: CommitLog, store: ObjectStore, request: CommitRequest
) -> None:
    """Commit a merge; CommitConflict if a commit since the version that it read added rows."""

    def adds_rows(entry: LogEntry) -> bool:
        return entry.added is not None and len(entry.added.without(entry.removed)) > 0

    base = log.at(job.base_version)
    _check_same_table(job, base)
    mutation = Mutation(request, Kind.READING, touched_by=adds_rows)
    complete = partial(with_eager_vectors, store)
    try:
        commit_mutation(
            log, lambda _: mutation, base, Retries("merge"), recompute=False, complete=complete
        )
    except Stale as error:
        raise CommitConflict(
            f"merge into {job.table_uri}: another commit changed the table since version "
            f"{job.base_version}, which the merge read; nothing was committed; repeat the merge"
        ) from error


def _refuse_repeated(store: ObjectStore, parts: PartTable, job: WriteJob) -> None:
    """Raise KeyViolation if two parts share a key; reads keys only where ranges overlap."""
    if (order := job.order) is None or len(parts) < 2:
        return
    fresh = parts.with_commit_ts(0)  # uncommitted parts have none; any value works here
    key = job.schema.select(order.names)
    for group in overlap_groups(parts.table, order):
        if len(group) == 1:
            continue  # rows and tombstones of one part were compared by its task
        sources = [
            PartSource(store, planned_part(entry), job.schema) for entry in fresh.entries(group)
        ]
        streams = [Stream(source.rows(key), deletes=False) for source in sources]
        if job.deletes or job.merges:
            streams += [Stream(source.tombstones(key), deletes=False) for source in sources]
        if (repeated := repeated_key(streams, order)) is not None:
            raise repeated_key_error(job.operation, repeated)


def _check_same_table(job: WriteJob, head: Snapshot) -> None:
    """Raise CommitConflict if the table or its schema changed after the driver checked them."""
    if head.table.uuid != job.table_uuid:
        raise CommitConflict(
            f"the table at {job.table_uri} was replaced by another one during the write; nothing "
            "was committed; repeat the write"
        )
    if head.schema != job.schema:
        raise CommitConflict(
            f"the columns of {job.table_uri} were changed during the write; nothing was "
            "committed; repeat the write"
        )
