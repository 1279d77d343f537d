"""Calls and casts that an engine computes from another type, or by another formula, than we do.

PostgreSQL, DuckDB and DataFusion take `floor` and `ceil` of a whole number, and PostgreSQL `round`,
as those of a float64: 2^53 + 1 becomes 2^53, and a quotient of it a fraction. PostgreSQL rounds a
whole number to digits as a numeric, and divides for `degrees`. DataFusion computes a decimal with a
float64 as floats, and makes a float of a decimal by a division, which rounds once more if it has
more than 15 digits. PostgreSQL and DataFusion keep digits of their own of a quotient of decimals.
DataFusion computes a uint64 with a signed number as decimals. DuckDB rounds an unsigned number as a
longer signed one. The seconds since 1970 are floats in DuckDB and DataFusion (`float_seconds`).
`nullif` has its first type in PostgreSQL and DuckDB. Soundness: the result has
the casts and operations that give the engine's values.

Source: PostgreSQL 18 (`pg_proc`, `RADIANS_PER_DEGREE` in its float.h), DuckDB 2.0, DataFusion 55;
all of it run.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from rowsieve.bridges.differences.postgres import fits_real
from rowsieve.bridges.differences.quotients import has_few_digits
from rowsieve.bridges.functions.arguments import COMMON_PARTS
from rowsieve.bridges.sql.constructs.float_seconds import epoch, epoch_by_milliseconds
from rowsieve.bridges.sql.exactness.whole_quotients import fraction_in
from rowsieve.bridges.sql.exactness.years_before_christ import (
    YEARS,
    is_of_our_era,
    made_without_year_zero,
    without_year_zero,
    year_of_era,
)
from rowsieve.predicate import ir
from rowsieve.types.logical import Decimal, Float, Int, LogicalType, Numeric, Timestamp

_FLOAT32: Final = Float(32)
_FLOAT64: Final = Float(64)
_RADIANS_PER_DEGREE: Final = ir.Literal(0.017453292519943295, _FLOAT64)
_THOUSAND: Final = ir.Literal(1000, Int(64))
_INSTANT: Final = Timestamp(utc=True)

_MAX_DIGITS: Final = 38
_EXACT_DIGITS: Final = 15  # of a decimal whose digits a float64 holds
_IN_FLOATS: Final = 2**24  # whole numbers below it are float32
_EXACT_SUMS: Final = frozenset({"add", "subtract", "multiply", "modulo", "negate", "abs"})
_CHOICES: Final = frozenset({"coalesce", "greatest", "least"})
_SUMS: Final = ("add", "subtract", "multiply", "modulo")
_UINT64: Final = Int(64, signed=False)
_OF_UINT64: Final = Decimal(20, 0)  # what DataFusion makes of it next to a signed number
_EXACT_POWER: Final = 22  # the largest power of ten that a float64 holds

_FIELDS: Final = [
    f"extract_{part}" for part in (*COMMON_PARTS, "dow", "isodow", "isoyear", "whole_second")
]

# The type of an operand, None for quoted text and NULL.
TypeOf: TypeAlias = Callable[[ir.Operand], LogicalType | None]
# Returns the call if nothing differs.
Formula: TypeAlias = Callable[[ir.Call, TypeOf], ir.Operand]


def _of_a_float(call: ir.Call, type_of: TypeOf) -> ir.Operand:
    if len(call.arguments) != 1 or not isinstance(type_of(call.arguments[0]), Int):
        return call
    return ir.Call(call.function, (ir.Cast(call.arguments[0], _FLOAT64),))


def _of_a_double(call: ir.Call, type_of: TypeOf) -> ir.Operand:
    """Return the call of a float32 as one of a float64, too: PostgreSQL has no other.

    A field of a time is a numeric there, and whole.
    """
    if fraction_in(call.arguments[0], "postgres") and isinstance(type_of(call.arguments[0]), Int):
        return call.arguments[0]
    if type_of(call.arguments[0]) == _FLOAT32:
        return ir.Call(call.function, (ir.Cast(call.arguments[0], _FLOAT64), *call.arguments[1:]))
    return _of_a_float(call, type_of)


def _real_choice(call: ir.Call, type_of: TypeOf) -> ir.Operand:
    """Return a choice between float32 and constants with constants of its type."""
    values = tuple(_as_real(value, call.arguments, type_of) for value in call.arguments)
    return ir.Call(call.function, values)


def real_case(case: ir.Case, type_of: TypeOf) -> ir.Case:
    """Return a CASE whose values are float32 and constants with constants of its type."""
    values = [*(then for _, then in case.branches), case.otherwise]
    *thens, otherwise = (_as_real(value, values, type_of) for value in values)
    pairs = zip(case.branches, thens, strict=True)
    return ir.Case(tuple((when, then) for (when, _), then in pairs), otherwise)


def _as_real(value: ir.Operand, values: Sequence[ir.Operand], type_of: TypeOf) -> ir.Operand:
    """Return a constant as float32 if it is one exactly, and a column beside it has that type."""
    number = value.value if isinstance(value, ir.Literal) else None
    if isinstance(number, bool) or not isinstance(number, int | float | decimal.Decimal):
        return value
    others = [type_of(each) for each in values if not isinstance(each, ir.Literal)]
    if _FLOAT32 not in others or not fits_real(number):
        return value
    return ir.Literal(float(number), _FLOAT32)


def _rounded(call: ir.Call, type_of: TypeOf) -> ir.Operand:
    if len(call.arguments) == 1 or not isinstance(type_of(call.arguments[0]), Int):
        return _of_a_double(call, type_of)
    return ir.Call("round", (ir.Cast(call.arguments[0], Decimal(38, 0)), *call.arguments[1:]))


def _of_a_longer_type(call: ir.Call, type_of: TypeOf) -> ir.Operand:
    """Return the call of an unsigned number as one of the signed type that the result has."""
    type_ = type_of(call.arguments[0])
    if not isinstance(type_, Int) or type_.signed:
        return call
    longer = Int(64) if type_.bits < 64 else Decimal(_MAX_DIGITS, 0)
    return ir.Call("round", (ir.Cast(call.arguments[0], longer), *call.arguments[1:]))


def _by_angle(operation: str) -> Formula:
    def formula(call: ir.Call, type_of: TypeOf) -> ir.Operand:
        (angle,) = call.arguments
        if type_of(angle) != _FLOAT64:
            angle = ir.Cast(angle, _FLOAT64)
        return ir.Call(operation, (angle, _RADIANS_PER_DEGREE))

    return formula


def _milliseconds(call: ir.Call, _: TypeOf) -> ir.Operand:
    """Return 1000 times the seconds, which have a fraction."""
    return ir.Call("multiply", (ir.Call("extract_second", call.arguments), _THOUSAND))


def _epoch(call: ir.Call, _: TypeOf) -> ir.Operand:
    return epoch(*call.arguments)


def _epoch_of_type(call: ir.Call, type_of: TypeOf) -> ir.Operand:
    (moment,) = call.arguments
    return (epoch_by_milliseconds if type_of(moment) == _INSTANT else epoch)(moment)


def _nullif(call: ir.Call, type_of: TypeOf) -> ir.Operand:
    """Return the call in the type of the value, which the result has."""
    typed = _with_like_constant(call, type_of)
    first = type_of(typed.arguments[0])
    is_longer = first == _FLOAT32 and type_of(typed) == _FLOAT64
    return ir.Cast(typed, _FLOAT32) if is_longer else typed


def _with_like_constant(call: ir.Call, type_of: TypeOf) -> ir.Call:
    """Return the call with a whole constant in the type of the value."""
    value, constant = call.arguments
    number = constant.value if isinstance(constant, ir.Literal) else None
    if isinstance(number, bool) or not isinstance(number, int | decimal.Decimal):
        return call
    exact = decimal.Decimal(number)
    if abs(exact) >= _IN_FLOATS or exact != int(exact):
        return call
    match type_of(value):
        case Float() as type_:
            return ir.Call("nullif", (value, ir.Literal(float(exact), type_)))
        case Decimal(precision=digits, scale=scale) as type_:
            if isinstance(number, int) and exact.adjusted() < digits - scale:
                return ir.Call("nullif", (value, ir.Literal(exact, type_)))
    return call


def _beside_floats(call: ir.Call, type_of: TypeOf) -> ir.Operand:
    """Return the call with a decimal next to a float64 as one."""
    types = [type_of(side) for side in call.arguments]
    if _FLOAT64 not in types or not any(isinstance(type_, Decimal) for type_ in types):
        return call
    sides = zip(call.arguments, types, strict=True)
    return ir.Call(
        call.function,
        tuple(
            decimal_as_float(side, type_) if isinstance(type_, Decimal) else side
            for side, type_ in sides
        ),
    )


def decimal_as_float(value: ir.Operand, type_: Decimal) -> ir.Operand:
    """Return a decimal as a float64: its digits as one, divided by a power of ten."""
    if type_.precision <= _EXACT_DIGITS or not 0 < type_.scale <= _EXACT_POWER:
        return ir.Cast(value, _FLOAT64)
    if type_.precision + type_.scale + 1 > _MAX_DIGITS:
        return ir.Cast(value, _FLOAT64)  # refused: its digits do not make a decimal
    power = 10**type_.scale
    factor = ir.Literal(decimal.Decimal(power), Decimal(type_.scale + 1, 0))
    digits = ir.Cast(
        ir.Cast(ir.Call("multiply", (value, factor)), Decimal(type_.precision, 0)), _FLOAT64
    )
    return ir.Call("divide", (digits, ir.Literal(float(power), _FLOAT64)))


def _numeric_quotient(call: ir.Call, type_of: TypeOf) -> ir.Operand:
    """Return a quotient of PostgreSQL's numerics whose sides have known places."""
    if not _divides(call, type_of, Int | Decimal | Numeric):
        return call
    if not all(_has_places(side, type_of) for side in call.arguments):
        return call
    sides = tuple(without_numeric(side, type_of) for side in call.arguments)
    return ir.Call("rounded_quotient", sides)


