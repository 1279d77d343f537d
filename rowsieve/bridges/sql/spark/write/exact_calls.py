"""Rewrite calls so that Spark gives them the same values and failures, for `exact_conditions.py`.

Soundness: a call without a handler here is written by the table of functions; a handler refuses the
arguments, failures and time zones for which Spark is not known to agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from rowsieve.bridges.constant_values import value_of
from rowsieve.bridges.sql.constructs.named_zones import is_proved, truncates_alike
from rowsieve.bridges.sql.constructs.templates import Templated
from rowsieve.bridges.sql.constructs.time_formats import to_dialect
from rowsieve.bridges.sql.exactness.exact import Exact
from rowsieve.bridges.sql.spark import rules
from rowsieve.bridges.sql.spark.write import written_texts
from rowsieve.bridges.sql.spark.write.in_session import InSession
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.binding import zoned
from rowsieve.predicate.functions.times.java_times import BY_JAVA_FORMAT
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import DigitRounding, OnFailure, Semantics
from rowsieve.types.logical import (
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    Map,
    String,
    Timestamp,
    type_name,
)
from rowsieve.types.time_zones import name_in, shown_zone

_INT64, _LOCAL, _INSTANT = Int(64), Timestamp(utc=False), Timestamp(utc=True)
_INT32_MAX = 2**31 - 1
_TRIED: Mapping[str, str] = {
    name: f"try_{word}({{0}}, {{1}})"
    for name, word in (
        *((each, each) for each in ("add", "subtract", "multiply", "divide")),
        ("modulo", "mod"),
    )
}
_BY_ZERO = "division by zero has another outcome in Spark"
_Handler: TypeAlias = Callable[[InSession, ir.Call], ir.Operand]


# Numbers


def _arithmetic(exact: InSession, node: ir.Call) -> ir.Operand:
    name, result = node.function, type_of(node)
    types, semantics = [type_of(argument) for argument in node.arguments], exact.semantics
    sides = tuple(exact.arguments(node))
    match result:
        case Int(signed=True) if all(type_ == result for type_ in types):
            return _whole_arithmetic(exact, node, sides)
        case Float() if all(type_ == result for type_ in types):
            by_zero = semantics.float_division_by_zero
        case Decimal():
            a, b = types
            assert isinstance(a, Decimal)
            assert isinstance(b, Decimal)
            if rules.decimal_result(name, a, b) != result:
                raise UnsupportedOperation(f"{name} of decimals keeps other digits in spark")
            by_zero = semantics.integer_division_by_zero
        case _:
            raise UnsupportedOperation(f"{name} gives {type_name(result)}, and may not in Spark")
    if name not in ("divide", "modulo"):
        return ir.Call(name, sides)
    if by_zero is OnFailure.NULL:
        computed = Templated(_TRIED[name], sides)
    elif by_zero is OnFailure.ERROR and exact.ansi:
        computed = Templated("{0} / {1}" if name == "divide" else "{0} % {1}", sides)
    else:
        raise UnsupportedOperation(_BY_ZERO)
    return ir.Cast(computed, result) if result == Float(32) else computed


def _whole_arithmetic(exact: InSession, node: ir.Call, sides: tuple[ir.Operand, ...]) -> ir.Operand:
    """Write arithmetic of signed whole numbers of one type."""
    name, result, semantics = node.function, type_of(node), exact.semantics
    if name not in ("divide", "modulo"):
        if semantics.integer_overflow is OnFailure.NULL:
            return Templated(_TRIED[name], sides)
        _check_overflow(exact)
        return ir.Call(name, sides)
    divisor = node.arguments[1]
    known = isinstance(divisor, ir.Literal) and divisor.value not in (None, 0, -1)
    rules = {semantics.integer_division_by_zero}
    if name == "divide":
        rules.add(semantics.quotient_overflow)
    if not known and not (rules == {OnFailure.ERROR} and exact.ansi):
        raise UnsupportedOperation(_BY_ZERO)
    if name == "modulo":
        return ir.Call(name, sides)
    quotient = Templated("{0} div {1}", sides)  # of bigints
    return quotient if result == _INT64 else ir.Cast(quotient, result)


def _check_overflow(exact: InSession) -> None:
    there = OnFailure.ERROR if exact.ansi else OnFailure.WRAP
    if exact.semantics.integer_overflow is not there:
        raise UnsupportedOperation(
            "arithmetic of integers that may overflow, where spark "
            f"{'fails' if exact.ansi else 'wraps around'}; cast one side to a wider type"
        )


def _signed(exact: InSession, node: ir.Call) -> ir.Operand:
    type_ = type_of(node)
    if isinstance(type_, Int):
        _check_overflow(exact)
    return Exact.call(exact, node)


def _to_whole(exact: InSession, node: ir.Call) -> ir.Operand:
    (argument,) = node.arguments
    operand = exact.operand(argument)
    match type_of(argument):
        case Int():
            return operand
        case Decimal():
            return ir.Cast(ir.Call(node.function, (operand,)), type_of(node))
        case Float() as type_ if exact.semantics.floors_are_longs and exact.ansi:
            return ir.Cast(ir.Call(node.function, (operand,)), type_)
    raise UnsupportedOperation(f"{node.function} of a float becomes a bigint in spark")


def _round(exact: InSession, node: ir.Call) -> ir.Operand:
    argument, *rest = node.arguments
    digits = value_of(rest[0]) if rest else 0
    operand, semantics = exact.operand(argument), exact.semantics
    rounded = ir.Call("round", (operand, ir.Literal(digits, _INT64)))
    match type_of(argument):
        case Float() if digits == 0:
            return (
                Templated("bround({0}, 0)", (operand,))
                if semantics.rounds_half_to_even
                else rounded
            )
        case Float(bits=bits) if isinstance(digits, int) and digits > 0:
            alike = semantics.digit_rounding in rules.DIGITS_BY_TEXT and bits == 64
            if not alike and semantics.digit_rounding is not DigitRounding.WIDE_DECIMAL:
                raise UnsupportedOperation("Spark rounds to digits in another way")
            return rounded
        case Int() if isinstance(digits, int) and digits >= 0:
            return operand
        case Decimal() if isinstance(digits, int) and digits >= 0:
            return ir.Cast(rounded, type_of(node))
    raise UnsupportedOperation("rounding before the point has no counterpart in spark")


def _shift(exact: InSession, node: ir.Call) -> ir.Operand:
    places, type_ = value_of(node.arguments[1]), type_of(node)
    wide = isinstance(type_, Int) and type_.signed and type_.bits >= 32
    # other operands of 64 bits may be constants that Spark takes for an INT
    bits = 64 if isinstance(node.arguments[0], ir.BoundColumn) and type_ == _INT64 else 32
    if not wide or not isinstance(places, int) or not 0 <= places < bits:
        raise UnsupportedOperation(
            f"a shift of {type_name(type_)}, or by {places!r}: spark shifts int and bigint, by 0 "
            f"to {bits - 1} constant places here; cast the operand"
        )
    return ir.Call(node.function, (exact.operand(node.arguments[0]), ir.Literal(places, _INT64)))


# Text, choices, lists


def _length(exact: InSession, node: ir.Call) -> ir.Operand:
    (argument,) = node.arguments
    operand = exact.operand(argument)
    if not isinstance(type_of(argument), Map):  # size(NULL) is -1 where ANSI mode is off
        return Exact.call(exact, node) if exact.ansi else Templated("array_size({0})", (operand,))
    return Templated("CASE WHEN {0} IS NOT NULL THEN size({0}) END", (operand,))


def _concat(exact: InSession, node: ir.Call) -> ir.Operand:
    empty = ir.Literal("", String())
    parts = [ir.Call("coalesce", (exact.operand(each), empty)) for each in node.arguments]
    return ir.Call("concat_strict", tuple(parts))


def _choice(exact: InSession, node: ir.Call) -> ir.Operand:
    """Rewrite a choice, unsigned numbers included: Spark holds them in wider types."""
    types = [type_of(argument) for argument in node.arguments]
    if node.function != "coalesce":
        exact.check_order(types[0])
    if any(type_ != type_of(node) for type_ in types):
        raise UnsupportedOperation(f"{node.function} of several types")
    operands = tuple(exact.operand(argument) for argument in node.arguments)
    return operands[0] if len(operands) == 1 else ir.Call(node.function, operands)


def _map_value(exact: InSession, node: ir.Call) -> ir.Operand:
    key = node.arguments[1]
    if not isinstance(key, ir.Literal) or key.value is None:
        raise UnsupportedOperation("Spark reads a map's value at a constant key only")
    named = ir.Literal(key.value) if isinstance(key.type, String) else exact.operand(key)
    return Templated("{0}[{1}]", (exact.operand(node.arguments[0]), named))


# Dates and times


def _extract(exact: InSession, node: ir.Call) -> ir.Operand:
    part, argument = str(value_of(node.arguments[0])).strip().lower(), node.arguments[1]
    part, type_ = part.removesuffix("s"), type_of(argument)
    if not isinstance(type_, Date | Timestamp):
        raise UnsupportedOperation(f"the {part} of a {type_name(type_)}")
    if type_ == _INSTANT:
        exact.check_zone()
    return ir.Call("extract", (ir.Literal(part, String()), exact.operand(argument)))


def _date_trunc(exact: InSession, node: ir.Call) -> ir.Operand:
    if exact.zone is None and type_of(node) == _LOCAL:
        return Exact.call(exact, node)
    exact.check_zone()
    return _truncated(exact, node)


def _truncated(exact: InSession, node: ir.Call) -> ir.Operand:
    unit = str(value_of(node.arguments[0])).strip().lower().removesuffix("s")
    if unit not in rules.UNITS.values():
        raise UnsupportedOperation(f"date_trunc to {unit!r} has no counterpart in Spark")
    operand = exact.operand(node.arguments[1])
    return ir.Call("date_trunc", (ir.Literal(unit, String()), operand))


def _formatted(exact: InSession, node: ir.Call) -> ir.Operand:
    """Rewrite `format_time`; Spark formats an instant, and moves local times that it skips."""
    time, form = node.arguments
    if isinstance(time, ir.Call) and time.function == "local_time":
        name, instant = time.arguments
        if exact.is_in(str(value_of(name))):
            try:
                pattern = to_dialect(str(value_of(form)), "spark")
            except ValueError as error:
                raise UnsupportedOperation(str(error)) from error
            return Templated("date_format({0}, {1})", (exact.operand(instant), ir.Literal(pattern)))
    exact.check_zone()
    return Exact.call(exact, node)


def _moved(exact: InSession, node: ir.Call) -> ir.Operand:
    if any(type_of(each) == _INSTANT for each in (node, node.arguments[0])):
        exact.check_zone()
    return _steps(exact, node)


def _steps(exact: InSession, node: ir.Call) -> ir.Operand:
    """Add a constant interval in the session's time zone."""
    operand = exact.operand(node.arguments[0])
    steps = [value_of(argument) for argument in node.arguments[1:]]
    months, days, micros = (step if isinstance(step, int) else 2**63 for step in steps)
    seconds = days * 86_400 + micros // 1_000_000
    if max(abs(months), abs(days)) > _INT32_MAX or abs(seconds) >= 10**12:
        raise UnsupportedOperation("only a constant interval of moderate size is added in Spark")
    if isinstance(type_of(node.arguments[0]), Date) and isinstance(type_of(node), Timestamp):
        operand = ir.Cast(operand, _LOCAL)
    return ir.Call(
        "shift", (operand, *(ir.Literal(step, _INT64) for step in (months, days, micros)))
    )


