"""The comparison operators and the facts about them, each once.

An operator is the set of the orders of its sides for which it is TRUE: less, equal, greater. The
mirror, the negation and the strict form follow from that set.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, NamedTuple


class ComparisonOp(Enum):
    """Comparison operators; the value is the SQL spelling."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    DISTINCT = "IS DISTINCT FROM"
    NOT_DISTINCT = "IS NOT DISTINCT FROM"

    @property
    def is_order(self) -> bool:
        """Whether it compares by order: `<`, `<=`, `>` and `>=`."""
        orders = _ORDERS[self]
        return orders.less is not orders.greater

    @property
    def is_null_safe(self) -> bool:
        """Whether it is TRUE or FALSE for NULL too."""
        return self is ComparisonOp.DISTINCT or self is ComparisonOp.NOT_DISTINCT

    @property
    def holds_if_less(self) -> bool:
        """Whether `a self b` is TRUE if `a` is less than `b`."""
        return _ORDERS[self].less

    @property
    def holds_if_equal(self) -> bool:
        """Whether `a self b` is TRUE if `a` equals `b`."""
        return _ORDERS[self].equal

    @property
    def holds_if_greater(self) -> bool:
        """Whether `a self b` is TRUE if `a` is greater than `b`."""
        return _ORDERS[self].greater

    @property
    def mirrored(self) -> ComparisonOp:
        """The operator with which `b op a` means `a self b`."""
        less, equal, greater = _ORDERS[self]
        return self._with(_Orders(greater, equal, less))

    @property
    def negated(self) -> ComparisonOp:
        """The operator that is TRUE where this one is FALSE.

        For an order operator on floats only if NaN has a place in the order.
        """
        less, equal, greater = _ORDERS[self]
        return self._with(_Orders(not less, not equal, not greater))

    @property
    def strict(self) -> ComparisonOp:
        """The operator without equality: `<` for `<=`, `>` for `>=`, itself for the rest."""
        return self._with(_ORDERS[self]._replace(equal=False)) if self.is_order else self

    @property
    def weak(self) -> ComparisonOp:
        """The operator with equality: `<=` for `<`, `>=` for `>`, itself for the rest."""
        return self._with(_ORDERS[self]._replace(equal=True)) if self.is_order else self

    @property
    def python(self) -> Callable[[Any, Any], Any]:
        """Python's operator, which many libraries overload; KeyError if the op is null-safe."""
        return _PYTHON[self]

    def _with(self, orders: _Orders) -> ComparisonOp:
        return (_NULL_SAFE if self.is_null_safe else _PLAIN)[orders]


class _Orders(NamedTuple):
    """For which orders of its sides a comparison is TRUE."""

    less: bool
    equal: bool
    greater: bool


_PLAIN: Final = {
    _Orders(less=False, equal=True, greater=False): ComparisonOp.EQ,
    _Orders(less=True, equal=False, greater=True): ComparisonOp.NE,
    _Orders(less=True, equal=False, greater=False): ComparisonOp.LT,
    _Orders(less=True, equal=True, greater=False): ComparisonOp.LE,
    _Orders(less=False, equal=False, greater=True): ComparisonOp.GT,
    _Orders(less=False, equal=True, greater=True): ComparisonOp.GE,
}
_NULL_SAFE: Final = {
    _Orders(less=True, equal=False, greater=True): ComparisonOp.DISTINCT,
    _Orders(less=False, equal=True, greater=False): ComparisonOp.NOT_DISTINCT,
}
_ORDERS: Final = {op: orders for orders, op in (*_PLAIN.items(), *_NULL_SAFE.items())}
_PYTHON: Final[dict[ComparisonOp, Callable[[Any, Any], Any]]] = {
    ComparisonOp.EQ: operator.eq,
    ComparisonOp.NE: operator.ne,
    ComparisonOp.LT: operator.lt,
    ComparisonOp.LE: operator.le,
    ComparisonOp.GT: operator.gt,
    ComparisonOp.GE: operator.ge,
}
