"""Procedures whose tasks write stored deletion vectors; the shape of their tasks and reports.

`begin` cuts pieces of work into tasks, a task writes the vectors of its pieces, and `finish` gives
the entries of their parts these vectors in one commit. Files of rows stay as they are.

Soundness (invariants I3 and I4): a vector belongs to the part whose id its report names. The commit
fails if another one has replaced one of the parts (rule 13).
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import pyarrow as pa

from rowsieve.arguments.annotations import StorageOptions
from rowsieve.changes.change import Question, nothing_done
from rowsieve.changes.placed_commits import commit_rewrite
from rowsieve.changes.vector_building import vectors_request
from rowsieve.decoded_types import described
from rowsieve.objects import ObjectStore, Uploads, open_store
from rowsieve.predicate.ir import TRUE
from rowsieve.procedures.parameters import Parameter
from rowsieve.procedures.procedure import (
    FILTER,
    SCHEMA,
    TABLE_NAME,
    CallContext,
    DistributedProcedure,
    Handle,
)
from rowsieve.statements.call_values import Value
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.manifests.vector_columns import VectorRef
from rowsieve.storage.snapshot import Snapshot

_TASK_BYTES: Final = 256 * 2**20


class VectorsTask(msgspec.Struct, frozen=True):
    """One task: pieces of work, each encoded by its procedure."""

    table_uri: str
    version: int
    pieces: tuple[bytes, ...]


class PartVector(msgspec.Struct, frozen=True):
    """The vector that a task has written for a part; None removes the part's vector."""

    part_id: str
    ref: VectorRef | None


@dataclass(frozen=True, slots=True)
class _Pinned:
    """The decisions of `begin`."""

    base: Snapshot
    started_s: float


class VectorsProcedure(DistributedProcedure):
    """Writes vectors on workers, and commits them once."""

    parameters: tuple[Parameter, ...] = (SCHEMA, TABLE_NAME, FILTER)

    @abstractmethod
    def pieces(
        self,
        store: ObjectStore,
        snapshot: Snapshot,
        question: Question | None,
        arguments: Mapping[str, Value],
    ) -> Iterator[tuple[bytes, int]]:
        """The pieces of work on a snapshot, each with the bytes that a task reads for it.

        `question`: only where a part may hold a row for which it is TRUE.
        """

    @abstractmethod
    def written(
        self, store: ObjectStore, uploads: Uploads, task: VectorsTask
    ) -> Iterator[tuple[int, Sequence[PartVector]]]:
        """Write the vectors of a task; yield those of each file, and the rows that they hide."""

    @abstractmethod
    def result(
        self, before: Snapshot, refs: Mapping[int, VectorRef | None], commit: Commit
    ) -> pa.Table:
        """The rows of the result, from the vectors of the parts at these places."""

    def begin(self, context: CallContext, arguments: Mapping[str, Value]) -> Handle:
        """Pin the version, and cut the pieces that the filter selects into tasks."""
        started_s = time.perf_counter()
        table, target = context.table, context.target
        snapshot = table.handle.pinned
        question = None
        if target.predicate != TRUE:
            question = Question(target.predicate, target.semantics, target.now_us)
        tasks: list[list[bytes]] = []
        size = _TASK_BYTES
        for piece, size_bytes in self.pieces(table.handle.store, snapshot, question, arguments):
            if size >= _TASK_BYTES:
                tasks.append([])
                size = 0
            tasks[-1].append(piece)
            size += size_bytes
        encoded = tuple(
            msgspec.msgpack.encode(VectorsTask(table.uri, snapshot.version, tuple(pieces)))
            for pieces in tasks
        )
        return Handle(snapshot.version, encoded, _Pinned(snapshot, started_s))

    def work(self, task: bytes, storage_options: StorageOptions) -> Iterator[tuple[int, bytes]]:
        """Write the vectors of the task's pieces; a fragment has those of one file."""
        work = msgspec.msgpack.decode(task, type=described(VectorsTask))
        store = open_store(work.table_uri, storage_options)
        uploads = Uploads(store)
        for rows, vectors in self.written(store, uploads, work):
            uploads.wait()
            yield rows, msgspec.msgpack.encode(vectors)

    def finish(
        self, context: CallContext, handle: Handle, fragments: Sequence[Sequence[bytes]]
    ) -> pa.Table:
        """Give the parts their vectors in one commit; commit nothing if there are none."""
        pinned = handle.details
        assert isinstance(pinned, _Pinned)
        base = pinned.base
        places = {part_id: i for i, part_id in enumerate(base.parts.part_ids)}
        refs = {
            places[each.part_id]: each.ref
            for task_vectors in fragments
            for fragment in task_vectors
            for each in msgspec.msgpack.decode(fragment, type=described(list[PartVector]))
        }
        if not refs:
            return self.result(base, refs, nothing_done(self.name, base))
        context.scanned.update(base.parts.part_ids[i] for i in refs)
        request = vectors_request(self.name, base, refs, {})
        return self.result(
            base, refs, commit_rewrite(context.table.handle, base, request, pinned.started_s)
        )
