"""Comparisons of types whose stored values do not sort as SQL compares them: intervals and JSON.

SQL compares intervals by length, with months of 30 days: 1 month equals 30 days. An engine that
reads our tables sees 16 bytes or text instead, and compares these (`Semantics.compares_storage`).
Other semantics have no rule for them, so we refuse to compare.
"""

from __future__ import annotations

import decimal
from typing import TypeVar

import pyarrow as pa

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.functions.interval_length import LENGTH_TYPE
from rowsieve.predicate.literal_values import parse_text
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.interval_bytes import TOTAL, from_arrow, total_of, total_us
from rowsieve.types.logical import Binary, Interval, Json, LogicalType, String, type_name

_T = TypeVar("_T", bound=LogicalType | None)


def as_stored(operand: ir.Operand, type_: _T) -> tuple[ir.Operand, _T | String | Binary]:
    """Replace JSON by its text and an interval by its bytes; leave others as they are."""
    match type_:
        case Json() | Interval():
            target = String() if isinstance(type_, Json) else Binary()
            if isinstance(operand, ir.Literal):
                return ir.Literal(operand.value, target), target
            return ir.Cast(operand, target), target
        case _:
            return operand, type_


def as_length(
    operand: ir.Operand, type_: LogicalType | None, semantics: Semantics
) -> tuple[ir.Operand, LogicalType]:
    """Replace an interval, or the text of one, by its length.

    InvalidPredicate for other values, and if the semantics order intervals in another way.
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
    return ir.Call("interval_us", (operand,)), LENGTH_TYPE


def lengths(values: ir.ValueSet) -> ir.ValueSet:
    """Return the lengths of the members of an IN list; InvalidPredicate if they are none."""
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


def _length(value: ir.PhysicalValue) -> decimal.Decimal | None:
    return decimal.Decimal(total_of(value)) if isinstance(value, bytes) else None