def _truncated_quotient(call: ir.Call, type_of: TypeOf) -> ir.Operand:
    """Return a quotient of DataFusion's decimals."""
    if not _divides(call, type_of, Int | Decimal):
        return _beside_floats(call, type_of)
    if not all(_has_places(side, type_of) for side in call.arguments):
        return call  # such as floor, whose result has other places there
    return ir.Call("truncated_quotient", call.arguments)


def _beside_unsigned(formula: Formula) -> Formula:
    """Compute a uint64 with a signed number as decimals, then by the formula."""

    def of_decimals(call: ir.Call, type_of: TypeOf) -> ir.Operand:
        types = [type_of(side) for side in call.arguments]
        are_whole = all(isinstance(type_, Int) for type_ in types)
        if _UINT64 in types and are_whole and any(map(_is_signed, types)):
            call = ir.Call(call.function, tuple(map(_as_long_decimal, call.arguments)))
        return formula(call, type_of)

    return of_decimals


def _is_signed(type_: LogicalType | None) -> bool:
    return isinstance(type_, Int) and type_.signed


def _as_long_decimal(whole: ir.Operand) -> ir.Operand:
    if isinstance(whole, ir.Literal) and isinstance(whole.value, int):
        return ir.Literal(decimal.Decimal(whole.value), _OF_UINT64)
    return ir.Cast(whole, _OF_UINT64)


