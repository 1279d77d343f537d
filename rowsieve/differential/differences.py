"""Differences of collections, and conversions between change feeds and updates.

A collection is a table, a scan or Arrow rows. A column `_rowsieve_diff` of it is the multiplicity
of each row; without one, each row is there once. Equality of rows is that of a differential table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.arguments import checked
from rowsieve.arguments.annotations import ColumnNames
from rowsieve.changes.data.ingest import read_data
from rowsieve.errors import InvalidData, MultiplicityOverflow, SchemaMismatch
from rowsieve.executor.consolidation.equality_codes import equality_codes, joined_codes
from rowsieve.executor.consolidation.sums import sum_differences
from rowsieve.storage.differential import DIFF, TIME
from rowsieve.types.encodings import without_metadata
from rowsieve.types.ordering.keys import flat
from rowsieve.types.shown_values import shown_row

_ADDS: Final = ("insert", "update_postimage")
_REMOVES: Final = ("delete", "update_preimage")
_TYPE, _VERSION, _TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"
OP: Final = "op"
"""The column of actions of `updates_to_changes`: "u" writes the row, "d" removes its key."""


@runtime_checkable
class _Scannable(Protocol):
    def scan(self) -> Any:
        """Return the rows of now."""


@checked
def differences(before: Any, after: Any) -> pa.Table:
    """Return the updates that turn one collection into another, as rows with `_rowsieve_diff`.

    Both are tables, scans or Arrow rows with the same columns. The differences of the result,
    added to those of `before`, are those of `after`. SchemaMismatch for other columns or types.
    """
    old, new = _collection(before), _collection(after)
    if old.schema.names != new.schema.names or old.schema.types != new.schema.types:
        raise SchemaMismatch(
            "differences: the two collections have other columns: "
            f"({_shown(old.schema)}) and ({_shown(new.schema)}); select and cast the columns first"
        )
    negated = pc.negate(old.column(DIFF))
    removed = old.set_column(old.column_names.index(DIFF), DIFF, negated)
    return _added_up(pa.concat_tables([removed, new.cast(removed.schema)]))


@checked
def changes_to_updates(changes: Any) -> pa.Table:
    """Return the rows of a change feed as updates, with their version as `_rowsieve_time`.

    `changes` is what `Table.changes` returns. Rows that were inserted, or that an update wrote, are
    added; those that were deleted, or that an update replaced, are removed.
    """
    feed = read_data(changes, "changes_to_updates")
    for name in (_TYPE, _VERSION):
        if name not in feed.column_names:
            raise SchemaMismatch(
                f"changes_to_updates: the data has no column {name!r}; give what changes() returns"
            )
    kinds = feed.column(_TYPE)
    adds = pc.is_in(kinds, value_set=pa.array(_ADDS))
    removes = pc.is_in(kinds, value_set=pa.array(_REMOVES))
    if not pc.all(pc.or_(adds, removes)).as_py() and feed.num_rows:
        raise InvalidData(
            f"changes_to_updates: {_TYPE} must be one of {', '.join((*_ADDS, *_REMOVES))}"
        )
    feed_columns = {_TYPE, _VERSION, _TIMESTAMP}
    rows = feed.select([name for name in feed.column_names if name not in feed_columns])
    times = feed.column(_VERSION).cast(pa.uint64())
    signs = pc.if_else(adds, pa.scalar(1, pa.int64()), pa.scalar(-1, pa.int64()))
    return rows.append_column(pa.field(TIME, pa.uint64(), nullable=False), times).append_column(
        pa.field(DIFF, pa.int64(), nullable=False), signs
    )


@checked
def updates_to_changes(updates: Any, key: ColumnNames) -> pa.Table:
    """Return updates of rows with a key as changes for `apply_changes(…, op="op", sequence=…)`.

    The column `op` is "u" for a row that is added and "d" for a key whose row is removed and not
    replaced at the same time; the sequence is `_rowsieve_time`. InvalidData if a row is added or
    removed more than once at a time, or if several rows of a key are added: there is no such table.
    """
    table = read_data(updates, "updates_to_changes")
    for name in (TIME, DIFF, *key):
        if name not in table.column_names:
            raise SchemaMismatch(f"updates_to_changes: the data has no column {name!r}")
    rows = _added_up(table)
    diffs = rows.column(DIFF).to_numpy()
    if len(wrong := np.flatnonzero(np.abs(diffs) > 1)):
        raise _not_keyed(rows, int(wrong[0]), "is added or removed more than once at its time")
    places = _places(rows, (*key, TIME))
    added = diffs > 0
    counts = np.bincount(places[added], minlength=len(diffs))
    if len(wrong := np.flatnonzero(added & (counts[places] > 1))):
        raise _not_keyed(rows, int(wrong[0]), "is one of several that have its key at its time")
    changed = added | (counts[places] == 0)
    ops = pa.array(np.where(added[changed], "u", "d").tolist(), pa.string())
    return rows.filter(pa.array(changed)).drop_columns([DIFF]).append_column(OP, ops)


def _places(rows: pa.Table, names: Sequence[str]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """(n,) numbers below n, equal where these columns are equal."""
    codes = [code for name in names for code in equality_codes(flat(rows.column(name)))]
    return joined_codes(codes, rows.num_rows)


def _not_keyed(rows: pa.Table, row: int, why: str) -> InvalidData:
    return InvalidData(
        f"updates_to_changes: the row {shown_row(rows, row)} {why}, so these are not updates of a "
        "table with this key"
    )


def _collection(source: Any) -> pa.Table:
    """The rows with their multiplicities, without metadata of fields."""
    rows = source.scan() if isinstance(source, _Scannable) else source
    table = read_data(rows, "differences")
    table = table.cast(without_metadata(table.schema))
    if DIFF in table.column_names:
        return table
    return table.append_column(DIFF, pa.array(np.ones(table.num_rows, dtype=np.int64)))


def _added_up(rows: pa.Table) -> pa.Table:
    place = rows.column_names.index(DIFF)
    arrays = [flat(column) for column in rows.columns]
    codes = [c for i, array in enumerate(arrays) if i != place for c in equality_codes(array)]
    diffs = np.asarray(arrays[place].to_numpy(zero_copy_only=False), dtype=np.int64)
    sums = sum_differences(codes, diffs)
    result = pa.Table.from_arrays(
        [array.take(pa.array(sums.rows)) for array in arrays], schema=rows.schema
    )
    if sums.overflows.any():
        row = shown_row(result, int(np.argmax(sums.overflows)))
        raise MultiplicityOverflow(
            f"the differences of the row {row} add up to more than 64 bits hold", row=row
        )
    return result.set_column(place, rows.schema.field(place), pa.array(sums.sums))


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
