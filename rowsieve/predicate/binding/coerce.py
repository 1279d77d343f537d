"""Convert both sides of a comparison, and the members of an IN list, to one type, exactly.

The constant is converted to the column's type, not the column to the constant's type, so that
statistics, blooms and page indexes apply. Integers, decimals and dates form a grid. A constant
between two grid points, or outside the grid, becomes a comparison with the nearest point that has
the same result on every row, or a comparison that is constant except for NULL. Nothing is rounded,
with one exception that SQL makes too: a value compared with a float becomes a float64.
"""

from __future__ import annotations

import decimal
import math
from fractions import Fraction

import pyarrow as pa

from rowsieve.errors import InvalidPredicate, UnreadText
from rowsieve.predicate import ir
from rowsieve.predicate.binding.enum_labels import compare_enums
from rowsieve.predicate.binding.json_comparisons import compare_json, compares_json
from rowsieve.predicate.binding.nanosecond_rules import compared_constant, compares_times
from rowsieve.predicate.binding.nested_types import compare_nested_operands
from rowsieve.predicate.binding.stored_comparisons import (
    as_length,
    as_numbers,
    as_stored,
    check_struct_of_number,
    without_widening,
)
from rowsieve.predicate.binding.zoned import cast_of_session, folded, is_utc
from rowsieve.predicate.functions.casting.casts import cast, cast_rule
from rowsieve.predicate.functions.casting.far_texts import far_constant
from rowsieve.predicate.functions.numbers.decimals import int_as_decimal
from rowsieve.predicate.functions.numbers.numeric import wider_int
from rowsieve.predicate.literal_values import (
    check_literal,
    check_offset,
    compared_text,
    from_scalar,
    int_range,
    natural_type,
    parse_text,
    scalar,
)
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.days import DAY_US, NANOS_OF_MICRO
from rowsieve.types.logical import (
    Binary,
    Date,
    Decimal,
    Enum,
    Float,
    Int,
    Interval,
    List,
    LogicalType,
    Map,
    Nanos,
    Numeric,
    String,
    Struct,
    Timestamp,
    Uuid,
    is_ordered,
    type_name,
)
from rowsieve.types.numeric_bytes import spelled


def compare_operands(
    op: ir.ComparisonOp,
    left: ir.Operand,
    left_type: LogicalType | None,
    right: ir.Operand,
    right_type: LogicalType | None,
    semantics: Semantics,
) -> ir.Predicate:
    """Bind `left op right` with both sides of one comparable type; bare text has type None."""
    if left_type is None and right_type is None:
        left, left_type = _adapted(left, String(), semantics)
        right, right_type = _adapted(right, String(), semantics)
    if semantics.compares_storage:
        check_struct_of_number(left, left_type, right, right_type, semantics)
        left, left_type = as_stored(left, left_type)
        right, right_type = as_stored(right, right_type)
    kinds = left_type, right_type
    left, left_type = without_widening(left, left_type, kinds[1])
    right, right_type = without_widening(right, right_type, kinds[0])
    if isinstance(left_type, Enum) or isinstance(right_type, Enum):
        return compare_enums(op, left, left_type, right, right_type)
    if isinstance(left_type, List | Struct | Map) or isinstance(right_type, List | Struct | Map):
        return compare_nested_operands(op, left, left_type, right, right_type, semantics)
    if isinstance(left_type, Interval) or isinstance(right_type, Interval):
        left, left_type = as_length(left, left_type, semantics)
        right, right_type = as_length(right, right_type, semantics)
    elif _is_placed(left, right, right_type) or _is_placed(right, left, left_type):
        return _compare_ordered(op, left, left_type, right, right_type, semantics)
    elif isinstance(left_type, Numeric) or isinstance(right_type, Numeric):
        left, left_type, right, right_type = as_numbers(left, left_type, right, right_type)
    elif isinstance(left_type, Nanos) or isinstance(right_type, Nanos):
        left, right = folded(left, semantics), folded(right, semantics)
    elif compares_json(op, (left_type, right_type), semantics):
        return compare_json(op, (left, left_type), (right, right_type))
    for type_ in (left_type, right_type):
        if type_ is not None and not is_ordered(type_):
            raise InvalidPredicate(
                f"values of type {type_name(type_)} cannot be compared; compare a field of them"
            )
    return _compare_ordered(op, left, left_type, right, right_type, semantics)