def _epoch(exact: InSession, node: ir.Call) -> ir.Operand:
    if type_of(node.arguments[0]) == _INSTANT:
        return ir.Call("epoch_us", (exact.operand(node.arguments[0]),))
    if exact.zone is not None:
        exact.check_zone()
    return Exact.call(exact, node)


def _from_seconds(exact: InSession, node: ir.Call) -> ir.Operand:
    instant = ir.Call("timestamp_seconds", (exact.operand(node.arguments[0]),))
    if type_of(node) == _INSTANT:
        return instant
    exact.check_zone()
    return ir.Cast(instant, _LOCAL)


def _made_date(exact: InSession, node: ir.Call) -> ir.Operand:
    if not exact.ansi:
        raise UnsupportedOperation("a date that does not exist is NULL where ANSI mode is off")
    narrow = [ir.Cast(exact.operand(argument), Int(32)) for argument in node.arguments]
    return ir.Call("make_date", tuple(narrow))


# Zones


def _text_instant(exact: InSession, node: ir.Call) -> ir.Operand:
    exact.check_zone(str(value_of(node.arguments[0])))
    text = exact.operand(node.arguments[1])
    return written_texts.instant_of_text(node.function, text, ansi=exact.ansi)


def _by_format(exact: InSession, node: ir.Call) -> ir.Operand:
    *names, text, form = node.arguments
    for name in names:
        exact.check_zone(str(value_of(name)))
    pattern, text = ir.Literal(value_of(form)), exact.operand(text)
    return written_texts.time_of_format(node.function, text, pattern, ansi=exact.ansi)


