"""The steps of `maintain`: each does what is due, and commits nothing if nothing is."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from rowsieve.arguments.annotations import Metadata, Progress
from rowsieve.changes.expiring_rows import expire_rows
from rowsieve.changes.expiry_condition import EXPIRE_ROWS_WHEN
from rowsieve.changes.mutation import Mutation
from rowsieve.changes.table_handle import Handle
from rowsieve.changes.vector_building import plan_vectors
from rowsieve.compaction.late_horizon import reached_horizon
from rowsieve.compaction.pace import Pace
from rowsieve.compaction.pick import pick, pick_in_memory
from rowsieve.compaction.rewrite_passes import (
    COMPACTION_RETRY_TIMEOUT_S,
    MAX_PASSES,
    Compaction,
)
from rowsieve.errors import EvaluationError, RowsieveError
from rowsieve.maintenance.advice import Advice, advise
from rowsieve.maintenance.analyzing import plan_missing
from rowsieve.maintenance.disk_usage import DiskUsage, usage_of
from rowsieve.objects import ObjectStore
from rowsieve.planner.differential.times_of_parts import parts_before_since
from rowsieve.planner.part_facts import planned_parts
from rowsieve.retention.removed_files import RemovedFiles
from rowsieve.retention.retaining import check_newest
from rowsieve.shown import Shown, html, size_text
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.missing_files import missing_files_named
from rowsieve.storage.parts.part_file import is_full_file
from rowsieve.storage.snapshot import Snapshot

FOLD_RETRY_TIMEOUT_S: Final = 30.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, repr=False)
class Maintenance:
    """The result of `maintain`: its commits, the files before and after, and the advice after it.

    `compactions` are the passes in order, `compaction` is the last one. `analyzed` is None if no
    part lacked statistics, `stored` if no deletion vectors were worth storing, `expired` if no row
    had expired.
    """

    compactions: tuple[Commit, ...]
    analyzed: Commit | None
    removed: RemovedFiles
    before: DiskUsage
    after: DiskUsage
    advice: Advice
    stored: Commit | None = None
    expired: Commit | None = None

    @property
    def compaction(self) -> Commit:
        """The last pass; it is not committed if there was nothing to compact."""
        return self.compactions[-1]

    def __repr__(self) -> str:
        return self._shown().text()

    def _repr_html_(self) -> str:
        return html(self._shown())

    def _shown(self) -> Shown:
        steps: Mapping[str, Commit | None] = {
            "expired rows": self.expired,
            "analyzed": self.analyzed,
            "vectors": self.stored,
        }
        compacted = [each for each in self.compactions if each.committed]
        facts = {
            "compacted": ", ".join(f"version {each.version}" for each in compacted) or "nothing",
            **{
                name: f"version {each.version}"
                for name, each in steps.items()
                if each is not None and each.committed
            },
            "removed": f"{self.removed.file_count:,} files, {size_text(self.removed.size_bytes)}",
            "files": f"{self.before} before, {self.after} after",
            **{each.action.value: each.reason for each in self.advice.recommendations},
        }
        return Shown(f"rowsieve.Maintenance, now at version {self.advice.version}", facts, ())


def maintain(
    handle: Handle,
    metadata: Metadata | None,
    progress: Progress | None,
    pace: Pace,
    vacuum: Callable[[], RemovedFiles],
) -> Maintenance:
    """Delete expired rows, compact, collect missing statistics and store vectors, then `vacuum`."""
    check_newest(handle.store, handle.log)  # before a commit takes the number of a lost entry
    before = usage_of(handle.store)
    expired, failure = None, None
    try:
        expired = _expired(handle, metadata)
    except EvaluationError as error:  # the other steps do not depend on it
        failure = error
    compactions = compact_in_passes(handle, metadata, progress, pace)
    analyzed = _due(handle, "analyze", metadata, plan_missing)
    pace.check()
    stored = None
    if handle.newest.table.key:
        stored = _due(handle, "build_deletion_vectors", metadata, _plan_many_hidden_rows)
    pace.check()
    removed = vacuum()
    if failure is not None:
        raise EvaluationError(
            f"maintain: the property {EXPIRE_ROWS_WHEN} is "
            f"{handle.newest.table.properties.get(EXPIRE_ROWS_WHEN)!r}, and {failure}. No row was "
            "deleted, and all other steps were done; set a condition that fails for no row"
        ) from failure
    after, advice = usage_of(handle.store), advise(handle.resolve())
    return Maintenance(compactions, analyzed, removed, before, after, advice, stored, expired)


def _expired(handle: Handle, metadata: Metadata | None) -> Commit | None:
    """Delete the rows of the property `expire_rows_when`; None if there is none."""
    notes = dict(metadata or {})
    if (condition := handle.latest().table.properties.get(EXPIRE_ROWS_WHEN)) is None:
        return None
    change = handle.change("delete", {**notes, EXPIRE_ROWS_WHEN: condition}, None)
    commit = handle.commit_mutation(change, partial(expire_rows, change), any_columns=True)
    return commit if commit.committed else None


def compact_in_passes(
    handle: Handle,
    metadata: Metadata | None,
    progress: Progress | None,
    pace: Pace,
    retry_timeout_s: float | None = COMPACTION_RETRY_TIMEOUT_S,
) -> tuple[Commit, ...]:
    """Compact until nothing remains to rewrite; return the commits, or one that did nothing."""
    notes = dict(metadata or {})
    change = handle.change("compact", notes, None, retry_timeout_s)
    compaction = Compaction(handle.store, notes, progress, handle.collecting, pace)
    done: list[Commit] = []
    is_last = True

    def plan_pass(snapshot: Snapshot) -> Mutation | None:
        nonlocal is_last
        horizon = reached_horizon(snapshot, lambda moment: handle.log.as_of(moment).version)
        is_full = partial(_is_full, handle.store, snapshot)
        picked = pick(snapshot, is_full, horizon, parts_before_since(snapshot))
        is_last = not picked.slices
        return compaction.plan_pass(snapshot, picked, horizon)

    for _ in range(MAX_PASSES):
        commit = handle.commit_mutation(change, plan_pass, any_columns=True)
        if commit.committed or not done:
            done.append(commit)
        if is_last or not commit.committed:
            break
    return tuple(done)


def fold_in_memory(handle: Handle) -> None:
    """Write the parts in memory into files, after a commit that made them many.

    The commit stands whatever happens here: a failure is logged, and the next writer tries again.
    """
    try:
        change = handle.change("compact", None, None, FOLD_RETRY_TIMEOUT_S)
        compaction = Compaction(handle.store, {}, None, handle.collecting)

        def plan_pass(snapshot: Snapshot) -> Mutation | None:
            horizon = reached_horizon(snapshot, lambda moment: handle.log.as_of(moment).version)
            return compaction.plan_pass(snapshot, pick_in_memory(snapshot), horizon)

        for _ in range(MAX_PASSES):
            if not handle.commit_mutation(change, plan_pass, any_columns=True).committed:
                return
    except RowsieveError as error:
        _log.warning("parts in memory of %s were not written: %s", handle.store.uri, error)


def _is_full(store: ObjectStore, snapshot: Snapshot, part: int) -> bool:
    (planned,) = planned_parts(snapshot.parts, [part])
    with missing_files_named(store, snapshot.version):
        return planned.data is not None and is_full_file(store, planned.data)


def _due(
    handle: Handle,
    operation: str,
    metadata: Metadata | None,
    plan: Callable[[ObjectStore, Snapshot, Metadata], Mutation | None],
) -> Commit | None:
    """Commit what a step plans; None if nothing was due."""
    notes = dict(metadata or {})
    commit = handle.commit_mutation(
        handle.change(operation, notes, None, COMPACTION_RETRY_TIMEOUT_S),
        lambda snapshot: plan(handle.store, snapshot, notes),
        any_columns=True,
    )
    return commit if commit.committed else None


def _plan_many_hidden_rows(
    store: ObjectStore, snapshot: Snapshot, notes: Metadata
) -> Mutation | None:
    """Vectors where a first read would compare many keys: where parts overlap still."""
    return plan_vectors(store, snapshot, None, notes, if_many=True)
