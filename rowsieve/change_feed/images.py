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
from rowsieve.executor.merging.repeats import rank
from rowsieve.executor.merging.windows import Run, Stream, windows
from rowsieve.types.ordering.keys import KeyOrder

INSERT: Final = 0
PREIMAGE: Final = 1
POSTIMAGE: Final = 2
DELETE: Final = 3
CHANGE_TYPES: Final = ("insert", "update_preimage", "update_postimage", "delete")
"""The change types by their number."""

Labelled: TypeAlias = tuple[pa.RecordBatch, npt.NDArray[np.int8]]
"""Rows, and the number of each row's change type."""
Batches: TypeAlias = Iterator[pa.RecordBatch]


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
        rows, labels = _labelled(window, skip_same=skip_same)
        if rows.num_rows:
            yield rows, labels


def _labelled(window: list[Run], *, skip_same: bool) -> Labelled:
    """Order the rows of a window by key, before-images first, and label them."""
    rows = [run.rows for run in window]
    sides = np.concatenate([np.full(len(run), run.stream, dtype=np.int8) for run in window])
    if len(window) == 1:
        return rows[0], np.where(sides == 0, DELETE, INSERT).astype(np.int8)
    order, repeats = rank([run.keys for run in window])
    paired = repeats | np.append(repeats[1:], False)
    if skip_same:
        changed = _changed(rows, order, repeats)
        order, paired = order[changed], paired[changed]
    is_old = sides[order] == 0
    labels = np.select(
        [is_old & paired, is_old, paired], [PREIMAGE, DELETE, POSTIMAGE], default=INSERT
    )
    return pa.concat_batches(rows).take(pa.array(order)), labels.astype(np.int8)


def _changed(
    rows: list[pa.RecordBatch], order: npt.NDArray[np.int64], repeats: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """(n,) the places in the order of the rows but those of images that are equal in all columns.

    Only rows that stay are put in order: of a rewritten part, few rows differ.
    """
    second = np.flatnonzero(repeats)
    kept = np.ones(len(order), dtype=np.bool_)
    if len(second):
        before = _taken(rows[0], order[second - 1])
        after = _taken(rows[1], order[second] - rows[0].num_rows)
        same = second[same_rows(before, after)]
        kept[same] = kept[same - 1] = False
    return kept


def _taken(rows: pa.RecordBatch, places: npt.NDArray[np.int64]) -> pa.RecordBatch:
    """The rows at ascending places; a slice where they follow each other."""
    first, count = int(places[0]), len(places)
    if int(places[-1]) - first + 1 == count:
        return rows.slice(first, count)
    return rows.take(pa.array(places))