def _local_time(exact: InSession, node: ir.Call) -> ir.Operand:
    if is_proved(node, "spark"):
        return Exact.call(exact, node)
    name, operand = str(value_of(node.arguments[0])), exact.operand(node.arguments[1])
    if exact.is_in(name):
        return ir.Cast(operand, _LOCAL)
    exact.check_zone()
    local = Templated("from_utc_timestamp({0}, {1})", (operand, ir.Literal(_named(name))))
    return ir.Cast(local, _LOCAL)


def _named(name: str) -> str:
    """Return the name of a zone in Spark; raise if its database has other changes of it."""
    zone = name_in(name)
    if zone is None:
        raise UnsupportedOperation(
            f"Spark changes clocks of {shown_zone(name)} at other times; use UTC"
        )
    return zone


def _instant(exact: InSession, node: ir.Call) -> ir.Operand:
    if is_proved(node, "spark"):
        return Exact.call(exact, node)
    name, operand = str(value_of(node.arguments[0])), node.arguments[1]
    if isinstance(operand, ir.Cast) and type_of(operand.operand) == Date() and exact.is_in(name):
        if node != _cast_in(name, operand.operand, Date()):
            raise UnsupportedOperation(
                f"a date becomes another instant of {shown_zone(name)} in Spark"
            )
        return ir.Cast(exact.operand(operand.operand), _INSTANT)
    if node != _cast_in(name, operand, _LOCAL):
        raise UnsupportedOperation(
            f"a local time of {shown_zone(name)} becomes another instant in Spark"
        )
    instant = ir.Cast(exact.operand(operand), _INSTANT)
    if exact.is_in(name):
        return instant
    exact.check_zone()
    return Templated("to_utc_timestamp({0}, {1})", (instant, ir.Literal(_named(name))))