def _divides(call: ir.Call, type_of: TypeOf, kinds: Any) -> bool:
    """Whether it is a quotient of these types that an engine rounds; of integers it is whole."""
    types = [type_of(side) for side in call.arguments]
    if not all(isinstance(type_, kinds) for type_ in types):
        return False
    if all(isinstance(type_, Int) for type_ in types):
        return False
    return not has_few_digits(types[0], call.arguments[1], type_of(call))


def _has_places(operand: ir.Operand, type_of: TypeOf) -> bool:
    """Whether the engine's value has the places of the type, or of the float that it was.

    A number of any size may have zeros at its end, which are not stored, and in PostgreSQL a choice
    has the places of the value that is chosen; those of a constant 0 decide nothing.
    """
    match operand:
        case ir.Cast(operand=source, type=Numeric()):
            return isinstance(type_of(source), Float) or _has_places(source, type_of)
        case ir.Cast(type=Decimal() | Int()):
            return True
        case ir.Column() | ir.BoundColumn() | ir.FieldAccess() | ir.Literal():
            return isinstance(type_of(operand), Int | Decimal)
        case ir.Call(function="nullif", arguments=(value, _)):
            return _has_places(value, type_of)
        case ir.Call(function=name, arguments=values) if name in _EXACT_SUMS:
            return all(_has_places(each, type_of) for each in values)
        case ir.Call(function=name, arguments=values) if name in _CHOICES:
            return _have_equal_places(values, type_of)
        case ir.Case(branches=branches, otherwise=otherwise):
            return _have_equal_places([*(then for _, then in branches), otherwise], type_of)
        case _:
            return False


