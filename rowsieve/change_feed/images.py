"""Labels changed rows: insert, update_preimage, update_postimage or delete.

In a table with a key, a key that both versions show is an update, and its two images follow each
other. Both sides are read in key order and matched in windows, so memory does not depend on the
number of changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.changes.data.same_rows import same_rows
from rowsieve.executor.merging.repeats import rank, repeated_in
from rowsieve.executor.merging.windows import Stream, windows
from rowsieve.types.ordering.keys import KeyColumns, KeyOrder

INSERT: Final = 0
PREIMAGE: Final = 1
POSTIMAGE: Final = 2
DELETE: Final = 3
CHANGE_TYPES: Final = ("insert", "update_preimage", "update_postimage", "delete")
"""The change types by their number."""

Labelled: TypeAlias = tuple[pa.RecordBatch, npt.NDArray[np.int8]]
"""Rows, and the number of each row's change type."""
Batches: TypeAlias = Iterator[pa.RecordBatch]
Places: TypeAlias = npt.NDArray[np.int64]
_Side: TypeAlias = tuple[int, pa.RecordBatch, KeyColumns]
"""Rows of a window before the change (0) or after it (1), with their keys."""


def all_of(batches: Batches, label: int) -> Iterator[Labelled]:
    """Give all rows one label."""
    for batch in batches:
        yield batch, np.full(batch.num_rows, label, dtype=np.int8)


def paired(
    before: Batches, after: Batches, order: KeyOrder, *, skip_same: bool
) -> Iterator[Labelled]:
    """Match rows by key; both sides are in key order, and have each key once.

    With `skip_same`, a row that has the same values in all columns on both sides is unchanged and
    omitted.
    """
    streams = [Stream(((0, batch) for batch in side), deletes=False) for side in (before, after)]
    for window in windows(streams, order):
        sides = [(run.stream, run.rows, run.keys) for run in window]
        if skip_same and len(sides) == 2:
            sides = _changed(sides[0], sides[1], order)
        if sides:
            yield _labelled(sides)


def _labelled(sides: list[_Side]) -> Labelled:
    """Order the rows of a window by key, before-images first, and label them."""
    rows = [side[1] for side in sides]
    streams = np.concatenate([np.full(len(keys), stream, np.int8) for stream, _, keys in sides])
    if len(sides) == 1:
        return rows[0], np.where(streams == 0, DELETE, INSERT).astype(np.int8)
    order, repeats = rank([keys for *_, keys in sides])
    paired = repeats | np.append(repeats[1:], False)
    is_old = streams[order] == 0
    labels = np.select(
        [is_old & paired, is_old, paired], [PREIMAGE, DELETE, POSTIMAGE], default=INSERT
    )
    return pa.concat_batches(rows).take(pa.array(order)), labels.astype(np.int8)


def _changed(before: _Side, after: _Side, order: KeyOrder) -> list[_Side]:
    """Both sides without rows that have an equal row, with all of its columns, on the other side.

    They are cut before they are put in order: of a rewritten part, few rows differ.
    """
    first = repeated_in([after[2], before[2]])[1]
    second = repeated_in([before[2], after[2]])[1]  # the rows of the same keys
    if not len(first):
        return [before, after]
    same = same_rows(_taken(before[1], first), _taken(after[1], second))
    sides = [
        (stream, _taken(rows, np.delete(np.arange(len(keys)), equal)))
        for (stream, rows, keys), equal in ((before, first[same]), (after, second[same]))
    ]
    return [(stream, rows, order.columns(rows)) for stream, rows in sides if rows.num_rows]


def _taken(rows: pa.RecordBatch, places: Places) -> pa.RecordBatch:
    """The rows at ascending places; a slice where they follow each other."""
    count = len(places)
    if not count or int(places[-1]) - int(places[0]) + 1 == count:
        return rows.slice(int(places[0]) if count else 0, count)
    return rows.take(pa.array(places))
