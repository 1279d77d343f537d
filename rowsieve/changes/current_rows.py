"""Read the rows that a version of a table has for some keys.

Soundness: a condition narrows the read, by Bloom filters, bounds and pages, and is TRUE for every
row that has one of the keys; then whole keys are compared. As keys, -0.0 and 0.0 are equal, and so
are all NaN, so floats are narrowed to a range that is closed on both sides, and not at all by NaN.

Memory is bounded: keys are looked up in slices of their order, and of what a slice reads only the
rows with one of its keys are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.executor.execute import Execution
from rowsieve.objects import ObjectStore
from rowsieve.planner.plan import ScanPlan, table_columns
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.ir import (
    TRUE,
    And,
    Column,
    Comparison,
    ComparisonOp,
    InList,
    Literal,
    Predicate,
    ValueSet,
    conjoin,
)
from rowsieve.predicate.semantics import Semantics
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.logical import Field, Float
from rowsieve.types.ordering.keys import KeyOrder

KEYS_AT_ONCE = 1 << 18  # keys that one read looks up
_ROWS_BEFORE_FILTER = 1 << 17  # rows that are read before those with other keys are dropped

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CurrentRows:
    """The rows of some keys at one version; `places` (n,) has the row of each key, -1 for none."""

    rows: pa.Table
    places: Places

    @property
    def is_present(self) -> npt.NDArray[np.bool_]:
        """(n,) whether the version has a row with the key."""
        return self.places >= 0


def current_rows(
    store: ObjectStore,
    snapshot: Snapshot,
    order: KeyOrder,
    keys: pa.Table,
    columns: Sequence[str],
) -> CurrentRows:
    """Return these columns of the rows with these keys; `keys` have the table's types."""
    names = tuple(dict.fromkeys((*order.names, *columns)))
    keys = keys.select(list(order.names))
    in_order = order.columns(keys).sort()
    places = np.full(keys.num_rows, -1, dtype=np.int64)
    pieces, count = [], 0
    for start in range(0, max(keys.num_rows, 1), KEYS_AT_ONCE):
        chosen = in_order[start : start + KEYS_AT_ONCE]
        some = keys.take(pa.array(chosen))
        plan = _plan(snapshot, store, order, some, names)
        execution = Execution(plan, store)
        rows = _with_these_keys(execution.read(), execution.schema, some, order)
        at = places_of(rows, some, order)
        places[chosen] = np.where(at < 0, -1, at + count)
        pieces.append(rows.select(list(columns)))
        count += rows.num_rows
    return CurrentRows(pa.concat_tables(pieces), places)


def near_keys(keys: pa.Table, order: KeyOrder) -> Predicate:
    """A condition on the key columns that all rows with one of these keys match."""
    return conjoin(_near(keys.column(field.name), field) for field in order.fields)


def _near(values: pa.ChunkedArray, field: Field) -> Predicate:
    column = Column(field.name)
    if not isinstance(field.type, Float):
        return InList(column, ValueSet(pc.unique(values), field.type))
    if not len(values) or pc.any(pc.is_nan(values)).as_py():
        return TRUE
    ends = pc.min_max(values.cast(pa.float64())).as_py()
    # A zero is above -0.0 for some engines: 0.0 - 0.0 stays 0.0, so the signs are set.
    lower, upper = ends["min"] or -0.0, ends["max"] or 0.0
    return And(
        (
            Comparison(ComparisonOp.GE, column, Literal(lower)),
            Comparison(ComparisonOp.LE, column, Literal(upper)),
        )
    )


def _plan(
    snapshot: Snapshot,
    store: ObjectStore,
    order: KeyOrder,
    keys: pa.Table,
    names: tuple[str, ...],
) -> ScanPlan:
    return plan_scan(
        snapshot,
        store.uri,
        predicate=near_keys(keys, order),
        columns=table_columns(names),
        semantics=Semantics.SQL,
        now_us=0,
    )


def _with_these_keys(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, keys: pa.Table, order: KeyOrder
) -> pa.Table:
    """The rows whose key is one of `keys`."""
    if len(order.fields) == 1 and not isinstance(order.fields[0].type, Float):
        return pa.Table.from_batches(list(batches), schema)  # the condition is exact
    matching: list[pa.Table] = []
    pending: list[pa.RecordBatch] = []
    for batch in batches:
        pending.append(batch)
        if sum(each.num_rows for each in pending) >= _ROWS_BEFORE_FILTER:
            matching.append(_matching(pending, schema, keys, order))
            pending = []
    return pa.concat_tables([*matching, _matching(pending, schema, keys, order)])


def _matching(
    batches: Sequence[pa.RecordBatch], schema: pa.Schema, keys: pa.Table, order: KeyOrder
) -> pa.Table:
    rows = pa.Table.from_batches(batches, schema)
    return rows.filter(pa.array(places_of(keys, rows, order) >= 0))


def places_of(rows: pa.Table, keys: pa.Table, order: KeyOrder) -> Places:
    """(keys,) the row that has each key, the first of several; -1 where none has it."""
    names = list(order.names)
    stored = rows.select(names)
    both = pa.concat_tables([stored, keys.select(names).cast(stored.schema)])
    columns = order.columns(both)
    positions = columns.sort()
    # The sort is stable: the row is the first of those that are equal.
    repeats = columns.repeats(positions)
    first = np.maximum.accumulate(np.where(repeats, 0, np.arange(len(positions))))
    places = np.empty(len(positions), dtype=np.int64)
    places[positions] = positions[first]
    wanted = places[rows.num_rows :]
    return np.where(wanted < rows.num_rows, wanted, -1)
