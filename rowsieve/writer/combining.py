"""Several changes, one after the other, as one: the last action of each key.

Soundness (invariant 9): a key of the result is in its rows or in its deletes, never in both. With
an event order, the action with the greatest sequence remains, and of equal ones the last; without
it, the last. Changes of a table without a key are rows only, and all of them remain.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.changes.data.ingest import Changes
from rowsieve.changes.data.newest_per_key import newest_per_key
from rowsieve.writer.records import Form


def combined(changes: Sequence[Changes], form: Form) -> Changes:
    """Return the changes as one; each of them is of this form, sorted, with unique keys."""
    changes = [each for each in changes if not each.is_empty]
    if len(changes) < 2:
        return changes[0] if changes else Changes(None, None)
    if not form.key:
        return Changes(pa.concat_tables([each.rows for each in changes if each.rows]), None)
    rows = pa.concat_tables([each.rows for each in changes if each.rows is not None] or [_none()])
    deletes = pa.concat_tables(
        [each.deletes for each in changes if each.deletes is not None] or [_none()]
    )
    names = [*form.key, *form.sequence]
    actions = pa.concat_tables(
        [
            table.select(names)
            for each in changes
            for table in (each.rows, each.deletes)
            if table is not None
        ]
    )
    is_delete, places = _places(changes)
    last = _last_places(actions, is_delete, form)
    deleted = is_delete[last]
    return Changes(
        _taken(rows, places[last[~deleted]]),
        _taken(deletes, places[last[deleted]]),
    )


def _none() -> pa.Table:
    return pa.table({})


def _places(
    changes: Sequence[Changes],
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Of each action: whether it deletes, and its place among all rows, or among all deletes."""
    masks, places, counts = [], [], [0, 0]
    for each in changes:
        for kind, table in enumerate((each.rows, each.deletes)):
            if table is not None:
                masks.append(np.full(table.num_rows, bool(kind)))
                places.append(np.arange(counts[kind], counts[kind] + table.num_rows))
                counts[kind] += table.num_rows
    return np.concatenate(masks), np.concatenate(places)


def _last_places(
    actions: pa.Table, is_delete: npt.NDArray[np.bool_], form: Form
) -> npt.NDArray[np.int64]:
    """Return the places of the actions that remain, in key order."""
    keys = form.order.columns(actions)
    if (sequences := form.sequences) is not None:
        return newest_per_key(
            actions,
            keys,
            sequences.columns(actions),
            deletes=is_delete,
            last_wins=True,
            operation="writer",
            names=form.sequence,
        )
    ordered = keys.sort()  # stable
    last = np.ones(len(ordered), dtype=bool)
    last[:-1] = ~keys.repeats(ordered)[1:]
    return ordered[last]


def _taken(table: pa.Table, places: npt.NDArray[np.int64]) -> pa.Table | None:
    return table.take(pa.array(places)) if len(places) else None
