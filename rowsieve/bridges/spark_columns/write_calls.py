"""Our functions as Spark's, each under the conditions on which they mean the same.

A result is cast to our type of it where Spark's is another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rowsieve.bridges.spark_columns import table
from rowsieve.bridges.spark_columns.types import ddl_of
from rowsieve.bridges.spark_columns.write import Write, Writer
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.ir import Call, Literal, Operand, PhysicalValue
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import DigitRounding, OnFailure
from rowsieve.types.logical import (
    Date,
    Decimal,
    Float,
    Int,
    List,
    Map,
    Timestamp,
    type_name,
)

_OPERATORS: Mapping[str, tuple[str, str]] = {
    "add": ("__add__", "try_add"),
    "subtract": ("__sub__", "try_subtract"),
    "multiply": ("__mul__", "try_multiply"),
    "divide": ("__truediv__", "try_divide"),
    "modulo": ("__mod__", "try_mod"),
}
_WRAPS = "whole numbers that overflow do so in another way there"
_BY_ZERO = "division by zero gives something else there"
_MOST = 2**31 - 1
_BY_TEXT = (DigitRounding.DECIMAL, DigitRounding.WIDE_DECIMAL)  # alike for float64


# Numbers


def _arithmetic(writer: Writer, node: Call) -> Any:
    name, types = node.function, [type_of(argument) for argument in node.arguments]
    result = type_of(node)
    left, right = (writer.operand(argument) for argument in node.arguments)
    operator, trying = _OPERATORS[name]
    match result:
        case Int(signed=True) if all(type_ == result for type_ in types):
            return _whole(writer, node, left, right)
        case Float() if all(type_ == result for type_ in types):
            by_zero = writer.semantics.float_division_by_zero
        case Decimal():
            a, b = types
            assert isinstance(a, Decimal)
            assert isinstance(b, Decimal)
            if table.decimal_result(name, a, b) != result:
                raise UnsupportedOperation(f"{name} of decimals keeps other digits there")
            by_zero = writer.semantics.integer_division_by_zero
        case _:
            raise UnsupportedOperation(f"{name} gives {type_name(result)} here and may not there")
    if name not in ("divide", "modulo"):
        return getattr(left, operator)(right)
    if by_zero is OnFailure.NULL:
        made = getattr(writer.functions, trying)(left, right)
    elif by_zero is OnFailure.ERROR and writer.ansi:
        made = getattr(left, operator)(right)
    else:
        raise UnsupportedOperation(_BY_ZERO)
    return made if result != Float(32) else made.cast("float")


def _whole(writer: Writer, node: Call, left: Any, right: Any) -> Any:
    name, semantics = node.function, writer.semantics
    operator, trying = _OPERATORS[name]
    if name in ("divide", "modulo"):
        rules = (semantics.integer_overflow, semantics.integer_division_by_zero)
        if rules != (OnFailure.ERROR, OnFailure.ERROR) or not writer.ansi:
            raise UnsupportedOperation(_BY_ZERO)
        if name == "modulo":
            return left % right
        quotient = writer.functions.call_function("div", left, right)  # of bigints
        return quotient.cast(ddl_of(type_of(node)))
    if semantics.integer_overflow is OnFailure.NULL:
        return getattr(writer.functions, trying)(left, right)
    _check_overflow(writer)
    return getattr(left, operator)(right)


def _check_overflow(writer: Writer) -> None:
    there = OnFailure.ERROR if writer.ansi else OnFailure.WRAP
    if writer.semantics.integer_overflow is not there:
        raise UnsupportedOperation(_WRAPS)


def _one_number(writer: Writer, node: Call) -> Any:
    type_, operand = type_of(node), writer.operand(node.arguments[0])
    if isinstance(type_, Int):
        _check_overflow(writer)
        if not type_.signed and node.function == "negate":
            raise UnsupportedOperation("Spark has no unsigned numbers")
    table.check_sign(type_)
    return -operand if node.function == "negate" else writer.functions.abs(operand)


def _to_whole(writer: Writer, node: Call) -> Any:
    (argument,) = node.arguments
    operand = writer.operand(argument)
    match type_of(argument):
        case Int():
            return operand
        case Decimal():
            rounded = getattr(writer.functions, node.function)(operand)
            return rounded.cast(ddl_of(type_of(node)))
        case Float() as type_ if writer.semantics.floors_are_longs and writer.ansi:
            return getattr(writer.functions, node.function)(operand).cast(ddl_of(type_))
    raise UnsupportedOperation(f"{node.function} of a float becomes a bigint in Spark")


def _round(writer: Writer, node: Call) -> Any:
    argument, *rest = node.arguments
    digits = _constant(rest[0]) if rest else 0
    operand = writer.operand(argument)
    match type_of(argument):
        case Float() if digits == 0:
            even = writer.semantics.rounds_half_to_even
            return (writer.functions.bround if even else writer.functions.round)(operand, 0)
        case Float() if isinstance(digits, int) and digits > 0:
            if writer.semantics.digit_rounding not in _BY_TEXT:
                raise UnsupportedOperation("digits after the point are rounded another way there")
            return writer.functions.round(operand, digits)
        case Int() if isinstance(digits, int) and digits >= 0:
            return operand
        case Decimal() if isinstance(digits, int) and digits >= 0:
            rounded = writer.functions.round(operand, digits)
            return rounded.cast(ddl_of(type_of(node)))
    raise UnsupportedOperation("rounding before the point has no counterpart")


def _root(writer: Writer, node: Call) -> Any:
    if writer.semantics.negative_roots_fail:
        raise UnsupportedOperation("the root of a negative number is NaN there")
    return writer.functions.sqrt(writer.operand(node.arguments[0]))


def _sign(writer: Writer, node: Call) -> Any:
    if not writer.semantics.nan_has_sign:
        raise UnsupportedOperation("the sign of NaN is NaN there")
    return writer.functions.signum(writer.operand(node.arguments[0]))


def _is_nan(writer: Writer, node: Call) -> Any:
    operand = writer.operand(node.arguments[0])
    return writer.functions.when(operand.isNotNull(), writer.functions.isnan(operand))


def _bits(method: str) -> Write:
    def write(writer: Writer, node: Call) -> Any:
        result = type_of(node)
        if not isinstance(result, Int) or not result.signed:
            raise UnsupportedOperation("Spark has no unsigned numbers")
        left, right = (writer.operand(argument) for argument in node.arguments)
        return getattr(left, method)(right)

    return write


def _shift(writer: Writer, node: Call) -> Any:
    places, type_ = _constant(node.arguments[1]), type_of(node)
    wide = isinstance(type_, Int) and type_.signed and type_.bits >= 32
    if not wide or not isinstance(places, int) or places >= 32:
        raise UnsupportedOperation("a shift of few bits, or by many places")
    if node.function == "shift_left" and not writer.semantics.shifts_wrap:
        raise UnsupportedOperation("bits that are shifted out are lost there")
    name = "shiftright" if node.function == "shift_right" else "shiftleft"
    return getattr(writer.functions, name)(writer.operand(node.arguments[0]), places)


# Choices


def _choice(writer: Writer, node: Call) -> Any:
    if node.function != "coalesce":
        writer.check_order(node.arguments[0])
    operands = [writer.operand(argument) for argument in node.arguments]
    if len(operands) == 1:
        return operands[0]
    return getattr(writer.functions, node.function)(*operands)


def _null_if(writer: Writer, node: Call) -> Any:
    writer.check_order(node.arguments[0])
    return writer.functions.nullif(*(writer.operand(argument) for argument in node.arguments))


# Text


def _constants(name: str) -> Write:
    """A function of a text and constant texts."""

    def write(writer: Writer, node: Call) -> Any:
        first, *others = node.arguments
        values = [_constant(other) for other in others]
        if not all(isinstance(value, str) and value for value in values[:1]):
            raise UnsupportedOperation(f"{name} takes a constant text that is not empty")
        texts = [writer.operand(other) for other in others]
        return getattr(writer.functions, name)(writer.operand(first), *texts)

    return write


def _part_test(method: str) -> Write:
    def write(writer: Writer, node: Call) -> Any:
        text, part = (writer.operand(argument) for argument in node.arguments)
        return getattr(text, method)(part)

    return write


def _length(writer: Writer, node: Call) -> Any:
    (argument,) = node.arguments
    operand = writer.operand(argument)
    match type_of(argument):
        case List():
            return writer.functions.array_size(operand)
        case Map():
            return writer.functions.when(operand.isNotNull(), writer.functions.size(operand))
        case _:
            return writer.functions.length(operand)


def _named(name: str) -> Write:
    """A function that Spark has under a name of its own."""

    def write(writer: Writer, node: Call) -> Any:
        operands = [writer.operand(argument) for argument in node.arguments]
        return getattr(writer.functions, name)(*operands)

    return write


def _cased(writer: Writer, node: Call) -> Any:
    if not writer.semantics.full_case:
        raise UnsupportedOperation("upper and lower case follow the whole of Unicode there")
    return _named(node.function)(writer, node)


def _with_constants(name: str) -> Write:
    """A function that takes Python's values after the text."""

    def write(writer: Writer, node: Call) -> Any:
        first, *others = node.arguments
        values = [_constant(other) for other in others]
        if name in ("lpad", "rpad") and len(values) == 1:
            values.append(" ")
        return getattr(writer.functions, name)(writer.operand(first), *values)

    return write


