"""Deletion vectors: the hidden rows of a part, as a roaring bitmap in a file or in the manifest.

In tables without a key only they define which rows are deleted. Vectors only grow; each new one has
a new name (invariants I3 and 13). A vector is read only through the manifest entry of the version
being read, which holds its row count and checksum (invariant I4).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Final

import pyroaring

from rowsieve.checksums import checksum
from rowsieve.errors import CorruptData
from rowsieve.objects import ObjectStore, Uploads
from rowsieve.objects.cached_store import forget_kept
from rowsieve.parquet.footer import reading
from rowsieve.predicate.rowset import RowSet
from rowsieve.storage.manifests.manifest import DeletionVectorRef
from rowsieve.storage.manifests.manifest_layout import INLINE_PREFIX
from rowsieve.storage.versioned_names import data_path

MAX_INLINE_VECTOR_BYTES: Final = 3_000
"""The longest bitmap in a manifest; in base64, it fits the longest path there."""


def write_deletion_vector(uploads: Uploads, hidden: RowSet, base_version: int) -> DeletionVectorRef:
    """Put the vector under a fresh name; a commit may refer to it after `uploads.wait`."""
    data = hidden.to_bitmap().serialize()
    path = data_path(uploads.store, base_version, "dv")
    uploads.put(path, data)
    return DeletionVectorRef(path, len(hidden), len(data), checksum(data))


def write_deletion_vectors(
    uploads: Uploads, hidden: Sequence[RowSet], base_version: int, in_manifest_up_to: int
) -> list[DeletionVectorRef]:
    """Return the vectors of a change: short ones are in their references, others in files.

    Those in references have at most `in_manifest_up_to` bytes together.
    """
    refs = []
    for each in hidden:
        ref = inline_deletion_vector(each)
        if ref.size_bytes <= min(in_manifest_up_to, MAX_INLINE_VECTOR_BYTES):
            in_manifest_up_to -= ref.size_bytes
        else:
            ref = write_deletion_vector(uploads, each, base_version)
        refs.append(ref)
    return refs


def inline_deletion_vector(hidden: RowSet) -> DeletionVectorRef:
    """Return a reference that holds the vector itself; the manifest has it, and no file."""
    data = hidden.to_bitmap().serialize()
    path = f"{INLINE_PREFIX}{base64.b64encode(data).decode()}"
    return DeletionVectorRef(path, len(hidden), len(data), checksum(data))


def read_deletion_vector(store: ObjectStore, ref: DeletionVectorRef, row_count: int) -> RowSet:
    """Read the hidden rows of a part of `row_count` rows.

    CorruptData if the bytes changed, SnapshotExpired if the file is absent (invariants, rule 16).
    """
    data = _decoded(ref, store) if ref.in_manifest else _read(ref, store)
    if checksum(data) != ref.checksum:
        if not ref.in_manifest and forget_kept(store, ref.path):
            return read_deletion_vector(store, ref, row_count)
        raise CorruptData(
            f"deletion vector {ref.path} in {store.uri} does not match its checksum; deleted "
            "rows could reappear: restore the file from a copy"
        )
    hidden = RowSet.from_bitmap(pyroaring.BitMap.deserialize(data), row_count)
    if len(hidden) != ref.rows:
        raise CorruptData(
            f"deletion vector {ref.path} in {store.uri} hides {len(hidden)} rows, but its manifest "
            f"entry says {ref.rows}; restore the file from a copy"
        )
    return hidden


def _read(ref: DeletionVectorRef, store: ObjectStore) -> bytes:
    with reading(ref.path):
        return store.get_range(ref.path, 0, ref.size_bytes)


def _decoded(ref: DeletionVectorRef, store: ObjectStore) -> bytes:
    try:
        return base64.b64decode(ref.path.removeprefix(INLINE_PREFIX), validate=True)
    except binascii.Error as error:
        raise CorruptData(
            f"a deletion vector in the list of parts of {store.uri} is not base64: {error}"
        ) from error
