"""Up to where events have truncated a table with an event order: changes before that are late.

The property TRUNCATED has the greatest sequence of a truncate. At that place the source had no row,
so a change with a lower sequence is overtaken, whatever its key: it is left out and counted, and
needs no tombstone to be known as late. A change with the very sequence is not: as elsewhere, of
equal sequences the later commit counts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.changes.event_order.sequence_columns import order_of
from rowsieve.changes.event_order.stored_floors import floor_row, floor_texts, widened_floor
from rowsieve.errors import CorruptData, repr_of
from rowsieve.properties import TRUNCATED
from rowsieve.storage.snapshot import TRUNCATES_WRITER, Snapshot, TableInfo
from rowsieve.types.logical import Field
from rowsieve.types.ordering.sequences import is_above

Mask = npt.NDArray[np.bool_]


def truncated_before(snapshot: Snapshot) -> pa.Table | None:
    """The sequence of the last truncate as one row; None if none was applied."""
    texts = _texts(snapshot.table.properties)
    return floor_row(texts, snapshot.sequence_fields) if texts else None


def is_below(snapshot: Snapshot, floor: pa.Table, rows: pa.Table) -> Mask:
    """(n,) which rows have a sequence below that of a truncate."""
    order = order_of(snapshot)
    ends = floor.take(pa.array(np.zeros(rows.num_rows, np.int64)))
    return is_above(order.columns(ends), order.columns(rows))


def with_truncation(info: TableInfo, floor: pa.Table, fields: Sequence[Field]) -> TableInfo:
    """The table information with the sequence of a truncate, of one row."""
    text = msgspec.json.encode(floor_texts(floor, fields)).decode()
    return dataclasses.replace(
        info,
        properties={**info.properties, TRUNCATED: text},
        writer_version=max(info.writer_version, TRUNCATES_WRITER),
    )


def truncated_as(
    properties: Mapping[str, str],
    target: Mapping[str, str],
    old: Sequence[Field],
    new: Sequence[Field],
) -> Mapping[str, str]:
    """Properties with the truncate of `target`, whose sequence had the types of `old`, or none."""
    texts = widened_floor(_texts(target), old, new)
    if not texts and TRUNCATED not in properties:
        return properties
    others = {name: text for name, text in properties.items() if name != TRUNCATED}
    return {**others, TRUNCATED: msgspec.json.encode(texts).decode()} if texts else others


def _texts(properties: Mapping[str, str]) -> tuple[str, ...]:
    if (text := properties.get(TRUNCATED)) is None:
        return ()
    try:
        return msgspec.json.decode(text, type=tuple[str, ...])
    except msgspec.DecodeError as error:
        raise CorruptData(
            f"the log has the property {TRUNCATED!r} as {repr_of(text)}, which is not a list of "
            f"texts: {error}; restore the log from a copy"
        ) from error
