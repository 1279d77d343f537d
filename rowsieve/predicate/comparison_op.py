"""The comparison operators and the facts about them, each once."""

from __future__ import annotations

from enum import Enum


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
        return self in _MIRRORED

    @property
    def is_null_safe(self) -> bool:
        """Whether it is TRUE or FALSE for NULL too."""
        return self is ComparisonOp.DISTINCT or self is ComparisonOp.NOT_DISTINCT

    @property
    def mirrored(self) -> ComparisonOp:
        """The operator with which `b op a` means `a self b`."""
        return _MIRRORED.get(self, self)

    @property
    def negated(self) -> ComparisonOp:
        """The operator that is TRUE where this one is FALSE.

        For an order operator on floats only if NaN has a place in the order.
        """
        return _NEGATED[self]

    @property
    def strict(self) -> ComparisonOp:
        """The operator without equality: `<` for `<=`, `>` for `>=`, itself for the rest."""
        return _STRICT.get(self, self)

    @property
    def weak(self) -> ComparisonOp:
        """The operator with equality: `<=` for `<`, `>=` for `>`, itself for the rest."""
        return _WEAK.get(self, self)


_MIRRORED = {
    ComparisonOp.LT: ComparisonOp.GT,
    ComparisonOp.LE: ComparisonOp.GE,
    ComparisonOp.GT: ComparisonOp.LT,
    ComparisonOp.GE: ComparisonOp.LE,
}
_NEGATED = {
    ComparisonOp.EQ: ComparisonOp.NE,
    ComparisonOp.NE: ComparisonOp.EQ,
    ComparisonOp.LT: ComparisonOp.GE,
    ComparisonOp.LE: ComparisonOp.GT,
    ComparisonOp.GT: ComparisonOp.LE,
    ComparisonOp.GE: ComparisonOp.LT,
    ComparisonOp.DISTINCT: ComparisonOp.NOT_DISTINCT,
    ComparisonOp.NOT_DISTINCT: ComparisonOp.DISTINCT,
}
_STRICT = {ComparisonOp.LE: ComparisonOp.LT, ComparisonOp.GE: ComparisonOp.GT}
_WEAK = {strict: weak for weak, strict in _STRICT.items()}
