"""Time zones: vectorised conversion of instants to local times and back, by `zoneinfo`'s offsets.

A local time has one instant, two (a clock set back repeats an hour) or none (a clock set forward
skips one). Neither conversion is monotone, so bounds are converted by `local_hull` and
`instant_hull`, which may be too wide, never too narrow. Times are int64 microseconds since 1970.
Results beyond 64 bits are marked in a mask; they never wrap.

The changes of a zone are computed by comparing the `zoneinfo` offsets of every other day and
bisecting where they differ; no zone has two changes within three days. After 2100 a zone only
follows rules, which depend on the day of the week on which a year begins and on whether it is a
leap year, and the calendar repeats every 400 years. Arrow's kernels are used only to find their own
changes (`IN_ARROW`): with the system's database they have no daylight saving time after 2037
(pyarrow 26).
"""

from __future__ import annotations

import re
from calendar import isleap
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from enum import Enum
from functools import lru_cache
from itertools import accumulate, compress, count, repeat
from operator import add, ne
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import InvalidPredicate

Micros = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_SECOND = 1_000_000
_DAY_S = 86_400
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_EPOCH = datetime(1970, 1, 1)
_FIRST = datetime(1800, 1, 1)  # before the first change of any zone
_RULES_ONLY = datetime(2100, 1, 1)  # after the last change that does not follow a rule (2087)
_CYCLE_S = 146_097 * _DAY_S  # 400 years
_RULES_ONLY_S = (_RULES_ONLY - _EPOCH).days * _DAY_S
_KNOWN_YEARS = range(2101, 2129)  # 28 years after each other have all kinds of years
_LATER_YEARS = range(2129, 2502)  # to the end of the cycle, and a year
_PROBE = timedelta(days=2)  # no zone has two changes within three days
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])([0-9]{1,2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?", re.ASCII)
_UTC_NAMES = frozenset({"UTC", "Z", "GMT", "ETC/UTC", "ETC/GMT", "ETC/ZULU", "ZULU", "UCT"})
_MAX_HOURS = 18
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)+", re.ASCII)
UNTIL_2100 = " until 2100"  # suffix: the zone in a database without rules after 2100
IN_ARROW = " in Arrow"  # suffix: the zone according to Arrow's kernels in this process
_OTHER_TREES = ("posix/", "right/")  # copies of all zones, the latter with leap seconds


def shown_zone(name: str) -> str:
    """Return the name of a zone without the suffix that names its database, for messages."""
    return name.removesuffix(UNTIL_2100).removesuffix(IN_ARROW)


class RepeatedTime(Enum):
    """The rule for a local time that occurs twice: which instant it means."""

    EARLIER = "earlier"
    LATER = "later"
    SAME = "same"  # the offset before the time arithmetic if it is possible, else the earlier
    KEPT = "kept"  # the offset before the time arithmetic, even if it is not in force
    FAIL = "fail"
    NULL = "null"


class SkippedTime(Enum):
    """The rule for a local time that never occurs: which instant it means."""

    SHIFTED = "shifted"  # as if the clock had not been changed yet: 02:30 is 03:30
    BACK = "back"  # as if the clock had been changed already: 02:30 is 01:30
    FIRST_AFTER = "first after"  # the instant of the change: 02:30 is 03:00
    LAST_BEFORE = "last before"  # the microsecond before it
    FAIL = "fail"
    NULL = "null"


@dataclass(frozen=True, slots=True, eq=False)
class Hull:
    """Inclusive bounds of times; the masks mark bounds beyond 64 bits."""

    lower: Micros
    upper: Micros
    no_lower: Mask
    no_upper: Mask


@dataclass(frozen=True, slots=True, eq=False)
class Zone:
    """The offsets of one zone, by segments between changes.

    `repeats`: whether the rules continue after 2100, in cycles of 400 years; otherwise the last
    offset stays. `starts`: (k,) the start of each segment in seconds since 1970; the first is
    before all times. `offsets`: (k,) seconds east of UTC. `local_starts`, `local_ends`: (k,) the
    local seconds at which each segment starts and ends; both ascend.
    """

    name: str
    repeats: bool
    starts: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    local_starts: npt.NDArray[np.int64]
    local_ends: npt.NDArray[np.int64]

    @property
    def is_fixed(self) -> bool:
        """True if the zone has a single offset."""
        return len(self.offsets) == 1

    @property
    def is_utc(self) -> bool:
        """True if the zone is UTC."""
        return self.is_fixed and not self.offsets[0]

    @property
    def has_each_midnight_once(self) -> bool:
        """True if no change of the offset repeats or skips the local time 00:00."""
        ends, starts = self.local_ends[:-1], self.local_starts[1:]
        first, last = np.minimum(ends, starts) - 1, np.maximum(ends, starts) - 1
        return bool((first // _DAY_S == last // _DAY_S).all())

    def offsets_at(self, instants: Micros) -> Micros:
        """Return the offset in force at each instant, in microseconds."""
        seconds, _ = self._in_table(instants // _SECOND)
        return self.offsets[_segment(self.starts, seconds)] * _SECOND

    def local(self, instants: Micros) -> tuple[Micros, Mask]:
        """Return the local time of each instant, and a mask of those beyond 64 bits."""
        return _plus(instants, self.offsets_at(instants))

    def instants(
        self,
        local: Micros,
        repeated: RepeatedTime,
        skipped: SkippedTime,
        before: Micros | None = None,
    ) -> tuple[Micros, Mask, Mask]:
        """Return the instant of each local time, and masks of errors and of NULLs.

        `before`: the offsets in microseconds for SAME and KEPT.
        """
        earlier, later, gap, twice, change = self._candidates(local)
        failed = np.zeros(len(local), dtype=np.bool_)
        null = failed.copy()
        offset = np.where(twice, earlier, later)
        match repeated:
            case RepeatedTime.LATER:
                offset = later
            case RepeatedTime.SAME if before is not None:
                offset = np.where(twice & (before == later), later, offset)
            case RepeatedTime.FAIL:
                failed |= twice
            case RepeatedTime.NULL:
                null |= twice
            case _:
                pass
        offset = np.where(gap, later if skipped is SkippedTime.SHIFTED else earlier, offset)
        if skipped is SkippedTime.FAIL:
            failed |= gap
        elif skipped is SkippedTime.NULL:
            null |= gap
        if repeated is RepeatedTime.KEPT and before is not None:
            offset, failed, null = before, np.zeros_like(failed), np.zeros_like(null)
            gap = failed
        instants, beyond = _plus(local, -offset)
        if skipped in (SkippedTime.FIRST_AFTER, SkippedTime.LAST_BEFORE) and gap.any():
            step = 0 if skipped is SkippedTime.FIRST_AFTER else -1
            instants, beyond = np.where(gap, change + step, instants), beyond & ~gap
        failed = (failed | beyond) & ~null
        return np.where(failed | null, 0, instants), failed, null

    def local_hull(self, lower: Micros, upper: Micros) -> Hull:
        """Return the least and greatest local time of the instants in [lower, upper].

        Between two changes the local time grows with the instant. At a change that sets the clock
        back, it falls to the start of the next segment. The segments' starts and ends ascend.
        """
        low, no_low = self.local(lower)
        high, no_high = self.local(upper)
        seconds, shift = self._in_table(lower // _SECOND)
        following = _segment(self.starts, seconds) + 1
        has_next = following < len(self.starts)
        place = np.minimum(following, len(self.starts) - 1)
        change = _clipped(self.starts[place] + shift)
        first = _clipped(self.local_starts[place] + shift)
        low = np.where(has_next & (change <= upper), np.minimum(low, first), low)
        seconds, shift = self._in_table(upper // _SECOND)
        place = _segment(self.starts, seconds)
        change = _clipped(self.starts[place] + shift)
        last = _clipped(self.local_ends[np.maximum(place - 1, 0)] + shift) - 1
        high = np.where((place > 0) & (change > lower), np.maximum(high, last), high)
        return Hull(low, high, no_low, no_high)

    def instant_hull(self, lower: Micros, upper: Micros) -> Hull:
        """Return the least and greatest instant of the local times in [lower, upper], by any rule.

        The hull contains all instants of repeated and skipped local times. Apart from the ends,
        only the times at the nearest changes can be the least or the greatest.
        """
        least, most, no_low = self._spread(lower)
        no_high = np.zeros_like(no_low)
        for local in (upper, *self._nearest(lower, upper)):
            first, last, lost = self._spread(local)
            least, most = np.minimum(least, first), np.maximum(most, last)
            no_high = no_high | (lost & (local > lower))
        return Hull(least, most, no_low, no_high | (no_low & (upper == lower)))

    def is_steady(self, lower: Micros, upper: Micros) -> Mask:
        """(n,) whether one offset is in force at all instants in [lower, upper]."""
        ends = [self._in_table(instants // _SECOND) for instants in (lower, upper)]
        (first, shift), (last, shift_too) = ends
        same = _segment(self.starts, first) == _segment(self.starts, last)
        return np.asarray(same & (shift == shift_too))

    def is_plain(self, lower: Micros, upper: Micros) -> Mask:
        """(n,) whether no local time in [lower, upper] is repeated or skipped."""
        ends = []
        for local in (lower, upper):
            _, _, gap, twice, _ = self._candidates(local)
            seconds, shift = self._in_table(local // _SECOND, 2 * _DAY_S)
            ends.append((gap | twice, _segment(self.local_starts, seconds), shift))
        (odd, place, shift), (odd_too, place_too, shift_too) = ends
        return np.asarray(~(odd | odd_too) & (place == place_too) & (shift == shift_too))

    def _in_table(self, seconds: Micros, late: int = 0) -> tuple[Micros, Micros]:
        """Shift seconds back by whole cycles into the table; return them and the shifts."""
        first = _RULES_ONLY_S + late
        beyond = seconds >= first
        if not self.repeats or not beyond.any():
            return seconds, np.zeros_like(seconds)
        shift = np.where(beyond, (seconds - first) // _CYCLE_S * _CYCLE_S, 0)
        return seconds - shift, shift

    def _candidates(self, local: Micros) -> tuple[Micros, Micros, Mask, Mask, Micros]:
        """Return for each local time: two offsets, whether it is skipped or repeated, next change.

        The offsets of a repeated time are those of its earlier and its later instant. For a skipped
        time they are the offset after the change, which gives the earlier instant, and before it.
        """
        seconds, shift = self._in_table(local // _SECOND, 2 * _DAY_S)
        place = _segment(self.local_starts, seconds)
        following = np.minimum(place + 1, len(self.starts) - 1)
        preceding = np.maximum(place - 1, 0)
        gap = (seconds >= self.local_ends[place]) & (following > place)
        twice = (seconds < self.local_ends[preceding]) & (preceding < place)
        later = self.offsets[place]
        earlier = np.where(twice, self.offsets[preceding], later)
        earlier = np.where(gap, self.offsets[following], earlier)
        change = _clipped(self.starts[following] + shift)
        return earlier * _SECOND, later * _SECOND, gap, twice, change

    def _spread(self, local: Micros) -> tuple[Micros, Micros, Mask]:
        """Return the earliest and latest instant of each local time, and an overflow mask."""
        earlier, later, _, _, _ = self._candidates(local)
        first, beyond = _plus(local, -earlier)
        last, above = _plus(local, -later)
        return np.minimum(first, last), np.maximum(first, last), beyond | above

    def _nearest(self, lower: Micros, upper: Micros) -> list[Micros]:
        """Return the local times at the first change after `lower` and the last before `upper`."""
        if self.is_fixed:
            return []
        edges = []
        for local, step in ((lower, 1), (upper, 0), (upper, 1)):
            seconds, shift = self._in_table(local // _SECOND, 2 * _DAY_S)
            place = _segment(self.local_starts, seconds) + step
            begins = _clipped(self.local_starts[np.minimum(place, len(self.starts) - 1)] + shift)
            ends = _clipped(self.local_ends[np.maximum(place - 1, 0)] + shift)
            for edge in (begins, ends):
                edges += [np.clip(edge, lower, upper), np.clip(edge - 1, lower, upper)]
        return edges


def zone(name: str) -> Zone:
    """Return the zone of this name: `Area/City`, `UTC`, or an offset from UTC such as `+05:30`.

    With the suffix ` until 2100`, the offset of the end of 2099 stays, as in the databases of some
    engines (chrono-tz). With the suffix ` in Arrow`, the zone is that of Arrow's kernels. If the
    suffix makes no difference, the name of the result does not have it. InvalidPredicate for other
    names, and for abbreviations (`EST`, `CET`, `IST`), which engines interpret differently.
    """
    return _zone(name.strip())


def given_zone(name: str) -> Zone:
    """Return the zone of a name that a text, a session, a schema or another engine gives.

    InvalidPredicate for the names with a suffix, which are our own.
    """
    if is_own_name(name):
        raise _unknown(name)
    return zone(name)


def is_own_name(name: str) -> bool:
    """Whether a name has a suffix that only the names of this module have."""
    return name.rstrip().endswith((UNTIL_2100, IN_ARROW))


def zone_name(name: str) -> str:
    """Return the canonical name of a zone: `UTC`, `+05:30`, or the database's spelling."""
    return zone(name).name


def name_in(name: str, database: str = "") -> str | None:
    """Return a zone's name in an engine; None if its database has other changes of the zone.

    `database` is the suffix of the engine's zones, `UNTIL_2100` or `IN_ARROW`. Names with a suffix
    are our own: no engine knows them, so a writer takes every name from here.
    """
    plain = name.removesuffix(UNTIL_2100).removesuffix(IN_ARROW)
    same = zone(plain + database).name == zone(name).name
    return zone(plain).name if same else None


def fixed_offset(name: str) -> int | None:
    """Parse an offset such as `+05:30` or `UTC-3` to seconds east of UTC; None for other names."""
    match = _OFFSET.fullmatch(name)
    if match is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in match.groups()[1:])
    if minutes > 59 or seconds > 59 or (hours, minutes, seconds) > (_MAX_HOURS, 0, 0):
        return None
    return (-1 if match[1] == "-" else 1) * (hours * 3_600 + minutes * 60 + seconds)


def zone_info(name: str) -> tzinfo:
    """Return the zone of a name from outside for Python's times, whose years are 1 to 9999."""
    if (offset := fixed_offset(name)) is not None:
        return timezone(timedelta(seconds=offset))
    canonical = given_zone(name).name
    return UTC if canonical == "UTC" else ZoneInfo(canonical)


def in_zone(text: str, zone: str) -> str:
    """Return ISO-8601 text with the offset of the zone if it has none.

    A local time that occurs twice is the earlier one.
    """
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone_info(zone))).isoformat()


@lru_cache(maxsize=128)
def _zone(name: str) -> Zone:
    if name.upper() in _UTC_NAMES:
        return _fixed("UTC", 0)
    offset = fixed_offset(name)
    if offset is not None:
        return _fixed(_offset_name(offset), offset)
    plain = name.removesuffix(UNTIL_2100)
    if plain != name:
        return _without_rules(_zone(plain))
    plain = name.removesuffix(IN_ARROW)
    if plain != name:
        return _of_arrow(_zone(plain))
    known = _from_database(name)
    if known is None:
        raise _unknown(name)
    spelled, rules = known
    return _built(spelled, rules)


def _unknown(name: str) -> InvalidPredicate:
    return InvalidPredicate(
        f"no time zone {name!r} is known: write Area/City as in Europe/Berlin, UTC, or an offset "
        "east of UTC as in +05:30; abbreviations such as EST are read differently by different "
        "engines, and are not supported"
    )


def has_rules(tz: Zone) -> bool:
    """Return whether the zone's offset changes after 2100."""
    return tz.repeats and bool((tz.starts >= _RULES_ONLY_S).any())


def _without_rules(tz: Zone) -> Zone:
    """Return the zone as in databases that end in 2100, or the same object if equal."""
    if not has_rules(tz):
        return tz
    is_listed = tz.starts < _RULES_ONLY_S
    changes = [int(start) for start in tz.starts[is_listed][1:]]
    offsets = [int(offset) for offset in tz.offsets[is_listed]]
    return _table(tz.name + UNTIL_2100, changes, offsets, repeats=False)


def _of_arrow(tz: Zone) -> Zone:
    """Return the zone according to Arrow's kernels, with the offset of 2500 after that year.

    The same object if there is no difference.
    """
    step = _PROBE // timedelta(seconds=1)
    first = (_FIRST - _EPOCH) // timedelta(seconds=1)
    seconds = np.arange(first, _RULES_ONLY_S + _CYCLE_S, step, dtype=np.int64)
    offsets = _arrow_offsets(seconds, tz.name)
    before = np.flatnonzero(np.diff(offsets))
    low, high = seconds[before], seconds[before + 1]
    while (high - low > 1).any():
        middle = (low + high) // 2
        same = _arrow_offsets(middle, tz.name) == offsets[before]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    twin = _table(
        tz.name + IN_ARROW, high.tolist(), [*offsets[:1], *offsets[before + 1]], repeats=False
    )
    alike = np.array_equal(twin.starts, tz.starts) and np.array_equal(twin.offsets, tz.offsets)
    return tz if alike and not has_rules(tz) else twin


def _arrow_offsets(seconds: Micros, name: str) -> Micros:
    """Return Arrow's offset at each of these seconds since 1970."""
    try:
        local = pc.local_timestamp(pa.array(seconds, pa.timestamp("s", name)))
    except pa.ArrowInvalid as error:
        raise InvalidPredicate(f"Arrow does not know the time zone {name!r}: {error}") from error
    return np.asarray(local.cast(pa.int64())) - seconds


def _from_database(name: str) -> tuple[str, tzinfo] | None:
    """Return the zone and its spelling in the database; `name` may be in any case."""
    if not _NAME.fullmatch(name) or name.lower().startswith(_OTHER_TREES):
        return None
    for spelled in (name, *(key for key in available_timezones() if key.lower() == name.lower())):
        try:
            return spelled, ZoneInfo(spelled)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            continue
    return None


def _offset_name(offset: int) -> str:
    if not offset:
        return "UTC"
    minutes, seconds = divmod(abs(offset), 60)
    text = f"{'-' if offset < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"
    return f"{text}:{seconds:02}" if seconds else text


def _fixed(name: str, offset: int) -> Zone:
    return _table(name, [], [offset])


def _built(name: str, rules: tzinfo) -> Zone:
    """Find the changes of a zone from 1800 to the end of the first cycle after 2100."""
    first = _FIRST.replace(tzinfo=rules)
    all_changes = _changes(rules, first, (datetime(_KNOWN_YEARS.stop, 1, 1) - _FIRST) // _PROBE + 1)
    by_year: dict[int, list[tuple[int, int]]] = {year: [] for year in _KNOWN_YEARS}
    for second, offset in all_changes:
        if (year := (_EPOCH + timedelta(seconds=second)).year) in by_year:
            by_year[year].append((second - _start_s(year), offset))
    known = [each for each in all_changes if each[0] < _start_s(_KNOWN_YEARS.stop)]
    alike = {_kind(year): by_year[year] for year in _KNOWN_YEARS}
    for year in _LATER_YEARS:
        start = _start_s(year)
        known += [(start + second, offset) for second, offset in alike[_kind(year)]]
    changes, offsets = [second for second, _ in known], [offset for _, offset in known]
    return _table(name, changes, [_seconds(rules.fromutc(first).utcoffset()), *offsets])


def _changes(rules: tzinfo, first: datetime, probes: int) -> list[tuple[int, int]]:
    """The second of each change since 1970, and the offset after it."""
    moments = accumulate(repeat(_PROBE, probes), add, initial=first)
    offsets = [*map(datetime.utcoffset, map(rules.fromutc, moments))]
    places = compress(count(), map(ne, offsets, offsets[1:]))
    return [
        (_change(rules, first + place * _PROBE, offsets[place]), _seconds(offsets[place + 1]))
        for place in places
    ]


def _kind(year: int) -> tuple[int, bool]:
    """What a rule's dates in a year depend on."""
    return datetime(year, 1, 1).weekday(), isleap(year)


def _start_s(year: int) -> int:
    return (datetime(year, 1, 1) - _EPOCH).days * _DAY_S


def _seconds(offset: timedelta | None) -> int:
    assert offset is not None
    return offset // timedelta(seconds=1)


def _change(rules: tzinfo, start: datetime, offset: timedelta | None) -> int:
    """Return the first second after `start`, within a probe, that has another offset."""
    low, high = 0, _PROBE // timedelta(seconds=1)
    while high - low > 1:
        middle = (low + high) // 2
        same = rules.fromutc(start + timedelta(seconds=middle)).utcoffset() == offset
        low, high = (middle, high) if same else (low, middle)
    return (start.replace(tzinfo=None) - _EPOCH) // timedelta(seconds=1) + high


def _table(name: str, changes: list[int], offsets: list[int], *, repeats: bool = True) -> Zone:
    far = 2**62
    east = np.array(offsets, dtype=np.int64)
    starts = np.array([-far, *changes], dtype=np.int64)
    ends = np.array([*changes, far], dtype=np.int64)
    return Zone(name, repeats, starts, east, starts + east, ends + east)


def _segment(starts: npt.NDArray[np.int64], seconds: Micros) -> npt.NDArray[np.intp]:
    """Return the index of the segment of each second."""
    if len(starts) == 1:
        return np.zeros(len(seconds), dtype=np.intp)
    return np.maximum(np.searchsorted(starts, seconds, side="right") - 1, 0)


def _clipped(seconds: Micros) -> Micros:
    """Convert seconds to microseconds, clipped to at least a second within 64 bits."""
    return np.clip(seconds, _INT64_MIN // _SECOND + 2, _INT64_MAX // _SECOND - 2) * _SECOND


def _plus(times: Micros, offsets: Micros) -> tuple[Micros, Mask]:
    """Return the sums, clipped to 64 bits, and a mask of those that were clipped."""
    over = (offsets > 0) & (times > _INT64_MAX - np.maximum(offsets, 0))
    under = (offsets < 0) & (times < _INT64_MIN - np.minimum(offsets, 0))
    with np.errstate(over="ignore"):
        total = times + offsets
    return np.where(over, _INT64_MAX, np.where(under, _INT64_MIN, total)), over | under
