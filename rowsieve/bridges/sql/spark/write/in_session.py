"""What a session of Spark decides of the values of conditions: its ANSI mode and its time zone."""

from __future__ import annotations

from dataclasses import dataclass

from rowsieve.bridges.sql.exactness.exact import Exact
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.time_zones import zone


@dataclass(frozen=True, slots=True)
class InSession(Exact):
    """Rewrites conditions for one session: its ANSI mode, and its time zone, None if unknown.

    `semantics`: the rules of the condition.
    """

    semantics: Semantics
    ansi: bool
    zone: str | None

    def is_in(self, name: str) -> bool:
        """Whether the session is known to have this time zone."""
        if self.zone is None:
            return False
        try:
            return zone(self.zone).name == zone(name).name
        except InvalidPredicate:  # a name that engines read differently
            return False

    def check_zone(self, name: str = "UTC") -> None:
        """Raise unless the session has this time zone, on which the operation depends."""
        if not self.is_in(name):
            shown = "not known" if self.zone is None else self.zone
            raise UnsupportedOperation(
                f"its value in {name} differs from the one in the session's time zone ({shown})"
            )
