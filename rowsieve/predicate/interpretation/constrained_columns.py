"""What constraints of a table say about the values of its columns, for the abstract interpreter.

A row obeys a constraint whose violation is not TRUE on it. So the non-NULL values of a column lie
within what the violation leaves; a NULL obeys every comparison.

Soundness: these facts hold for visible rows only, of versions that have the constraint. Bounds of
floats exclude NaN only if NaN violates the constraint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rowsieve.predicate import ir
from rowsieve.predicate.bound import BoundPredicate
from rowsieve.predicate.interpretation.abstract import AbstractColumn
from rowsieve.predicate.interpretation.facts import Facts, bounds_against, facts_against
from rowsieve.predicate.interpretation.narrow import narrowed
from rowsieve.predicate.semantics import NanOrder
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Float


@dataclass(frozen=True, slots=True)
class Nullability:
    """`AbstractColumns` of one part of which only is known which columns have no NULL."""

    not_null: frozenset[int]

    @property
    def part_count(self) -> int:
        """One."""
        return 1

    def column(self, column: ir.BoundColumn) -> AbstractColumn:
        """Any value; NULL unless the column is NOT NULL."""
        nothing = pa.nulls(1, arrow_type(column.type))
        return AbstractColumn(
            nothing,
            nothing,
            empty=np.array([False]),
            may_be_null=np.array([column.field_id not in self.not_null]),
            may_be_nan=np.array([isinstance(column.type, Float)]),
        )


@dataclass(frozen=True, slots=True)
class ConstrainedColumns:
    """`AbstractColumns` of one part: all rows that obey some constraints."""

    known: Mapping[int, tuple[ir.BoundColumn, AbstractColumn]]
    others: Nullability

    @property
    def part_count(self) -> int:
        """One."""
        return 1

    def column(self, column: ir.BoundColumn) -> AbstractColumn:
        """The values of the column on rows that obey."""
        facts, values = self.known.get(column.field_id, (None, None))
        if values is not None and facts is not None and facts.type == column.type:
            return values
        return self.others.column(column)


def constrained_columns(
    violations: Iterable[BoundPredicate], not_null: frozenset[int]
) -> ConstrainedColumns:
    """Describe the rows on which none of the violations is TRUE."""
    others = Nullability(not_null)
    facts, floats = Facts(), dict[ir.BoundColumn, AbstractColumn]()
    for violation in violations:
        facts = facts_against(violation.root, facts)
        for column, within in _floats(violation, floats, others):
            floats[column] = within
    rows = narrowed(others, facts)
    known = {column: rows.column(column) for column in facts.columns}
    by_id = {
        column.field_id: (column, values)
        for column, values in {**known, **floats}.items()
        if values is not None
    }
    return ConstrainedColumns(by_id, others)


def _floats(
    violation: BoundPredicate, known: Mapping[ir.BoundColumn, AbstractColumn], others: Nullability
) -> Iterable[tuple[ir.BoundColumn, AbstractColumn]]:
    """Bounds of float columns, within those that are known."""
    nan_is_greatest = violation.semantics.nan is NanOrder.GREATEST
    for column, op, bound in bounds_against(violation.root):
        facts = known.get(column) or others.column(column)
        values = pa.repeat(bound, 1)
        if op.is_order and op.holds_if_greater:  # NaN obeys
            if facts.lower.null_count or facts.lower[0].as_py() < bound.as_py():
                facts = _with(facts, lower=values)
        elif nan_is_greatest:  # NaN violates
            if facts.upper.null_count or facts.upper[0].as_py() > bound.as_py():
                facts = _with(facts, upper=values)
            facts = _with(facts, nan=False)
        yield column, facts


def _with(
    facts: AbstractColumn,
    *,
    lower: pa.Array | None = None,
    upper: pa.Array | None = None,
    nan: bool | None = None,
) -> AbstractColumn:
    return AbstractColumn(
        facts.lower if lower is None else lower,
        facts.upper if upper is None else upper,
        facts.empty,
        facts.may_be_null,
        facts.may_be_nan if nan is None else np.array([nan]),
    )
