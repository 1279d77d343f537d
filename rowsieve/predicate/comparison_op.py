"""The comparison operators and the facts about them, each once.

An operator is the set of the orders of its sides for which it is TRUE: less, equal, greater. The
mirror, the negation and the strict form follow from that set.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, NamedTuple


class _Orders(NamedTuple):
    """For which orders of its sides a comparison is TRUE."""

    less: bool
    equal: bool
    greater: bool


_ORDERS: Final = {
    "=": _Orders(less=False, equal=True, greater=False),
    "<>": _Orders(less=True, equal=False, greater=True),
    "<": _Orders(less=True, equal=False, greater=False),
    "<=": _Orders(less=True, equal=True, greater=False),
    ">": _Orders(less=False, equal=False, greater=True),
    ">=": _Orders(less=False, equal=True, greater=True),
    "IS DISTINCT FROM": _Orders(less=True, equal=False, greater=True),
    "IS NOT DISTINCT FROM": _Orders(less=False, equal=True, greater=False),
}
_PYTHON: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _null_safe(_left: Any, _right: Any) -> Any:
    raise KeyError("Python has no null-safe comparison")


class ComparisonOp(Enum):
    """Comparison operators; the value is the SQL spelling."""

    _orders: _Orders
    is_order: bool
    """Whether it compares by order: `<`, `<=`, `>` and `>=`."""
    holds_if_less: bool
    """Whether `a self b` is TRUE if `a` is less than `b`."""
    holds_if_equal: bool
    """Whether `a self b` is TRUE if `a` equals `b`."""
    holds_if_greater: bool
    """Whether `a self b` is TRUE if `a` is greater than `b`."""
    is_null_safe: bool
    """Whether it is TRUE or FALSE for NULL too."""
    python: Callable[[Any, Any], Any]
    """Python's operator, which many libraries overload; KeyError if the op is null-safe."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    DISTINCT = "IS DISTINCT FROM"
    NOT_DISTINCT = "IS NOT DISTINCT FROM"

    def __init__(self, text: str) -> None:
        orders = self._orders = _ORDERS[text]
        self.is_order = orders.less is not orders.greater
        self.holds_if_less, self.holds_if_equal, self.holds_if_greater = orders
        self.is_null_safe = text not in _PYTHON
        self.python = _PYTHON.get(text, _null_safe)

    @property
    def mirrored(self) -> ComparisonOp:
        """The operator with which `b op a` means `a self b`."""
        less, equal, greater = self._orders
        return self._with(_Orders(greater, equal, less))

    @property
    def negated(self) -> ComparisonOp:
        """The operator that is TRUE where this one is FALSE.

        For an order operator on floats only if NaN has a place in the order.
        """
        less, equal, greater = self._orders
        return self._with(_Orders(not less, not equal, not greater))

    @property
    def strict(self) -> ComparisonOp:
        """The operator without equality: `<` for `<=`, `>` for `>=`, itself for the rest."""
        return self._with(self._orders._replace(equal=False)) if self.is_order else self

    @property
    def weak(self) -> ComparisonOp:
        """The operator with equality: `<=` for `<`, `>=` for `>`, itself for the rest."""
        return self._with(self._orders._replace(equal=True)) if self.is_order else self

    def _with(self, orders: _Orders) -> ComparisonOp:
        return _BY_ORDERS[orders, self.is_null_safe]


_BY_ORDERS: Final = {(op._orders, op.is_null_safe): op for op in ComparisonOp}
