"""Convert the members of an IN list to the operand's type, exactly.

A member that equals no value of the type is dropped. NULL members are kept, because they make a
non-match NULL. Where SQL compares as float64, the operand is converted too.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.arrays import as_mask, compare, filled, null_mask, with_nulls
from rowsieve.predicate.binding.zoned import depends_on_zone, instants_of, is_utc
from rowsieve.predicate.functions.casting.casts import cast, cast_rule
from rowsieve.predicate.functions.numbers.decimals import int_as_decimal
from rowsieve.predicate.ir import ComparisonOp, Literal, ValueSet
from rowsieve.predicate.literal_values import check_offset, compared_text, from_scalar, scalar
from rowsieve.predicate.semantics import NanOrder, Semantics
from rowsieve.types.days import NANOS_OF_MICRO
from rowsieve.types.encodings import arrow_type, is_text, schema_of
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    Nanos,
    String,
    Time,
    Timestamp,
    Uuid,
    is_ordered,
    type_name,
)

_US_PER = {"s": 1_000_000, "ms": 1_000, "us": 1}


def bind_members(
    type_: LogicalType, values: ValueSet, semantics: Semantics
) -> tuple[LogicalType, ValueSet]:
    """Return the type of the comparison, and the members in that type."""
    if not is_ordered(type_):
        raise InvalidPredicate(
            f"values of type {type_name(type_)} cannot be looked up with IN; compare one of their "
            "fields or items"
        )
    if isinstance(type_, Nanos) and pa.types.is_timestamp(values.array.type):
        return type_, ValueSet(_in_nanoseconds(values.array, type_), type_)
    array, member_type = _plain(values.array)
    if member_type is None:
        return type_, ValueSet(pa.nulls(len(array), arrow_type(type_)), type_)
    if member_type == String() and values.type is None and type_ != String():
        return type_, ValueSet(_parsed(array, type_, semantics), type_)
    common = _common(type_, member_type)
    zoned = common is not None and depends_on_zone(member_type, common) and not is_utc(semantics)
    if common is None:
        raise InvalidPredicate(
            f"{type_name(type_)} IN a list of {type_name(member_type)} has no meaning; cast a side"
        )
    if zoned:  # a local time and an instant compare as instants
        instants = instants_of(array, member_type, semantics)
        return Timestamp(utc=True), ValueSet(instants, Timestamp(utc=True))
    return common, ValueSet(_exactly(array, member_type, common, semantics), common)


def member_literals(values: ValueSet) -> Iterator[Literal]:
    """Return each member as a literal; untyped text and untyped NULLs stay untyped."""
    array, type_ = values.array, values.type
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if type_ is None and not is_text(array.type) and not pa.types.is_null(array.type):
        schema, _ = schema_of(pa.schema([("member", array.type)]))
        type_ = schema.fields[0].type
        array = array.cast(arrow_type(type_))
    for member in array:
        yield Literal(member.as_py()) if type_ is None else from_scalar(member, type_)


def _plain(array: pa.Array) -> tuple[pa.Array, LogicalType | None]:
    """Return the members in storage form and their type; None if all are NULL."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    type_ = array.type
    if pa.types.is_null(type_):
        return array, None
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return array.cast(pa.string()), String()
    if pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_):
        return array.cast(pa.binary()), Binary()
    if pa.types.is_fixed_size_binary(type_):
        return array.cast(pa.binary()), Binary()
    if pa.types.is_date64(type_):
        return array.cast(pa.date32()), Date()
    if pa.types.is_timestamp(type_) or pa.types.is_time(type_):
        return _in_microseconds(array)
    for candidate in _SIMPLE:
        if arrow_type(candidate) == type_:
            return array, candidate
    if pa.types.is_decimal(type_) and type_.precision <= 38:
        decimal_type = Decimal(type_.precision, type_.scale)
        return array.cast(arrow_type(decimal_type)), decimal_type
    raise InvalidPredicate(
        f"an IN list cannot hold values of the Arrow type {type_}; cast the list"
    )


_SIMPLE: tuple[LogicalType, ...] = (
    Bool(),
    *(Int(bits, signed) for bits in (8, 16, 32, 64) for signed in (True, False)),
    Float(32),
    Float(64),
    String(),
    Binary(),
    Date(),
)


