"""Implicit casts of Spark's analyser between text and other types, by ANSI mode.

In ANSI mode text is cast to the kind of the other side, numbers in their widest types. Otherwise a
comparison casts text to the other side's own type, arithmetic to double, and IN, CASE and COALESCE
cast the other values to text. Soundness: a pair without a rule here is refused.
Source: `TypeCoercion` and `AnsiTypeCoercion` of Spark 4.3, by its analysed plans.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rowsieve.bridges.sql.spark.types.numbers_and_times import INSTANT, common_type
from rowsieve.bridges.sql.spark.types.typed_values import Value
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.functions.casting.casts import cast_as_written
from rowsieve.predicate.functions.casting.spark_times import read_moments
from rowsieve.predicate.ir import Cast, Literal, Operand
from rowsieve.predicate.literal_values import from_scalar
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import (
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    String,
    Timestamp,
    type_name,
)

_ANOTHER_ZONE = "Asia/Kathmandu"  # its offset was never that of UTC
_LONGEST_PLAIN_SCALE = 6  # of decimals that Java formats without an exponent


def in_comparison(other: LogicalType, *, ansi: bool) -> LogicalType:
    """Return the type to which text is cast next to a value of the other type."""
    match other:
        case Int() | Float() | Decimal() if ansi:
            return _widest(other)
        case Decimal():
            return Float(64)
        case Int() | Float() | Bool() | Date() | Timestamp():
            return other
    raise _no_rule(other)


def in_arithmetic(name: str, other: LogicalType | None, *, ansi: bool) -> LogicalType:
    """Return the type of both operands of an operator if one of them is text."""
    if ansi and isinstance(other, Int | Float | Decimal):
        return _widest(other)
    if not ansi and name != "div" and isinstance(other, Int | Float | Decimal | String | None):
        return Float(64)
    shown = "NULL" if other is None else type_name(other)
    raise UnsupportedOperation(f"{name} of text and {shown} has no type in spark; cast a side")


def among(others: Sequence[LogicalType], *, ansi: bool) -> LogicalType:
    """Return the common type of text and other values in IN, CASE or COALESCE."""
    if not ansi:
        for other in others:
            if not isinstance(other, Int | Float | Decimal | Date | Timestamp):
                raise _no_rule(other)
        return String()
    common: LogicalType = String()
    for other in others:
        if isinstance(common, String):
            common = in_comparison(other, ansi=True)
        elif (joined := common_type(common, other, ansi=True)) is None:
            raise _no_rule(other)
        else:
            common = joined
    return common


def text_as(value: Value, target: LogicalType, *, ansi: bool, try_: bool = False) -> Value:
    """Cast text implicitly; constants are converted now."""
    if not isinstance(target, Bool | Int | Float | Decimal | Date | Timestamp):
        raise UnsupportedOperation(
            f"a cast of text to {type_name(target)} has rules of spark's own; cast another way"
        )
    literal = value.operand
    if not isinstance(literal, Literal):
        return Value(Cast(value.exact, target, try_), target)
    if literal.value is None:
        return Value(Literal(None, target), target)
    assert isinstance(literal.value, str)
    constant = _read(literal.value, target, ansi=ansi, try_=try_)
    if constant is not None:
        return Value(constant, target)
    if try_ or not ansi:
        return Value(Literal(None, target), target)
    return Value(Cast(Literal(literal.value, String()), target), target)


def as_text(value: Value, *, ansi: bool) -> Operand:
    """Cast a value to text implicitly."""
    if isinstance(value.type, String):
        return value.exact
    if value.type is None:
        literal = value.operand
        assert isinstance(literal, Literal)
        return Literal(literal.value, String())
    check_spelling(value.type, ansi=ansi)
    return Cast(value.exact, String())


def check_spelling(type_: LogicalType, *, ansi: bool) -> None:
    """Raise for numbers that Java formats differently."""
    if isinstance(type_, Float):
        raise UnsupportedOperation(
            f"a cast of {type_name(type_)} to string: java writes floats in another way"
        )
    if isinstance(type_, Decimal) and type_.scale > _LONGEST_PLAIN_SCALE and not ansi:
        raise UnsupportedOperation(
            f"a cast of {type_name(type_)} to string: java writes small ones with an exponent "
            "where ANSI mode is off; cast it to fewer digits behind the point"
        )


def _read(text: str, target: LogicalType, *, ansi: bool, try_: bool) -> Operand | None:
    """Convert text as Spark does; None if it fails.

    Without a zone of its own, an instant is a local time of the session, cast as such.
    """
    texts = pa.array([text], pa.string())
    if target == INSTANT:
        here, there = (
            read_moments(texts, Timestamp(utc=True), zone).values for zone in ("UTC", _ANOTHER_ZONE)
        )
        if here == there:
            return from_scalar(here[0], target) if here[0].is_valid else None
        local = from_scalar(here.view(pa.timestamp("us"))[0], Timestamp())
        return Cast(local, target, try_)
    semantics = Semantics.of_spark(ansi=ansi, time_zone="UTC")
    computed = cast_as_written(texts, String(), target, semantics, try_=try_)
    return None if computed.failed is not None else from_scalar(computed.values[0], target)


def _widest(type_: LogicalType) -> LogicalType:
    return Int(64) if isinstance(type_, Int) else Float(64)


def _no_rule(type_: LogicalType) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"text beside {type_name(type_)} has no rule in spark or here; cast one of them"
    )
