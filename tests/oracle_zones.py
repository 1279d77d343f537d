"""What the session's time zone decides, one value at a time, by `zoneinfo` and `tests.zones`.

Times are microseconds since 1970. Years that Python's calendar lacks are moved by cycles of 400
years: before 1800 a zone has one offset, and after 2100 its rules repeat.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from functools import partial

from rowsieve.predicate.semantics import Semantics, TimestampText
from rowsieve.types.logical import Timestamp
from rowsieve.types.time_zones import RepeatedTime, SkippedTime
from tests.oracle_functions import moved
from tests.oracle_values import DAY_US, EPOCH, Failed, spelled, truncated
from tests.zones import instant_of, local_of

_CYCLE_US = 146_097 * DAY_US
_US = datetime.timedelta(microseconds=1)
_FIRST, _LAST = -62_000_000_000 * 1_000_000, 253_000_000_000 * 1_000_000  # years 5 to 9987
_LOCAL = Timestamp(utc=False)


def is_utc(semantics: Semantics) -> bool:
    """Whether local times of the session are those of UTC."""
    return semantics.time_zone == "UTC"


def local_time(micros: int, name: str) -> int:
    """The local time of an instant."""
    return _within(micros, lambda at: local_of(at.replace(tzinfo=datetime.UTC), name))


def offset(micros: int, name: str) -> datetime.timedelta:
    """The offset in force at an instant."""
    return (local_time(micros, name) - micros) * _US


def instant(
    micros: int, semantics: Semantics, *, midnight: bool = False, name: str | None = None
) -> int:
    """The instant of a local time; `midnight`: of a date."""
    skipped = semantics.skipped_midnight if midnight else semantics.skipped_time
    zone = semantics.time_zone if name is None else name
    return _within(micros, partial(_found, zone, (semantics.repeated_time, skipped)))


def date_trunc(unit: str, micros: int, semantics: Semantics) -> int:
    """The start of the unit that an instant lies in, in the session's zone."""
    name, before = semantics.time_zone, offset(micros, semantics.time_zone)
    start = truncated(unit, local_time(micros, name))
    rules = semantics.repeated_time, semantics.skipped_midnight
    if unit == "day":
        rules = semantics.moved_time, semantics.skipped_time
    elif unit in ("hour", "minute", "second", "millisecond", "microsecond"):
        clock = semantics.truncated_clock
        if unit != "hour" and clock is not RepeatedTime.SAME:
            clock = RepeatedTime.KEPT
        rules = clock, semantics.skipped_time
    return _within(start, partial(_found, name, (*rules, before)))


def shifted(micros: int, months: int, days: int, rest: int, semantics: Semantics) -> int:
    """An instant moved in local time by months, then by days, and then by microseconds."""
    if semantics.hours_make_days and not months:
        length = days * DAY_US + rest
        days = abs(length) // DAY_US * (-1 if length < 0 else 1)
        rest = length - days * DAY_US
    name = semantics.time_zone
    for step in ((months, 0), (0, days)):
        if any(step):
            before = offset(micros, name)
            local = moved(local_time(micros, name), *step, 0, _LOCAL)
            rules = semantics.moved_time, semantics.skipped_time, before
            micros = _within(local, partial(_found, name, rules))
    return moved(micros, 0, 0, rest, _LOCAL)


def instant_text(micros: int, semantics: Semantics) -> str:
    """An instant as text; engines without an offset in it give the local time."""
    style, name = semantics.timestamp_text, semantics.time_zone
    if style is TimestampText.RFC_3339:
        return spelled(micros, Timestamp(utc=True), style, semantics.far_years)
    local, years = local_time(micros, name), semantics.far_years
    if style is TimestampText.LOCAL:
        return spelled(local, _LOCAL, TimestampText.LOCAL, years)
    east = offset(micros, name)
    minutes, seconds = divmod(abs(east) // datetime.timedelta(seconds=1), 60)
    hours, minutes = divmod(minutes, 60)
    suffix = f"{'-' if east < datetime.timedelta(0) else '+'}{hours:02}"
    if seconds and style is TimestampText.OFFSET:
        suffix += f":{minutes:02}:{seconds:02}"
    elif minutes:
        suffix += f":{minutes:02}"
    return spelled(local, _LOCAL, TimestampText.LOCAL, years, suffix)


def _found(
    name: str,
    rules: tuple[RepeatedTime, SkippedTime] | tuple[RepeatedTime, SkippedTime, datetime.timedelta],
    at: datetime.datetime,
) -> datetime.datetime:
    return instant_of(at, name, *rules)


def _within(micros: int, convert: Callable[[datetime.datetime], datetime.datetime]) -> int:
    """The conversion of a time in a year that Python has, moved there by whole cycles."""
    cycles = 0
    while not _FIRST <= micros + cycles * _CYCLE_US <= _LAST:
        cycles += 1 if micros < 0 else -1
    found = convert(EPOCH + (micros + cycles * _CYCLE_US) * _US).replace(tzinfo=None)
    result = (found - EPOCH) // _US - cycles * _CYCLE_US
    if not -(2**63) <= result < 2**63:
        raise Failed
    return result