def _have_equal_places(values: Sequence[ir.Operand], type_of: TypeOf) -> bool:
    others = [each for each in values if not isinstance(each, ir.Literal) or each.value]
    types = [type_of(each) for each in others]
    scales = {type_.scale if isinstance(type_, Decimal) else 0 for type_ in types}
    return len(scales) == 1 and all(_has_places(each, type_of) for each in others)


def without_numeric(operand: ir.Operand, type_of: TypeOf) -> ir.Operand:
    """Return the integer or decimal below a cast to a number of any size."""
    if not isinstance(operand, ir.Cast) or not isinstance(operand.type, Numeric):
        return operand
    source = operand.operand
    return source if isinstance(type_of(source), Int | Decimal) else operand


FORMULAS: Mapping[str, Mapping[str, Formula]] = {
    "postgres": {
        "floor": _of_a_double,
        "ceil": _of_a_double,
        "round": _rounded,
        "nullif": _nullif,
        **dict.fromkeys(_CHOICES, _real_choice),
        "degrees": _by_angle("divide"),
        "radians": _by_angle("multiply"),
        "extract_millisecond": _milliseconds,
        **dict.fromkeys(YEARS, without_year_zero),
        "make_date": made_without_year_zero,
        "divide": _numeric_quotient,
    },
    "datafusion": {
        "floor": _of_a_float,
        "ceil": _of_a_float,
        **dict.fromkeys(_SUMS, _beside_unsigned(_beside_floats)),
        "power": _beside_floats,
        "divide": _beside_unsigned(_truncated_quotient),
        "extract_epoch": _epoch,
    },
    "duckdb": {
        "floor": _of_a_float,
        "ceil": _of_a_float,
        "round": _of_a_longer_type,
        "nullif": _nullif,
        "extract_epoch": _epoch_of_type,
        "extract_year": year_of_era,
    },
}


# CASE in an engine whose result has another type than ours.
CASES: Mapping[str, Callable[[ir.Case, TypeOf], ir.Case]] = {"postgres": real_case}

# Conditions on which the engine's formulas have no effect.
AS_IT_IS: Mapping[str, Callable[[ir.Predicate], bool]] = {"postgres": is_of_our_era}

# The type of a call's result in the engine, where it is another one than ours: a quotient of an
# unsigned number is a decimal in DataFusion, and a product of two fields of a time wraps around.
RESULTS: Mapping[str, Mapping[str, LogicalType]] = {
    "datafusion": {
        **dict.fromkeys(("list_length", "list_position"), _UINT64),
        **dict.fromkeys(("regex_count", "regex_position", "shift_right"), Int(64)),
        **dict.fromkeys(_FIELDS, Int(32)),
    },
}

# Casts of decimals to float64.
FLOATS: Mapping[str, Callable[[ir.Operand, Decimal], ir.Operand]] = {"datafusion": decimal_as_float}
