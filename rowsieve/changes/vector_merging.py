"""Merge the files of stored deletion vectors of a table with a key.

Each commit of vectors writes a file. Small files, and files with vectors of removed parts, are
rewritten as files of `FILE_BYTES`; full files stay.

Soundness (invariants I3 and I4): a vector stays complete through the same version, and one that
cannot be read is dropped: it is a cache. Files of rows stay as they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rowsieve.changes.mutation import Mutation
from rowsieve.changes.vector_building import FILE_BYTES, vectors_mutation
from rowsieve.objects import ObjectStore, Uploads
from rowsieve.predicate.rowset import RowSet
from rowsieve.storage.manifests.vector_columns import VectorRef
from rowsieve.storage.parts.vector_files import read_vectors, write_vectors
from rowsieve.storage.snapshot import Snapshot


@dataclasses.dataclass(frozen=True, slots=True)
class PlacedVector:
    """The stored vector of a part of `row_count` rows."""

    part_id: str
    ref: VectorRef
    row_count: int


@dataclasses.dataclass(frozen=True, slots=True)
class MergeOptions:
    """Selects the files of vectors to rewrite, and the size of the new ones.

    Files of less than half of `target_file_size_bytes` are rewritten if there are at least
    `min_input_files`, files with vectors of removed parts always, and all with `rewrite_all`.
    """

    target_file_size_bytes: int | None = None  # FILE_BYTES
    min_input_files: int = 2
    rewrite_all: bool = False


DEFAULT_OPTIONS: Final = MergeOptions()


def new_files(
    snapshot: Snapshot,
    chosen: frozenset[str] | None = None,
    options: MergeOptions = DEFAULT_OPTIONS,
) -> list[tuple[PlacedVector, ...]]:
    """The vectors of each file to be written; none if no file is worth it.

    `chosen`: only files with a vector of one of these parts are written again.
    """
    target = options.target_file_size_bytes or FILE_BYTES
    small: list[list[PlacedVector]] = []
    has_gone = False
    for vectors in _by_file(snapshot).values():
        if chosen is not None and chosen.isdisjoint(each.part_id for each in vectors):
            continue
        file_bytes, used = vectors[0].ref.file_bytes, sum(each.ref.size_bytes for each in vectors)
        if options.rewrite_all or used < file_bytes or file_bytes < target // 2:
            small.append(vectors)
            has_gone = has_gone or used < file_bytes
    if not options.rewrite_all and len(small) < max(2, options.min_input_files) and not has_gone:
        return []
    files: list[list[PlacedVector]] = []
    size = target
    for vectors in small:
        for each in vectors:
            if size >= target:
                files.append([])
                size = 0
            files[-1].append(each)
            size += each.ref.size_bytes
    return [tuple(vectors) for vectors in files]


def write_merged(
    store: ObjectStore, uploads: Uploads, vectors: Sequence[PlacedVector], base_version: int
) -> Iterator[tuple[str, VectorRef | None]]:
    """Write some vectors into one new file; yield the id and the new vector of each part.

    None for one that cannot be read. A commit may refer to the file after `uploads.wait`.
    """
    readable: dict[str, tuple[VectorRef, RowSet]] = {}
    hidden_rows = read_vectors(store, [(each.ref, each.row_count) for each in vectors])
    for each, hidden in zip(vectors, hidden_rows, strict=True):
        if hidden is None:
            yield each.part_id, None
        else:
            readable[each.part_id] = each.ref, hidden
    vector_refs = write_vectors(
        uploads, [hidden for _, hidden in readable.values()], 0, base_version
    )
    for (part_id, (old, _)), ref in zip(readable.items(), vector_refs, strict=True):
        yield part_id, dataclasses.replace(ref, complete_through=old.complete_through)


def plan_merged_vectors(
    store: ObjectStore, snapshot: Snapshot, metadata: Mapping[str, str]
) -> Mutation | None:
    """Write the vectors of small files into few; None if that changes nothing.

    The caller commits.
    """
    uploads, refs = Uploads(store), dict[int, VectorRef | None]()
    places = {part_id: i for i, part_id in enumerate(snapshot.parts.part_ids)}
    for vectors in new_files(snapshot):
        for part_id, ref in write_merged(store, uploads, vectors, snapshot.version):
            refs[places[part_id]] = ref
    return vectors_mutation("rewrite_position_delete_files", snapshot, refs, metadata, uploads)


def _by_file(snapshot: Snapshot) -> Mapping[str, list[PlacedVector]]:
    parts, by_path = snapshot.parts, dict[str, list[PlacedVector]]()
    rows = parts.data_rows().tolist()
    for part_id, ref, count in zip(parts.part_ids, parts.vectors(), rows, strict=True):
        if ref is not None and ref.path is not None:
            by_path.setdefault(ref.path, []).append(PlacedVector(part_id, ref, count))
    return by_path
