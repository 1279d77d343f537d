"""Rewrite a bound condition so that Spark's text or column has the same meaning.

The rules of the condition may differ from those of Spark's session in failures, overflow and
rounding. The result then calls a function that has them (`try_add`, `bround`, TRY_CAST), or the
condition is refused.

Soundness: an operation that depends on the session's time zone is written only if that zone is
known and is the one that the condition names.
"""

from __future__ import annotations

import decimal
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.constant_values import value_of
from rowsieve.bridges.functions.casts import CASTS, kinds_of
from rowsieve.bridges.sql import spark_rules, spark_written_texts
from rowsieve.bridges.sql.exact import UNKNOWN, Exact
from rowsieve.bridges.sql.spark_type_names import held_type
from rowsieve.bridges.sql.templates import Templated
from rowsieve.bridges.sql.time_formats import to_dialect
from rowsieve.bridges.sql.zones import is_proved
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate import ir, zoned
from rowsieve.predicate.functions.casts import cast_rule
from rowsieve.predicate.functions.java_times import BY_JAVA_FORMAT
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import DigitRounding, OnFailure, Semantics
from rowsieve.types.days import DAY_US, FIRST_DAY, LAST_DAY
from rowsieve.types.logical import (
    Date,
    Decimal,
    Float,
    Int,
    Json,
    LogicalType,
    Map,
    String,
    Time,
    Timestamp,
    Uuid,
    type_name,
)
from rowsieve.types.time_zones import zone

_INT64, _LOCAL, _INSTANT = Int(64), Timestamp(utc=False), Timestamp(utc=True)
_LONGEST = Decimal(20, 0)  # holds every uint64
_MOST = 2**31 - 1
_BY_TEXT = (DigitRounding.DECIMAL, DigitRounding.WIDE_DECIMAL)  # alike for float64
_TRIED: Mapping[str, str] = {
    name: f"try_{word}({{0}}, {{1}})"
    for name, word in (
        *((each, each) for each in ("add", "subtract", "multiply", "divide")),
        ("modulo", "mod"),
    )
}
# Our patterns of any case take a long s for an s, and a dotted capital I for no i.
_FOLDED = (ir.Literal("\u017f\u0130", String()), ir.Literal("s\u00e9", String()))
_BY_ZERO = "division by zero has another outcome in Spark"


def eased(meant: Semantics, theirs: Semantics) -> Semantics:
    """Return the rules of a condition; Spark's own where `SparkExact` rewrites the difference."""
    own = ["integer_division_by_zero", "float_division_by_zero", "rounds_half_to_even"]
    own.append("failed_cast")
    if meant.integer_overflow is OnFailure.NULL:
        own.append("integer_overflow")
    if meant.digit_rounding in _BY_TEXT:
        own.append("digit_rounding")
    return replace(meant, **{field: getattr(theirs, field) for field in own})