def _compare_ordered(
    op: ir.ComparisonOp,
    left: ir.Operand,
    left_type: LogicalType | None,
    right: ir.Operand,
    right_type: LogicalType | None,
    semantics: Semantics,
) -> ir.Predicate:
    """Bind a comparison of ordered types; at most one side is bare text."""
    if isinstance(left, ir.Literal) and not isinstance(right, ir.Literal):
        op = op.mirrored
        left, left_type, right, right_type = right, right_type, left, left_type
    if right_type is None:
        assert left_type is not None
        right, right_type = _adapted(right, left_type, semantics)
    elif left_type is None:
        left, left_type = _adapted(left, right_type, semantics)
    assert left_type is not None
    if isinstance(right, ir.Literal) and not isinstance(left, ir.Literal):
        if right.value is None:
            return ir.Comparison(op, left, ir.Literal(None, left_type))
        right = compared_constant(right, left, left_type, semantics)
        if isinstance(right_type, Nanos) and right.type is not None:
            right_type = right.type
        if (number := _on_grid(left_type, right.value, right_type)) is not None:
            return _compare_on_grid(op, left, left_type, number)
    return _compare_typed(op, left, left_type, right, right_type, semantics)


def convert(
    operand: ir.Operand, source: LogicalType | None, target: LogicalType, semantics: Semantics
) -> ir.Operand:
    """Convert the operand to the target type; a constant is converted immediately if possible."""
    if source is None:
        assert isinstance(operand, ir.Literal)
        return typed(operand, target, semantics)
    if source == target:
        if isinstance(operand, ir.Literal):
            check_literal(operand)  # rejects numbers with more digits than any decimal type
        return operand
    if cast_rule(source, target) is None or isinstance(source, Nanos):
        raise InvalidPredicate(
            f"a value of type {type_name(source)} cannot be converted to {type_name(target)}"
        )
    session_cast = cast_of_session(operand, source, target, semantics, try_=False)
    if session_cast is not None:
        return folded(session_cast, semantics)
    if isinstance(operand, ir.Literal):
        if isinstance(target, Float) and isinstance(operand.value, int | decimal.Decimal):
            return ir.Literal(_as_float(operand.value, target), target)
        computed = cast(pa.repeat(scalar(operand), 1), source, target, semantics)
        if computed.failed is None:
            return from_scalar(computed.values[0], target)
    return ir.Cast(operand, target)


def _as_float(value: int | decimal.Decimal, target: Float) -> ir.PhysicalValue:
    """Return the nearest float; InvalidPredicate for a number beyond all floats, as in SQL."""
    nearest = float(decimal.Decimal(value))
    converted = from_scalar(scalar(ir.Literal(nearest, target)), target).value
    if isinstance(converted, float) and math.isinf(converted):
        raise InvalidPredicate(f"the number {value} is beyond the range of {type_name(target)}")
    return converted


def typed(literal: ir.Literal, type_: LogicalType, semantics: Semantics) -> ir.Literal:
    """Give bare text or NULL the type; InvalidPredicate if the text is not such a value."""
    if literal.value is None:
        return ir.Literal(None, type_)
    assert isinstance(literal.value, str)
    if type_ == Timestamp(utc=True) and not is_utc(semantics):
        return _local_instant(literal.value, semantics)
    if type_ == Nanos(utc=True) and not is_utc(semantics):
        check_offset(literal.value, semantics.time_zone)
    far = far_constant(literal.value, type_, semantics.text_reading)
    value = compared_text(literal.value, type_, semantics.text_reading) if far is None else far
    if isinstance(type_, Int | Decimal):
        assert isinstance(value, int | decimal.Decimal)
        on_grid = _scaled(type_, Fraction(value) if _small(value) else Fraction(10) ** 60)
        low, high = _limits(type_)
        if on_grid.denominator != 1 or not low <= on_grid <= high:
            raise InvalidPredicate(
                f"the text {literal.value!r} does not fit the type {type_name(type_)}"
            )
        return ir.Literal(_point(type_, int(on_grid)), type_)
    if isinstance(type_, Float):
        return from_scalar(scalar(ir.Literal(value, type_)), type_)
    return ir.Literal(value, type_)


