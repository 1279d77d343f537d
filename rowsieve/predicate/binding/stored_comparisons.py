"""Comparisons of types whose stored values do not sort as SQL compares them.

These types are intervals, unbounded numbers and JSON.

SQL compares intervals by length, with months of 30 days: 1 month equals 30 days. An engine that
reads our tables sees 16 bytes or text instead, and compares these (`Semantics.compares_storage`).
Comparisons under semantics without a rule for these types are refused. Unbounded numbers compare
exactly by their bytes, and with a float as floats.
"""

from __future__ import annotations

import decimal
import math
from typing import TypeVar

import pyarrow as pa

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.functions.casting.unbounded_numbers import (
    APPROX_TYPE,
    EXACT_TYPE,
    NUMERIC_PARTS,
)
from rowsieve.predicate.functions.times.interval_length import LENGTH_TYPE
from rowsieve.predicate.literal_values import parse_text
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.interval_bytes import TOTAL, from_arrow, total_of, total_us
from rowsieve.types.logical import (
    Binary,
    Decimal,
    Float,
    Int,
    Interval,
    Json,
    LogicalType,
    Numeric,
    String,
    Struct,
    type_name,
)
from rowsieve.types.numeric_bytes import (
    encoded,
    exact_of,
    from_numbers,
    from_text,
    spelled,
)

_T = TypeVar("_T", bound=LogicalType | None)


def as_stored(operand: ir.Operand, type_: _T) -> tuple[ir.Operand, _T | String | Binary | Struct]:
    """Replace JSON by its text, an interval by its bytes and a numeric by its struct."""
    match type_:
        case Numeric():
            return ir.Cast(operand, NUMERIC_PARTS), NUMERIC_PARTS
        case Json() | Interval():
            target = String() if isinstance(type_, Json) else Binary()
            if isinstance(operand, ir.Literal):
                return ir.Literal(operand.value, target), target
            return ir.Cast(operand, target), target
        case _:
            return operand, type_


def check_struct_of_number(
    left: ir.Operand,
    left_type: LogicalType | None,
    right: ir.Operand,
    right_type: LogicalType | None,
    semantics: Semantics,
) -> None:
    """Refuse to compare an unbounded number, which the engine sees as a struct, with a number."""
    for type_, other, other_type in (
        (left_type, right, right_type),
        (right_type, left, left_type),
    ):
        is_null = isinstance(other, ir.Literal) and other.value is None
        if isinstance(type_, Numeric) and not is_null:
            if isinstance(other_type, Numeric | Struct):
                continue
            raise InvalidPredicate(
                f"{semantics.name} sees a numeric as a struct, which does not compare with a "
                f"{type_name(other_type) if other_type else 'text'}; compare its field approx, or "
                "write the condition in the dialect postgres"
            )


def as_length(
    operand: ir.Operand, type_: LogicalType | None, semantics: Semantics
) -> tuple[ir.Operand, LogicalType]:
    """Replace an interval, or the text of one, by its length.

    InvalidPredicate for other values, and if the semantics order intervals differently.
    """
    if not semantics.thirty_day_months:
        raise InvalidPredicate(
            f"{semantics.name} does not compare intervals by their length; compare them in "
            "PostgreSQL's or DuckDB's SQL, or compare interval_us of them"
        )
    if isinstance(operand, ir.Literal) and type_ in (None, Interval()):
        value = operand.value
        if isinstance(value, str):
            value = parse_text(value, Interval())
        return ir.Literal(_length(value), LENGTH_TYPE), LENGTH_TYPE
    if type_ != Interval():
        raise InvalidPredicate(
            f"an interval is compared with a {type_name(type_) if type_ else 'text'}; write an "
            "interval, such as INTERVAL '1 day'"
        )
    if isinstance(operand, ir.Call) and operand.function == "age":
        return ir.Call("age_us", operand.arguments), LENGTH_TYPE
    return ir.Call("interval_us", (operand,)), LENGTH_TYPE


def lengths(values: ir.ValueSet) -> ir.ValueSet:
    """Return the lengths of the intervals in an IN list; InvalidPredicate for other members."""
    array = values.array
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_null(array.type):
        return ir.ValueSet(pa.nulls(len(array), TOTAL), LENGTH_TYPE)
    if pa.types.is_interval(array.type) or pa.types.is_duration(array.type):
        try:
            return ir.ValueSet(total_us(from_arrow(array)), LENGTH_TYPE)
        except (pa.ArrowInvalid, ValueError) as error:
            raise InvalidPredicate(f"a member of an IN list is not an interval: {error}") from error
    if values.type == Interval():
        return ir.ValueSet(total_us(array), LENGTH_TYPE)
    if not pa.types.is_string(array.type) or values.type is not None:
        raise InvalidPredicate(f"interval IN a list of {array.type} has no meaning; cast a side")
    texts = [None if text is None else parse_text(text, Interval()) for text in array.to_pylist()]
    return ir.ValueSet(pa.array([_length(value) for value in texts], TOTAL), LENGTH_TYPE)