@dataclass(frozen=True, slots=True)
class SparkExact(Exact):
    """Rewrites conditions for one session: its ANSI mode, and its time zone, None if unknown.

    `meant`: the rules of the condition.
    """

    meant: Semantics
    ansi: bool
    zone: str | None

    # Conditions

    def comparison(self, node: ir.Comparison) -> ir.Predicate:
        """Rewrite a comparison; Spark compares decimals of at most 38 digits."""
        left, right = type_of(node.left), type_of(node.right)
        if isinstance(left, Decimal) and isinstance(right, Decimal):
            whole = max(left.precision - left.scale, right.precision - right.scale)
            if whole + max(left.scale, right.scale) > 38:
                raise UnsupportedOperation("spark compares these decimals with fewer digits")
        return Exact.comparison(self, node)

    def in_list(self, node: ir.InList) -> ir.Predicate:
        """Rewrite IN with members of Spark's types; NULL among times becomes a condition."""
        values = node.values
        if isinstance(values.type, Time) and values.array.null_count:
            known = ir.ValueSet(values.array.drop_null(), values.type)
            listed = replace(node, values=known)
            return ir.Or((self.in_list(listed), UNKNOWN)) if len(known) else UNKNOWN
        if isinstance(values.type, Uuid):
            texts = [None if each is None else _uuid(each) for each in values.array.to_pylist()]
            values = ir.ValueSet(pa.array(texts, pa.string()), String())
        elif values.type == Int(64, signed=False) and _is_huge(values.array):
            values = ir.ValueSet(values.array.cast(pa.decimal128(20, 0)), _LONGEST)
        return Exact.in_list(self, replace(node, values=values))

    def like(self, node: ir.Like) -> ir.Predicate:
        """Rewrite LIKE; ILIKE becomes LIKE of lower case."""
        if not node.ignore_case:
            return Exact.like(self, node)
        if not node.pattern.isascii() or (node.escape or "").isalpha():
            raise UnsupportedOperation("a pattern for any case is of ASCII in spark")
        plain = ir.Call("translate", (self.operand(node.operand), *_FOLDED))
        return ir.Like(ir.Call("lower", (plain,)), node.pattern.lower(), node.escape)

    # Values

    def literal(self, node: ir.Literal) -> ir.Operand:
        """Rewrite a constant to Spark's type for it."""
        type_, value = node.type, node.value
        assert type_ is not None
        match type_, value:
            case Time(), None:
                raise UnsupportedOperation("spark casts NULL to time only by a setting of its own")
            case _, None:
                return ir.Literal(None, held_type(type_))
            case Uuid(), bytes():
                return ir.Literal(_uuid(value), String())
            case Json(), str():
                return ir.Literal(value, String())
            case Int(), int() if value >= 2**63:
                return ir.Literal(decimal.Decimal(value), _LONGEST)
            case Date(), int() if not FIRST_DAY <= value <= LAST_DAY:
                return Templated("date_from_unix_date({0})", (ir.Literal(value, _INT64),))
            case Timestamp(utc=True), int() if not FIRST_DAY <= value // DAY_US <= LAST_DAY:
                return Templated("timestamp_micros({0})", (ir.Literal(value, _INT64),))
        return Exact.literal(self, node)

    def cast(self, node: ir.Cast) -> ir.Operand:
        """Rewrite a cast to one with the same values and failures."""
        source, target = type_of(node.operand), node.type
        operand = self.operand(node.operand)
        if source == target or (isinstance(source, Uuid | Json) and target == String()):
            return operand
        if held_type(target) != target:
            raise self.lacks(target)
        if isinstance(source, String) and isinstance(target, spark_written_texts.READ):
            if target == _INSTANT:
                self.check_zone()
            tried = spark_written_texts.is_tried(node, self.meant, ansi=self.ansi)
            return ir.Cast(operand, target, tried)
        pair = kinds_of(held_type(source), target)
        if pair not in CASTS["spark"]:
            shown = f"a cast of {type_name(source)} to {type_name(target)}"
            raise UnsupportedOperation(f"{shown} may give other values in spark")
        spark_rules.check_cast(held_type(source), target)
        if _INSTANT in (source, target):
            self.check_zone()
        rule = cast_rule(source, target)
        fails = rule is None or rule.can_fail
        if node.try_:
            return ir.Cast(operand, target, try_=True)
        wraps = self.meant.casts_wrap and pair[0] in ("Int", "Float", "Decimal")
        if fails and not (wraps and isinstance(target, Int)):
            if self.meant.failed_cast is OnFailure.NULL:
                return ir.Cast(operand, target, try_=True)
            if not self.ansi and pair not in spark_rules.CAST_ANY_MODE:
                raise UnsupportedOperation("a failing cast gives no error where ANSI mode is off")
        if pair == ("Decimal", "String") and not self.ansi:
            raise UnsupportedOperation("spark writes decimals differently if ANSI mode is off")
        return ir.Cast(operand, target)

    def call(self, node: ir.Call) -> ir.Operand:
        """Rewrite a function call."""
        handler = _CALLS.get(node.function)
        return Exact.call(self, node) if handler is None else handler(self, node)

    # The session

    def is_in(self, name: str) -> bool:
        """Whether the session is known to have this time zone."""
        if self.zone is None:
            return False
        try:
            return zone(self.zone).name == zone(name).name
        except InvalidPredicate:  # a name that engines read differently
            return False

    def check_zone(self, name: str = "UTC") -> None:
        """Raise unless the session has this time zone, on which the operation depends."""
        if not self.is_in(name):
            shown = "not known" if self.zone is None else self.zone
            raise UnsupportedOperation(
                f"its value in {name} differs from the one in the session's time zone ({shown})"
            )


_Handler = Callable[[SparkExact, ir.Call], ir.Operand]


# Numbers


