"""Make a part in memory of sorted rows and tombstones: an entry of the manifest without files.

Soundness (invariant 39): a part in memory obeys every rule for parts. Its rows obey the table's
constraints, its bounds cover its tombstones (trap T4), and its name has the version that it is
based on (rule 15). It has no statistics: readers see the rows themselves.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

import pyarrow as pa

from rowsieve.metrics import WriterMetrics
from rowsieve.properties import CONSTRAINTS
from rowsieve.stats.collect import Collecting
from rowsieve.storage.constraints import RowChecks
from rowsieve.storage.manifests.key_bounds import key_bound
from rowsieve.storage.manifests.manifest import FileRef, NewPart, PartEntry, PartTable
from rowsieve.storage.parts.memory_rows import rows_in_memory
from rowsieve.storage.parts.tombstones import DELETED_AT, oldest_delete, tombstone_schema
from rowsieve.types.logical import Field
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.ordering.sequences import greatest
from rowsieve.types.schema import Schema
from rowsieve.types.stored_names import has_tags


def memory_parts(
    schema: Schema,
    key: Sequence[Field],
    rows: pa.Table | None,
    deletes: pa.Table | None,
    *,
    base_version: int,
    properties: Mapping[str, str],
    sequence: Sequence[Field] = (),
    collecting: Collecting | None = None,
) -> PartTable:
    """Make one part of rows and tombstones, both in key order and with disjoint keys.

    Nothing is stored: whoever keeps the entry keeps the rows. Empty without rows and tombstones.
    """
    if rows is not None and CONSTRAINTS in properties:
        RowChecks(properties, schema, key).check(rows)
    part_id = uuid.uuid4().hex
    path = f"data/{part_id}.{base_version}"
    data, gone, tags = None, None, has_tags(properties)
    if rows is not None and rows.num_rows:
        data = rows_in_memory(f"{path}.rows", rows, schema, tags=tags)
    if deletes is not None and deletes.num_rows:
        deletes, columns = _tombstones(deletes, schema, key, sequence)
        gone = rows_in_memory(f"{path}.deletes", deletes, columns, tags=tags)
    if data is None and gone is None:
        return PartTable.empty()
    sources = [each for each, ref in ((rows, data), (deletes, gone)) if ref is not None]
    if collecting is not None:
        _count(collecting.metrics, (data, gone), sources)
    lower, upper = _bounds(key, sources)
    entry = PartEntry(
        part_id=part_id,
        base_version=base_version,
        schema_id=schema.id,
        native_safe=False,
        data=data,
        deletes=gone,
        key_lower=lower,
        key_upper=upper,
    )
    top = _greatest_sequence(sequence, sources)
    oldest = None if deletes is None else oldest_delete(deletes)
    return PartTable.of([NewPart(entry, {}, {}, top, oldest)], schema, key, sequence)


def _tombstones(
    deletes: pa.Table, schema: Schema, key: Sequence[Field], sequence: Sequence[Field]
) -> tuple[pa.Table, Schema]:
    """The columns of tombstones, with their schema."""
    dated = DELETED_AT.name in deletes.schema.names
    columns = tombstone_schema(schema, key, sequence, dated=dated)
    return deletes.select(columns.names), columns


def _count(
    metrics: WriterMetrics, refs: Sequence[FileRef | None], sources: Sequence[pa.Table]
) -> None:
    """Add a part to the counters of the writer."""
    metrics.parts_written += 1
    for ref in refs:
        if ref is not None:
            metrics.rows_written += ref.rows
            metrics.bytes_written += ref.size_bytes
    for rows in sources:
        metrics.arrow_bytes += rows.nbytes


def _bounds(
    key: Sequence[Field], sources: Sequence[pa.Table]
) -> tuple[tuple[pa.Scalar | None, ...], tuple[pa.Scalar | None, ...]]:
    """The first and the last key of rows and tombstones, as the manifest has them."""
    if not key:
        return (), ()
    order = KeyOrder(tuple(key))
    names = [field.name for field in key]
    firsts = [each.select(names).slice(0, 1) for each in sources]
    lasts = [each.select(names).slice(each.num_rows - 1, 1) for each in sources]
    first = min(firsts, key=lambda row: order.columns(row).key(0))
    last = max(lasts, key=lambda row: order.columns(row).key(0))
    return key_bound(key, first, "lower"), key_bound(key, last, "upper")


def _greatest_sequence(
    sequence: Sequence[Field], sources: Sequence[pa.Table]
) -> tuple[pa.Scalar | None, ...]:
    if not sequence:
        return ()
    order = KeyOrder(tuple(sequence))
    tops = [greatest(each, order) for each in sources]
    row = tops[0] if len(tops) == 1 else greatest(pa.concat_tables(tops), order)
    return tuple(row.column(name)[0] for name in order.names)
