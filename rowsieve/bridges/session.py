"""Session settings that decide, together with its text, which rows a condition keeps.

Soundness: a setting that an engine does not have, or whose effect is not known, is rejected, never
ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from rowsieve.errors import InvalidInput, InvalidPredicate, UnsupportedOperation
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.time_zones import fixed_offset, given_zone

# Zones whose changes after 2037 follow no rule that ICU knows, by the engines that use it.
UNKNOWN_ZONES: Final[Mapping[str, frozenset[str]]] = {
    "duckdb": frozenset({"Africa/Casablanca", "Africa/El_Aaiun", "Asia/Gaza", "Asia/Hebron"})
}
# Engines whose sessions have modes, which change more rules than the zone.
_OF_MODES: Final[Mapping[str, Callable[..., Semantics]]] = {"spark": Semantics.of_spark}
_OWN_RULES = "sql"  # our own predicates
# Why a session's time zone is not supported, by the name of the semantics.
_NO_ZONE: Final[Mapping[str, str]] = {
    "datafusion": "casts and fields go by the zone that a column declares; only now() and text "
    "without an offset go by the session's: write to_local_time(x AT TIME ZONE 'Area/City')",
    "trino": "conditions that depend on its zone are rejected; write the zone into the text",
}


@dataclass(frozen=True, slots=True)
class Session:
    """Session settings that define the meaning of SQL text and Spark columns.

    `time_zone`: the zone of casts, fields, truncations and intervals of instants, and of text
    without an offset that becomes an instant: `Area/City` or UTC; for Spark also an offset such as
    `+05:30`. PostgreSQL and DuckDB call it TimeZone, Spark `spark.sql.session.timeZone`. `ansi`:
    Spark's `spark.sql.ansi.enabled`, on by default as in Spark; for Spark only.

    InvalidInput for an unknown zone.
    """

    time_zone: str = "UTC"
    ansi: bool | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.time_zone, str):
            raise InvalidInput(
                "Session: time_zone is a name such as 'Europe/Berlin', not "
                f"{type(self.time_zone).__name__}"
            )
        if self.ansi is not None and not isinstance(self.ansi, bool):
            raise InvalidInput(f"Session: ansi is True, False or None, not {self.ansi!r}")
        try:
            object.__setattr__(self, "time_zone", given_zone(self.time_zone).name)
        except InvalidPredicate as error:
            raise InvalidInput(f"Session: {error}") from error


def in_session(semantics: Semantics, session: Session | None) -> Semantics:
    """Return the rules of an engine or dialect in a session, by default its default session.

    InvalidInput for a setting that the engine does not have, UnsupportedOperation for one whose
    effect is not known.
    """
    if session is None:
        return semantics
    name = semantics.name
    if (of_modes := _OF_MODES.get(name)) is not None:
        return of_modes(ansi=session.ansi is not False, time_zone=session.time_zone)
    if session.ansi is not None:
        raise InvalidInput(f"session=: ansi is a setting of Spark's, and {name} has none")
    _check_zone(semantics, session.time_zone)
    return replace(semantics, time_zone=session.time_zone)


def _check_zone(semantics: Semantics, time_zone: str) -> None:
    name = semantics.name
    if time_zone == "UTC":
        return
    if not semantics.has_session_zone:
        why = _NO_ZONE.get(name, "its expressions name their zones themselves")
        raise UnsupportedOperation(
            f"session=: the time zone {time_zone} is not followed for {name}: {why}"
        )
    if name != _OWN_RULES and fixed_offset(time_zone) is not None:
        raise UnsupportedOperation(
            f"session=: the offset {time_zone} as the zone of a {name} session is read as west of "
            "Greenwich by some engines and refused by others; name Area/City"
        )
    if time_zone in UNKNOWN_ZONES.get(name, ()):
        raise UnsupportedOperation(f"session=: {name} does not know {time_zone} after 2037")
