"""Conditions with `now()` for a plan that outlives its statement (invariant 30).

The engine reads the clock again when it runs the plan, so a plan only knows that `now()` is its own
time or later. Soundness: the result is TRUE wherever the condition is TRUE at any such time; it is
TRUE itself where nothing is known, such as `ts < now()`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rowsieve.predicate import ir
from rowsieve.predicate.binding.zoned import is_utc
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.days import DAY_US
from rowsieve.types.logical import Date, Timestamp

# Calls that do not fall while the argument at this place grows; the others are constants.
_RISING: Final[Mapping[str, int]] = {
    "shift": 0,
    "shift_timestamp": 0,
    "add_interval": 0,
    "date_trunc": 1,
}
# A clock that is set back may move a local time, and the instant of a local time, by a day each.
_ZONE_MARGIN_US: Final = 3 * DAY_US
_CLOCK_MARGIN_US: Final = 3_600_000_000
"""The engine may have read the clock before it planned, and clocks are corrected."""
_ABOVE: Final = {
    ir.ComparisonOp.GT: ir.ComparisonOp.GT,
    ir.ComparisonOp.GE: ir.ComparisonOp.GE,
    ir.ComparisonOp.EQ: ir.ComparisonOp.GE,
    ir.ComparisonOp.NOT_DISTINCT: ir.ComparisonOp.GE,
}


def from_now_on(predicate: ir.Predicate, semantics: Semantics, now_us: int) -> ir.Predicate:
    """Return a condition without `Now` that holds wherever this one does at `now_us` or later."""
    margin = _CLOCK_MARGIN_US + (0 if is_utc(semantics) else _ZONE_MARGIN_US)
    return _superset(predicate, ir.Literal(now_us - margin, Timestamp(utc=True)))


def only_bounds(predicate: ir.Predicate) -> bool:
    """Return whether each `Now` is in a side of a comparison that does not fall while time passes.

    Such a side fails at no time, and the other side does not depend on the time.
    """
    waiting: list[ir.Predicate] = [predicate]
    while waiting:
        node = waiting.pop()
        match node:
            case ir.And(terms=terms) | ir.Or(terms=terms):
                waiting += terms
            case ir.Not(term=term):
                waiting.append(term)
            case ir.Comparison(left=left, right=right) if has_now(left) != has_now(right):
                if not _rises(left if has_now(left) else right):
                    return False
            case _ if has_now(node):
                return False
    return True


def has_now(node: ir.Node) -> bool:
    """Return whether the expression depends on the time of the query."""
    return any(isinstance(each, ir.Now) for each in ir.walk(node))


def _superset(node: ir.Predicate, now: ir.Literal) -> ir.Predicate:
    if not has_now(node):
        return node
    match node:
        case ir.And(terms=terms):
            return ir.conjoin(_superset(term, now) for term in terms)
        case ir.Or(terms=terms):
            return ir.disjoin([_superset(term, now) for term in terms])
        case ir.Not(term=ir.Comparison(op=op, left=left, right=right)) if op in (
            ir.ComparisonOp.LT,
            ir.ComparisonOp.LE,
        ):
            return _superset(ir.Comparison(op.negated, left, right), now)
        case ir.Not(term=ir.Comparison(op=op, left=left, right=right)) if op.is_order:
            return _superset(ir.Not(ir.Comparison(op.mirrored, right, left)), now)
        case ir.Comparison(op=op, left=left, right=right):
            if has_now(left):
                op, left, right = op.mirrored, right, left
            if op in _ABOVE and not has_now(left) and _rises(right):
                return ir.Comparison(_ABOVE[op], left, _at(right, now))
    return ir.TRUE


def _rises(node: ir.Operand) -> bool:
    """Whether the value does not fall while time passes."""
    match node:
        case ir.Now():
            return True
        case ir.Cast(operand=operand, type=Timestamp() | Date(), try_=False):
            return _rises(operand)
        case ir.Call(function=name, arguments=arguments) if name in _RISING:
            moving = arguments[_RISING[name]] if len(arguments) > _RISING[name] else None
            others = [each for each in arguments if each is not moving]
            constant = all(isinstance(each, ir.Literal) for each in others)
            return moving is not None and constant and _rises(moving)
    return False


def _at(node: ir.Operand, now: ir.Literal) -> ir.Operand:
    match node:
        case ir.Now():
            return now
        case _:
            return ir.map_children(node, lambda each: each, lambda each: _at(each, now))
