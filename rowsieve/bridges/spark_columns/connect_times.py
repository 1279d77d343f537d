"""Constant dates and instants that a Connect server may change.

The server converts a client's constants to Java's older classes of dates and from these to its own
values, with the Julian calendar before 15 October 1582 and its own time zone. This changes the ten
days that the Gregorian calendar skipped, and instants until 1900 at which the clocks of some zone
changed. Other constants keep their value, as do functions of numbers (`date_from_unix_date`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rowsieve.errors import UnsupportedOperation
from rowsieve.types.days import DAY_US

# Half-open ranges: days since 1970, and microseconds.
_MOVED: Mapping[str, tuple[int, int]] = {
    "date": (-141_437, -141_427),
    "timestamp": (-141_438 * DAY_US, -25_567 * DAY_US),  # a day earlier, for the zones
}


def check_moments(spelled: str, values: Iterable[int]) -> None:
    """Raise for constants of a type, by Spark's name of it, that the server may change."""
    first, last = _MOVED.get(spelled, (0, 0))
    if first < last and any(first <= value < last for value in values):
        raise UnsupportedOperation(
            "a Connect server may move days of October 1582, and instants from then until 1900; "
            "write date_from_unix_date or timestamp_micros"
        )
