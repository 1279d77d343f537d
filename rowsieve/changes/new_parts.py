"""Write the rows and tombstones of a change: a small change is a part in memory, else in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from rowsieve.objects import ObjectStore, Uploads
from rowsieve.stats.collect import Collecting
from rowsieve.storage.log.inline_parts import inline_limit
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.parts.memory_parts import memory_parts
from rowsieve.storage.parts.part_writer import write_parts
from rowsieve.storage.snapshot import TableInfo
from rowsieve.types.logical import Field
from rowsieve.types.schema import Schema


def new_parts(
    store: ObjectStore,
    info: TableInfo,
    schema: Schema,
    rows: pa.Table | None,
    deletes: pa.Table | None,
    *,
    base_version: int,
    in_memory_up_to: int = 0,
    collecting: Collecting | None = None,
    uploads: Uploads | None = None,
) -> PartTable:
    """Return the parts of rows and tombstones, both in key order and with disjoint keys.

    A change of at most `inline_bytes`, or of `in_memory_up_to` bytes, is in the entries themselves,
    and its commit stores them; the files of a larger one are durable when `uploads` has been waited
    for.
    """
    return parts_by_size(
        store,
        schema,
        tuple(map(schema.field, info.key)),
        rows,
        deletes,
        base_version=base_version,
        in_memory_up_to=max(inline_limit(info), in_memory_up_to),
        properties=info.settings,
        sequence=tuple(map(schema.field, info.sequence)),
        collecting=collecting,
        uploads=uploads,
    )


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
    """Return a part in memory of rows and tombstones of at most so many bytes, or write parts."""
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
