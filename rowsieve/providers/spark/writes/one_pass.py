"""Writes of a DataFrame by key without a shuffle, if its tasks already hold disjoint ranges.

`write_spark` range-partitions and sorts rows by key, which costs more than the write itself. A
DataFrame may have this order already, for example files that were exported by key. With
`presorted=True` it is first written without a shuffle. The commit decides by the key ranges of the
written parts, never by the input, whose rows may differ each time Spark computes it. If ranges
overlap, it removes these files and commits nothing, and `write_spark` writes the DataFrame again
with a shuffle.

A task whose first batch is not sorted by key receives the other batches, but writes nothing.
"""

from __future__ import annotations

import logging
from typing import Final

import pyarrow as pa

from rowsieve.errors import RowsieveError
from rowsieve.objects import ObjectStore
from rowsieve.planner.overlap import overlap_groups
from rowsieve.providers.spark.row_types import from_spark
from rowsieve.providers.spark.writes.job import WriteJob
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.types.ordering.keys import KeyOrder

_LOG: Final = logging.getLogger("rowsieve")
ONE_PASS_MAX_PARTS: Final = 2
ONE_PASS_MIN_PART_BYTES: Final = 8 * 1024 * 1024  # a shuffle joins the rows of small partitions


def is_in_order(rows: pa.RecordBatch, job: WriteJob) -> bool:
    """Return whether the rows of Spark are sorted by the table's key."""
    order = job.order
    assert order is not None
    wanted = {name.lower() for name in order.names}
    names = [name for name in rows.schema.names if name.lower() in wanted]
    keys = from_spark(pa.Table.from_batches([rows]).select(names), order.fields)
    if any(column.null_count for column in keys.columns):
        return True  # the write refuses them
    return order.columns(keys).is_sorted()


def is_worth_keeping(parts: PartTable, order: KeyOrder) -> bool:
    """Return whether the key ranges of the parts are disjoint, and the parts not many and small."""
    if any(len(group) > 1 for group in overlap_groups(parts.table, order)):
        return False
    return (
        len(parts) <= ONE_PASS_MAX_PARTS
        or parts.stored_bytes >= len(parts) * ONE_PASS_MIN_PART_BYTES
    )


def remove_uncommitted(store: ObjectStore, parts: PartTable) -> None:
    """Delete the files of parts that no commit adds, now or later."""
    files = [*parts.files("data"), *parts.files("deletes")]
    try:
        store.delete([file.path for file in files if file is not None and file.owned])
    except RowsieveError as error:  # they cost only space, until orphans are removed
        _LOG.warning("a write left files behind that are not part of %s: %s", store.uri, error)