def as_numbers(
    left: ir.Operand,
    left_type: LogicalType | None,
    right: ir.Operand,
    right_type: LogicalType | None,
) -> tuple[ir.Operand, LogicalType, ir.Operand, LogicalType]:
    """Replace both sides by their exact bytes, or by floats if one is a float.

    InvalidPredicate if a side is not a number.
    """
    floats = isinstance(left_type, Float) or isinstance(right_type, Float)
    convert = _as_float if floats else as_exact
    return (*convert(left, left_type), *convert(right, right_type))


def without_widening(
    operand: ir.Operand, type_: LogicalType | None, other_type: LogicalType | None
) -> tuple[ir.Operand, LogicalType | None]:
    """Remove a cast of an integer or decimal to numeric before a comparison with such a number.

    All of these numbers compare exactly, and without the cast their statistics apply.
    """
    if isinstance(operand, ir.Cast) and type_ == Numeric():
        inner = type_of(operand.operand)
        if isinstance(inner, Int | Decimal) and isinstance(other_type, Int | Decimal | Numeric):
            return operand.operand, inner
    return operand, type_


def as_exact(operand: ir.Operand, type_: LogicalType | None) -> tuple[ir.Operand, LogicalType]:
    """Replace a number, or the text of one, by its exact bytes; InvalidPredicate for others."""
    match operand, type_:
        case ir.Literal(value=None), _:
            return ir.Literal(None, EXACT_TYPE), EXACT_TYPE
        case ir.Literal(value=bytes() as value), Numeric():
            return ir.Literal(value, EXACT_TYPE), EXACT_TYPE
        case ir.Literal(value=str() as text), None:
            return ir.Literal(parse_text(text, Numeric()), EXACT_TYPE), EXACT_TYPE
        case ir.Literal(value=int() | decimal.Decimal() as number), Int() | Decimal():
            return ir.Literal(_exact(number), EXACT_TYPE), EXACT_TYPE
        case _, Numeric():
            return ir.Call("numeric_bytes", (operand,)), EXACT_TYPE
        case _, Int() | Decimal():
            return ir.Call("numeric_bytes", (ir.Cast(operand, Numeric()),)), EXACT_TYPE
    raise InvalidPredicate(
        f"a numeric is compared with a {type_name(type_) if type_ else 'text'}; write a number"
    )


def as_listed_numbers(
    operand: ir.Operand, type_: LogicalType | None, values: ir.ValueSet
) -> tuple[ir.Operand, LogicalType, ir.ValueSet]:
    """Replace the operand and the members of its IN list by their exact bytes.

    By floats if the operand is one. InvalidPredicate if a side is not a number.
    """
    if isinstance(type_, Float):
        floats = [_nearest_float(exact) for exact in exact_of(values.array).to_pylist()]
        return operand, type_, ir.ValueSet(pa.array(floats, pa.float64()), APPROX_TYPE)
    return (*as_exact(operand, type_), _exact_members(values))


def _exact_members(values: ir.ValueSet) -> ir.ValueSet:
    """Return the exact bytes of the members of an IN list; InvalidPredicate for other members."""
    array = values.array
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_null(array.type):
        return ir.ValueSet(pa.nulls(len(array), pa.binary()), EXACT_TYPE)
    if values.type == Numeric():
        return ir.ValueSet(exact_of(array), EXACT_TYPE)
    try:
        if pa.types.is_string(array.type) and values.type is None:
            return ir.ValueSet(exact_of(from_text(array)), EXACT_TYPE)
        if pa.types.is_integer(array.type) or pa.types.is_decimal(array.type):
            return ir.ValueSet(exact_of(from_numbers(array)), EXACT_TYPE)
    except ValueError as error:
        raise InvalidPredicate(f"a member of an IN list is not a numeric: {error}") from error
    raise InvalidPredicate(f"numeric IN a list of {array.type} has no meaning; cast a side")


def _as_float(operand: ir.Operand, type_: LogicalType | None) -> tuple[ir.Operand, LogicalType]:
    """Replace an unbounded number by its float; leave other numbers, which SQL converts."""
    if type_ != Numeric():
        assert type_ is not None  # bare text is not a float, and the other side is a numeric
        return operand, type_
    if isinstance(operand, ir.Literal):
        value = operand.value
        number = _nearest_float(value if isinstance(value, bytes) else None)
        return ir.Literal(number, APPROX_TYPE), APPROX_TYPE
    return ir.Call("numeric_approx", (operand,)), APPROX_TYPE


def _nearest_float(exact: bytes | None) -> float | None:
    """Return the nearest float; InvalidPredicate for a number beyond all floats, as in SQL."""
    if exact is None:
        return None
    text = spelled(exact)
    nearest = float(text)
    if text[-1].isdigit() and (math.isinf(nearest) or (nearest == 0 and text != "0")):
        raise InvalidPredicate(
            f"the number {text[:40]} is beyond the range of {type_name(APPROX_TYPE)}"
        )
    return nearest


def _exact(number: int | decimal.Decimal) -> bytes:
    try:
        return encoded(number)
    except ValueError as error:
        raise InvalidPredicate(f"the number {number} is not a numeric: {error}") from error


def _length(value: ir.PhysicalValue) -> decimal.Decimal | None:
    return decimal.Decimal(total_of(value)) if isinstance(value, bytes) else None