def _local_instant(text: str, semantics: Semantics) -> ir.Literal:
    """Parse text as an instant: without an offset it is a local time of the session's zone."""
    type_ = Timestamp(utc=True)
    computed = cast(pa.array([text], pa.string()), String(), type_, semantics)
    if computed.failed is not None:
        raise InvalidPredicate(
            f"the text {text!r} is not a timestamptz in the time zone {semantics.time_zone!r}; "
            "write it with an offset"
        )
    return from_scalar(computed.values[0], type_)


def constant_instant(text: object, semantics: Semantics) -> ir.Literal | None:
    """Return the instant of a constant text that is cast, in the session's zone; None if invalid.

    Text that only the engine can read stays a cast, and is an error where it is evaluated.
    """
    type_ = Timestamp(utc=True)
    try:
        computed = cast(pa.array([text], pa.string()), String(), type_, semantics)
    except UnreadText:
        return None
    return None if computed.failed is not None else from_scalar(computed.values[0], type_)


def unmatched(op: ir.ComparisonOp, operand: ir.Operand) -> ir.Predicate:
    """Build `operand op value` for a value that the operand never has and that has no order."""
    return _always(operand, op, truth=op.holds_if_less)


def compare_with_number(
    op: ir.ComparisonOp, operand: ir.Operand, type_: LogicalType, number: Fraction
) -> ir.Predicate:
    """Build `operand op number` in the operand's type; the unit is a number, day or microsecond."""
    return _compare_on_grid(op, operand, type_, _scaled(type_, number))


def _compare_on_grid(
    op: ir.ComparisonOp, operand: ir.Operand, type_: LogicalType, number: Fraction
) -> ir.Predicate:
    """Compare with the nearest grid number. A constant result becomes `x = x` or `x <> x`."""
    low, high = _limits(type_)
    floor = number.numerator // number.denominator
    if number > high:
        return _always(operand, op, truth=op.holds_if_less)
    if number < low:
        return _always(operand, op, truth=op.holds_if_greater)
    if number.denominator != 1:
        if not op.is_order:
            return _always(operand, op, truth=op.holds_if_less)
        op = op.weak if op.holds_if_less else op.strict  # the number lies above `floor`
    return ir.Comparison(op, operand, ir.Literal(_point(type_, floor), type_))


def _always(operand: ir.Operand, op: ir.ComparisonOp, *, truth: bool) -> ir.Predicate:
    """Build a comparison with one result for every value; for NULL, the result of `op`."""
    same = ir.ComparisonOp.NOT_DISTINCT if op.is_null_safe else ir.ComparisonOp.EQ
    return ir.Comparison(same if truth else same.negated, operand, operand)


def _adapted(
    literal: ir.Operand, type_: LogicalType, semantics: Semantics
) -> tuple[ir.Operand, LogicalType]:
    """Type a bare text that is compared with a value; a numeric text keeps its natural type."""
    assert isinstance(literal, ir.Literal)
    if literal.value is not None and isinstance(type_, Int | Decimal):
        assert isinstance(literal.value, str)
        return ir.Literal(parse_text(literal.value, type_)), type_
    return typed(literal, type_, semantics), type_


def _on_grid(
    type_: LogicalType, value: ir.PhysicalValue, value_type: LogicalType
) -> Fraction | None:
    """Return the constant as a number on the grid of the type; None if they share no grid."""
    match type_, value_type:
        case (Int() | Decimal(), Int() | Decimal()):
            assert isinstance(value, int | decimal.Decimal)
            return _scaled(type_, _fraction(value))
        case (Int() | Decimal(), Numeric()):
            assert isinstance(value, bytes)
            return _scaled(type_, _fraction(decimal.Decimal(spelled(value))))
        case (Date(), Timestamp(utc=False)):
            assert isinstance(value, int)
            return Fraction(value, DAY_US)
        case (Nanos(utc=utc), Timestamp(utc=other)) if utc == other:
            assert isinstance(value, int)
            return Fraction(value * NANOS_OF_MICRO)
        case (Nanos(utc=False), Date()):
            assert isinstance(value, int)
            return Fraction(value * DAY_US * NANOS_OF_MICRO)
        case (Timestamp(utc=utc), Nanos(utc=other)) if utc == other:
            assert isinstance(value, int)
            return Fraction(value, NANOS_OF_MICRO)
    return None