def _arithmetic(exact: SparkExact, node: ir.Call) -> ir.Operand:
    name, result = node.function, type_of(node)
    types, meant = [type_of(argument) for argument in node.arguments], exact.meant
    sides = tuple(exact.arguments(node))
    match result:
        case Int(signed=True) if all(type_ == result for type_ in types):
            return _whole_arithmetic(exact, node, sides)
        case Float() if all(type_ == result for type_ in types):
            by_zero = meant.float_division_by_zero
        case Decimal():
            a, b = types
            assert isinstance(a, Decimal)
            assert isinstance(b, Decimal)
            if spark_rules.decimal_result(name, a, b) != result:
                raise UnsupportedOperation(f"{name} of decimals keeps other digits in spark")
            by_zero = meant.integer_division_by_zero
        case _:
            raise UnsupportedOperation(f"{name} gives {type_name(result)}, and may not in Spark")
    if name not in ("divide", "modulo"):
        return ir.Call(name, sides)
    if by_zero is OnFailure.NULL:
        made = Templated(_TRIED[name], sides)
    elif by_zero is OnFailure.ERROR and exact.ansi:
        made = Templated("{0} / {1}" if name == "divide" else "{0} % {1}", sides)
    else:
        raise UnsupportedOperation(_BY_ZERO)
    return ir.Cast(made, result) if result == Float(32) else made


def _whole_arithmetic(
    exact: SparkExact, node: ir.Call, sides: tuple[ir.Operand, ...]
) -> ir.Operand:
    """Write arithmetic of signed whole numbers of one type."""
    name, result, meant = node.function, type_of(node), exact.meant
    if name not in ("divide", "modulo"):
        if meant.integer_overflow is OnFailure.NULL:
            return Templated(_TRIED[name], sides)
        _check_overflow(exact)
        return ir.Call(name, sides)
    divisor = node.arguments[1]
    known = isinstance(divisor, ir.Literal) and divisor.value not in (None, 0, -1)
    rules = {meant.integer_division_by_zero}
    if name == "divide":
        rules.add(meant.integer_overflow)
    if not known and not (rules == {OnFailure.ERROR} and exact.ansi):
        raise UnsupportedOperation(_BY_ZERO)
    if name == "modulo":
        return ir.Call(name, sides)
    quotient = Templated("{0} div {1}", sides)  # of bigints
    return quotient if result == _INT64 else ir.Cast(quotient, result)


def _check_overflow(exact: SparkExact) -> None:
    there = OnFailure.ERROR if exact.ansi else OnFailure.WRAP
    if exact.meant.integer_overflow is not there:
        raise UnsupportedOperation("integer overflow has another outcome in Spark")


def _signed(exact: SparkExact, node: ir.Call) -> ir.Operand:
    type_ = type_of(node)
    if isinstance(type_, Int):
        _check_overflow(exact)
    return Exact.call(exact, node)


def _to_whole(exact: SparkExact, node: ir.Call) -> ir.Operand:
    (argument,) = node.arguments
    operand = exact.operand(argument)
    match type_of(argument):
        case Int():
            return operand
        case Decimal():
            return ir.Cast(ir.Call(node.function, (operand,)), type_of(node))
        case Float() as type_ if exact.meant.floors_are_longs and exact.ansi:
            return ir.Cast(ir.Call(node.function, (operand,)), type_)
    raise UnsupportedOperation(f"{node.function} of a float becomes a bigint in spark")


def _round(exact: SparkExact, node: ir.Call) -> ir.Operand:
    argument, *rest = node.arguments
    digits = value_of(rest[0]) if rest else 0
    operand, meant = exact.operand(argument), exact.meant
    made = ir.Call("round", (operand, ir.Literal(digits, _INT64)))
    match type_of(argument):
        case Float() if digits == 0:
            return Templated("bround({0}, 0)", (operand,)) if meant.rounds_half_to_even else made
        case Float(bits=bits) if isinstance(digits, int) and digits > 0:
            alike = meant.digit_rounding in _BY_TEXT and bits == 64
            if not alike and meant.digit_rounding is not DigitRounding.WIDE_DECIMAL:
                raise UnsupportedOperation("Spark rounds to digits in another way")
            return made
        case Int() if isinstance(digits, int) and digits >= 0:
            return operand
        case Decimal() if isinstance(digits, int) and digits >= 0:
            return ir.Cast(made, type_of(node))
    raise UnsupportedOperation("rounding before the point has no counterpart in spark")


