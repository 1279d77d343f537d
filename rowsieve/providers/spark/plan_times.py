"""The time of a query in Spark's plans: read, or made a value that the optimiser cannot know.

Spark's optimiser replaces `now()` by a constant, and computes with it. A condition that says
`ts > now() - interval '30 days'` in the query then names a day, which is another one when the query
runs later. So each call of a current time becomes a scalar subquery over an opaque leaf. The
optimiser moves it like any value that a query finds elsewhere, and `time_of` knows it again.

Soundness (invariant 30): a plan with any other call that depends on the time, or on the user, is
refused; so is one of another time zone than the session's.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import types as spark

from rowsieve.bridges.sql.spark.settings import TIME_ZONE
from rowsieve.providers.spark.plan_trees import TreeChanger
from rowsieve.providers.spark.plans import (
    class_of,
    internal_class,
    items,
    leaf_name,
    unknown_value,
)

_EXPRESSIONS: Final = "org.apache.spark.sql.catalyst.expressions."
_TIMES: Final = {
    f"{_EXPRESSIONS}CurrentTimestamp": "current_timestamp",
    f"{_EXPRESSIONS}Now": "current_timestamp",
    f"{_EXPRESSIONS}CurrentDate": "current_date",
    f"{_EXPRESSIONS}LocalTimestamp": "localtimestamp",
}
"""Spark's classes of current times, and the functions that give the same."""
_TYPES: Final = {
    "current_timestamp": spark.TimestampType(),
    "current_date": spark.DateType(),
    "localtimestamp": spark.TimestampNTZType(),
}
_WITHOUT_ZONE: Final = frozenset({f"{_EXPRESSIONS}CurrentTimestamp", f"{_EXPRESSIONS}Now"})
_LEAF: Final = "time "


def depends_on_time(session: Any, plan: Any) -> bool:
    """Return whether the plan depends on time or user: `now()`, 'today', `current_user`."""
    current = _current(session)
    read_special = getattr(
        internal_class(session, "catalyst.optimizer.SpecialDatetimeValues$"), "MODULE$"
    )
    for each in (plan, *items(plan.subqueriesAll())):
        if (plain := _without_aliases(session, each)).containsPattern(current):
            return True
        if not read_special.apply(plain).fastEquals(plain):
            return True
    return False


def with_unknown_times(session: Any, plan: Any) -> Any | None:
    """The plan whose current times are unknown values; None if it depends on more than these."""
    changer = TreeChanger(session, [_current(session)], _Times(session).value_for)
    fixed = changer.changed(_without_aliases(session, plan))
    return None if depends_on_time(session, fixed) else fixed


def time_of(subquery: Any) -> str | None:
    """The function whose value a scalar subquery stands for; None for a subquery of the query."""
    leaf = leaf_name(subquery.plan())
    return leaf.removeprefix(_LEAF) if leaf is not None and leaf.startswith(_LEAF) else None


class _Times:
    """Replaces the calls of current times in a plan by unknown values, one for each function."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._zone = str(session.conf.get(TIME_ZONE))
        self._values: dict[str, Any] = {}

    def value_for(self, node: Any) -> Any | None:
        """What stands in place of a node; None for one that is not the call of a current time."""
        if (name := _TIMES.get(class_of(node))) is None:
            return None
        return self._value(name) if self._is_in_zone(node) else node

    def _is_in_zone(self, node: Any) -> bool:
        """Return whether the call has no time zone, or that of the session."""
        if class_of(node) in _WITHOUT_ZONE:
            return True
        zone = node.timeZoneId()
        return bool(zone.isDefined()) and str(zone.get()) == self._zone

    def _value(self, name: str) -> Any:
        """The unknown value of a function, the same for all its calls."""
        if name not in self._values:
            self._values[name] = unknown_value(self._session, _LEAF + name, _TYPES[name])
        return self._values[name]


def _current(session: Any) -> Any:
    """The mark of expressions that Spark computes from the time or the user of a query."""
    return internal_class(session, "catalyst.trees.TreePattern").CURRENT_LIKE()


def _without_aliases(session: Any, plan: Any) -> Any:
    """The plan with the expressions that functions are short for, such as those of `curdate()`."""
    rule = internal_class(session, "catalyst.optimizer.ReplaceExpressions$")
    return getattr(rule, "MODULE$").apply(plan)
