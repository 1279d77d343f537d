"""`rewrite_position_delete_files`: write the stored vectors of small files into few files.

A task reads and writes the vectors of some new files, and holds those of one of them at a time; the
commit gives the entries of their parts the new places.

Soundness (invariants I3 and I4): a vector stays complete through the version that it was. The
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
from rowsieve.changes.vector_building import chosen_parts, vectors_request
from rowsieve.changes.vector_merging import PlacedVector, new_files, write_merged
from rowsieve.objects import Uploads, open_store
from rowsieve.predicate.ir import TRUE
from rowsieve.procedures.parameters import Value
from rowsieve.procedures.procedure import (
    FILTER,
    SCHEMA,
    TABLE_NAME,
    CallContext,
    DistributedProcedure,
    Handle,
)
from rowsieve.storage.snapshot import Snapshot
from rowsieve.storage.vector_columns import VectorRef

_TASK_BYTES: Final = 256 * 2**20


class MergeTask(msgspec.Struct, frozen=True):
    """One task: the vectors of each file that it writes."""

    table_uri: str
    version: int
    files: tuple[tuple[PlacedVector, ...], ...]


class MergedVector(msgspec.Struct, frozen=True):
    """The vector of a part in its new file; None if the old one cannot be read."""

    part_id: str
    ref: VectorRef | None


@dataclass(frozen=True, slots=True)
class _Pinned:
    """What `begin` decided."""

    base: Snapshot
    started_s: float


class RewritePositionDeleteFiles(DistributedProcedure):
    """Joins small files of vectors on workers, and commits once."""

    name = "rewrite_position_delete_files"
    meaning = "write the stored deletion vectors of small files into as few files as possible"
    parameters = (SCHEMA, TABLE_NAME, FILTER)
    columns = pa.schema(
        [
            ("rewritten_delete_files_count", pa.int64()),
            ("added_delete_files_count", pa.int64()),
            ("rewritten_bytes_count", pa.int64()),
            ("added_bytes_count", pa.int64()),
            ("version", pa.int64()),
        ]
    )

    def begin(self, context: CallContext, arguments: Mapping[str, Value]) -> Handle:
        """Pin the version, and cut the files to be written into tasks."""
        del arguments
        started_s = time.perf_counter()
        table, target = context.table, context.target
        snapshot = table.snapshot_for_engines()
        question = None
        if target.predicate != TRUE:
            question = Question(target.predicate, target.semantics, target.now_us)
        tasks: list[list[tuple[PlacedVector, ...]]] = []
        size = _TASK_BYTES
        for vectors in new_files(snapshot, chosen_parts(table.store, snapshot, question)):
            if size >= _TASK_BYTES:
                tasks.append([])
                size = 0
            tasks[-1].append(vectors)
            size += sum(each.ref.size_bytes for each in vectors)
        uri, version = table.uri, snapshot.version
        encoded = (msgspec.msgpack.encode(MergeTask(uri, version, tuple(t))) for t in tasks)
        return Handle(version, tuple(encoded), _Pinned(snapshot, started_s))

    def work(self, task: bytes, storage_options: StorageOptions) -> Iterator[tuple[int, bytes]]:
        """Write each file; the rows of a fragment are those that its vectors hide."""
        work = msgspec.msgpack.decode(task, type=MergeTask)
        store = open_store(work.table_uri, storage_options)
        uploads = Uploads(store)
        for vectors in work.files:
            made = write_merged(store, uploads, vectors, work.version)
            merged = [MergedVector(part_id, ref) for part_id, ref in made]
            uploads.wait()
            rows = sum(0 if each.ref is None else each.ref.rows for each in merged)
            yield rows, msgspec.msgpack.encode(merged)

    def finish(
        self, context: CallContext, handle: Handle, fragments: Sequence[Sequence[bytes]]
    ) -> pa.Table:
        """Give the parts the new places of their vectors in one commit, if there are any."""
        pinned = handle.details
        assert isinstance(pinned, _Pinned)
        base = pinned.base
        places = {part_id: i for i, part_id in enumerate(base.parts.part_ids)}
        refs = {
            places[each.part_id]: each.ref
            for found in fragments
            for fragment in found
            for each in msgspec.msgpack.decode(fragment, type=list[MergedVector])
        }
        before, version = base.parts.vectors(), base.version
        if refs:
            context.scanned.update(base.parts.part_ids[i] for i in refs)
            request = vectors_request(self.name, base, refs, {})
            version = context.table.commit_rewrite(base, request, pinned.started_s).version
        rewritten, added = _sizes([before[i] for i in refs]), _sizes(list(refs.values()))
        row = (len(rewritten), len(added), sum(rewritten.values()), sum(added.values()), version)
        return pa.Table.from_pylist(
            [dict(zip(self.columns.names, row, strict=True))], schema=self.columns
        )


def _sizes(refs: Sequence[VectorRef | None]) -> dict[str, int]:
    """The size of each file of these vectors."""
    return {ref.path: ref.file_bytes for ref in refs if ref is not None and ref.path is not None}