def _shift(exact: SparkExact, node: ir.Call) -> ir.Operand:
    places, type_ = value_of(node.arguments[1]), type_of(node)
    wide = isinstance(type_, Int) and type_.signed and type_.bits >= 32
    # other operands of 64 bits may be constants that Spark takes for an INT
    bits = 64 if isinstance(node.arguments[0], ir.BoundColumn) and type_ == _INT64 else 32
    if not wide or not isinstance(places, int) or not 0 <= places < bits:
        raise UnsupportedOperation("a shift of few bits, or by many places")
    return ir.Call(node.function, (exact.operand(node.arguments[0]), ir.Literal(places, _INT64)))


# Text, choices, lists


def _length(exact: SparkExact, node: ir.Call) -> ir.Operand:
    (argument,) = node.arguments
    operand = exact.operand(argument)
    if not isinstance(type_of(argument), Map):  # size(NULL) is -1 where ANSI mode is off
        return Exact.call(exact, node) if exact.ansi else Templated("array_size({0})", (operand,))
    return Templated("CASE WHEN {0} IS NOT NULL THEN size({0}) END", (operand,))


def _concat(exact: SparkExact, node: ir.Call) -> ir.Operand:
    empty = ir.Literal("", String())
    parts = [ir.Call("coalesce", (exact.operand(each), empty)) for each in node.arguments]
    return ir.Call("concat_strict", tuple(parts))


def _choice(exact: SparkExact, node: ir.Call) -> ir.Operand:
    """Rewrite a choice, unsigned numbers included: Spark holds them in wider types."""
    types = [type_of(argument) for argument in node.arguments]
    if node.function != "coalesce":
        exact.check_order(types[0])
    if any(type_ != type_of(node) for type_ in types):
        raise UnsupportedOperation(f"{node.function} of several types")
    operands = tuple(exact.operand(argument) for argument in node.arguments)
    return operands[0] if len(operands) == 1 else ir.Call(node.function, operands)


def _map_value(exact: SparkExact, node: ir.Call) -> ir.Operand:
    key = node.arguments[1]
    if not isinstance(key, ir.Literal) or key.value is None:
        raise UnsupportedOperation("Spark reads a map's value at a constant key only")
    named = ir.Literal(key.value) if isinstance(key.type, String) else exact.operand(key)
    return Templated("{0}[{1}]", (exact.operand(node.arguments[0]), named))


# Dates and times


def _extract(exact: SparkExact, node: ir.Call) -> ir.Operand:
    part, argument = str(value_of(node.arguments[0])).strip().lower(), node.arguments[1]
    part, type_ = part.removesuffix("s"), type_of(argument)
    if not isinstance(type_, Date | Timestamp):
        raise UnsupportedOperation(f"the {part} of a {type_name(type_)}")
    if type_ == _INSTANT:
        exact.check_zone()
    return ir.Call("extract", (ir.Literal(part, String()), exact.operand(argument)))


def _date_trunc(exact: SparkExact, node: ir.Call) -> ir.Operand:
    if exact.zone is None and type_of(node) == _LOCAL:
        return Exact.call(exact, node)
    exact.check_zone()
    return _truncated(exact, node)


def _truncated(exact: SparkExact, node: ir.Call) -> ir.Operand:
    unit = str(value_of(node.arguments[0])).strip().lower().removesuffix("s")
    if unit not in spark_rules.UNITS.values():
        raise UnsupportedOperation(f"date_trunc to {unit!r} has no counterpart in Spark")
    operand = exact.operand(node.arguments[1])
    return ir.Call("date_trunc", (ir.Literal(unit, String()), operand))


def _formatted(exact: SparkExact, node: ir.Call) -> ir.Operand:
    """Rewrite `format_time`; Spark formats an instant, and moves local times that it skips."""
    time, form = node.arguments
    if isinstance(time, ir.Call) and time.function == "local_time":
        name, instant = time.arguments
        if exact.is_in(str(value_of(name))):
            try:
                made = to_dialect(str(value_of(form)), "spark")
            except ValueError as error:
                raise UnsupportedOperation(str(error)) from error
            return Templated("date_format({0}, {1})", (exact.operand(instant), ir.Literal(made)))
    exact.check_zone()
    return Exact.call(exact, node)


def _moved(exact: SparkExact, node: ir.Call) -> ir.Operand:
    if any(type_of(each) == _INSTANT for each in (node, node.arguments[0])):
        exact.check_zone()
    return _steps(exact, node)


