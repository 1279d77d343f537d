"""Conditions on the arguments of a call, named and shared by the rows of the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rowsieve.bridges.constant_values import value_of
from rowsieve.predicate.ir import Call, Literal
from rowsieve.types.logical import (
    Binary,
    Date,
    Decimal,
    Float,
    Int,
    List,
    LogicalType,
    Map,
    String,
    Time,
    Timestamp,
)

_LARGEST = 2**31
_MAX_DIGITS = 38
_SIGNED_DIGITS = 34  # of a decimal whose sign Spark changes
_NOT_A_NUMBER = -(10**30)
UNITS = frozenset({"second", "minute", "hour", "day", "week", "month", "quarter", "year"})
# Fields of times that all engines number alike.
COMMON_PARTS = frozenset({"year", "quarter", "month", "day", "hour", "minute", "doy", "week"})
MORE_PARTS = frozenset({"dow", "isodow", "isoyear", "whole_second"})
_OF_THE_CLOCK = frozenset({"hour", "minute", "whole_second"})


@dataclass(frozen=True, slots=True)
class TypedCall:
    """One call, the types of its arguments and of its result; no types before it is bound."""

    call: Call
    types: Sequence[LogicalType] = ()
    result: LogicalType | None = None

    @property
    def constants(self) -> list[object]:
        """The values of the arguments after the first; None for one that is not constant."""
        return [value_of(item) for item in self.call.arguments[1:]]

    @property
    def numbers(self) -> list[int]:
        """The same as integers; far below 0 for a value that is not an integer."""
        return [value if type(value) is int else _NOT_A_NUMBER for value in self.constants]

    @property
    def field(self) -> str:
        """The unit or part that the first argument names; empty if it is not constant."""
        first = self.call.arguments[0]
        return str(first.value).lower() if isinstance(first, Literal) else ""

    @property
    def is_of_one_type(self) -> bool:
        """Whether all arguments have the type of the result."""
        return all(type_ == self.result for type_ in self.types)


@dataclass(frozen=True, slots=True)
class Arguments:
    """A condition on the arguments of a call, and its text, which follows "only for"."""

    text: str
    holds: Callable[[TypedCall], bool]

    def __and__(self, other: Arguments) -> Arguments:
        return Arguments(
            f"{self.text}, {other.text}", lambda call: self.holds(call) and other.holds(call)
        )


def _all(kinds: type[LogicalType] | tuple[type[LogicalType], ...]) -> Callable[[TypedCall], bool]:
    return lambda call: all(isinstance(type_, kinds) for type_ in call.types)


def _first(*kinds: type[LogicalType]) -> Callable[[TypedCall], bool]:
    return lambda call: isinstance(call.types[0], kinds)


# Text

of_text = Arguments("text", _all(String))
text_or_bytes = Arguments("text and bytes", _all((String, Binary)))
with_constants = Arguments(
    "text, with constants", lambda call: _first(String)(call) and None not in call.constants
)
constant_text = Arguments(
    "text, with constant text",
    lambda call: of_text.holds(call) and all(isinstance(value, str) for value in call.constants),
)
constant_text_not_empty = Arguments(
    "text, with constant text that is not empty",
    lambda call: constant_text.holds(call) and all(call.constants),
)
replaced_not_empty = Arguments(
    "text, replacing a constant that is not empty",
    lambda call: (
        of_text.holds(call) and isinstance(call.constants[0], str) and bool(call.constants[0])
    ),
)
count_from_zero = Arguments(
    "a constant count of 0 or more", lambda call: all(0 <= n < _LARGEST for n in call.numbers)
)
text_and_counts = Arguments(
    "text, with a constant count of 0 or more",
    lambda call: _first(String)(call) and count_from_zero.holds(call),
)
text_and_ends = Arguments(
    "text, with a constant count",
    lambda call: _first(String)(call) and all(abs(n) < _LARGEST for n in call.numbers),
)
start_from_one = Arguments(
    "a constant start of 1 or more", lambda call: 1 <= call.numbers[0] < _LARGEST
)
start_and_count = Arguments(
    "a constant start of 1 or more, and a count of 0 or more",
    lambda call: start_from_one.holds(call) and count_from_zero.holds(call),
)
text_from_one = Arguments(
    "text, with a constant start of 1 or more and a constant count",
    lambda call: text_and_counts.holds(call) and start_from_one.holds(call),
)

# Numbers

one_type = Arguments("arguments of one type", lambda call: call.is_of_one_type)
not_floats = Arguments(
    "arguments of one type, not floats",
    lambda call: call.is_of_one_type and not isinstance(call.result, Float),
)
not_floats_or_text = Arguments(
    "arguments of one type, not floats or text",
    lambda call: call.is_of_one_type and not isinstance(call.result, Float | String),
)
one_float = Arguments("a float", lambda call: len(call.types) == 1 and _first(Float)(call))
floats = Arguments("floats", lambda call: all(type_ == Float(64) for type_ in call.types))
signed = Arguments(
    "numbers", lambda call: isinstance(call.result, Int | Float | Decimal) and call.is_of_one_type
)


def _is_unsigned(call: TypedCall) -> bool:
    return isinstance(call.result, Int) and not call.result.signed


not_unsigned = Arguments("signed", lambda call: not _is_unsigned(call))


def _short_decimal(call: TypedCall) -> bool:
    type_ = call.types[0]
    return not (isinstance(type_, Decimal) and type_.precision > _SIGNED_DIGITS)


signed_short = Arguments(
    "numbers, decimals up to 34 digits", lambda call: signed.holds(call) and _short_decimal(call)
)


def _negated(call: TypedCall) -> bool:
    """DataFusion has no negative of unsigned numbers, and rewrites `-(a & b)` to `-a | -b`."""
    of = call.call.arguments[0]
    bits = isinstance(of, Call) and of.function in ("bit_and", "bit_or")
    return signed.holds(call) and not bits and not _is_unsigned(call)


signed_not_bits = Arguments("signed numbers, not of bits", _negated)


def _sum(call: TypedCall) -> bool:
    if isinstance(call.result, Decimal):
        return _all((Int, Decimal))(call) and call.result.precision < _MAX_DIGITS
    return isinstance(call.result, Int | Float) and call.is_of_one_type


def _constant_divisor(call: TypedCall) -> bool:
    divisor = call.constants[0]
    whole = isinstance(call.result, Int) and type(divisor) is int and divisor not in (0, -1)
    return whole and call.is_of_one_type


_SUM = "numbers of one type; decimals of fewer than 38 digits in the result"
sums = Arguments(_SUM, _sum)
sums_not_floats = Arguments(
    f"{_SUM}; not of floats, which overflow in another way there",
    lambda call: not isinstance(call.result, Float) and _sum(call),
)
whole_numbers = Arguments("whole numbers", _all(Int))
quotients = Arguments(
    "whole numbers or floats of one type",
    lambda call: isinstance(call.result, Int | Float) and call.is_of_one_type,
)
constant_divisor = Arguments("whole numbers by a constant other than 0 and -1", _constant_divisor)
signed_bits = Arguments(
    "signed numbers of 32 or 64 bits",
    lambda call: all(type_ in (Int(32), Int(64)) for type_ in call.types),
)
signed_whole = Arguments(
    "signed numbers",
    lambda call: all(isinstance(type_, Int) and type_.signed for type_ in call.types),
)
constant_shift = Arguments(
    "64-bit numbers, by a constant",
    lambda call: call.types[0] == Int(64) and all(0 <= n < 64 for n in call.numbers),
)

# Dates and times


def is_local(type_: LogicalType) -> bool:
    """Whether it is a timestamp without a time zone."""
    return isinstance(type_, Timestamp) and not type_.utc


def _dated(call: TypedCall) -> bool:
    with_clock = call.field in _OF_THE_CLOCK
    return is_local(call.types[1]) or (isinstance(call.types[1], Date) and not with_clock)


_LOCAL = "dates and timestamps without a time zone"
days = Arguments(
    _LOCAL, lambda call: all(isinstance(type_, Date) or is_local(type_) for type_ in call.types)
)
local_times = Arguments(
    "timestamps without a time zone", lambda call: all(map(is_local, call.types))
)
_ANY = "dates, timestamps and instants"
known_unit_of_any = Arguments(
    "timestamps, instants and units from second to year",
    lambda call: call.field in UNITS and isinstance(call.types[1], Timestamp),
)


def _has_clock(call: TypedCall) -> bool:
    time = isinstance(call.types[1], Time) and call.field in _OF_THE_CLOCK
    return time or isinstance(call.types[1], Timestamp)


common_part_of_any = Arguments(
    f"{_ANY} and the fields that all engines number alike",
    lambda call: call.field in COMMON_PARTS and (_has_clock(call) or _dated(call)),
)
more_parts_of_any = Arguments(
    f"{_ANY} and days of weeks, ISO years and whole seconds",
    lambda call: call.field in MORE_PARTS and (_has_clock(call) or _dated(call)),
)
known_unit = Arguments(
    "timestamps without a time zone and units from second to year",
    lambda call: call.field in UNITS and is_local(call.types[1]),
)
common_part = Arguments(
    f"{_LOCAL} and the fields that all engines number alike",
    lambda call: call.field in COMMON_PARTS and _dated(call),
)
more_parts = Arguments(
    f"{_LOCAL} and days of weeks, ISO years and whole seconds",
    lambda call: call.field in MORE_PARTS and _dated(call),
)
whole_seconds = Arguments(
    "whole seconds of timestamps", lambda call: call.field == "whole_second" and _dated(call)
)
moved_local_time = Arguments(
    "timestamps without a time zone, by constants",
    lambda call: is_local(call.types[0]) and all(abs(n) < _LARGEST * 10**6 for n in call.numbers),
)

moved_time = Arguments(
    f"{_ANY} that keep their type, by constants",
    lambda call: (
        call.types[0] == call.result and all(abs(n) < _LARGEST * 10**6 for n in call.numbers)
    ),
)

formatted_time = Arguments(
    "dates and timestamps without a time zone, with a constant format",
    lambda call: isinstance(call.types[0], Date) or is_local(call.types[0]),
)
formatted_local_time = Arguments(
    "timestamps without a time zone, with a constant format", lambda call: is_local(call.types[0])
)

# Lists

of_list = Arguments("a list", _first(List))
text_or_list = Arguments("text and lists", _first(String, List))
of_map = Arguments("a map", _first(Map))
place_from_one = Arguments(
    "a constant index from 1",
    lambda call: _first(List)(call) and 1 <= call.numbers[0] < _LARGEST,
)
constant_slice = Arguments(
    "a constant start from 1 and a constant count",
    lambda call: all(0 <= n < _LARGEST for n in call.numbers) and call.numbers[0] >= 1,
)
