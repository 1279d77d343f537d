"""Rewrite casts and calls that depend on the session's time zone, during binding.

Casts, fields, truncations and intervals of instants use the local time of a zone. In UTC they are
unchanged. In another zone they become calls that name the zone (`functions/times/zoned_times.py`),
so the evaluator, the interpreter and all rewrites are independent of the session.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.arrays import Computed, filled, null_mask, with_nulls
from rowsieve.predicate.functions.casting.casts import cast, cast_rule, gives_null
from rowsieve.predicate.functions.registry import find, known_of, resolve
from rowsieve.predicate.functions.row import TimeUse
from rowsieve.predicate.functions.times.temporal import CLOCK_UNITS, unit_name
from rowsieve.predicate.literal_values import from_scalar, scalar
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import Semantics, TextReading, TimestampText
from rowsieve.types.days import DAY_US
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import (
    Date,
    Int,
    LogicalType,
    Nanos,
    String,
    Time,
    Timestamp,
    is_nested,
    type_name,
)
from rowsieve.types.time_zones import RepeatedTime, SkippedTime, zone

LOCAL, INSTANT = Timestamp(utc=False), Timestamp(utc=True)
# Functions that take the session's zone as their first argument, before text and a format.
READ_IN_ZONE = frozenset({"parse_java_instant", "try_parse_java_instant"})


def is_utc(semantics: Semantics) -> bool:
    """Whether local times of the session are those of UTC; raises for an unknown zone."""
    return zone(semantics.time_zone).is_utc


def depends_on_zone(source: LogicalType, target: LogicalType) -> bool:
    """Whether a cast between the types uses local time."""
    return (
        (source == INSTANT and isinstance(target, Date | Time | String))
        or (isinstance(source, Date) and target == INSTANT)
        or {source, target} == {LOCAL, INSTANT}
    )


def cast_of_session(
    operand: ir.Operand,
    source: LogicalType,
    target: LogicalType,
    semantics: Semantics,
    *,
    try_: bool,
) -> ir.Operand | None:
    """Bind a cast with a rule of the session or its engine; None for any other cast."""
    if isinstance(source, Timestamp) and target == String():
        return _as_text(operand, source, semantics, try_=try_)
    if (source, target) == (String(), INSTANT) and semantics.text_reading is TextReading.SPARK:
        return _read_in_zone(operand, semantics, try_=try_)
    if depends_on_zone(source, target) and not is_utc(semantics):
        return zoned_cast(operand, source, target, semantics, try_=try_)
    return None


def _read_in_zone(operand: ir.Operand, semantics: Semantics, *, try_: bool) -> ir.Operand | None:
    if is_utc(semantics):
        return None
    quiet = gives_null(INSTANT, semantics, try_=try_)
    return _call("try_text_instant" if quiet else "text_instant", semantics.time_zone, operand)


def _as_text(
    operand: ir.Operand, source: Timestamp, semantics: Semantics, *, try_: bool
) -> ir.Operand | None:
    style = semantics.timestamp_text
    if style is TimestampText.REFUSED:
        raise InvalidPredicate(
            f"a cast of {type_name(source)} to text is not supported under the rules of "
            f"{semantics.name}, which depend on the unit of its column; compare the value with "
            "a timestamp"
        )
    if not source.utc:
        return None
    if style is TimestampText.RFC_3339:
        _check_in_utc(operand, semantics)
        return _call("zoned_text", "UTC", operand, style.value)
    if style is TimestampText.LOCAL:
        name = semantics.time_zone
        local = ir.Cast(operand, LOCAL) if is_utc(semantics) else local_time(name, operand)
        return ir.Cast(local, String(), try_)
    if is_utc(semantics):
        return None
    styles = () if style is TimestampText.OFFSET else (style.value,)
    return _call("zoned_text", semantics.time_zone, operand, *styles)


def _check_in_utc(operand: ir.Operand, semantics: Semantics) -> None:
    """Raise for an instant that may not be in UTC, because its text depends on its type's zone."""
    for node in ir.walk(operand):
        match node:
            case ir.BoundColumn(name=name, type=Timestamp(zone=zone_name)) if zone_name != "UTC":
                reason = f"the column {name!r} declares the time zone {zone_name!r}"
            case ir.BoundColumn(name=name, type=type_) if is_nested(type_):
                reason = f"the column {name!r} is nested"
            case ir.Cast() | ir.Now() | ir.Literal() if type_of(node) == INSTANT:
                reason = "constants, casts to an instant and now() may have no zone in that engine"
            case ir.Call(function="instant" | "try_instant"):
                reason = "AT TIME ZONE gives an instant the zone that it names"
            case _:
                continue
        raise InvalidPredicate(
            f"a cast of an instant to text under the rules of {semantics.name} is supported for "
            f"columns in UTC only, and {reason}; compare the instant with a timestamp"
        )


