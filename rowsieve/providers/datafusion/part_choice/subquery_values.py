"""Values of the subqueries of a plan that decide which rows of a table a semi join keeps.

`EXISTS (SELECT … WHERE u.id = t.id)` is a semi join in DataFusion's plan. Its other side is run
once when the statement is planned, and its values skip parts of the table on this side. DataFusion
runs the join itself.

Soundness: the other side is run twice, so it may only read tables that cannot change in between. A
side that fails skips nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Protocol

import datafusion
import pyarrow as pa
from datafusion import functions

from rowsieve.providers.datafusion.part_choice.named_scans import only_scan, scan_name, variant

MAX_VALUES: Final = 2_000
"""Distinct values that are compared one by one; of more, only the least and the greatest count."""

UNSTABLE: Final = re.compile(r"\b(now|current_\w+|today|random|rand|uuid\w*)\b", re.IGNORECASE)
"""Functions with another value in each run; a column of such a name only costs the choice."""

OWN_ROWS: Final = re.compile(r"rowsieve_subquery_[0-9a-f]{32}")
"""Names of the rows of subqueries that are already known."""

_SCAN: Final = "TableScan: "
_ORDERED: Final = (
    pa.types.is_integer,
    pa.types.is_boolean,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
)


def is_ordered(type_: pa.DataType) -> bool:
    """Return whether values are ordered and compared in one way; floats have NaN and two zeros."""
    return any(test(type_) for test in _ORDERED)


class PinningSession(Protocol):
    """A session with tables that a statement pins to a version."""

    def create_dataframe_from_logical_plan(self, plan: Any) -> datafusion.DataFrame:
        """A frame that runs a plan."""

    def is_pinned(self, name: tuple[str, ...]) -> bool:
        """Return whether a table has the same rows in each run within a statement."""


class SubqueryValues:
    """Runs the other sides of semi joins in a session."""

    def __init__(self, session: PinningSession) -> None:
        self._session = session

    def conditions(self, join: Any, other: Any) -> Iterator[Any]:
        """The conditions on the rows of the left side that a semi join keeps."""
        if str(join.join_type()) != "LeftSemi" or join.null_equals_null():
            return
        if UNSTABLE.search(other.display_indent()) or not self._reads_fixed_tables(other):
            return
        for ours, theirs in join.on():
            try:
                condition = self._condition(datafusion.Expr(ours), other, datafusion.Expr(theirs))
            except Exception:  # DataFusion has no class for its errors; the statement reports it
                return
            if condition is not None:
                yield condition.expr

    def _condition(
        self, ours: datafusion.Expr, other: Any, theirs: datafusion.Expr
    ) -> datafusion.Expr | None:
        """A condition that `ours` equals one of the values of `theirs`; None if it is not known."""
        frame = self._session.create_dataframe_from_logical_plan(other).select(theirs.alias("v"))
        values = frame.distinct().limit(MAX_VALUES + 2).to_arrow_table().column(0)
        if not is_ordered(values.type):
            return None
        if pa.types.is_string_view(values.type):
            values = values.cast(pa.string())  # views have no drop_null
        values = values.drop_null()
        if len(values) <= MAX_VALUES:
            return functions.in_list(ours, [datafusion.Expr.literal(each) for each in values])
        column = datafusion.col("v")
        ends = frame.aggregate([], [functions.min(column), functions.max(column)])
        low, high = (datafusion.Expr.literal(each[0]) for each in ends.to_arrow_table().columns)
        return (ours >= low) & (ours <= high)

    def _reads_fixed_tables(self, plan: Any) -> bool:
        names = []
        waiting = [plan]
        while waiting:
            node = waiting.pop()
            waiting.extend(node.inputs())
            scan = variant(node)
            if isinstance(scan, datafusion.expr.TableScan):
                names.append(scan_name(scan))
        # The text of the plan includes subqueries inside expressions, which Python cannot visit.
        count = plan.display_indent().count(_SCAN)
        return count == len(names) and all(map(self._is_fixed, names))

    def _is_fixed(self, name: tuple[str, ...]) -> bool:
        return OWN_ROWS.fullmatch(name[-1]) is not None or self._session.is_pinned(name)


def inherited(
    node: Any, held: tuple[Any, ...], values: SubqueryValues | None
) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield the inputs of a node, each with the conditions on its rows that semi joins add.

    `held` are those on the rows of the node. They do not pass a node that adds or renames columns,
    or whose other rows decide which rows it returns.
    """
    expressions = datafusion.expr
    inputs = node.inputs()
    match variant(node):
        case expressions.Filter() as plan:
            yield inputs[0], (*held, plan.predicate())
        case expressions.SubqueryAlias():
            yield inputs[0], held
        case expressions.Union() if only_scan(node) is not None:
            for each in inputs:
                yield each, held
        case expressions.Projection() as plan if all(
            each.variant_name() == "Column" for each in plan.projections()
        ):
            yield inputs[0], held
        case expressions.Join() as plan if str(plan.join_type()) in ("LeftSemi", "LeftAnti"):
            more = () if values is None else values.conditions(plan, inputs[1])
            yield inputs[0], (*held, *more)
            yield inputs[1], ()
        case _:
            for each in inputs:
                yield each, ()
