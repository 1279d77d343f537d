"""Constants of dates and times, which count days and microseconds from 1970-01-01."""

from __future__ import annotations

from typing import Final

DAY_US: Final = 86_400_000_000
NANOS_OF_MICRO: Final = 1_000
FIRST_DAY: Final = -719_162
"""0001-01-01: the first day with a four-digit year in engines and in Python."""
LAST_DAY: Final = 2_932_896
"""9999-12-31."""
