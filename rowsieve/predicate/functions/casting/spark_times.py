"""Casts from text to dates and timestamps by Spark's rules: `2024`, `2024-1-5`, `2024-01-05T1:2`.

Soundness: a text has Spark's value, is invalid (an error, or NULL), or raises `UnreadText`. Text
that raises: a time without a date, which Spark completes with today, the few days at the ends of 64
bits, and zones that Java's database may have without ours, or ours without Java's.
Source: `SparkDateTimeUtils` of Spark 4.3 and `java.time.ZoneId`; held against Spark by
`tests/predicate/functions/test_spark_texts.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from zoneinfo import available_timezones

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.arrays import Computed, Mask, as_mask, null_mask
from rowsieve.predicate.functions.calendar_days import first_days
from rowsieve.predicate.functions.casting import text_casts
from rowsieve.predicate.functions.casting.spark_texts import JAVA_SPACE, refuse, trimmed
from rowsieve.predicate.functions.casting.text_casts import checked
from rowsieve.predicate.functions.casting.text_shapes import matches
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.days import DAY_US
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Date, LogicalType, Timestamp
from rowsieve.types.time_zones import RepeatedTime, SkippedTime, Zone, fixed_offset, zone

Numbers = npt.NDArray[np.int64]

_MIN_DAY, _MAX_DAY = -(2**31), 2**31 - 1
LAST_KNOWN_DAY = 106_751_989  # of timestamps; the third day after it is beyond 64 bits
_DAY = r"(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})"
_DATE = rf"^(?P<sign>[+-]?)(?P<year>[0-9]{{4,7}}){_DAY}(?:[ T](?s:.*))?)?)?$"
_CLOCK = (
    r"(?:[ T](?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})"
    r"(?:\.(?P<fraction>[0-9]*))?(?P<zone>[^0-9.](?s:.*))?)?)?)?"
)
_MOMENT = rf"^(?P<sign>[+-]?)(?P<year>[0-9]{{4,6}}){_DAY}{_CLOCK})?)?$"
_OF_TODAY = r"^(?:T[0-9]|[0-9]{1,2}:)"
_NOT_KNOWN = object()
_ONE_DIGIT_HOUR = re.compile(r"([+-])([0-9]):", re.ASCII)
_ONE_DIGIT_MINUTE = re.compile(r"([+-][0-9]{2}:)([0-9])$", re.ASCII)
_OFFSET = re.compile(
    r"[+-](?:[0-9]{1,2}|[0-9]{4}|[0-9]{6}|[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)", re.ASCII
)
_PREFIXED = re.compile(r"(?:UTC|GMT|UT)(?=[+-]|$)", re.ASCII)
_REGION = re.compile(r"[A-Za-z][A-Za-z0-9~/._+-]+", re.ASCII)
# Java's `ZoneId.SHORT_IDS`.
_SHORT = frozenset(
    (
        *("ACT", "AET", "AGT", "ART", "AST", "BET", "BST", "CAT", "CNT", "CST", "CTT", "EAT"),
        *("ECT", "IET", "IST", "JST", "MIT", "NET", "NST", "PLT", "PNT", "PRT", "PST", "SST"),
        *("VST", "EST", "MST", "HST"),
    )
)


def to_date(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    """`[+-]y…y[-m[-d[ …]]]`, the year of four to seven digits."""
    parts = pc.extract_regex(trimmed(values), pattern=_DATE)
    days, good = days_of_parts(parts)
    good &= (days >= _MIN_DAY) & (days <= _MAX_DAY)
    array = pa.array(np.where(good, days, 0).astype(np.int32)).view(arrow_type(target))
    return checked(array, good, null_mask(values))


def to_timestamp(
    values: pa.Array, _: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    """`[+-]y…y[-m[-d[ h[:m[:s[.f…][zone]]]]]]`; a zone is dropped where the type has none."""
    assert isinstance(target, Timestamp)
    return read_moments(values, target, semantics.time_zone)


def read_moments(values: pa.Array, target: Timestamp, zone_name: str) -> Computed:
    """Parse texts as timestamps; an instant without a zone is a local time of `zone_name`."""
    text = trimmed(values)
    if target.utc:
        refuse(text, matches(text, _OF_TODAY), target, "a time without a date is one of today")
    parts = pc.extract_regex(text, pattern=_MOMENT)
    days, good = days_of_parts(parts)
    hour, minute, second = (number_of_part(parts, name) for name in ("hour", "minute", "second"))
    good &= (hour < 24) & (minute < 60) & (second < 60)
    far = good & (np.abs(days) > LAST_KNOWN_DAY)
    refuse(text, far & (np.abs(days) < LAST_KNOWN_DAY + 5), target, "it is where 64 bits end")
    good &= ~far
    micros = np.where(good, days, 0) * DAY_US
    micros += ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros_of_fraction(parts)
    good &= _in_zones(micros, good, parts, text, target, zone_name)
    array = pa.array(np.where(good, micros, 0)).view(arrow_type(target))
    return checked(array, good, null_mask(values))


def _in_zones(
    micros: Numbers, good: Mask, parts: pa.Array, text: pa.Array, target: Timestamp, session: str
) -> Mask:
    """Convert local times to instants in place if the type requires it; return the valid ones.

    A text with an unknown zone is invalid, even if the zone is dropped.
    """
    exists = np.ones(len(micros), dtype=np.bool_)
    names = pc.fill_null(parts.field("zone"), "").dictionary_encode()
    places = names.indices.to_numpy(zero_copy_only=False)
    for place, name in enumerate(names.dictionary.to_pylist()):
        where = (places == place) & good
        if not where.any():
            continue
        known = zone(session) if not name else zone_of(name)
        if known is _NOT_KNOWN:
            refuse(text, where, target, "its time zone may be another one there")
        if not isinstance(known, Zone):
            exists &= ~where
        elif target.utc and not known.is_utc:
            instants, failed, _ = known.instants(
                micros[where], RepeatedTime.EARLIER, SkippedTime.SHIFTED
            )
            micros[where] = instants
            exists[where] &= ~failed
    return exists


def zone_of(name: str) -> object:
    """Return the zone that Java finds for the name, `_NOT_KNOWN` if uncertain; None if none."""
    name = _ONE_DIGIT_HOUR.sub(r"\g<1>0\2:", name.strip(JAVA_SPACE), count=1)
    name = _ONE_DIGIT_MINUTE.sub(r"\g<1>0\2", name)
    prefix = _PREFIXED.match(name)
    bare = name[prefix.end() :] if prefix else name
    if name == "Z" or (prefix and not bare):
        return zone("UTC")
    if bare.startswith(("+", "-")):
        known = _OFFSET.fullmatch(bare) and fixed_offset(bare) is not None
        return zone(bare) if known else None
    if name in _SHORT:
        return _NOT_KNOWN
    if not _REGION.fullmatch(name):
        return None
    if name not in available_timezones():
        return _NOT_KNOWN if "/" in name else None
    try:
        return zone(name)
    except InvalidPredicate:  # a name without a slash
        return _NOT_KNOWN


def days_of_parts(parts: pa.Array) -> tuple[Numbers, Mask]:
    """Return days since 1970 of matched texts, and the mask of days that exist."""
    year = number_of_part(parts, "year")
    year = np.where(as_mask(pc.equal(parts.field("sign"), "-")), -year, year)
    month, day = (number_of_part(parts, name, absent=1) for name in ("month", "day"))
    good = ~null_mask(parts) & (month >= 1) & (month <= 12) & (day >= 1)
    months = np.where(good, (year - 1970) * 12 + month - 1, 0)
    first = first_days(months)
    good &= day <= first_days(months + 1) - first
    return first + day - 1, good


def number_of_part(parts: pa.Array, name: str, *, absent: int = 0) -> Numbers:
    """Return the digits of a field as numbers, `absent` where there are none."""
    digits = pc.fill_null(parts.field(name), "")
    present = pc.if_else(pc.equal(digits, ""), str(absent), digits)
    numbers: Numbers = present.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers


def micros_of_fraction(parts: pa.Array) -> Numbers:
    """Return the microseconds of a second; further digits are dropped."""
    digits = pc.utf8_slice_codeunits(pc.fill_null(parts.field("fraction"), ""), 0, 6)
    micros: Numbers = pc.utf8_rpad(digits, 6, "0").cast(pa.int64()).to_numpy(zero_copy_only=False)
    return micros


READERS: Mapping[type[LogicalType], text_casts.Reader] = {Date: to_date, Timestamp: to_timestamp}
