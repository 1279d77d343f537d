"""Decide conditions by the constraints of a table: no row, or every row, can match.

Every visible row of a version obeys its constraints. A condition that no such row can match reads
nothing, and a conjunct that every such row matches need not be evaluated.

Soundness: constraints describe visible rows, not parts. So they judge the whole table, never the
parts of an overlap group, where a hidden row may be what an older row is hidden by (trap T1). Only
plans of a committed version may use them: a modified copy, such as parts of another version or
those of one commit, may have rows that do not obey.
"""

from __future__ import annotations

from dataclasses import dataclass

from rowsieve.predicate import ir
from rowsieve.predicate.bind import BoundPredicate
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.predicate.interpretation.constrained_columns import (
    ConstrainedColumns,
    constrained_columns,
)
from rowsieve.storage.constraints import Constraint, constraints_of
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.schema import Schema


@dataclass(frozen=True, slots=True)
class Decision:
    """What is left of a condition, None for TRUE; `refuted`: no row of the table matches it.

    `names`: the constraints that decided.
    """

    filter: BoundPredicate | None
    refuted: bool = False
    names: tuple[str, ...] = ()


def decide(snapshot: Snapshot, bound: BoundPredicate | None) -> Decision:
    """Decide a bound condition on a committed version by its constraints; reads nothing."""
    constraints = constraints_of(snapshot.table.properties)
    if bound is None or not constraints:
        return Decision(bound)
    asked = {column.field_id for column in bound.columns}
    constraints = tuple(each for each in constraints if each.field_ids & asked)
    if not constraints:
        return Decision(bound)
    schema = snapshot.schema
    rows = _rows_of(constraints, schema)
    if _verdict(bound, rows) == Verdict.NONE:
        return Decision(bound, refuted=True, names=_deciding(constraints, schema, bound))
    terms = ir.root_conjuncts(bound.root)
    implied = [term for term in terms if _verdict(_alone(bound, term), rows) == Verdict.ALL]
    if not implied:
        return Decision(bound)
    left = [term for term in terms if term not in implied]
    names = dict.fromkeys(
        name for term in implied for name in _deciding(constraints, schema, _alone(bound, term))
    )
    whole = _alone(bound, ir.conjoin(left)) if left else None
    return Decision(whole, names=tuple(names))


def _rows_of(constraints: tuple[Constraint, ...], schema: Schema) -> ConstrainedColumns:
    not_null = frozenset(field.id for field in schema if not field.nullable)
    violations = (one for each in constraints for one in each.bound_violations(schema))
    return constrained_columns(violations, not_null)


def _alone(bound: BoundPredicate, term: ir.Predicate) -> BoundPredicate:
    return BoundPredicate(term, bound.schema_id, bound.semantics)


def _verdict(bound: BoundPredicate, rows: ConstrainedColumns) -> Verdict:
    return Verdict(int(interpret(bound, rows)[0]))


def _deciding(
    constraints: tuple[Constraint, ...], schema: Schema, bound: BoundPredicate
) -> tuple[str, ...]:
    """The constraint that decides the condition alone, or all that say something about it."""
    whole = _verdict(bound, _rows_of(constraints, schema))
    for each in constraints:
        if _verdict(bound, _rows_of((each,), schema)) == whole:
            return (each.name,)
    return tuple(each.name for each in constraints)
