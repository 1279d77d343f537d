"""`build_deletion_vectors`: store which rows of a table with a key newer parts hide.

A task reads the keys of some overlap groups and writes the vectors of their parts.

Soundness (invariants I3 and I4): a group has every part that shares a key with one of its parts, so
its plan is enough to find all hidden rows. A vector is complete through the pinned version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import pyarrow as pa

from rowsieve.changes.change import Question
from rowsieve.changes.vector_building import (
    FILE_BYTES,
    groups_plan,
    lacking_rows,
    overlapping_parts,
)
from rowsieve.decoded_types import described
from rowsieve.errors import UnsupportedOperation
from rowsieve.objects import ObjectStore, Uploads
from rowsieve.planner.plan import ScanPlan
from rowsieve.predicate.rowset import RowSet
from rowsieve.procedures.built_ins.table_procedures import COMMIT_COLUMNS, commit_row
from rowsieve.procedures.built_ins.vector_tasks import PartVector, VectorsProcedure, VectorsTask
from rowsieve.statements.call_values import Value
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.manifests.vector_columns import VectorRef
from rowsieve.storage.parts.vector_files import write_vectors
from rowsieve.storage.snapshot import Snapshot


class GroupPlan(msgspec.Struct, frozen=True):
    """The plan of all rows of an overlap group, and the newest commit of its parts by part id."""

    plan: bytes
    newest: dict[str, int]


class BuildDeletionVectors(VectorsProcedure):
    """Finds hidden rows on workers and commits their vectors once."""

    name = "build_deletion_vectors"
    meaning = "store which rows of a table with a key newer versions hide"
    columns = COMMIT_COLUMNS

    def pieces(
        self,
        store: ObjectStore,
        snapshot: Snapshot,
        question: Question | None,
        arguments: Mapping[str, Value],
    ) -> Iterator[tuple[bytes, int]]:
        """The overlap groups; UnsupportedOperation for a table without a key."""
        del arguments
        if not snapshot.table.key:
            raise UnsupportedOperation(
                f"{self.name}: {store.uri} has no key, so its deletes have stored vectors already"
            )
        sizes = snapshot.parts.numbers("data.size_bytes")
        sizes = sizes + snapshot.parts.numbers("deletes.size_bytes")
        for group in overlapping_parts(store, snapshot, question):
            plan, newest = groups_plan(store, snapshot, [group])
            yield (
                msgspec.msgpack.encode(GroupPlan(plan.to_bytes(), newest)),
                int(sizes[group].sum()),
            )

    def written(
        self, store: ObjectStore, uploads: Uploads, task: VectorsTask
    ) -> Iterator[tuple[int, Sequence[PartVector]]]:
        """Read the keys of the groups, and write the vectors that their parts lack."""
        waiting: dict[str, RowSet] = {}

        def stored() -> tuple[int, Sequence[PartVector]]:
            hidden = list(waiting.values())
            refs = write_vectors(uploads, hidden, task.version, task.version)
            part_vectors = list(map(PartVector, waiting, refs))
            waiting.clear()
            return sum(rows.row_count for rows in hidden), part_vectors

        for piece in task.pieces:
            group = msgspec.msgpack.decode(piece, type=described(GroupPlan))
            waiting.update(lacking_rows(store, ScanPlan.from_bytes(group.plan), group.newest))
            if sum(each.size_bytes for each in waiting.values()) >= FILE_BYTES:
                yield stored()
        if waiting:
            yield stored()

    def result(
        self, before: Snapshot, refs: Mapping[int, VectorRef | None], commit: Commit
    ) -> pa.Table:
        """The counts of the commit."""
        del before, refs
        return commit_row(commit)