def _zoned_trunc(exact: InSession, node: ir.Call) -> ir.Operand:
    unit, name, operand = node.arguments[0], str(value_of(node.arguments[1])), node.arguments[2]
    by_its_rules = node == zoned.zoned_trunc(unit, name, operand, _rules(name))
    if not by_its_rules and not truncates_alike(node):
        raise UnsupportedOperation(f"date_trunc in {name} takes other instants in Spark")
    exact.check_zone(name)
    return _truncated(exact, ir.Call("date_trunc", (unit, operand)))


def _zoned_shift(exact: InSession, node: ir.Call) -> ir.Operand:
    name, parts = str(value_of(node.arguments[0])), node.arguments[1:5]
    types = [type_of(part) for part in parts]
    if node != zoned.zoned_call("shift_timestamp", parts, types, _rules(name)):
        raise UnsupportedOperation(f"an interval in {name} leads to another instant in Spark")
    exact.check_zone(name)
    return _steps(exact, ir.Call("shift_timestamp", parts))


def _rules(name: str) -> Semantics:
    return Semantics.of_spark(ansi=True, time_zone=name)


def _cast_in(name: str, operand: ir.Operand, source: LogicalType) -> ir.Operand | None:
    return zoned.zoned_cast(operand, source, _INSTANT, _rules(name), try_=False)


CALLS: Mapping[str, _Handler] = {
    **dict.fromkeys(_TRIED, _arithmetic),
    "negate": _signed,
    "abs": _signed,
    "floor": _to_whole,
    "ceil": _to_whole,
    "round": _round,
    "shift_left": _shift,
    "shift_right": _shift,
    "list_length": _length,
    "concat": _concat,
    **dict.fromkeys(("coalesce", "greatest", "least", "nullif"), _choice),
    "map_value": _map_value,
    "extract": _extract,
    "date_trunc": _date_trunc,
    "format_time": _formatted,
    **dict.fromkeys(("shift", "shift_timestamp", "add_interval"), _moved),
    "epoch_us": _epoch,
    "timestamp_seconds": _from_seconds,
    "make_date": _made_date,
    **dict.fromkeys(("text_instant", "try_text_instant"), _text_instant),
    **dict.fromkeys(BY_JAVA_FORMAT, _by_format),
    "local_time": _local_time,
    "instant": _instant,
    "zoned_trunc": _zoned_trunc,
    "zoned_shift": _zoned_shift,
}