def zoned_cast(
    operand: ir.Operand,
    source: LogicalType,
    target: LogicalType,
    semantics: Semantics,
    *,
    try_: bool,
) -> ir.Operand:
    """Bind a cast that depends on the zone, if it is not UTC; constants are not computed."""
    name = semantics.time_zone
    if target == INSTANT:
        midnight = isinstance(source, Date)
        local = ir.Cast(operand, LOCAL, try_) if midnight else operand
        skipped = semantics.skipped_midnight if midnight else semantics.skipped_time
        return instant(name, local, semantics.repeated_time, skipped, quiet=try_)
    local = local_time(name, operand)
    return local if target == LOCAL else ir.Cast(local, target, try_)


def instants_of(array: pa.Array, type_: LogicalType, semantics: Semantics) -> pa.Array:
    """Convert dates, local times or instants to instants, in the session's zone."""
    if type_ == INSTANT:
        return array
    midnight = isinstance(type_, Date)
    local = cast(array, type_, LOCAL, semantics) if midnight else Computed(array)
    skipped = semantics.skipped_midnight if midnight else semantics.skipped_time
    nulls = null_mask(array)
    instants, failed, null = zone(semantics.time_zone).instants(
        filled(local.values), semantics.repeated_time, skipped
    )
    failed = (failed | null_mask(local.values)) & ~nulls
    if failed.any():
        raise InvalidPredicate(
            f"{array[int(np.argmax(failed))]} in an IN list is not an instant in the time zone "
            f"{semantics.time_zone!r}; write it with an offset"
        )
    return with_nulls(instants, nulls | null, arrow_type(INSTANT))


def local_time(name: str, operand: ir.Operand) -> ir.Operand:
    """Return the local time of an instant in a zone."""
    return _call("local_time", name, operand)


def instant(
    name: str,
    operand: ir.Operand,
    repeated: RepeatedTime,
    skipped: SkippedTime,
    *,
    quiet: bool = False,
) -> ir.Operand:
    """Return the instant of a local time in a zone; `quiet`: NULL if it has none."""
    quiet = quiet or repeated is RepeatedTime.NULL or skipped is SkippedTime.NULL
    function = "try_instant" if quiet else "instant"
    return _call(function, name, operand, repeated.value, skipped.value)


def at_time_zone(
    name: ir.Operand, operand: ir.Operand, type_: LogicalType | None, semantics: Semantics
) -> tuple[ir.Operand, LogicalType]:
    """Bind `operand AT TIME ZONE name`: instant to local time, or local time to instant."""
    if not isinstance(name, ir.Literal) or not isinstance(name.value, str):
        raise InvalidPredicate(
            "a time zone must be constant text, such as 'Europe/Berlin'; a zone that differs "
            "from row to row is not supported"
        )
    spelled = zone(name.value).name
    match type_:
        case Timestamp(utc=False) | Nanos(utc=False):
            rules = semantics.repeated_time, semantics.skipped_time
            return instant(spelled, operand, *rules), replace(type_, utc=True)
        case Timestamp(utc=True) | Nanos(utc=True):
            return local_time(spelled, operand), replace(type_, utc=False)
    raise InvalidPredicate(
        f"AT TIME ZONE needs a timestamp, not {'text' if type_ is None else type_name(type_)}; "
        "cast the value"
    )


