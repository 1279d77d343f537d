"""Stored deletion vectors of tables with a key: one file holds the vectors of several parts.

Each vector is a roaring bitmap in its portable serialisation, and the manifest entry of its part
has its place in the file and its checksum (`rowsieve.storage.manifests.vector_columns`).

Soundness (invariants I3 and I4): a vector is a cache. One that is missing, unreadable or differs
from its entry counts as absent, so that the caller computes the hidden rows from keys.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

import pyroaring

from rowsieve.checksums import checksum
from rowsieve.errors import CorruptData, InvalidInput, RowsieveError
from rowsieve.objects import ObjectStore, Place, Uploads
from rowsieve.predicate.rowset import RowSet
from rowsieve.storage.manifests.vector_columns import VectorRef
from rowsieve.storage.versioned_names import data_path

_log = logging.getLogger(__name__)


def write_vectors(
    uploads: Uploads, hidden: Sequence[RowSet], complete_through: int, base_version: int
) -> list[VectorRef]:
    """Put the vectors into one new file; a commit may refer to it after `uploads.wait`.

    Vectors without hidden rows are not stored; if none has hidden rows, no file is written.
    """
    bitmaps = [rows.to_bitmap().serialize() if len(rows) else b"" for rows in hidden]
    data = b"".join(bitmaps)
    path = data_path(uploads.store, base_version, "vectors")
    if data:
        uploads.put(path, data)
    refs, start = [], 0
    for rows, bitmap in zip(hidden, bitmaps, strict=True):
        ref = VectorRef(complete_through)
        if bitmap:
            ref = VectorRef(
                complete_through, len(rows), path, start, len(bitmap), checksum(bitmap), len(data)
            )
        refs.append(ref)
        start += len(bitmap)
    return refs


def read_vectors(
    store: ObjectStore, wanted: Sequence[tuple[VectorRef, int]]
) -> list[RowSet | None]:
    """Read the hidden rows of some parts, given with their row counts; one request per file.

    None for a vector that cannot be read, or is not the one of the entry; logs a warning.
    """
    row_sets: dict[int, RowSet | None] = {}
    for places in _by_file([ref for ref, _ in wanted]).values():
        refs = [wanted[i][0] for i in places]
        path, first, last = _span(refs)
        try:
            data = store.get_range(path, first, last)
        except RowsieveError as error:
            _warn(store, path, error)
            continue
        for i in places:
            ref, row_count = wanted[i]
            try:
                row_sets[i] = _decoded(data[ref.start - first :][: ref.size_bytes], ref, row_count)
            except (CorruptData, InvalidInput) as error:
                _warn(store, path, error)
    return [
        row_sets.get(i) if ref.path is not None else RowSet.empty(row_count)
        for i, (ref, row_count) in enumerate(wanted)
    ]


def places_of_vectors(refs: Sequence[VectorRef]) -> Iterator[Place]:
    """The byte ranges that `read_vectors` requests."""
    return (_span([refs[i] for i in places]) for places in _by_file(refs).values())


def _by_file(refs: Sequence[VectorRef]) -> Mapping[str, list[int]]:
    places: dict[str, list[int]] = {}
    for i, ref in enumerate(refs):
        if ref.path is not None:
            places.setdefault(ref.path, []).append(i)
    return places


def _span(refs: Sequence[VectorRef]) -> Place:
    assert refs[0].path is not None
    stops = [ref.start + ref.size_bytes for ref in refs]
    return refs[0].path, min(ref.start for ref in refs), max(stops)


def _decoded(data: bytes, ref: VectorRef, row_count: int) -> RowSet:
    if checksum(data) != ref.checksum:
        raise CorruptData("it does not match its checksum")
    hidden = RowSet.from_bitmap(pyroaring.BitMap.deserialize(data), row_count)
    if len(hidden) != ref.rows:
        raise CorruptData(f"it hides {len(hidden)} rows instead of {ref.rows}")
    return hidden


def _warn(store: ObjectStore, path: str, error: Exception) -> None:
    _log.warning(
        "stored deletion vector %s in %s is not used: %s; hidden rows are computed from keys, and "
        "build_deletion_vectors stores them again",
        path,
        store.uri,
        error,
    )
