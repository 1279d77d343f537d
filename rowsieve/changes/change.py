"""The context of one call of a changing method, from its arguments to its commit request."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import pyarrow as pa

from rowsieve.changes.column_order.late_values import without_late_values
from rowsieve.changes.data.ingest import Changes
from rowsieve.changes.event_order.late_changes import with_sequences, without_late
from rowsieve.changes.event_order.too_late import OnTooLate
from rowsieve.metrics import CommitReport, Reporter, send
from rowsieve.objects import ObjectStore, Uploads
from rowsieve.planner.plan import ScanPlan
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.properties import is_by_column
from rowsieve.stats.collect import Collecting
from rowsieve.storage.log.commit_log import CommitRequest, check_writable
from rowsieve.storage.log.inline_parts import inline_limit
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.retries import Retries
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.parts.part_writer import write_parts
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.instants import from_microseconds

LAYER_BYTES: Final = 16 * 1024
"""A change inside a transaction stays in memory up to this size; its commit writes it."""


def send_failure(
    reporter: Reporter | None,
    store: ObjectStore,
    version: int,
    operation: str,
    error: BaseException,
    started_s: float,
) -> None:
    """Report a change that raised; `started_s` is its start time by `time.perf_counter`."""
    elapsed_s = time.perf_counter() - started_s
    name = type(error).__name__
    send(reporter, CommitReport(store.uri, version, operation, error=name, elapsed_s=elapsed_s))


class OpenWriter(Protocol):
    """A writer that takes changes of this handle's table in a queue."""

    def direct(self) -> AbstractContextManager[None]:
        """Let a change that does not go through the queue take its turn (invariants, rule 19)."""

    def over(self, snapshot: Snapshot) -> Snapshot | None:
        """Return this version with what was acknowledged since; None if it is outdated."""


@dataclass(frozen=True, slots=True)
class Question:
    """The condition that selects the rows of a change."""

    predicate: Predicate
    semantics: Semantics
    now_us: int

    @classmethod
    def of(cls, plan: ScanPlan) -> Question:
        """Return the condition of a plan; its limit is ignored."""
        return cls(plan.predicate, plan.semantics, plan.now_us)


@dataclass(frozen=True, slots=True)
class Change:
    """The state that all attempts of one call share."""

    store: ObjectStore
    operation: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    token: tuple[str, int] | None = None
    collecting: Collecting | None = None
    retries: Retries | None = None  # None: no deadline
    schema_id: int = 0  # the newest schema when the call began; its data has these columns
    on_too_late: OnTooLate | None = None  # None: as the table's property says
    started_s: float = field(default_factory=time.perf_counter)
    uploads: Uploads = field(init=False)

    def __post_init__(self) -> None:
        """Create one `Uploads` for all files of the call, so a commit waits for all of them."""
        object.__setattr__(self, "uploads", Uploads(self.store))

    def request(
        self,
        added: PartTable | None,
        removed: tuple[str, ...] = (),
        *,
        restored: PartTable | None = None,
        rows_written: int = 0,
        rows_deleted: int = 0,
    ) -> CommitRequest:
        """Return a commit request, which waits for all uploads of this call."""
        return CommitRequest(
            operation=self.operation,
            added=added,
            removed=removed,
            metadata=dict(self.metadata),
            token=self.token,
            restored=restored,
            rows_written=rows_written,
            rows_deleted=rows_deleted,
            uploads=self.uploads,
        )

    def new_parts(
        self, snapshot: Snapshot, rows: pa.Table | None, deletes: pa.Table | None = None
    ) -> PartTable:
        """Start writing rows and tombstones of this table as parts; see `write_parts`.

        Those of a small change stay in memory: of at most `inline_bytes`, or `LAYER_BYTES` inside
        of a transaction.
        """
        info, schema = snapshot.table, snapshot.schema
        in_memory_up_to = inline_limit(info)
        if snapshot.based_on is not None:
            in_memory_up_to = max(in_memory_up_to, LAYER_BYTES)
        return write_parts(
            self.store,
            schema,
            tuple(map(schema.field, info.key)),
            rows,
            deletes,
            base_version=snapshot.base_version,
            in_memory_up_to=in_memory_up_to,
            properties=info.settings,
            sequence=tuple(map(schema.field, info.sequence)),
            collecting=self.collecting,
            uploads=self.uploads,
        )

    def write(
        self, snapshot: Snapshot, changes: Changes, *, overtakes: bool = False
    ) -> CommitRequest:
        """Start writing the rows and tombstones as parts, and return their commit request.

        In a table with an event order, those that a stored version is newer than are left out and
        counted, unless they are known to win: `overtakes`; with an order of each column, what they
        still change is written. The caller checks concurrent commits.
        """
        check_writable(self.operation, snapshot)
        late = 0
        if snapshot.table.sequence:
            changes = with_sequences(self.store, snapshot, changes)
            if not overtakes:
                by_column = is_by_column(snapshot.table.properties)
                timely = without_late_values if by_column else without_late
                changes, late = timely(
                    self.store, snapshot, changes, self.operation, self.on_too_late
                )
        added = self.new_parts(snapshot, changes.rows, changes.deletes)
        request = self.request(
            added,
            rows_written=0 if changes.rows is None else changes.rows.num_rows,
            rows_deleted=0 if changes.deletes is None else changes.deletes.num_rows,
        )
        return replace(request, rows_late=late, keeps_order=True)


def nothing_done(operation: str, snapshot: Snapshot) -> Commit:
    """Return the result of a change that has nothing to commit."""
    return Commit(
        version=snapshot.version,
        commit_id=snapshot.commit_id,
        timestamp=from_microseconds(snapshot.timestamp_us),
        operation=operation,
        rows_written=0,
        rows_deleted=0,
        parts_added=0,
        parts_removed=0,
        metadata={},
        committed=False,
    )
