"""Write the rows and tombstones of a change: a small change is a part in memory, else in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from rowsieve.objects import ObjectStore, Uploads
from rowsieve.stats.collect import Collecting
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.parts.memory_parts import memory_parts
from rowsieve.storage.parts.part_writer import write_parts
from rowsieve.types.logical import Field
from rowsieve.types.schema import Schema


def parts_by_size(
    store: ObjectStore,
    schema: Schema,
    key: Sequence[Field],
    rows: pa.Table | None,
    deletes: pa.Table | None,
    *,
    base_version: int,
    in_memory_up_to: int,
    properties: Mapping[str, str],
    sequence: Sequence[Field] = (),
    collecting: Collecting | None = None,
    uploads: Uploads | None = None,
) -> PartTable:
    """Return the parts of rows and tombstones, both in key order and with disjoint keys.

    A change of at most `in_memory_up_to` bytes is in the entries themselves, and its commit stores
    them; the files of a larger one are durable when `uploads` has been waited for.
    """
    if in_memory_up_to > 0 and _size_of(rows) + _size_of(deletes) <= in_memory_up_to:
        return memory_parts(
            schema,
            key,
            rows,
            deletes,
            base_version=base_version,
            properties=properties,
            sequence=sequence,
            collecting=collecting,
        )
    return write_parts(
        store,
        schema,
        key,
        rows,
        deletes,
        base_version=base_version,
        properties=properties,
        collecting=collecting,
        uploads=uploads,
        sequence=sequence,
    )


def _size_of(rows: pa.Table | None) -> int:
    return 0 if rows is None else int(rows.nbytes)