def _joined(writer: Writer, node: Call) -> Any:
    separator, *texts = node.arguments
    operands = [writer.operand(text) for text in texts]
    return writer.functions.concat_ws(str(_constant(separator)), *operands)


def _digest(writer: Writer, node: Call) -> Any:
    return writer.functions.sha2(writer.operand(node.arguments[0]), 256)


def _hex(writer: Writer, node: Call) -> Any:
    return writer.functions.hex(writer.operand(node.arguments[0]))


def _concat(writer: Writer, node: Call) -> Any:
    parts = [writer.operand(argument) for argument in node.arguments]
    if node.function == "concat":
        parts = [writer.functions.coalesce(part, writer.functions.lit("")) for part in parts]
    return writer.functions.concat(*parts)


def _substr(writer: Writer, node: Call) -> Any:
    text, *bounds = node.arguments
    start, count = _constant(bounds[0]), _constant(bounds[1]) if len(bounds) > 1 else _MOST
    if not isinstance(start, int) or not isinstance(count, int) or start < 1 or count < 0:
        raise UnsupportedOperation("substr means the same there from a constant place of 1 or more")
    limits = (writer.functions.lit(min(bound, _MOST)) for bound in (start, count))
    return writer.functions.substring(writer.operand(text), *limits)


def _side(writer: Writer, node: Call) -> Any:
    count = _constant(node.arguments[1])
    if not isinstance(count, int) or count < 0:
        raise UnsupportedOperation(f"{node.function} means the same there with a constant count")
    side = getattr(writer.functions, node.function)
    return side(writer.operand(node.arguments[0]), writer.functions.lit(min(count, _MOST)))


