"""Possible outcomes of many terms of an OR at once, on the bounds of parts.

Comparing the constants of alike terms with the bounds of n parts is one kernel of terms times
parts, instead of a walk over each term.

Soundness: `truths_of_any` computes the formulas of the interpreter for AND and OR, no others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from rowsieve.predicate import ir
from rowsieve.predicate.alike_terms import AlikeTerms
from rowsieve.predicate.arrays import Mask
from rowsieve.predicate.interpretation.abstract import Truth

Matrices: TypeAlias = tuple[Mask, Mask, Mask, Mask]
"""Whether each term may be TRUE, FALSE, NULL or failed in each part; each (terms or 1, parts)."""


def truths_of_any(
    terms: AlikeTerms,
    step: int,
    compared: Callable[[ir.BoundColumn, ir.ComparisonOp, pa.Array], Matrices],
) -> list[Truth]:
    """Return the outcomes of ORs of up to `step` terms, which an OR of them combines."""
    truths = []
    for start in range(0, terms.count, step):
        parts = [
            compared(column, op, constants.slice(start, step))
            for (column, op), constants in terms.compared
        ]
        truths.append(_any_of(_all_of(parts)))
    return truths


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
