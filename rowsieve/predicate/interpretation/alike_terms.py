"""Terms of an OR that differ in their constants only, and are interpreted together.

`a = 1 AND b < 2 OR a = 3 AND b < 4 OR …`: the terms of one *shape*, the same columns and operators
in the same order, become one array of constants per comparison. Comparing them with the bounds of
n parts is one kernel of terms times parts, instead of a walk over each term.

Soundness: `outcome_of_any` computes the formulas of the interpreter for AND and OR, no others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from rowsieve.predicate import ir
from rowsieve.predicate.arrays import Mask
from rowsieve.predicate.interpretation.abstract import Truth
from rowsieve.predicate.interpretation.plain_comparisons import ORDERED
from rowsieve.predicate.literal_values import array_of
from rowsieve.predicate.remembered_terms import derived_once
from rowsieve.types.logical import is_ordered


@dataclass(frozen=True, slots=True)
class AlikeTerms:
    """Terms of one shape; `constants` has an array of the column's type for each comparison."""

    shape: tuple[tuple[ir.BoundColumn, ir.ComparisonOp], ...]
    constants: tuple[pa.Array, ...]

    @property
    def count(self) -> int:
        """The number of terms."""
        return len(self.constants[0])


@dataclass(frozen=True, slots=True)
class Grouped:
    """The terms of an OR: groups of a frequent shape, and all other terms."""

    alike: tuple[AlikeTerms, ...]
    others: tuple[ir.Predicate, ...]


Matrices: TypeAlias = tuple[Mask, Mask, Mask, Mask]
"""Whether each term may be TRUE, FALSE, NULL or failed in each part; each (terms or 1, parts)."""


def grouped(
    terms: tuple[ir.Predicate, ...], fewest: int, remembered: dict[Hashable, Any]
) -> Grouped:
    """Group the terms by shape; shapes of fewer terms than `fewest` are not grouped."""
    if len(terms) < fewest:
        return Grouped((), terms)
    return derived_once(terms, "alike terms", remembered, partial(_grouped, fewest=fewest))


def _grouped(terms: tuple[ir.Predicate, ...], fewest: int) -> Grouped:
    shapes: dict[_Shape, list[tuple[ir.Predicate, _Constants]]] = {}
    columns: dict[int, ir.BoundColumn] = {}
    others: list[ir.Predicate] = []
    for term in terms:
        parts = _comparisons(term)
        if parts is None or any(columns.setdefault(c.field_id, c) != c for c, _, _ in parts):
            others.append(term)
            continue
        shape = tuple([(column.field_id, op) for column, op, _ in parts])
        shapes.setdefault(shape, []).append((term, [value for _, _, value in parts]))
    alike: list[AlikeTerms] = []
    for shape, same in shapes.items():
        if len(same) < fewest:
            others += [term for term, _ in same]
            continue
        asked = [(columns[field_id], op) for field_id, op in shape]
        constants = [
            array_of(side, column.type)
            for side, (column, _) in zip(
                zip(*[c for _, c in same], strict=True), asked, strict=True
            )
        ]
        alike.append(AlikeTerms(tuple(asked), tuple(constants)))
    return Grouped(tuple(alike), tuple(others))


_Shape: TypeAlias = tuple[tuple[int, ir.ComparisonOp], ...]
_Constants: TypeAlias = list[ir.PhysicalValue]


def _comparisons(
    term: ir.Predicate,
) -> list[tuple[ir.BoundColumn, ir.ComparisonOp, ir.PhysicalValue]] | None:
    """Return the comparisons of a term; None if it has a condition of another kind.

    Columns are compared with constants of their type, neither NULL nor NaN.
    """
    found: list[tuple[ir.BoundColumn, ir.ComparisonOp, ir.PhysicalValue]] = []
    for node in term.terms if isinstance(term, ir.And) else (term,):
        match node:
            case ir.Comparison(
                op=op,
                left=ir.BoundColumn(type=type_) as column,
                right=ir.Literal(value=value, type=other),
            ) if value is not None and value == value and op in ORDERED and type_ == other:  # noqa: PLR0124 - NaN
                if not is_ordered(type_):
                    return None
                found.append((column, op, value))
            case _:
                return None
    return found


def outcome_of_any(
    terms: AlikeTerms,
    step: int,
    compared: Callable[[ir.BoundColumn, ir.ComparisonOp, pa.Array], Matrices],
) -> list[Truth]:
    """Return the outcomes of ORs of up to `step` terms, which an OR of them combines."""
    found = []
    for start in range(0, terms.count, step):
        parts = [
            compared(column, op, constants.slice(start, step))
            for (column, op), constants in zip(terms.shape, terms.constants, strict=True)
        ]
        found.append(_any_of(_all_of(parts)))
    return found


def _all_of(parts: Sequence[Matrices]) -> Matrices:
    """Compute AND of each term's comparisons, as the interpreter does for one term."""
    true, false, null, fails = parts[0]
    can_end = true | null | fails
    for more_true, more_false, more_null, more_fails in parts[1:]:
        true, false = true & more_true, false | more_false
        null, fails = null | more_null, fails | more_fails
        can_end = can_end & (more_true | more_null | more_fails)
    return true, false, null & can_end, fails & can_end


def _any_of(terms: Matrices) -> Truth:
    """Compute OR of the terms, as the interpreter does: the negation of AND of their negations."""
    true, false, null, fails = terms
    can_end = np.logical_and.reduce(false | null | fails)
    return Truth(
        np.logical_or.reduce(true),
        np.logical_and.reduce(false),
        np.logical_or.reduce(null) & can_end,
        np.logical_or.reduce(fails) & can_end,
    )
