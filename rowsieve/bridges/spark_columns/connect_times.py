"""Dates and instants that a Connect server may take for others.

It makes Java's older dates of a client's constants, and its own values of those: in the Julian
calendar before 15 October 1582, by the clocks of the server's own zone. The ten days that were left
out then become others; so do instants, until 1900, about which the clocks of some zone were moved.
Constants before and after mean what they say, as do functions of numbers (`date_from_unix_date`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rowsieve.errors import UnsupportedOperation
from rowsieve.types.days import DAY_US

# From the first until before the last: days since 1970, and microseconds.
_MOVED: Mapping[str, tuple[int, int]] = {
    "date": (-141_437, -141_427),
    "timestamp": (-141_438 * DAY_US, -25_567 * DAY_US),  # a day earlier, for the zones
}


def check_moments(spelled: str, values: Iterable[int]) -> None:
    """Refuse constants of a type, by Spark's name for it, that may become others."""
    first, last = _MOVED.get(spelled, (0, 0))
    if first < last and any(first <= value < last for value in values):
        raise UnsupportedOperation(
            "a Connect server may move days of October 1582, and instants from then until 1900; "
            "write date_from_unix_date or timestamp_micros"
        )