def _is_placed(constant: ir.Operand, other: ir.Operand, other_type: LogicalType | None) -> bool:
    """Whether it is an unbounded number to compare by its place between the other side's values.

    The other side's statistics apply then.
    """
    if not isinstance(constant, ir.Literal) or isinstance(other, ir.Literal):
        return False
    if not isinstance(other_type, Int | Decimal):
        return False
    if not isinstance(constant.value, bytes) or constant.type != Numeric():
        return False
    return spelled(constant.value)[-1].isdigit()  # neither NaN nor an infinity


def _small(value: int | decimal.Decimal) -> bool:
    return isinstance(value, int) or (value == 0 or abs(value.adjusted()) <= 60)


def _fraction(value: int | decimal.Decimal) -> Fraction:
    """Return the number, clamped if it lies beyond every grid: it compares the same."""
    if isinstance(value, int) or _small(value):
        return Fraction(value)
    sign = -1 if value < 0 else 1
    return sign * (Fraction(10) ** (60 if value.adjusted() > 0 else -60))


def _scaled(type_: LogicalType, number: Fraction) -> Fraction:
    return number * 10**type_.scale if isinstance(type_, Decimal) else number


def _limits(type_: LogicalType) -> tuple[int, int]:
    """Return the first and the last point of the grid of a type."""
    match type_:
        case Int():
            return int_range(type_)
        case Decimal(precision=precision):
            return 1 - 10**precision, 10**precision - 1
        case Timestamp() | Nanos():
            return int_range(Int(64))
        case _:
            return int_range(Int(32))


def _point(type_: LogicalType, point: int) -> ir.PhysicalValue:
    if isinstance(type_, Decimal):
        with decimal.localcontext(prec=60):
            return decimal.Decimal(point).scaleb(-type_.scale)
    return point


def _compare_typed(
    op: ir.ComparisonOp,
    left: ir.Operand,
    left_type: LogicalType,
    right: ir.Operand,
    right_type: LogicalType,
    semantics: Semantics,
) -> ir.Predicate:
    left, left_type = _settled(left, left_type)
    right, right_type = _settled(right, right_type)
    targets = _comparison_types(left_type, right_type)
    mixed = left_type != right_type and Nanos in (type(left_type), type(right_type))
    if targets is None or (mixed and not compares_times(semantics)):
        raise InvalidPredicate(
            f"{type_name(left_type)} {op.value} {type_name(right_type)} has no meaning; cast a side"
        )
    return ir.Comparison(
        op,
        convert(left, left_type, targets[0], semantics),
        convert(right, right_type, targets[1], semantics),
    )


def _settled(operand: ir.Operand, type_: LogicalType) -> tuple[ir.Operand, LogicalType]:
    """Give an untyped number its natural type."""
    if isinstance(operand, ir.Literal) and operand.type is None and operand.value is not None:
        natural = natural_type(operand.value) or type_
        return ir.Literal(operand.value, natural), natural
    return operand, type_


def _comparison_types(
    left: LogicalType, right: LogicalType
) -> tuple[LogicalType, LogicalType] | None:
    """Return the types in which both sides compare exactly; decimals compare at any scale."""
    if left == right:
        return left, right
    match left, right:
        case (Int(), Int()):
            common = wider_int(left, right)
            return common, common
        case (Decimal(), Decimal()):
            return left, right
        case (Int(), Decimal()):
            return int_as_decimal(left), right
        case (Decimal(), Int()):
            return left, int_as_decimal(right)
        case (Float(), Int() | Float() | Decimal()) | (Int() | Decimal(), Float()):
            return Float(64), Float(64)
        case (Date(), Timestamp()):
            return right, right
        case (Timestamp(), Date()):
            return left, left
        case (Timestamp(), Timestamp()):
            return Timestamp(utc=True), Timestamp(utc=True)
        case (Nanos(utc=utc), Timestamp(utc=other)) if utc == other:
            return left, left
        case (Timestamp(utc=utc), Nanos(utc=other)) if utc == other:
            return right, right
        case (Nanos(utc=False), Date()):
            return left, left
        case (Date(), Nanos(utc=False)):
            return right, right
        case (Uuid(), Binary()) | (Binary(), Uuid()):
            return Binary(), Binary()
    return None
