"""Local times and instants one at a time, by `zoneinfo`: the oracle of what has a zone."""

from __future__ import annotations

import datetime
from zoneinfo import ZoneInfo

from rowsieve.predicate.semantics import Semantics
from rowsieve.types.time_zones import RepeatedTime, SkippedTime

NAMES = (
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Asia/Kathmandu",
    "America/Sao_Paulo",
    "Africa/Casablanca",
    "Europe/Dublin",
    "America/Toronto",
    "America/Havana",
)
EDGES = (  # instants and local times around changes of these zones, and far from any
    "1880-01-01 04:56:01",
    "1883-11-18 17:00:00",
    "1900-01-01 00:00:00",
    "1919-03-31 04:29:59.999999",
    "1919-03-31 04:30:00",
    "1969-12-31 23:59:59.999999",
    "2011-12-30 09:59:59.999999",
    "2011-12-30 10:00:00",
    "2011-12-30 12:00:00",  # no such local time in Apia, and so on
    "2018-11-04 00:30:00",
    "2018-11-04 02:59:59",
    "2018-11-04 03:00:00",
    "2019-02-17 01:30:00",
    "2019-02-17 02:00:00",
    "2019-02-17 02:30:00",
    "2024-03-10 02:30:00",
    "2024-03-10 06:59:59",
    "2024-03-10 07:00:00",
    "2024-03-10 07:30:00",
    "2024-03-31 00:59:59.5",
    "2024-03-31 01:00:00",
    "2024-03-31 02:30:00",
    "2024-03-20 12:00:00",
    "2024-04-06 14:45:00",
    "2024-04-06 15:15:00",
    "2024-10-05 15:29:59",
    "2024-10-05 15:45:00",
    "2024-04-07 01:45:00",
    "2024-10-06 02:15:00",
    "2024-10-27 00:30:00",
    "2024-10-27 01:30:00",
    "2024-10-27 02:30:00",
    "2024-11-03 01:30:00",
    "2024-11-03 04:30:00",
    "2024-11-03 05:30:00",
    "2024-11-03 06:30:00",
    "2024-12-31 18:15:00",
    "2050-07-01 04:00:00",
    "2150-07-01 03:59:59",
)
_US = datetime.timedelta(microseconds=1)


def instants() -> list[datetime.datetime]:
    """The edges as aware datetimes."""
    return [datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC) for text in EDGES]


def local_of(instant: datetime.datetime, name: str) -> datetime.datetime:
    """The local time in a zone, naive."""
    return instant.astimezone(ZoneInfo(name)).replace(tzinfo=None)


def instant_of(
    local: datetime.datetime,
    name: str,
    repeated: RepeatedTime,
    skipped: SkippedTime,
    before: datetime.timedelta | None = None,
) -> datetime.datetime:
    """The instant of a naive local time by these rules."""
    rules = ZoneInfo(name)
    first, last = (local.replace(tzinfo=rules, fold=fold) for fold in (0, 1))
    found = [each.astimezone(datetime.UTC) for each in (first, last)]
    if repeated is RepeatedTime.KEPT and before is not None:
        return local.replace(tzinfo=datetime.UTC) - before
    if found[0] == found[1]:
        return found[0]
    if found[0] < found[1]:  # it occurs twice
        if repeated is RepeatedTime.LATER:
            return found[1]
        same = repeated is RepeatedTime.SAME and last.utcoffset() == before
        return found[1] if same else found[0]
    if skipped is SkippedTime.SHIFTED:
        return found[0]
    assert skipped is SkippedTime.FIRST_AFTER
    low, high = found[1], found[0]  # the change lies between the two
    offset = low.astimezone(rules).utcoffset()
    while high - low > _US:
        middle = low + (high - low) // 2
        if middle.astimezone(rules).utcoffset() == offset:
            low = middle
        else:
            high = middle
    return high


def truncated(unit: str, local: datetime.datetime) -> datetime.datetime:
    """The start of the unit that a naive time lies in."""
    day = local.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "minute":
            return local.replace(second=0, microsecond=0)
        case "hour":
            return local.replace(minute=0, second=0, microsecond=0)
        case "day":
            return day
        case "week":
            return day - datetime.timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case _:
            return day.replace(month=1, day=1)


def truncated_in(unit: str, instant: datetime.datetime, semantics: Semantics) -> datetime.datetime:
    """`date_trunc(unit, instant)` in the zone of the semantics."""
    name = semantics.time_zone
    before = instant.astimezone(ZoneInfo(name)).utcoffset()
    start = truncated(unit, local_of(instant, name))
    if unit == "minute" and semantics.truncated_clock is not RepeatedTime.SAME:
        rules = RepeatedTime.KEPT, semantics.skipped_time
    elif unit in ("minute", "hour"):
        rules = semantics.truncated_clock, semantics.skipped_time
    elif unit == "day":
        rules = semantics.moved_time, semantics.skipped_time
    else:
        rules = semantics.repeated_time, semantics.skipped_midnight
    return instant_of(start, name, *rules, before)
