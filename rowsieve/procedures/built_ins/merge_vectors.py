"""`rewrite_position_delete_files`: write the stored vectors of small files into few files.

A task reads and writes the vectors of some new files, and holds those of one of them at a time.

Soundness (invariants I3 and I4): a vector stays complete through the same version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec
import pyarrow as pa

from rowsieve.changes.change import Question
from rowsieve.changes.vector_building import chosen_parts
from rowsieve.changes.vector_merging import MergeOptions, PlacedVector, new_files, write_merged
from rowsieve.decoded_types import described
from rowsieve.objects import ObjectStore, Uploads
from rowsieve.procedures.built_ins.option_readers import (
    Reader,
    flag,
    read_options,
    size_bytes,
    whole_number,
)
from rowsieve.procedures.built_ins.vector_tasks import PartVector, VectorsProcedure, VectorsTask
from rowsieve.procedures.parameters import Parameter, ParameterType
from rowsieve.statements.call_values import Value
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.manifests.vector_columns import VectorRef
from rowsieve.storage.snapshot import Snapshot


class RewritePositionDeleteFiles(VectorsProcedure):
    """Joins small files of vectors on workers, and commits once."""

    name = "rewrite_position_delete_files"
    meaning = "write the stored deletion vectors of small files into as few files as possible"
    parameters = (
        *VectorsProcedure.parameters,
        Parameter(
            "options",
            ParameterType.OPTIONS,
            default={},
            meaning="rewrite-all, min-input-files, target-file-size-bytes",
        ),
    )
    columns = pa.schema(
        [
            ("rewritten_delete_files_count", pa.int64()),
            ("added_delete_files_count", pa.int64()),
            ("rewritten_bytes_count", pa.int64()),
            ("added_bytes_count", pa.int64()),
            ("version", pa.int64()),
        ]
    )

    def pieces(
        self,
        store: ObjectStore,
        snapshot: Snapshot,
        question: Question | None,
        arguments: Mapping[str, Value],
    ) -> Iterator[tuple[bytes, int]]:
        """The vectors of each file to write."""
        options = _merge_options(self.name, arguments)
        for vectors in new_files(snapshot, chosen_parts(store, snapshot, question), options):
            yield msgspec.msgpack.encode(vectors), sum(each.ref.size_bytes for each in vectors)

    def written(
        self, store: ObjectStore, uploads: Uploads, task: VectorsTask
    ) -> Iterator[tuple[int, Sequence[PartVector]]]:
        """Write each file."""
        for piece in task.pieces:
            vectors = msgspec.msgpack.decode(piece, type=described(list[PlacedVector]))
            part_vectors = [
                PartVector(part_id, ref)
                for part_id, ref in write_merged(store, uploads, vectors, task.version)
            ]
            yield (
                sum(0 if each.ref is None else each.ref.rows for each in part_vectors),
                part_vectors,
            )

    def result(
        self, before: Snapshot, refs: Mapping[int, VectorRef | None], commit: Commit
    ) -> pa.Table:
        """The files and bytes before and after, and the version."""
        old = before.parts.vectors()
        rewritten, added = _sizes([old[i] for i in refs]), _sizes(list(refs.values()))
        sums = sum(rewritten.values()), sum(added.values())
        row = (len(rewritten), len(added), *sums, commit.version)
        return pa.Table.from_pylist(
            [dict(zip(self.columns.names, row, strict=True))], schema=self.columns
        )


_READERS: Final[Mapping[str, tuple[str, Reader]]] = {
    "target-file-size-bytes": ("target_file_size_bytes", size_bytes),
    "min-input-files": ("min_input_files", whole_number),
    "rewrite-all": ("rewrite_all", flag),
}


def _merge_options(procedure: str, arguments: Mapping[str, Value]) -> MergeOptions:
    options = arguments.get("options") or {}
    assert isinstance(options, Mapping)
    return MergeOptions(**read_options(procedure, options, _READERS))


def _sizes(refs: Sequence[VectorRef | None]) -> dict[str, int]:
    """The size of each file of these vectors."""
    return {ref.path: ref.file_bytes for ref in refs if ref is not None and ref.path is not None}
