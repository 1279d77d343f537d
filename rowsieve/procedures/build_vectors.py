"""`build_deletion_vectors`: store which rows of a table with a key newer parts hide.

A task reads the keys of some overlap groups and writes the vectors of their parts; the commit gives
the entries of these parts the vectors, and leaves their files as they are.

Soundness (invariants I3 and I4): a group has every part that shares a key with one of its parts, so
that its plan alone says which rows are hidden. A vector is complete through the pinned version. The
commit fails if one of the parts was replaced meanwhile (rule 13).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import pyarrow as pa

from rowsieve.arguments.annotations import StorageOptions
from rowsieve.changes.change import Question
from rowsieve.changes.handle import nothing_done
from rowsieve.changes.vector_building import (
    FILE_BYTES,
    group_plan,
    lacking_rows,
    overlapping_parts,
    vectors_request,
)
from rowsieve.errors import UnsupportedOperation
from rowsieve.objects import Uploads, open_store
from rowsieve.planner.plan import ScanPlan
from rowsieve.predicate.ir import TRUE
from rowsieve.predicate.rowset import RowSet
from rowsieve.procedures.parameters import Value
from rowsieve.procedures.procedure import (
    FILTER,
    SCHEMA,
    TABLE_NAME,
    CallContext,
    DistributedProcedure,
    Handle,
)
from rowsieve.procedures.table_procedures import COMMIT_COLUMNS, commit_row
from rowsieve.storage.snapshot import Snapshot
from rowsieve.storage.vector_columns import VectorRef
from rowsieve.storage.vector_files import write_vectors

_TASK_BYTES: Final = 256 * 2**20


class VectorsTask(msgspec.Struct, frozen=True):
    """One task: the plan of each of its groups, with the newest commit of the group."""

    table_uri: str
    version: int
    plans: tuple[tuple[bytes, int], ...]


class StoredVector(msgspec.Struct, frozen=True):
    """A vector that a task has written, and the part that it is of."""

    part_id: str
    ref: VectorRef


@dataclass(frozen=True, slots=True)
class _Pinned:
    """What `begin` decided."""

    base: Snapshot
    started_s: float


class BuildDeletionVectors(DistributedProcedure):
    """Finds hidden rows on workers and commits their vectors once."""

    name = "build_deletion_vectors"
    meaning = "store which rows of a table with a key newer versions hide"
    parameters = (SCHEMA, TABLE_NAME, FILTER)
    columns = COMMIT_COLUMNS

    def begin(self, context: CallContext, arguments: Mapping[str, Value]) -> Handle:
        """Pin the version, and cut the overlap groups that the filter selects into tasks."""
        del arguments
        started_s = time.perf_counter()
        table, target = context.table, context.target
        snapshot = table.snapshot_for_engines()
        if not snapshot.table.key:
            raise UnsupportedOperation(
                f"{self.name}: {table.uri} has no key, so its deletes have stored vectors already"
            )
        question = None
        if target.predicate != TRUE:
            question = Question(target.predicate, target.semantics, target.now_us)
        sizes = snapshot.parts.numbers("data.size_bytes")
        sizes = (sizes + snapshot.parts.numbers("deletes.size_bytes")).tolist()
        tasks: list[list[tuple[bytes, int]]] = []
        size = _TASK_BYTES
        for group in overlapping_parts(table.store, snapshot, question):
            plan, newest = group_plan(table.store, snapshot, group)
            if size >= _TASK_BYTES:
                tasks.append([])
                size = 0
            tasks[-1].append((plan.to_bytes(), newest))
            size += sum(sizes[i] for i in group)
        uri, version = table.uri, snapshot.version
        encoded = (msgspec.msgpack.encode(VectorsTask(uri, version, tuple(t))) for t in tasks)
        return Handle(version, tuple(encoded), _Pinned(snapshot, started_s))

    def work(self, task: bytes, storage_options: StorageOptions) -> Iterator[tuple[int, bytes]]:
        """Read the keys of the groups, and write the vectors that their parts lack."""
        work = msgspec.msgpack.decode(task, type=VectorsTask)
        store = open_store(work.table_uri, storage_options)
        uploads, waiting = Uploads(store), dict[str, RowSet]()
        stored: list[StoredVector] = []

        def store_waiting() -> None:
            refs = write_vectors(uploads, list(waiting.values()), work.version, work.version)
            stored.extend(map(StoredVector, waiting, refs))
            waiting.clear()

        rows = 0
        for plan, newest in work.plans:
            for part_id, hidden in lacking_rows(store, ScanPlan.from_bytes(plan), newest):
                waiting[part_id] = hidden
                rows += hidden.row_count
            if sum(each.size_bytes for each in waiting.values()) >= FILE_BYTES:
                store_waiting()
        store_waiting()
        uploads.wait()
        if stored:
            yield rows, msgspec.msgpack.encode(stored)

    def finish(
        self, context: CallContext, handle: Handle, fragments: Sequence[Sequence[bytes]]
    ) -> pa.Table:
        """Give the parts their vectors in one commit; commit nothing if all were complete."""
        pinned = handle.details
        assert isinstance(pinned, _Pinned)
        places = {part_id: i for i, part_id in enumerate(pinned.base.parts.part_ids)}
        refs = {
            places[each.part_id]: each.ref
            for found in fragments
            for fragment in found
            for each in msgspec.msgpack.decode(fragment, type=list[StoredVector])
        }
        if not refs:
            return commit_row(nothing_done(self.name, pinned.base))
        context.scanned.update(pinned.base.parts.part_ids[i] for i in refs)
        request = vectors_request(self.name, pinned.base, refs, {})
        return commit_row(context.table.commit_rewrite(pinned.base, request, pinned.started_s))
