"""Find which of some keys a version of a table has, and the condition that narrows a read to them.

Soundness: the condition is TRUE for every row that has one of the keys. Floats as the first key
column narrow nothing, because NaN and -0.0 are equal to others as keys, but not in a condition.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.executor.execute import Execution
from rowsieve.objects import ObjectStore
from rowsieve.planner.plan import OutputColumn
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.ir import TRUE, Column, InList, Predicate, ValueSet
from rowsieve.predicate.semantics import Semantics
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.logical import Float
from rowsieve.types.ordering.keys import KeyOrder


def near_keys(keys: pa.Table, order: KeyOrder) -> Predicate:
    """A condition on the first key column that all rows with these keys match."""
    first = order.fields[0]
    if isinstance(first.type, Float):
        return TRUE
    return InList(Column(first.name), ValueSet(pc.unique(keys.column(first.name)), first.type))


def without_present(
    store: ObjectStore, snapshot: Snapshot, order: KeyOrder, rows: pa.Table
) -> pa.Table:
    """Return the rows whose key the version lacks; `rows` have the table's types, unique keys."""
    if not rows.num_rows or not len(snapshot.parts):
        return rows
    names = list(order.names)
    plan = plan_scan(
        snapshot,
        store.uri,
        predicate=near_keys(rows, order),
        columns=tuple(OutputColumn(name) for name in names),
        semantics=Semantics.SQL,
        now_us=0,
    )
    execution = Execution(plan, store)
    present = pa.Table.from_batches(list(execution.read()), schema=execution.schema)
    both = pa.concat_tables([present, rows.select(names).cast(present.schema)])
    columns = order.columns(both)
    positions = columns.sort()
    # The sort is stable: a repeated key is of `rows`, which come second.
    places = positions[columns.repeats(positions)] - present.num_rows
    is_new = np.ones(rows.num_rows, dtype=bool)
    is_new[places] = False
    return rows.filter(pa.array(is_new))
