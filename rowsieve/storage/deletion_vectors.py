"""Deletion vectors: which rows of a part are hidden, as a roaring bitmap beside it.

In tables without a key they are the truth; they only grow, each under a new name (invariants I3 and
13). A vector is used only through the manifest entry of the version that is read, which carries
its count and checksum (invariant I4).
"""

from __future__ import annotations

import uuid

import pyroaring

from rowsieve.checksums import checksum
from rowsieve.errors import CorruptData
from rowsieve.objects import ObjectStore, Uploads
from rowsieve.predicate.rowset import RowSet
from rowsieve.storage.manifest import DeletionVectorRef


def write_deletion_vector(uploads: Uploads, hidden: RowSet, base_version: int) -> DeletionVectorRef:
    """Put the vector under a fresh name; it may be named once `uploads.wait` has returned."""
    data = hidden.to_bitmap().serialize()
    path = f"data/{uuid.uuid4().hex}.{base_version}.dv"
    uploads.put(path, data)
    return DeletionVectorRef(path, len(hidden), len(data), checksum(data))


def read_deletion_vector(store: ObjectStore, ref: DeletionVectorRef, row_count: int) -> RowSet:
    """The hidden rows of a part of `row_count` rows; CorruptData if the bytes changed."""
    data = store.get_range(ref.path, 0, ref.size_bytes)
    if checksum(data) != ref.checksum:
        raise CorruptData(
            f"deletion vector {ref.path} in {store.uri} does not match its checksum; rows that "
            "were deleted could come back: restore the file from a copy"
        )
    hidden = RowSet.from_bitmap(pyroaring.BitMap.deserialize(data), row_count)
    if len(hidden) != ref.rows:
        raise CorruptData(
            f"deletion vector {ref.path} in {store.uri} hides {len(hidden)} rows, "
            f"its manifest entry says {ref.rows}"
        )
    return hidden