# Dates and times

_PARTS: Mapping[str, tuple[str, int]] = {
    "year": ("year", 0),
    "whole_second": ("second", 0),
    "quarter": ("quarter", 0),
    "month": ("month", 0),
    "week": ("weekofyear", 0),
    "day": ("dayofmonth", 0),
    "doy": ("dayofyear", 0),
    "dow": ("dayofweek", -1),
    "isodow": ("weekday", 1),
    "hour": ("hour", 0),
    "minute": ("minute", 0),
}


def _extract(writer: Writer, node: Call) -> Any:
    part, argument = str(_constant(node.arguments[0])).strip().lower(), node.arguments[1]
    part = part.removesuffix("s")
    type_ = type_of(argument)
    if not isinstance(type_, Date | Timestamp):
        raise UnsupportedOperation(f"the {part} of a {type_name(type_)}")
    if type_ == Timestamp(utc=True):
        writer.check_zone()
    operand, f = writer.operand(argument), writer.functions
    if part == "second":
        return f.extract(f.lit("SECOND"), operand)
    if part == "isoyear":
        return f.extract(f.lit("YEAROFWEEK"), operand).cast("bigint")
    if part not in _PARTS:
        raise UnsupportedOperation(f"the part {part!r} of a time has no counterpart there")
    name, shift = _PARTS[part]
    found = getattr(f, name)(operand)
    return (found + shift if shift else found).cast("bigint")


def _date_trunc(writer: Writer, node: Call) -> Any:
    writer.check_zone()
    return truncated(writer, node)


def truncated(writer: Writer, node: Call) -> Any:
    """`date_trunc` in the time zone of the session there."""
    unit = str(_constant(node.arguments[0])).strip().lower().removesuffix("s")
    if unit not in table.UNITS.values():
        raise UnsupportedOperation(f"date_trunc to {unit!r} has no counterpart there")
    found = writer.functions.date_trunc(unit, writer.operand(node.arguments[1]))
    return found if type_of(node) == Timestamp(utc=True) else found.cast("timestamp_ntz")


def _moved(writer: Writer, node: Call) -> Any:
    """As `moved`, where the session is in UTC or no instant is moved."""
    if any(type_of(each) == Timestamp(utc=True) for each in (node, node.arguments[0])):
        writer.check_zone()
    return moved(writer, node)


def moved(writer: Writer, node: Call) -> Any:
    """A date or timestamp plus a constant interval, in the time zone of the session there."""
    operand, f = writer.operand(node.arguments[0]), writer.functions
    steps = [_constant(argument) for argument in node.arguments[1:]]
    months, days, micros = (step if isinstance(step, int) else 2**63 for step in steps)
    seconds = days * 86_400 + micros // 1_000_000
    if max(abs(months), abs(days)) > _MOST or abs(seconds) >= 10**12:
        raise UnsupportedOperation("only a constant interval of moderate size is added there")
    if isinstance(type_of(node.arguments[0]), Date):
        if isinstance(type_of(node), Timestamp):
            operand = operand.cast("timestamp_ntz")
        else:
            operand = f.add_months(operand, f.lit(months)) if months else operand
            return f.date_add(operand, f.lit(days)) if days else operand
    if months:
        operand = operand + f.make_ym_interval(f.lit(0), f.lit(months))
    if days or micros:
        whole, rest = divmod(abs(micros), 1_000_000)
        text = f"{'-' if micros < 0 else ''}{whole}.{rest:06d}"
        parts = (f.lit(days), f.lit(0), f.lit(0), f.lit(text).cast("decimal(18,6)"))
        operand = operand + f.make_dt_interval(*parts)
    return operand