def _in_microseconds(array: pa.Array) -> tuple[pa.Array, LogicalType]:
    """Convert times and timestamps to microseconds; drop those between two microseconds."""
    unit = array.type.unit
    type_: LogicalType = (
        Timestamp(array.type.tz is not None) if pa.types.is_timestamp(array.type) else Time()
    )
    width = pa.int32() if pa.types.is_time32(array.type) else pa.int64()
    numbers, nulls = filled(array.view(width)).astype(np.int64), null_mask(array)
    if unit == "ns":
        is_exact = numbers % NANOS_OF_MICRO == 0
        numbers, nulls = numbers[is_exact] // NANOS_OF_MICRO, nulls[is_exact]
    else:
        factor = _US_PER[unit]
        least, most = -(2**63 // factor), (2**63 - 1) // factor
        is_exact = (numbers >= least) & (numbers <= most)
        numbers, nulls = numbers[is_exact] * factor, nulls[is_exact]
    return with_nulls(numbers, nulls, arrow_type(type_)), type_


def _in_nanoseconds(array: pa.Array, type_: Nanos) -> pa.Array:
    """Convert timestamps of any unit; drop those without an equal 64-bit nanosecond."""
    if (array.type.tz is not None) != type_.utc:
        raise InvalidPredicate(
            f"{type_name(type_)} IN a list of {array.type} has no meaning: one side has a zone; "
            "cast a side"
        )
    factor = NANOS_OF_MICRO * _US_PER[array.type.unit] if array.type.unit != "ns" else 1
    numbers, nulls = filled(array.view(pa.int64())).astype(np.int64), null_mask(array)
    is_exact = (numbers >= -(2**63 // factor)) & (numbers <= (2**63 - 1) // factor)
    return with_nulls(numbers[is_exact] * factor, nulls[is_exact], arrow_type(type_))


def _parsed(array: pa.Array, type_: LogicalType, semantics: Semantics) -> pa.Array:
    """Parse texts as values of the type; InvalidPredicate if one is not such a value."""
    if cast_rule(String(), type_) is None:
        if type_ == Nanos(utc=True) and not is_utc(semantics):
            for text in array.drop_null().to_pylist():
                check_offset(text, semantics.time_zone)
        reading = semantics.text_reading
        values = [
            scalar(Literal(None if text is None else compared_text(text, type_, reading), type_))
            for text in array.to_pylist()
        ]
        return pa.array(values, arrow_type(type_)) if values else pa.nulls(0, arrow_type(type_))
    computed = cast(array, String(), type_, semantics)
    if computed.failed is not None:
        text = array[int(np.argmax(computed.failed))].as_py()
        raise InvalidPredicate(f"the text {text!r} in an IN list is not a valid {type_name(type_)}")
    return computed.values


def _common(type_: LogicalType, member: LogicalType) -> LogicalType | None:
    """Return the type in which operand and members are compared."""
    match type_, member:
        case (Float(bits=32), Float(bits=32)):
            return type_
        case (Float(), Int() | Float() | Decimal()) | (Int() | Decimal(), Float()):
            return Float(64)
        case (Int() | Decimal(), Int() | Decimal()):
            return type_
        case (Date() | Timestamp(), Date()) | (Timestamp(), Timestamp()):
            return type_
        case (Date(), Timestamp(utc=False)):
            return type_
        case (Uuid() | Binary(), Binary()):
            return type_
        case _:
            return type_ if type_ == member else None


def _exactly(
    array: pa.Array, member: LogicalType, target: LogicalType, semantics: Semantics
) -> pa.Array:
    """Convert the members that equal a value of the target type; drop the others."""
    if member == target:
        return array
    if isinstance(target, Uuid):
        fits = pc.or_(pc.is_null(array), pc.fill_null(pc.equal(pc.binary_length(array), 16), True))  # noqa: FBT003
        return array.filter(fits).cast(pa.binary(16))
    computed = cast(array, member, target, semantics)
    if isinstance(target, Float):
        return computed.values
    back = computed.values
    if isinstance(member, Decimal) and isinstance(target, Int):
        back = cast(back, target, int_as_decimal(target), semantics).values
    elif type(member) is not type(target):
        back = cast(back, target, member, semantics).values
    if isinstance(target, Int | Timestamp) and type(member) is type(target):
        same = ~null_mask(back)
    else:
        same = as_mask(compare(ComparisonOp.EQ, back, array, NanOrder.GREATEST))
    return computed.values.filter(pa.array(same | null_mask(array)))
