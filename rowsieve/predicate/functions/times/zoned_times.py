"""Functions of instants in a time zone: local times, truncation, intervals, formatting.

The zone is a constant argument, so a bound predicate does not depend on the session. `RepeatedTime`
and `SkippedTime` are arguments too, by their values: they select the instant of a local time that
occurs twice or never. If the zone changes its offset, none of these functions is monotone: bounds
are hulls over all offsets in force in the range (trap T12).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, Mask, filled, null_mask, with_nulls, without
from rowsieve.predicate.functions.casting import text_casts
from rowsieve.predicate.functions.casting.far_years import infinite_times
from rowsieve.predicate.functions.row import (
    Argument,
    AtInfinity,
    Function,
    NullRule,
    Range,
    Resolver,
    Signature,
    TimeUse,
    never_fails,
    times_at,
)
from rowsieve.predicate.functions.times import moved_times
from rowsieve.predicate.functions.times.temporal import (
    CLOCK_UNITS,
    TRUNC_UNITS,
    truncate,
    unit_name,
)
from rowsieve.predicate.interpretation.abstract import AbstractValue, is_point
from rowsieve.predicate.semantics import Semantics, TimestampText
from rowsieve.types.days import DAY_US
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Int, LogicalType, String, Timestamp
from rowsieve.types.time_zones import Micros, RepeatedTime, SkippedTime, Zone, zone, zone_name

_LOCAL, _INSTANT = Timestamp(utc=False), Timestamp(utc=True)
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_NO_ANSWER = frozenset({"fail", "null"})
_STYLES = frozenset(
    style.value
    for style in (TimestampText.OFFSET, TimestampText.OFFSET_IN_MINUTES, TimestampText.RFC_3339)
)
_TO_SECONDS = len("2024-07-03T06:30:00")


def _text(argument: Argument) -> str | None:
    constant = argument.constant
    return constant if argument.is_constant and isinstance(constant, str) else None


def _zone_of(argument: Argument) -> str | None:
    """Return the canonical name of a constant zone; raise for an unknown one, naming it."""
    name = _text(argument)
    return None if name is None else zone_name(name)


_STRICT_SKIPPED = frozenset(rule.value for rule in SkippedTime if rule is not SkippedTime.NULL)
_REPEATED = frozenset(rule.value for rule in RepeatedTime)
_OF_LOCAL = _REPEATED - {"same", "kept"}  # a local time has no previous offset


def _rules(arguments: Sequence[Argument], repeated: frozenset[str]) -> str | None:
    """Return `repeated,skipped` of two constants; NULL is allowed for `try_instant` only."""
    texts = [_text(argument) for argument in arguments]
    skipped = _STRICT_SKIPPED | {"null"} if "null" in repeated else _STRICT_SKIPPED
    known = texts[0] in repeated and texts[1] in skipped
    return f"{texts[0]},{texts[1]}" if known else None


def _parts(option: str) -> tuple[Zone, RepeatedTime, SkippedTime]:
    name, repeated, skipped = option.split(",")
    return zone(name), RepeatedTime(repeated), SkippedTime(skipped)


def _resolve_local(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 2 or arguments[1].type not in (None, _INSTANT):
        return None
    name = _zone_of(arguments[0])
    return None if name is None else Signature((String(), _INSTANT), _LOCAL, name)


def _local_time(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    nulls = null_mask(arguments[1])
    local, lost = zone(signature.option).local(filled(arguments[1]))
    return _computed(local, nulls, lost, _LOCAL)


def _local_range(
    arguments: Sequence[AbstractValue], signature: Signature, _: Semantics
) -> Range | None:
    lower, upper, lost = _local_hull(zone(signature.option), arguments[1])
    return Range(lower, upper, safe=~lost)


def _resolve_instant(*, quiet: bool) -> Resolver:
    repeated = _OF_LOCAL if quiet else _OF_LOCAL - {"null"}

    def resolve(arguments: Sequence[Argument]) -> Signature | None:
        if len(arguments) != 4 or arguments[1].type not in (None, _LOCAL):
            return None
        name, rules = _zone_of(arguments[0]), _rules(arguments[2:], repeated)
        if name is None or rules is None:
            return None
        return Signature((String(), _LOCAL, String(), String()), _INSTANT, f"{name},{rules}")

    return resolve


def _instant(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    rules = _parts(signature.option)
    nulls = null_mask(arguments[1])
    instants, failed, null = rules[0].instants(filled(arguments[1]), *rules[1:])
    return _computed(instants, nulls | null, failed, _INSTANT)


def _try_instant(
    arguments: Sequence[pa.Array], signature: Signature, semantics: Semantics
) -> Computed:
    return Computed(_instant(arguments, signature, semantics).values)


def _instant_range(
    arguments: Sequence[AbstractValue], signature: Signature, _: Semantics
) -> Range | None:
    local_zone, *rules = _parts(signature.option)
    low, high, unbounded = _ends(arguments[1])
    hull = local_zone.instant_hull(low, high)
    safe = ~(unbounded | hull.no_lower | hull.no_upper)
    if any(rule.value in _NO_ANSWER for rule in rules):
        safe &= local_zone.is_plain(low, high)
    lower = _bound(hull.lower, null_mask(arguments[1].lower) | hull.no_lower, _INSTANT)
    upper = _bound(hull.upper, null_mask(arguments[1].upper) | hull.no_upper, _INSTANT)
    return Range(lower, upper, safe=safe)


def _resolve_trunc(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 5 or arguments[2].type not in (None, _INSTANT):
        return None
    unit, name = unit_name(_text(arguments[0])), _zone_of(arguments[1])
    repeated = _REPEATED - ({"null"} if unit in CLOCK_UNITS else {"null", "kept"})
    rules = _rules(arguments[3:], repeated)
    if unit not in TRUNC_UNITS or name is None or rules is None:
        return None
    types = (String(), String(), _INSTANT, String(), String())
    return Signature(types, _INSTANT, f"{unit},{name},{rules}")


def _zoned_trunc(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    unit, option = signature.option.split(",", 1)
    local_zone, repeated, skipped = _parts(option)
    instants, nulls = filled(arguments[2]), null_mask(arguments[2])
    offsets = local_zone.offsets_at(instants)
    local, lost = local_zone.local(instants)
    starts, failed, null = local_zone.instants(truncate(unit, local), repeated, skipped, offsets)
    return _computed(starts, nulls | null, failed | lost, _INSTANT)


def _trunc_range(
    arguments: Sequence[AbstractValue], signature: Signature, _: Semantics
) -> Range | None:
    """Return truncated local bounds as instants.

    A truncation that keeps its offset may return an instant that no rule assigns to its local time;
    it is at most a unit earlier than the truncated instant.
    """
    unit, option = signature.option.split(",", 1)
    local_zone, repeated, skipped = _parts(option)
    value = arguments[2]
    low, high, lost = _local_hull(local_zone, value)
    ends = [truncate(unit, filled(end)) for end in (low, high)]
    hull = local_zone.instant_hull(*ends)
    least, most = hull.lower, hull.upper
    unknown = lost | hull.no_lower | hull.no_upper
    safe = ~unknown
    if repeated is RepeatedTime.KEPT:
        start, stop, unbounded = _ends(value)
        steady, offsets = local_zone.is_steady(start, stop), local_zone.offsets_at(start)
        first = np.maximum(start, _INT64_MIN + DAY_US) - DAY_US
        least = np.where(steady, ends[0] - offsets, first)
        most = np.where(steady, ends[1] - offsets, stop)
        unknown = unknown | unbounded
    if {repeated.value, skipped.value} & _NO_ANSWER:
        safe &= local_zone.is_plain(*ends)
    return Range(_bound(least, unknown, _INSTANT), _bound(most, unknown, _INSTANT), safe=safe)


def _resolve_shift(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 7 or arguments[1].type not in (None, _INSTANT):
        return None
    if not all(part.type is None or isinstance(part.type, Int) for part in arguments[2:5]):
        return None
    name, rules = _zone_of(arguments[0]), _rules(arguments[5:], _REPEATED - {"null", "kept"})
    if name is None or rules is None:
        return None
    types: tuple[LogicalType, ...] = (String(), _INSTANT, *(Int(64),) * 3, String(), String())
    return Signature(types, _INSTANT, f"{name},{rules}")


def _zoned_shift(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    """Add the months, then the days, in local time; then the microseconds to the instant."""
    rules = _parts(signature.option)
    nulls = np.logical_or.reduce([null_mask(argument) for argument in arguments[1:5]])
    months, days, micros = (filled(argument).astype(np.int64) for argument in arguments[2:5])
    instants = filled(arguments[1])
    none = np.zeros(len(nulls), dtype=np.bool_)
    failed, null = none, none
    for part, months_only in ((months, True), (days, False)):
        moves = part != 0
        if moves.any():
            parts = (part, 0) if months_only else (0, part)
            moved, fails, absent = _moved(rules, instants, *parts)
            instants = np.where(moves, moved, instants)
            failed, null = failed | (fails & moves), null | (absent & moves)
    last = _added(instants, 0, 0, micros)
    failed = failed | last[1]
    return _computed(last[0], nulls | null, failed, _INSTANT)


def _moved(
    rules: tuple[Zone, RepeatedTime, SkippedTime], instants: Micros, months: Any, days: Any
) -> tuple[Micros, Mask, Mask]:
    local_zone, repeated, skipped = rules
    local, lost = local_zone.local(instants)
    moved, failed = _added(local, months, days, 0)
    shifted, fails, null = local_zone.instants(
        moved, repeated, skipped, local_zone.offsets_at(instants)
    )
    return shifted, lost | failed | fails, null


def _added(times: Micros, months: Any, days: Any, micros: Any) -> tuple[Micros, Mask]:
    """Add an interval without a zone, and return the mask of 64-bit overflows."""
    shape = np.zeros(len(times), dtype=np.int64)
    parts = [pa.array(shape + part) for part in (months, days, micros)]
    signature = Signature((_LOCAL, Int(64), Int(64), Int(64)), _LOCAL)
    moved = moved_times.move([pa.array(times).view(arrow_type(_LOCAL)), *parts], signature)
    failed = np.zeros(len(times), np.bool_) if moved.failed is None else moved.failed
    return filled(moved.values).astype(np.int64, copy=False), failed


def _shift_range(
    arguments: Sequence[AbstractValue], signature: Signature, _: Semantics
) -> Range | None:
    """Bound, for constant intervals, by the hull of the moved local times and their instants."""
    local_zone, repeated, skipped = _parts(signature.option)
    parts = arguments[2:5]
    fixed = np.logical_and.reduce([is_point(part) for part in parts])
    if not fixed.all():
        return None
    months, days, micros = (filled(part.lower) for part in parts)
    low, high, lost = _ends(arguments[1])
    plain = np.ones(len(low), dtype=np.bool_)
    for part, by_months in ((months, True), (days, False)):
        moves = part != 0
        if not moves.any():
            continue
        local = local_zone.local_hull(low, high)
        first, last = local.lower, local.upper
        if by_months:  # only days keep their order (trap T11)
            inside = (first > _INT64_MIN + DAY_US) & (last < _INT64_MAX - DAY_US)
            first, last = np.where(inside, first, 0), np.where(inside, last, 0)
            first, last = first // DAY_US * DAY_US, last // DAY_US * DAY_US + DAY_US - 1
            lost = lost | (moves & ~inside)
        ends = [
            _added(end, part if by_months else 0, 0 if by_months else part, 0)
            for end in (first, last)
        ]
        hull = local_zone.instant_hull(ends[0][0], ends[1][0])
        plain &= ~moves | local_zone.is_plain(ends[0][0], ends[1][0])
        out = local.no_lower | local.no_upper | ends[0][1] | ends[1][1]
        lost = lost | (moves & (out | hull.no_lower | hull.no_upper))
        low, high = np.where(moves, hull.lower, low), np.where(moves, hull.upper, high)
    ends = [_added(end, 0, 0, micros) for end in (low, high)]
    lost = lost | ends[0][1] | ends[1][1]
    safe = ~lost
    if {repeated.value, skipped.value} & _NO_ANSWER:
        safe &= plain
    return Range(_bound(ends[0][0], lost, _INSTANT), _bound(ends[1][0], lost, _INSTANT), safe=safe)


def _resolve_text(arguments: Sequence[Argument]) -> Signature | None:
    signature = _resolve_local(arguments[:2])
    style = TimestampText.OFFSET.value if len(arguments) == 2 else _text(arguments[-1])
    if signature is None or len(arguments) > 3 or style not in _STYLES:
        return None
    if style == TimestampText.RFC_3339.value and not zone(signature.option).is_utc:
        return None
    types = (*signature.arguments, String())[: len(arguments)]
    return Signature(types, String(), f"{signature.option},{style}")


def _style(signature: Signature) -> tuple[Zone, TimestampText]:
    name, style = signature.option.split(",")
    return zone(name), TimestampText(style)


def _zoned_text(
    arguments: Sequence[pa.Array], signature: Signature, semantics: Semantics
) -> Computed:
    """Format the local time and its offset in the style of the call."""
    local_zone, style = _style(signature)
    years = semantics.far_years
    instants, nulls = filled(arguments[1]), null_mask(arguments[1])
    local, lost = local_zone.local(instants)
    lost |= infinite_times(instants, years) | infinite_times(local, years)
    times = _computed(local, nulls, lost, _LOCAL).values
    offsets, places = np.unique(local_zone.offsets_at(instants), return_inverse=True)
    spelt = [text_casts.offset_text(int(offset), style) for offset in offsets]
    names = pa.array(spelt, pa.string())
    offset_of_each = names.take(pa.array(places))
    joined = text_casts.text_of_any_year(times, offset_of_each, style, years)
    failed = null_mask(joined) & ~nulls
    return Computed(joined, failed if failed.any() else None)


def _text_range(
    arguments: Sequence[AbstractValue], signature: Signature, _: Semantics
) -> Range | None:
    """Bound by the texts of the local bounds: an offset sorts below `~`.

    With a `Z` suffix only whole seconds keep their order, because `Z` sorts above a fraction.
    """
    local_zone, style = _style(signature)
    low, high, lost = _local_hull(local_zone, arguments[1])
    lower, upper = (
        text_casts.timestamp_text(end, style) for end in (without(low, lost), without(high, lost))
    )
    if style is TimestampText.RFC_3339:
        lower, upper = (pc.utf8_slice_codeunits(end, 0, _TO_SECONDS) for end in (lower, upper))
    far = null_mask(lower) | null_mask(upper)  # texts of far years may sort anywhere
    above = pc.binary_join_element_wise(upper, "~", "")
    return Range(without(lower, far), without(above, far), safe=~far)


def _ends(value: AbstractValue) -> tuple[Micros, Micros, Mask]:
    """Return both bounds as numbers and the mask of missing ones, set to the ends of time."""
    no_lower, no_upper = null_mask(value.lower), null_mask(value.upper)
    lower = np.where(no_lower, _INT64_MIN, filled(value.lower))
    upper = np.where(no_upper, _INT64_MAX, filled(value.upper))
    return lower, upper, no_lower | no_upper


def _local_hull(local_zone: Zone, value: AbstractValue) -> tuple[pa.Array, pa.Array, Mask]:
    """Return the bounds of local times, NULL if unknown, and the mask of unknown ends."""
    low, high, unbounded = _ends(value)
    hull = local_zone.local_hull(low, high)
    lower = _bound(hull.lower, null_mask(value.lower) | hull.no_lower, _LOCAL)
    upper = _bound(hull.upper, null_mask(value.upper) | hull.no_upper, _LOCAL)
    return lower, upper, unbounded | hull.no_lower | hull.no_upper


def _bound(times: Micros, unknown: Mask, type_: Timestamp) -> pa.Array:
    return with_nulls(np.where(unknown, 0, times), unknown, arrow_type(type_))


def _computed(times: Micros, nulls: Mask, failed: Mask, type_: Timestamp) -> Computed:
    failed = failed & ~nulls
    array = with_nulls(np.where(failed, 0, times), nulls | failed, arrow_type(type_))
    return Computed(array, failed if failed.any() else None)


def _row(usage: str, resolve: Any, evaluate: Any, **claims: Any) -> Function:
    claims = {"nulls": NullRule.STRICT, **claims}
    return Function(usage, resolve, evaluate, **claims)


ROWS = (
    _row(
        "local_time('zone', instant)",
        _resolve_local,
        _local_time,
        bounds=_local_range,
        can_fail=lambda signature: not zone(signature.option).is_utc,
        times=times_at(TimeUse.ZONED, 1),
        at_infinity=AtInfinity.SAME,
    ),
    _row(
        "instant('zone', timestamp, 'repeated', 'skipped')",
        _resolve_instant(quiet=False),
        _instant,
        bounds=_instant_range,
        times=times_at(TimeUse.ZONED, 1),
        at_infinity=AtInfinity.SAME,
    ),
    _row(
        "try_instant('zone', timestamp, 'repeated', 'skipped')",
        _resolve_instant(quiet=True),
        _try_instant,
        bounds=_instant_range,
        can_fail=never_fails,
        nulls=NullRule.PARTIAL,
        at_infinity=AtInfinity.SAME,
    ),
    _row(
        "zoned_trunc('unit', 'zone', instant, 'repeated', 'skipped')",
        _resolve_trunc,
        _zoned_trunc,
        bounds=_trunc_range,
        times=times_at(TimeUse.ZONED, 2),
        at_infinity=AtInfinity.SAME,
    ),
    _row(
        "zoned_shift('zone', instant, months, days, microseconds, 'repeated', 'skipped')",
        _resolve_shift,
        _zoned_shift,
        bounds=_shift_range,
        times=times_at(TimeUse.ZONED, 1),
        at_infinity=AtInfinity.SAME,
    ),
    _row(
        "zoned_text('zone', instant[, 'style'])",
        _resolve_text,
        _zoned_text,
        bounds=_text_range,
    ),
)
