"""Intervals as ISO 8601 writes them (`P1Y2M3DT4H5M6.78S`), and as PostgreSQL does."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from rowsieve.types import interval_bytes
from rowsieve.types.interval_texts import parse_interval

_ISO: Final = re.compile(
    r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)W)?(?:(-?\d+)D)?"
    r"(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?\d+(?:\.\d+)?)S)?)?",
    re.ASCII,
)
_US_PER_S: Final = 1_000_000


def stored(text: str) -> bytes:
    """Return the stored bytes of an interval; ValueError for other text and finer fractions."""
    if not text.startswith("P"):
        parts = parse_interval(text)
        return interval_bytes.encoded(parts.months, parts.days, parts.micros)
    matched = _ISO.fullmatch(text)
    if matched is None or text[-1] in "PT":
        raise ValueError(f"{text[:60]!r} is not an ISO 8601 duration")
    years, months, weeks, days, hours, minutes = (int(each or 0) for each in matched.groups()[:6])
    micros = (hours * 3_600 + minutes * 60 + Fraction(matched[7] or 0)) * _US_PER_S
    if micros.denominator != 1:
        raise ValueError(f"{text[:60]!r} is not a whole number of microseconds")
    return interval_bytes.encoded(years * 12 + months, weeks * 7 + days, int(micros))