def _of_dates(name: str) -> Write:
    def write(writer: Writer, node: Call) -> Any:
        if any(type_of(argument) != Date() for argument in node.arguments):
            raise UnsupportedOperation(f"{node.function} is of dates there")
        made = _named(name)(writer, node)
        return made if type_of(node) == Date() else made.cast(ddl_of(type_of(node)))

    return write


def _epoch(writer: Writer, node: Call) -> Any:
    if type_of(node.arguments[0]) != Timestamp(utc=True):
        raise UnsupportedOperation("the epoch of a wall clock depends on the session there")
    return writer.functions.unix_micros(writer.operand(node.arguments[0]))


def _from_seconds(writer: Writer, node: Call) -> Any:
    made = writer.functions.timestamp_seconds(writer.operand(node.arguments[0]))
    if type_of(node) == Timestamp(utc=True):
        return made
    writer.check_zone()
    return made.cast("timestamp_ntz")


def _made_date(writer: Writer, node: Call) -> Any:
    if not writer.ansi:
        raise UnsupportedOperation("a date that does not exist is NULL where ANSI mode is off")
    narrow = [writer.operand(argument).cast("int") for argument in node.arguments]
    return writer.functions.make_date(*narrow)


# Lists and maps


def _element(writer: Writer, node: Call) -> Any:
    place = _constant(node.arguments[1])
    if not isinstance(place, int) or not 1 <= place <= _MOST:
        raise UnsupportedOperation("an element is taken there at a constant place from 1")
    return writer.functions.get(writer.operand(node.arguments[0]), writer.functions.lit(place - 1))


def _map_value(writer: Writer, node: Call) -> Any:
    keys = node.arguments[1]
    if not isinstance(keys, Literal) or keys.value is None:
        raise UnsupportedOperation("a value of a map is taken there at a constant key")
    return writer.operand(node.arguments[0])[writer.operand(keys)]


def _constant(operand: Operand) -> PhysicalValue:
    return operand.value if isinstance(operand, Literal) else None


CALLS: Mapping[str, Write] = {
    **dict.fromkeys(_OPERATORS, _arithmetic),
    "negate": _one_number,
    "abs": _one_number,
    "floor": _to_whole,
    "ceil": _to_whole,
    "round": _round,
    "coalesce": _choice,
    "greatest": _choice,
    "least": _choice,
    "nullif": _null_if,
    "length": _length,
    "list_length": _length,
    "concat": _concat,
    "concat_strict": _concat,
    "substr": _substr,
    "left": _side,
    "right": _side,
    "trim": _constants("trim"),
    "ltrim": _constants("ltrim"),
    "rtrim": _constants("rtrim"),
    "replace": _constants("replace"),
    "position": _constants("instr"),
    "reverse": _named("reverse"),
    "starts_with": _part_test("startswith"),
    "ends_with": _part_test("endswith"),
    "contains": _part_test("contains"),
    "lower": _cased,
    "upper": _cased,
    "octet_length": _named("octet_length"),
    "bit_length": _named("bit_length"),
    "ascii": _named("ascii"),
    "md5": _named("md5"),
    "sha256_hex": _digest,
    "hex_digits": _hex,
    "repeat": _named("repeat"),
    "lpad": _with_constants("lpad"),
    "rpad": _with_constants("rpad"),
    "split_part": _named("split_part"),
    "concat_ws": _joined,
    "translate": _with_constants("translate"),
    "sqrt": _root,
    "degrees": _named("degrees"),
    "radians": _named("radians"),
    "sign": _sign,
    "is_nan": _is_nan,
    "bit_and": _bits("bitwiseAND"),
    "bit_or": _bits("bitwiseOR"),
    "bit_xor": _bits("bitwiseXOR"),
    "shift_right": _shift,
    "shift_left": _shift,
    "last_day": _of_dates("last_day"),
    "days_between": _of_dates("datediff"),
    "epoch_us": _epoch,
    "timestamp_seconds": _from_seconds,
    "make_date": _made_date,
    "extract": _extract,
    "date_trunc": _date_trunc,
    "shift": _moved,
    "shift_timestamp": _moved,
    "add_interval": _moved,
    "list_element": _element,
    "map_value": _map_value,
}
