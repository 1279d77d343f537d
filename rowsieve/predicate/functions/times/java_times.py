"""Parse text by a constant Java format: `parse_java_timestamp(text, 'yyyy-MM-dd HH:mm:ss')`.

The result is that of Spark's `to_timestamp(text, format)` with `timeParserPolicy` CORRECTED: two
digits for `MM dd HH hh KK kk mm ss`, one or more for `M d H h K k m s`, four for `yyyy` or more
behind a sign, two of this century for `yy`, three for `DDD`, up to as many as there are letters for
`S`, English names of months for `MMM LLL` and `MMMM LLLL`, AM or PM for `a`, an offset for `X x Z`;
optional sections `[…]` at the end. Fields that the format or the text omits are those of 1970-01-01
00:00 AM. An instant is that of the local time at the offset, or in a constant zone: the earlier of
repeated ones, skipped ones shifted. A local time drops the offset.
Soundness: an allow-list of formats; a text has Spark's value, has none, or raises `UnreadText`.
Texts with years beyond 64 bits raise it, because Spark fails on them even in `try_to_timestamp`,
and so do texts with four letters that Java treats as other letters when it ignores case.
Source: `DateTimeFormatterHelper` of Spark 4.3 and `java.time.format.DateTimeFormatterBuilder`; held
against Spark by `tests/predicate/functions/test_java_times.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, Mask, as_mask, null_mask
from rowsieve.predicate.functions.casting.spark_texts import refuse
from rowsieve.predicate.functions.casting.spark_times import (
    LAST_KNOWN_DAY,
    Numbers,
    days_of_parts,
    micros_of_fraction,
    number_of_part,
)
from rowsieve.predicate.functions.casting.text_casts import checked
from rowsieve.predicate.functions.casting.text_shapes import matches
from rowsieve.predicate.functions.row import Argument, Evaluator, Function, NullRule, Signature
from rowsieve.predicate.functions.times.java_formats import (
    MONTHS,
    UnknownFormat,
    has_names,
    pattern_of,
)
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.days import DAY_US
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import String, Timestamp
from rowsieve.types.time_zones import RepeatedTime, SkippedTime, zone, zone_name

_PARTS: Final = ("sign", "year", "month", "day", "day_of_year", "minute", "second", "fraction")
_ABSENT: Final = {"year": "1970", "month": "1", "day": "1", "day_of_year": "1"}
_ABBREVIATED: Final = [name[:3] for name in MONTHS]
_OFFSET: Final = "^(?P<sign>[+-])(?P<hour>[0-9]{2}):?(?P<minute>[0-9]{0,2})$"
_FARTHEST_EAST: Final = 18 * 60  # minutes
_NO_OFFSET: Final = 24 * 60  # minutes: Java parses up to 23:59
_HALF, _NO_HOUR = 12, 99
_FOLDED: Final = "[\u0130\u0131\u017f\u212a]"  # to Java an I, i, s or k in any case
_LOCAL: Final = Timestamp()
_INSTANT: Final = Timestamp(utc=True)


def read_times(values: pa.Array, form: str, target: Timestamp, zone_of_session: str) -> Computed:
    """Parse texts of the format as timestamps; a local time becomes its instant in the zone."""
    near, far = pattern_of(form)
    fields = pc.extract_regex(values, pattern=near)
    parts = _with_all(fields)
    odd = null_mask(parts) & matches(values, far)
    if has_names(form):
        odd |= matches(values, _FOLDED)
    refuse(values, odd, target, f"its value by the format {form!r} is unknown to Rowsieve")
    days, good = _days(parts)
    hour = _hours(fields)
    minute, second = (number_of_part(parts, name) for name in ("minute", "second"))
    east, has_offset = _minutes_east(fields)
    good &= _has_its_sign(parts) & (hour < 24) & (minute < 60) & (second < 60)
    is_bounded = target.utc | _is_whole(fields)
    good &= np.abs(east) <= np.where(is_bounded, _FARTHEST_EAST, _NO_OFFSET - 1)
    beyond = good & (np.abs(days) > LAST_KNOWN_DAY)
    refuse(values, beyond, target, "spark fails where 64 bits end, even if it tries")
    micros = np.where(good, days, 0) * DAY_US + micros_of_fraction(parts)
    micros += ((hour * 60 + minute) * 60 + second) * 1_000_000
    if target.utc:
        instants, failed, _ = zone(zone_of_session).instants(
            np.where(good & ~has_offset, micros, 0), RepeatedTime.EARLIER, SkippedTime.SHIFTED
        )
        micros = np.where(has_offset, micros - east * 60_000_000, instants)
        good &= has_offset | ~failed
    array = pa.array(np.where(good, micros, 0)).view(arrow_type(target))
    return checked(array, good, null_mask(values))


def _has_its_sign(parts: pa.Array) -> Mask:
    """Whether a year has a plus sign if and only if it is longer than four digits; no minus 0."""
    sign, year = parts.field("sign"), parts.field("year")
    is_long = as_mask(pc.greater(pc.utf8_length(year), 4))
    minus = as_mask(pc.equal(sign, "-"))
    plus = as_mask(pc.equal(sign, "+"))
    return np.where(minus, ~matches(year, "^0+$"), plus == is_long)


def _days(parts: pa.Array) -> tuple[Numbers, Mask]:
    """Return days since 1970, and the mask of days that exist in their month or year."""
    days, good = days_of_parts(parts)
    of_year = number_of_part(parts, "day_of_year")
    first, last = (
        days_of_parts(_replaced(parts, {"month": month, "day": day}))[0]
        for month, day in (("1", "1"), ("12", "31"))
    )
    good &= (of_year >= 1) & (of_year <= last - first + 1)
    return days + of_year - 1, good


def _replaced(parts: pa.Array, constants: Mapping[str, str]) -> pa.Array:
    columns = [
        pa.repeat(constants[name], len(parts)) if name in constants else parts.field(name)
        for name in _PARTS
    ]
    return pa.StructArray.from_arrays(columns, _PARTS, mask=pa.array(null_mask(parts)))


def _with_all(parts: pa.Array) -> pa.Array:
    """Add the fields that the format or a text lacks: empty, or those of 1970-01-01."""
    known = {field.name: pc.fill_null(parts.field(field.name), "") for field in parts.type}
    if (short := known.get("short_year")) is not None:
        year = pc.binary_join_element_wise("20", short, "")
        known["year"] = pc.if_else(pc.equal(short, ""), "", year)
    if (name := known.get("name")) is not None:
        first = pc.utf8_slice_codeunits(pc.utf8_lower(name), 0, 3)
        number = pc.add(pc.index_in(first, pa.array(_ABBREVIATED)), 1).cast(pa.string())
        known["month"] = pc.fill_null(number, "")
    columns = []
    for part in _PARTS:
        column = known[part] if part in known else pa.repeat("", len(parts))
        absent = _ABSENT.get(part, "")
        columns.append(pc.if_else(pc.equal(column, ""), absent, column) if absent else column)
    return pa.StructArray.from_arrays(columns, _PARTS, mask=pa.array(null_mask(parts)))


def _hours(parts: pa.Array) -> Numbers:
    """Return hours from 0; at least 24 where the field is out of its range."""
    known = {field.name for field in parts.type}
    if "last_hour" in known:
        last = number_of_part(parts, "last_hour", absent=24)
        return np.where((last < 1) | (last > 24), _NO_HOUR, last % 24)
    if "clock_hour" in known:
        clock = number_of_part(parts, "clock_hour", absent=_HALF)
        hour = np.where((clock < 1) | (clock > _HALF), _NO_HOUR, clock % _HALF)
    elif "half_hour" in known:
        half = number_of_part(parts, "half_hour")
        hour = np.where(half < _HALF, half, _NO_HOUR)
    else:
        return number_of_part(parts, "hour") if "hour" in known else np.zeros(len(parts), np.int64)
    if "half" in known:
        hour += _HALF * as_mask(pc.equal(pc.utf8_lower(parts.field("half")), "pm"))
    return hour


def _is_whole(parts: pa.Array) -> Mask:
    """Whether a text has a whole date and hour: then Java limits even an offset that is dropped."""
    known = {field.name for field in parts.type}

    def has(*names: str) -> Mask:
        presence = np.zeros(len(parts), np.bool_)
        for name in known.intersection(names):
            presence |= as_mask(pc.not_equal(parts.field(name), ""))
        return presence

    day = (has("month", "name") & has("day")) | has("day_of_year")
    hour = has("hour", "last_hour") | (has("clock_hour", "half_hour") & has("half"))
    return has("year", "short_year") & day & hour


def _minutes_east(parts: pa.Array) -> tuple[Numbers, Mask]:
    """Return offsets in minutes, `_NO_OFFSET` where Java parses none, and the mask of offsets."""
    if "offset" not in {field.name for field in parts.type}:
        return np.zeros(len(parts), np.int64), np.zeros(len(parts), np.bool_)
    text = pc.fill_null(parts.field("offset"), "")
    offset = pc.extract_regex(text, pattern=_OFFSET)
    hour, minute = (number_of_part(offset, name) for name in ("hour", "minute"))
    east = np.where((hour < 24) & (minute < 60), hour * 60 + minute, _NO_OFFSET)
    is_west = as_mask(pc.equal(offset.field("sign"), "-"))
    return np.where(is_west, -east, east), as_mask(pc.not_equal(text, ""))


def _resolve_local(arguments: Sequence[Argument]) -> Signature | None:
    form = _form(arguments, 1)
    return None if form is None else Signature((String(), String()), _LOCAL, form)


def _resolve_instant(arguments: Sequence[Argument]) -> Signature | None:
    form = _form(arguments[1:], 1)
    name = arguments[0].constant if form is not None else None
    if form is None or not isinstance(name, str):
        return None
    return Signature((String(),) * 3, _INSTANT, f"{zone_name(name)}\n{form}")


def _form(arguments: Sequence[Argument], place: int) -> str | None:
    """Return the format, the last argument after text; None unless constant and supported."""
    if len(arguments) != place + 1 or not isinstance(arguments[0].type, String | None):
        return None
    form = arguments[place].constant
    try:
        return form if isinstance(form, str) and pattern_of(form) else None
    except UnknownFormat:
        return None


def _local(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    return read_times(arguments[0], signature.option, _LOCAL, "UTC")


def _instant(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    name, form = signature.option.split("\n", 1)
    return read_times(arguments[1], form, _INSTANT, name)


def _failures_as_null(
    evaluate: Evaluator, arguments: Sequence[pa.Array], signature: Signature, semantics: Semantics
) -> Computed:
    return Computed(evaluate(arguments, signature, semantics).values)


_Resolver = Callable[[Sequence[Argument]], Signature | None]
_KINDS: Final[tuple[tuple[str, _Resolver, Evaluator], ...]] = (
    ("parse_java_timestamp(text, 'yyyy-MM-dd HH:mm:ss')", _resolve_local, _local),
    ("parse_java_instant('zone', text, 'yyyy-MM-dd HH:mm:ss')", _resolve_instant, _instant),
)
# None claims that it cannot fail: a text whose value is unknown to Rowsieve is refused.
ROWS = tuple(
    row
    for usage, resolve, evaluate in _KINDS
    for row in (
        Function(usage, resolve, evaluate, nulls=NullRule.STRICT),
        Function(
            f"try_{usage}",
            resolve,
            partial(_failures_as_null, evaluate),
            nulls=NullRule.PARTIAL,
        ),
    )
)
BY_JAVA_FORMAT: Final = frozenset(row.name for row in ROWS)
