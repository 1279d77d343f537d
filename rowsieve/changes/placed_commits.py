"""Commits of parts that were written elsewhere: by workers of a procedure, or by other programs.

Soundness: a rewrite conflicts with commits that replaced one of its parts (invariants, rule 13).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rowsieve.changes.mutation import Mutation, Stale, commit_mutation, never
from rowsieve.changes.table_handle import Handle
from rowsieve.changes.vector_building import with_eager_vectors
from rowsieve.errors import CommitConflict
from rowsieve.storage.log.commit_request import CommitRequest, with_noted_rewrite
from rowsieve.storage.log.conflicts import Kind
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.retries import Retries
from rowsieve.storage.snapshot import Snapshot


def commit_rewrite(
    handle: Handle,
    base: Snapshot,
    request: CommitRequest,
    started_s: float,
    *,
    own_commits: Sequence[str] = (),
) -> Commit:
    """Commit a rewrite of parts of `base` that was computed elsewhere; pin its version.

    `started_s` is its start time by `time.perf_counter`. CommitConflict if a concurrent commit
    replaced one of the parts, or the table's content. `own_commits` are ids of commits of the
    same call since `base`, which rewrote other parts.
    """
    operation = request.operation
    mutation = Mutation(request, Kind.REWRITING, touched_by=never, own_commits=own_commits)
    with handle.changing(operation):
        handle.require_writable(operation)
        try:
            commit, snapshot = commit_mutation(
                handle.log,
                lambda _: mutation,
                base,
                Retries(operation),
                recompute=False,
                complete=with_noted_rewrite,
            )
        except Stale as error:
            raise CommitConflict(
                f"{operation}: a concurrent commit replaced parts of version {base.version} "
                "that were rewritten; nothing was committed. Call it again"
            ) from error
        handle.pin(snapshot)
        assert commit is not None
        return handle.reported(commit, started_s)


def commit_added(
    handle: Handle, base: Snapshot, request: CommitRequest, started_s: float
) -> Commit:
    """Commit new parts that were written elsewhere, based on `base`; pin the new version.

    `started_s` is the start time by `time.perf_counter`. Never conflicts, except with changes of
    columns. A request whose token was used returns that commit.
    """
    with handle.changing(request.operation):
        handle.require_writable(request.operation)
        commit, snapshot = handle.log.commit(
            request, base, lambda _head, _entries: request, Retries(request.operation)
        )
        handle.pin(snapshot)
        return handle.reported(commit, started_s)


def commit_placed(
    handle: Handle,
    base: Snapshot,
    request_for: Callable[[Snapshot], CommitRequest],
    started_s: float,
) -> Commit:
    """Commit parts of foreign files; pin the new version.

    `request_for` makes the request for each head, the first for `base`. Keys replace existing
    rows, as in an upsert.
    """
    with handle.changing("upsert" if base.table.key else "append"):
        request = request_for(base)
        handle.require_writable(request.operation)
        commit, snapshot = handle.log.commit(
            with_eager_vectors(handle.store, base, request),
            base,
            lambda head, _: with_eager_vectors(handle.store, head, request_for(head)),
            Retries(request.operation),
        )
        handle.pin(snapshot)
        return handle.reported(commit, started_s)
