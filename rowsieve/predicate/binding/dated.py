"""Date arithmetic: a date plus or minus whole days, and the days between two dates.

The meaning of `+` and `-` depends on operand types, which only binding knows. Engines whose
difference of two dates is an interval do not support these sums.
"""

from __future__ import annotations

from rowsieve.predicate.ir import Call, Cast, Literal, Operand
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Date, Int, LogicalType

_IN_DAYS = frozenset(
    semantics.name
    for semantics in (Semantics.SQL, Semantics.POSTGRES, Semantics.DUCKDB, Semantics.DATAFUSION)
)
_WIDE = Int(64)


def days_moved(
    name: str,
    sides: list[tuple[Operand, LogicalType | None]],
    semantics: Semantics,
) -> Call | None:
    """Rewrite `date + days`, `days + date`, `date - days` or `date - date`; None for other sums."""
    if name not in ("add", "subtract") or len(sides) != 2 or semantics.name not in _IN_DAYS:
        return None
    (left, left_type), (right, right_type) = sides
    if isinstance(left_type, Int) and isinstance(right_type, Date) and name == "add":
        left, left_type, right, right_type = right, right_type, left, left_type
    if not isinstance(left_type, Date):
        return None
    if isinstance(right_type, Date):
        return Call("days_between", (left, right)) if name == "subtract" else None
    return later_by(left, right, negate=name == "subtract") if isinstance(right_type, Int) else None


def later_by(date: Operand, days: Operand, *, negate: bool) -> Call:
    """Return the date moved by whole days, backward if `negate`."""
    if isinstance(days, Literal) and isinstance(days.value, int):
        count: Operand = Literal(-days.value if negate else days.value, _WIDE)
    else:
        wide = Cast(days, _WIDE)
        count = Call("negate", (wide,)) if negate else wide
    return Call("shift", (date, Literal(0, _WIDE), count, Literal(0, _WIDE)))
