"""A condition that the rows of `ORDER BY … LIMIT` match, learnt by reading a few parts first.

The overlap groups that seem to have the first rows are read until as many rows match as the limit
takes. Rows that come after the last one of these in the order are not among the first ones.

Soundness: bounds only choose the groups that are read. Rows with an equal value are kept, and so
are NULLs where they come first. Floats have no such condition: NaN and zeros.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import datafusion
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve import clock
from rowsieve.bridges.datafusion_exprs import from_datafusion
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import RowsieveError
from rowsieve.executor.execute import Execution
from rowsieve.planner.overlap import overlap_groups
from rowsieve.planner.plan import table_columns
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate import ir
from rowsieve.predicate.literal_values import from_scalar
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.datafusion.own_table import OwnTable
from rowsieve.providers.datafusion.part_choice.named_scans import ScanName, only_scan, variant
from rowsieve.types.logical import Bool, Date, Decimal, Int, String, Timestamp
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema

MAX_SHARE: Final = 0.25
"""Of the rows of a table, those that may be read to find the condition."""

_ORDERED: Final = (Bool, Int, Decimal, Date, Timestamp, String)


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The first `count` rows of a scan with these filters, by a column."""

    filters: Sequence[Any]
    column: str
    ascending: bool
    nulls_first: bool
    count: int


def first_rows(
    optimised: Any, names: Collection[str], name_of: ScanName
) -> Mapping[str, FirstRows]:
    """Tables whose first rows are all that a plan needs, by the names that `name_of` gives.

    Between the sort and the scan are only filters, and nodes that keep all rows.
    """
    return {n: first for n, first in _sorted_scans(optimised, name_of) if n in names}


def condition_of(own: OwnTable, first: FirstRows) -> ir.Predicate:
    """A condition that all rows that are needed match; TRUE if none is known."""
    schema = own.snapshot.schema
    filters = _exact(first.filters, schema)
    if filters is None or not isinstance(schema.field(first.column).type, _ORDERED):
        return ir.TRUE
    try:
        values = _first_values(own, first, filters)
    except RowsieveError:  # the statement reports it, if it reads these rows
        return ir.TRUE
    if values is None:
        return ir.TRUE
    order = "ascending" if first.ascending else "descending"
    last = values.take(pc.array_sort_indices(values, order))[first.count - 1]
    op = ir.ComparisonOp.LE if first.ascending else ir.ComparisonOp.GE
    column = ir.Column(first.column)
    reached = ir.Comparison(op, column, from_scalar(last, schema.field(first.column).type))
    return ir.Or((reached, ir.IsNull(column))) if first.nulls_first else reached


def _sorted_scans(plan: Any, name_of: ScanName) -> Iterator[tuple[str, FirstRows]]:
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        waiting.extend(node.inputs())
        sort = variant(node)
        if not isinstance(sort, datafusion.expr.Sort) or not sort.get_fetch_val():
            continue
        by = sort.sort_exprs()[0]
        column, below = by.expr(), only_scan(node.inputs()[0])
        if column.variant_name() == "Column" and below is not None:
            scan, filters = below
            yield (
                name_of(scan),
                FirstRows(
                    filters,
                    column.to_variant().name(),
                    by.ascending(),
                    by.nulls_first(),
                    sort.get_fetch_val(),
                ),
            )


def _exact(filters: Sequence[Any], schema: Schema) -> ir.Predicate | None:
    """The filters as one predicate with the same rows; None if one has no exact form."""
    terms = []
    for each in filters:
        translation = from_datafusion(each, schema)
        if translation.exactness is not Exactness.EXACT or translation.expression is None:
            return None
        if any(isinstance(node, ir.Now) for node in ir.walk(translation.expression)):
            return None
        terms.append(translation.expression)
    return ir.conjoin(terms)


def _first_values(own: OwnTable, first: FirstRows, filters: ir.Predicate) -> pa.Array | None:
    """The values of as many matching rows as are wanted, or more; None if it costs too much."""
    snapshot = own.snapshot
    rows = snapshot.parts.data_rows()
    left = int(rows.sum() * MAX_SHARE)
    values: list[pa.Array] = []
    for group in _groups(own, first, own.read_parts(filters)):
        left -= int(rows[group].sum())
        if left < 0:
            return None
        plan = plan_scan(
            replace(snapshot, parts=snapshot.parts.take(group)),
            own.table.uri,
            predicate=filters,
            semantics=Semantics.DATAFUSION,
            now_us=clock.now_us(),
            columns=table_columns((first.column,)),
        )
        batches = Execution(plan, own.table.handle.store).read()
        values += [batch.column(0).drop_null() for batch in batches]
        if sum(map(len, values)) >= first.count:
            return pa.concat_arrays(values)
    return None


def _groups(own: OwnTable, first: FirstRows, chosen: frozenset[str]) -> Iterator[list[int]]:
    """The groups of parts that are read together, those that seem to have the first rows first.

    Groups without a chosen part have no rows that match.
    """
    snapshot = own.snapshot
    parts, key = snapshot.parts, snapshot.table.key
    groups = [[place] for place in range(len(parts.part_ids))]
    if key:
        keys = KeyOrder.of(snapshot.schema, key)
        groups = [list(map(int, each)) for each in overlap_groups(parts.select("key.").table, keys)]
    end = "lower" if first.ascending else "upper"
    name = f"stats.{snapshot.schema.field(first.column).id}.{end}"
    if name not in parts.table.column_names:
        return
    bounds = parts.table.column(name).combine_chunks()
    order = "ascending" if first.ascending else "descending"
    ranks = np.empty(len(bounds), dtype=np.int64)
    ranks[np.asarray(pc.array_sort_indices(bounds, order))] = np.arange(len(bounds))
    ids = parts.part_ids
    groups = [group for group in groups if any(ids[place] in chosen for place in group)]
    yield from sorted(groups, key=lambda group: int(ranks[group].min()))