def zoned_call(
    function: str,
    arguments: Sequence[ir.Operand],
    types: Sequence[LogicalType],
    semantics: Semantics,
) -> ir.Operand | None:
    """Bind a call that depends on the zone, if it is not UTC; None for any other call."""
    if not any(map(_is_instant, types)) or is_utc(semantics):
        return None
    name, times = semantics.time_zone, find(function).times
    use = None if times is None else times.use
    if use is TimeUse.FIELDS:
        if function == "extract" and _unit(arguments[0]) == "epoch":
            return None
        local = (
            local_time(name, operand) if _is_instant(type_) else operand
            for operand, type_ in zip(arguments, types, strict=True)
        )
        return ir.Call(function, tuple(local))
    if use is TimeUse.START:
        return zoned_trunc(arguments[0], name, arguments[1], semantics)
    if use is TimeUse.MOVED:
        if semantics.hours_make_days:
            arguments = (arguments[0], *_with_days(arguments[1:]))
        clockwise = all(isinstance(part, ir.Literal) and part.value == 0 for part in arguments[1:3])
        return None if clockwise else _shift(name, arguments, semantics)
    if use is TimeUse.BIN and not _is_zero(arguments[0]):
        raise InvalidPredicate(
            f"date_bin by months of an instant is not supported in the time zone {name!r}: cast "
            "the instant to timestamp first, or use date_trunc"
        )
    return None


def zoned_trunc(
    unit: ir.Operand, name: str, operand: ir.Operand, semantics: Semantics
) -> ir.Operand:
    """Bind `date_trunc(unit, operand, zone)` of an instant."""
    if _unit(unit) in CLOCK_UNITS:
        clock = semantics.truncated_clock
        if _unit(unit) != "hour" and clock is not RepeatedTime.SAME:
            clock = RepeatedTime.KEPT  # engines ignore zones below an hour
        rules = clock.value, semantics.skipped_time.value
    elif _unit(unit) == "day":
        rules = semantics.moved_time.value, semantics.skipped_time.value
    else:  # truncate as a date
        rules = semantics.repeated_time.value, semantics.skipped_midnight.value
    literals = (ir.Literal(text, String()) for text in (zone(name).name, *rules))
    spelled, repeated, skipped = literals
    return ir.Call("zoned_trunc", (unit, spelled, operand, repeated, skipped))


def folded(operand: ir.Operand, semantics: Semantics) -> ir.Operand:
    """Compute calls and casts of this module over constants, if they have a value."""
    match operand:
        case ir.Call(function=function, arguments=arguments):
            values = [folded(argument, semantics) for argument in arguments]
            if not all(isinstance(value, ir.Literal) for value in values):
                return operand
            constants = [value for value in values if isinstance(value, ir.Literal)]
            row, signature = resolve(function, known_of(constants, [one.type for one in constants]))
            columns = [pa.repeat(scalar(constant), 1) for constant in constants]
            computed, type_ = row.evaluate(columns, signature, semantics), signature.result
        case ir.Cast(operand=inner, type=type_):
            value = folded(inner, semantics)
            if not isinstance(value, ir.Literal) or value.type is None:
                return operand
            rule = cast_rule(value.type, type_)
            assert rule is not None
            computed = rule.evaluate(pa.repeat(scalar(value), 1), value.type, type_, semantics)
        case _:
            return operand
    return operand if computed.failed is not None else from_scalar(computed.values[0], type_)


def _with_days(parts: Sequence[ir.Operand]) -> Sequence[ir.Operand]:
    """Convert whole days among constant microseconds to days."""
    numbers = [part.value if isinstance(part, ir.Literal) else None for part in parts]
    months, days, micros = numbers
    if months != 0 or not isinstance(days, int) or not isinstance(micros, int):
        return parts
    length = days * DAY_US + micros
    whole = abs(length) // DAY_US * (-1 if length < 0 else 1)
    return (parts[0], ir.Literal(whole, Int(64)), ir.Literal(length - whole * DAY_US, Int(64)))


def _shift(name: str, arguments: Sequence[ir.Operand], semantics: Semantics) -> ir.Operand:
    rules = (semantics.moved_time.value, semantics.skipped_time.value)
    return _call("zoned_shift", name, *arguments, *rules)


def _call(function: str, name: str, *arguments: ir.Operand | str) -> ir.Operand:
    operands = tuple(
        ir.Literal(argument, String()) if isinstance(argument, str) else argument
        for argument in (zone(name).name, *arguments)
    )
    return ir.Call(function, operands)


def _unit(operand: ir.Operand) -> str | None:
    return unit_name(operand.value) if isinstance(operand, ir.Literal) else None


def _is_instant(type_: LogicalType) -> bool:
    return isinstance(type_, Timestamp | Nanos) and type_.utc


def _is_zero(operand: ir.Operand) -> bool:
    return isinstance(operand, ir.Literal) and operand.value == 0
