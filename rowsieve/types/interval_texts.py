"""Intervals as text: `1 month 2 days 03:04:05`.

The text is parsed strictly: integers with units, and fractions of seconds, minutes and hours that
are whole microseconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

_SECOND = 1_000_000
_MONTHS = {"month": 1, "mon": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200}
_DAYS = {"day": 1, "week": 7}
_MICROS = {
    "microsecond": 1,
    "us": 1,
    "millisecond": 1_000,
    "ms": 1_000,
    "second": _SECOND,
    "sec": _SECOND,
    "minute": 60 * _SECOND,
    "min": 60 * _SECOND,
    "hour": 3_600 * _SECOND,
}
_PLURALS = {"centuries": "century"}
_PIECE = re.compile(r"\s*([+-]?[0-9]{1,12}(?:\.[0-9]{1,9})?)\s*([a-zA-Z]+)\s*", re.ASCII)
_CLOCK = re.compile(r"\s*([+-]?)([0-9]{1,4}):([0-5][0-9])(?::([0-5][0-9](?:\.[0-9]{1,6})?))?\s*")


@dataclass(frozen=True, slots=True)
class IntervalParts:
    """Months, days and microseconds, each with its own sign."""

    months: int = 0
    days: int = 0
    micros: int = 0

    def __add__(self, other: IntervalParts) -> IntervalParts:
        return IntervalParts(
            self.months + other.months, self.days + other.days, self.micros + other.micros
        )

    def times(self, factor: int) -> IntervalParts:
        """Multiply each part."""
        return IntervalParts(self.months * factor, self.days * factor, self.micros * factor)


def parse_interval(text: str) -> IntervalParts:
    """Parse `1 month 2 days 03:04:05`; the ValueError for other text says what is wrong."""
    interval, place = IntervalParts(), 0
    while place < len(text):
        if clock := _CLOCK.match(text, place):
            sign = -1 if clock[1] == "-" else 1
            seconds = int(clock[2]) * 3_600 + int(clock[3]) * 60 + Fraction(clock[4] or 0)
            interval += IntervalParts(micros=sign * int(seconds * _SECOND))
            place = clock.end()
        elif piece := _PIECE.match(text, place):
            interval, place = interval + _amount(piece[1], piece[2]), piece.end()
        else:
            break
    if place < len(text) or not text.strip():
        raise ValueError("write an interval as in '1 month 2 days 03:04:05'")
    return interval


def _amount(number: str, unit: str) -> IntervalParts:
    name = unit.lower()
    name = _PLURALS.get(name, name if name in ("us", "ms") else name.removesuffix("s"))
    amount = Fraction(number)
    if name in _MICROS:
        micros = amount * _MICROS[name]
        if micros.denominator == 1:
            return IntervalParts(micros=int(micros))
    elif amount.denominator == 1 and name in _MONTHS:
        return IntervalParts(months=int(amount) * _MONTHS[name])
    elif amount.denominator == 1 and name in _DAYS:
        return IntervalParts(days=int(amount) * _DAYS[name])
    elif name not in _MONTHS and name not in _DAYS:
        raise ValueError(f"{unit!r} is not a unit of an interval")
    raise ValueError(f"{number} {unit} is not a whole number of days or microseconds")
