"""The facts about the comparison operators, against the comparisons themselves."""

from __future__ import annotations

from itertools import product

import pytest

from rowsieve.predicate.comparison_op import ComparisonOp

_HOLDS = {
    ComparisonOp.EQ: lambda a, b: a == b,
    ComparisonOp.NE: lambda a, b: a != b,
    ComparisonOp.LT: lambda a, b: a < b,
    ComparisonOp.LE: lambda a, b: a <= b,
    ComparisonOp.GT: lambda a, b: a > b,
    ComparisonOp.GE: lambda a, b: a >= b,
    ComparisonOp.DISTINCT: lambda a, b: a != b,
    ComparisonOp.NOT_DISTINCT: lambda a, b: a == b,
}
_PAIRS = tuple(product(range(3), repeat=2))


@pytest.mark.parametrize("op", ComparisonOp)
def test_mirrored_negated_strict_and_weak_hold_as_they_say(op: ComparisonOp) -> None:
    """Every fact agrees with the comparison of numbers."""
    for a, b in _PAIRS:
        holds = _HOLDS[op](a, b)
        assert _HOLDS[op.mirrored](b, a) == holds
        assert _HOLDS[op.negated](a, b) != holds
        order = op.holds_if_less if a < b else op.holds_if_equal if a == b else op.holds_if_greater
        assert order == holds
        assert op.is_null_safe or op.python(a, b) == holds
        if op.is_order:
            assert _HOLDS[op.strict](a, b) == (holds and a != b)
            assert _HOLDS[op.weak](a, b) == (holds or a == b)
    assert op.is_order or op.strict is op.weak is op.mirrored is op


@pytest.mark.parametrize("op", ComparisonOp)
def test_null_safe_operators_stay_null_safe(op: ComparisonOp) -> None:
    """Negation and mirroring keep how an operator treats NULL."""
    assert op.negated.is_null_safe == op.mirrored.is_null_safe == op.is_null_safe
    assert op.is_null_safe == op.value.endswith("DISTINCT FROM")
