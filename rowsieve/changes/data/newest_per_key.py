"""The newest of several changes of a key within a batch, by their sequences.

Soundness: two changes of a key with one sequence have no known order. If they are the same change,
which was delivered twice, one of them is left out; otherwise the batch is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.changes.data.same_rows import same_values
from rowsieve.errors import KeyViolation
from rowsieve.types.ordering.keys import KeyColumns, KeyOrder, flat
from rowsieve.types.shown_values import shown_row

Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def newest_per_key(
    rows: pa.Table,
    keys: KeyColumns,
    sequences: KeyColumns,
    *,
    deletes: Mask | None = None,
    last_wins: bool = False,
    operation: str,
    names: Sequence[str],
) -> Places:
    """Return the places of the newest change of each key, in key order; see `in_order`."""
    ordered = in_order(
        rows,
        keys,
        sequences,
        deletes=deletes,
        last_wins=last_wins,
        operation=operation,
        names=names,
    )
    last = np.ones(len(ordered), dtype=bool)
    last[:-1] = ~keys.repeats(ordered)[1:]
    return ordered[last]


def in_order(
    rows: pa.Table,
    keys: KeyColumns,
    sequences: KeyColumns,
    *,
    deletes: Mask | None = None,
    last_wins: bool = False,
    operation: str,
    names: Sequence[str],
) -> Places:
    """Return the places of the changes by key and sequence; of a repeated change the last one.

    `names` are those of the sequence columns. `deletes`: which changes delete their key; their
    other columns mean nothing. KeyViolation for two different changes of one key with one sequence,
    of which `last_wins` keeps both in their order instead.
    """
    both = KeyColumns((*keys.arrays, *sequences.arrays))
    ordered = both.sort()  # stable: of equal changes the last one comes last
    tied = np.flatnonzero(both.repeats(ordered))
    if len(tied) and not last_wins:
        differs = _differ(rows, ordered[tied - 1], ordered[tied], deletes)
        if differs.any():
            row = shown_row(rows, int(ordered[tied[np.argmax(differs)]]))
            raise KeyViolation(
                f"{operation}: two different changes of one key have the same "
                f"{', '.join(map(repr, names))}, so their order is unknown; "
                f"one of them is {row}; make the sequence unique per key"
            )
        return np.delete(ordered, tied - 1)
    return ordered


def newest_rows(
    rows: pa.Table, order: KeyOrder, sequences: KeyOrder, *, last_wins: bool, operation: str
) -> pa.Table:
    """The newest row of each key, in key order; the rows have the table's types."""
    keys = order.columns(rows)
    if keys.is_sorted() and not keys.repeats().any():
        return rows
    places = newest_per_key(
        rows,
        keys,
        sequences.columns(rows),
        last_wins=last_wins,
        operation=operation,
        names=sequences.names,
    )
    return rows.take(pa.array(places))


def _differ(rows: pa.Table, before: Places, after: Places, deletes: Mask | None) -> Mask:
    """(n,) whether two changes differ in what they do or in a column that it uses."""
    differs = np.zeros(len(before), dtype=bool)
    is_row = ~differs
    if deletes is not None:
        differs |= deletes[before] != deletes[after]
        is_row = ~deletes[before]
    for column in rows.columns:
        array = flat(column)
        pair = array.take(pa.array(before)), array.take(pa.array(after))
        differs |= is_row & ~same_values(*pair)
    return differs