def _steps(exact: SparkExact, node: ir.Call) -> ir.Operand:
    """Add a constant interval in the session's time zone."""
    operand = exact.operand(node.arguments[0])
    steps = [value_of(argument) for argument in node.arguments[1:]]
    months, days, micros = (step if isinstance(step, int) else 2**63 for step in steps)
    seconds = days * 86_400 + micros // 1_000_000
    if max(abs(months), abs(days)) > _MOST or abs(seconds) >= 10**12:
        raise UnsupportedOperation("only a constant interval of moderate size is added in Spark")
    if isinstance(type_of(node.arguments[0]), Date) and isinstance(type_of(node), Timestamp):
        operand = ir.Cast(operand, _LOCAL)
    return ir.Call(
        "shift", (operand, *(ir.Literal(step, _INT64) for step in (months, days, micros)))
    )


def _epoch(exact: SparkExact, node: ir.Call) -> ir.Operand:
    if type_of(node.arguments[0]) == _INSTANT:
        return ir.Call("epoch_us", (exact.operand(node.arguments[0]),))
    if exact.zone is not None:
        exact.check_zone()
    return Exact.call(exact, node)


def _from_seconds(exact: SparkExact, node: ir.Call) -> ir.Operand:
    made = ir.Call("timestamp_seconds", (exact.operand(node.arguments[0]),))
    if type_of(node) == _INSTANT:
        return made
    exact.check_zone()
    return ir.Cast(made, _LOCAL)


def _made_date(exact: SparkExact, node: ir.Call) -> ir.Operand:
    if not exact.ansi:
        raise UnsupportedOperation("a date that does not exist is NULL where ANSI mode is off")
    narrow = [ir.Cast(exact.operand(argument), Int(32)) for argument in node.arguments]
    return ir.Call("make_date", tuple(narrow))


# Zones


def _text_instant(exact: SparkExact, node: ir.Call) -> ir.Operand:
    exact.check_zone(str(value_of(node.arguments[0])))
    text = exact.operand(node.arguments[1])
    return spark_written_texts.instant_of_text(node.function, text, ansi=exact.ansi)


def _by_format(exact: SparkExact, node: ir.Call) -> ir.Operand:
    *names, text, form = node.arguments
    for name in names:
        exact.check_zone(str(value_of(name)))
    made, text = ir.Literal(value_of(form)), exact.operand(text)
    return spark_written_texts.time_of_format(node.function, text, made, ansi=exact.ansi)


def _local_time(exact: SparkExact, node: ir.Call) -> ir.Operand:
    if is_proved(node, "spark"):
        return Exact.call(exact, node)
    name, operand = str(value_of(node.arguments[0])), exact.operand(node.arguments[1])
    if exact.is_in(name):
        return ir.Cast(operand, _LOCAL)
    exact.check_zone()
    return ir.Cast(Templated("from_utc_timestamp({0}, {1})", (operand, ir.Literal(name))), _LOCAL)


def _instant(exact: SparkExact, node: ir.Call) -> ir.Operand:
    if is_proved(node, "spark"):
        return Exact.call(exact, node)
    name, operand = str(value_of(node.arguments[0])), node.arguments[1]
    if isinstance(operand, ir.Cast) and type_of(operand.operand) == Date() and exact.is_in(name):
        if node != _cast_in(name, operand.operand, Date()):
            raise UnsupportedOperation(f"a date becomes another instant of {name} in Spark")
        return ir.Cast(exact.operand(operand.operand), _INSTANT)
    if node != _cast_in(name, operand, _LOCAL):
        raise UnsupportedOperation(f"a local time of {name} becomes another instant in Spark")
    made = ir.Cast(exact.operand(operand), _INSTANT)
    if exact.is_in(name):
        return made
    exact.check_zone()
    return Templated("to_utc_timestamp({0}, {1})", (made, ir.Literal(name)))


def _zoned_trunc(exact: SparkExact, node: ir.Call) -> ir.Operand:
    unit, name, operand = node.arguments[0], str(value_of(node.arguments[1])), node.arguments[2]
    if node != zoned.zoned_trunc(unit, name, operand, _rules(name)):
        raise UnsupportedOperation(f"date_trunc in {name} takes other instants in Spark")
    exact.check_zone(name)
    return _truncated(exact, ir.Call("date_trunc", (unit, operand)))


def _zoned_shift(exact: SparkExact, node: ir.Call) -> ir.Operand:
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


def _uuid(value: bytes) -> str:
    return str(uuid.UUID(bytes=value))


def _is_huge(array: pa.Array) -> bool:
    return bool(len(array) and (pc.max(array).as_py() or 0) >= 2**63)


_CALLS: Mapping[str, _Handler] = {
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
