"""Mixed-type comparisons that the engine coerces differently.

Compared with a float32, DuckDB and DataFusion convert integers to float32, and DuckDB decimals too;
compared with a decimal, DataFusion converts floats to decimals; a list and a BETWEEN convert all of
their items to one type. We compare each pair as float64. Soundness: text is rejected where the
coercion can change a result; what passes has constants that both types hold exactly, or one type.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.sql.exactness.mixtures import check_mixtures, check_quoted_operand
from rowsieve.bridges.sql.exactness.unbound_types import UnboundTyper
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import (
    Decimal,
    Float,
    Int,
    LogicalType,
    type_name,
)


def as_compared(predicate: ir.Predicate, typer: UnboundTyper) -> ir.Predicate:
    """Add the casts that the engine inserts in comparisons of two numeric types.

    DuckDB and DataFusion convert integers to float32 where the other side is a float32, DuckDB also
    decimal constants; DataFusion converts a float constant compared with a decimal to a decimal.
    """
    if typer.semantics.name not in _TO_FLOAT32:
        return predicate
    if isinstance(predicate, ir.And | ir.Or):
        if (group := _as_group(predicate.terms, typer)) is None:
            group = tuple(as_compared(term, typer) for term in predicate.terms)
        return ir.And(group) if isinstance(predicate, ir.And) else ir.Or(group)
    predicate = ir.map_children(
        predicate, lambda term: as_compared(term, typer), lambda value: _with_casts(value, typer)
    )
    match predicate:
        case ir.Comparison(op=op, left=left, right=ir.Literal(type=Float()) as constant):
            drawn = _DRAWS_FLOATS.get(typer.semantics.name, ())
            if isinstance(typer.of_member(left), drawn):
                return ir.Comparison(op, left, as_decimal(constant))
            return ir.Comparison(op, *_narrowed((left, constant), typer))
        case ir.Comparison(op=op, left=left, right=right):
            sides = _narrowed((left, right), typer)
            return ir.Comparison(op, *sides)
    return predicate


def as_computed(value: ir.Operand, typer: UnboundTyper) -> ir.Operand:
    """Return a value whose sums have the casts to float32 that they have in the engine."""
    return _narrowed((value,), typer)[0] if typer.semantics.name in _TO_FLOAT32 else value


def _with_casts(value: ir.Operand, typer: UnboundTyper) -> ir.Operand:
    """Return a value with the engine's casts in the conditions that it holds, as in IS TRUE.

    DuckDB makes pairs of a CASE of a value. Where an engine has one type for it instead, it stays
    as it was written: `check_coercion` recognises it by its equal left sides.
    """
    of_value = isinstance(value, ir.Case) and all(_is_equality(when) for when, _ in value.branches)
    one_type = of_value and typer.semantics.bitwise_lists_from is not None
    return ir.map_children(
        value,
        lambda term: term if one_type else as_compared(term, typer),
        lambda inner: _with_casts(inner, typer),
    )


def as_decimal(constant: ir.Literal) -> ir.Literal:
    """Return the decimal to which DataFusion converts a float constant compared with a decimal."""
    value = constant.value
    if not isinstance(value, float) or constant.type != Float(64) or not abs(value) < 10**9:
        raise UnsupportedOperation("a float compared with a decimal; cast the float to a decimal")
    scaled = abs(value) * 10.0**_DECIMAL_DIGITS  # as floats, then rounded half away from zero
    whole = int(scaled) if scaled >= 2**52 else math.floor(scaled + 0.5)
    with decimal.localcontext(prec=40):
        number = decimal.Decimal(whole if value >= 0 else -whole).scaleb(-_DECIMAL_DIGITS)
    return ir.Literal(number, Decimal(30, _DECIMAL_DIGITS))


def _as_group(
    terms: Sequence[ir.Predicate], typer: UnboundTyper
) -> tuple[ir.Predicate, ...] | None:
    """Return the terms of a BETWEEN or IN with a float32 in one type; None for other terms."""
    if next(_ranges(terms), None) is None:
        return None
    pairs = [term for term in terms if isinstance(term, ir.Comparison)]
    members = (pairs[0].left, *(term.right for term in pairs))
    if Float(32) not in [typer.of_member(member) for member in members]:
        return None
    if typer.semantics.bitwise_lists_from is not None and pairs[0].op is not ir.ComparisonOp.GE:
        return tuple(terms)  # bits are compared where a column is cast
    left, *others = _narrowed(members, typer)
    return tuple(
        ir.Comparison(term.op, left, other) for term, other in zip(pairs, others, strict=True)
    )


def _narrowed(sides: Sequence[ir.Operand], typer: UnboundTyper) -> tuple[ir.Operand, ...]:
    """Return the operands, with casts to float32 as in the engine, also inside arithmetic."""
    narrowed = [
        ir.Call(side.function, _narrowed(side.arguments, typer))
        if isinstance(side, ir.Call) and side.function in _SUMS
        else side
        for side in sides
    ]
    types = [typer.of_member(side) for side in narrowed]
    if Float(32) not in types or Float(64) in types:
        return tuple(narrowed)
    return tuple(
        _as_real(side, type_, typer.semantics.name)
        for side, type_ in zip(narrowed, types, strict=True)
    )


def _as_real(side: ir.Operand, type_: LogicalType | None, engine: str) -> ir.Operand:
    if not isinstance(type_, _TO_FLOAT32[engine]):
        return side
    if isinstance(type_, Int):
        if isinstance(side, ir.Literal) and isinstance(side.value, int):
            return ir.Literal(float(np.float32(side.value)), Float(32))
        return ir.Cast(side, Float(32))
    constant = isinstance(side, ir.Literal) and isinstance(side.value, decimal.Decimal)
    if not constant or not isinstance(type_, Decimal):
        return side  # a column of decimals: refused where it may show
    assert isinstance(side, ir.Literal)
    assert isinstance(side.value, decimal.Decimal)
    digits = side.value.as_tuple()
    if len(digits.digits) > _DECIMAL_DIGITS:
        return side
    # As DuckDB does: the digits as a double, divided by a power of ten, to the nearest float32.
    quotient = float(side.value.scaleb(type_.scale)) / 10.0**type_.scale
    return ir.Literal(float(pa.scalar(quotient, pa.float32()).as_py()), Float(32))


# Types that are cast to float32 next to one; types to which a float next to them is cast.
_TO_FLOAT32: Mapping[str, tuple[type[LogicalType], ...]] = {
    "duckdb": (Int, Decimal),
    "datafusion": (Int,),
}
_DRAWS_FLOATS: Mapping[str, tuple[type[LogicalType], ...]] = {"datafusion": (Decimal,)}
_MET = frozenset({"coalesce", "nullif", "greatest", "least", "make_list"})
_SUMS = frozenset({"add", "subtract", "multiply"})
_ARITHMETIC = frozenset({"add", "subtract", "multiply", "divide", "modulo"})
_UINT64 = Int(64, signed=False)


_Members: TypeAlias = Sequence[ir.Operand | ir.ValueSet]


@dataclass(frozen=True, slots=True)
class _Construct:
    """A construct whose operands the engine casts to one type, and its name in messages.

    `compares`: it only compares them, so that constants with equal values in both types may stay.
    """

    shown: str
    compares: bool = False
    computes: bool = False  # with numbers


_COMPARISON = _Construct("a comparison", compares=True)
_LIST = _Construct("a list", compares=True)
_EQUALS = _Construct("a list or a chain of equals", compares=True)
_RANGE = _Construct("BETWEEN", compares=True)
_SUBJECT = _Construct("CASE of a value")
_CASE = _Construct("CASE")
_LISTS = (_LIST, _EQUALS)
_WHOLE_IN_DOUBLE, _DECIMAL_DIGITS = 2**53, 15


def check_coercion(predicate: ir.Predicate, root: ir.Predicate, typer: UnboundTyper) -> None:
    """Raise where the engine may compare or compute differently; `root` is the bound predicate."""
    check_mixtures(predicate, typer)
    for what, operands in _groups_of_one(predicate):
        is_list = what is _EQUALS
        check_quoted_operand(what.shown, operands, typer, is_list=is_list)
    if typer.semantics.name not in _TO_FLOAT32 or not _has_numbers(root, typer.semantics):
        return
    for what, members in _groups(predicate):
        _check(what, members, typer)
        if what in _LISTS and typer.semantics.bitwise_lists_from is not None:
            _check_zeros(what, members, typer)


def _has_numbers(root: ir.Predicate, semantics: Semantics) -> bool:
    """Whether the predicate has floats or uint64 next to types with which they differ."""
    kinds = {
        node.type
        for node in ir.walk(root)
        if isinstance(node, ir.BoundColumn | ir.Literal | ir.Cast) and node.type is not None
    }
    floats = any(isinstance(kind, Float) for kind in kinds)
    bits = semantics.bitwise_lists_from is not None
    return (floats and (len(kinds) > 1 or bits)) or (bits and _UINT64 in kinds)


def _groups(predicate: ir.Predicate) -> Iterator[tuple[_Construct, _Members]]:
    """Yield operands that the engine casts to one type, and the construct."""
    yield from _groups_of_one(predicate)
    for node in ir.walk(predicate):
        match node:
            case ir.Comparison(left=left, right=right):
                yield _COMPARISON, (left, right)
            case ir.InList(operand=operand, values=values):
                yield _LIST, (operand, values)
            case ir.Call(function=name, arguments=arguments) if name in _ARITHMETIC:
                yield _Construct(name, computes=True), arguments
            case ir.Call(function=name, arguments=arguments) if name in _MET:
                yield _Construct(name), arguments
            case ir.Case(branches=branches, otherwise=otherwise):
                yield _CASE, (*(then for _, then in branches), otherwise)


def _groups_of_one(predicate: ir.Predicate) -> Iterator[tuple[_Construct, Sequence[ir.Operand]]]:
    """Yield one operand, and those with which a list, a BETWEEN or a CASE compares it."""
    for node in ir.walk(predicate):
        match node:
            case ir.And(terms=terms) | ir.Or(terms=terms):
                yield from _ranges(terms)
            case ir.Case(branches=branches):
                conditions = tuple(when for when, _ in branches)
                if not all(map(_is_equality, conditions)):
                    continue  # no CASE of a value
                for _, compared in _ranges(conditions if len(branches) > 1 else conditions * 2):
                    yield _SUBJECT, compared


def _is_equality(condition: ir.Predicate) -> bool:
    return isinstance(condition, ir.Comparison) and condition.op is ir.ComparisonOp.EQ


def _ranges(terms: Sequence[ir.Node]) -> Iterator[tuple[_Construct, Sequence[ir.Operand]]]:
    """Yield the operands of a BETWEEN or an IN with columns, which the engine casts to one type."""
    equals = [term for term in terms if isinstance(term, ir.Comparison)]
    if len(equals) > 1 and len(equals) == len(terms) and len({term.left for term in equals}) == 1:
        ops = {term.op for term in equals}
        between = [term.op for term in equals] == [ir.ComparisonOp.GE, ir.ComparisonOp.LE]
        if not between and ops not in ({ir.ComparisonOp.EQ}, {ir.ComparisonOp.NE}):
            return
        yield _RANGE if between else _EQUALS, (equals[0].left, *(term.right for term in equals))


def _check(what: _Construct, members: _Members, typer: UnboundTyper) -> None:
    types = [typer.of_member(member) for member in members]
    if what is _SUBJECT:
        if typer.semantics.bitwise_lists_from is not None and any(
            isinstance(t, Float) for t in types
        ):
            raise UnsupportedOperation(
                f"{what.shown} of floats compares bits in {typer.semantics.name}; write CASE WHEN "
                "(x = y) IS TRUE to compare values"
            )
        return
    unlike = any(type_ not in (None, _UINT64) for type_ in types)
    if what.computes and typer.semantics.bitwise_lists_from and _UINT64 in types and unlike:
        raise UnsupportedOperation(
            f"{what.shown} of uint64 and another number is of another type in "
            f"{typer.semantics.name}; cast one"
        )
    numbers = {type_ for type_ in types if isinstance(type_, Int | Float | Decimal)}
    floats = {type_ for type_ in numbers if isinstance(type_, Float)}
    others = numbers - floats
    if not floats or not others:
        return
    computed = not what.compares
    narrow = Float(64) not in floats and any(
        isinstance(type_, _TO_FLOAT32[typer.semantics.name]) for type_ in others
    )
    drawn = any(isinstance(type_, _DRAWS_FLOATS.get(typer.semantics.name, ())) for type_ in others)
    for member, type_ in zip(members, types, strict=True):
        if drawn and (computed or not _holds_decimal(member, type_)):
            break
        if narrow and (computed or not _holds_float32(member, type_)):
            break
        if len(members) > 2 and not _holds_double(member, type_):
            break
    else:
        return
    shown = " and ".join(sorted(type_name(type_) for type_ in numbers))
    raise UnsupportedOperation(
        f"{what.shown} of {shown}: {typer.semantics.name} converts them to another type than "
        "Rowsieve; cast them to one"
    )


def _check_zeros(what: _Construct, members: _Members, typer: UnboundTyper) -> None:
    """Raise for a list that the engine compares by bits and we by values."""
    operand, *listed = members
    values = [value for member in listed for value in _constants(member)]
    zeros = {math.copysign(1.0, value) for value in values if value == 0}
    types = {typer.of_member(member) for member in members}
    column_types = {
        type_ for type_ in types if not isinstance(type_, Int)
    }  # constants become the column's
    of_floats = isinstance(typer.of_member(operand), Float)
    plain = isinstance(operand, ir.Column) and of_floats and len(column_types) == 1
    known = plain and (what is not _EQUALS or not typer.semantics.compares_bits(len(listed)))
    by_bits = any(
        isinstance(each, ir.ValueSet) and typer.semantics.compares_bits(len(each))
        for each in listed
    )
    known = known or by_bits  # a long list is, here as there
    if any(isinstance(type_, Float) for type_ in types) and len(zeros) == 1 and not known:
        raise UnsupportedOperation(
            f"a list of floats with one zero, which {typer.semantics.name} tells from the other; "
            "give both"
        )
    computed = any(_values(member) is None for member in listed)
    if any(isinstance(type_, Float) for type_ in types) and computed and not known:
        raise UnsupportedOperation(
            f"a list of floats with members that are not constants: {typer.semantics.name} may "
            "tell 0.0 from -0.0 in it; cast the floats to decimals, or compare with one member at "
            "a time"
        )


def _constants(member: ir.Operand | ir.ValueSet) -> list[float]:
    """Return the numbers of constants, also inside casts."""
    while isinstance(member, ir.Cast):
        member = member.operand
    numbers = _values(member) or ()
    return [float(value) for value in numbers if isinstance(value, int | float | decimal.Decimal)]


def _values(member: ir.Operand | ir.ValueSet) -> Sequence[object] | None:
    """Return the values of constants; None for other operands."""
    if isinstance(member, ir.ValueSet):
        if pa.types.is_temporal(member.array.type):
            return []  # none is a number, and Python has no moments beyond the year 9999
        return list(pc.unique(member.array).to_pylist())
    return [member.value] if isinstance(member, ir.Literal) else None


def _holds_float32(member: ir.Operand | ir.ValueSet, type_: LogicalType | None) -> bool:
    """Whether it is a float32, or constants with the same values as float32."""
    values = _values(member)
    if type_ == Float(32) or type_ is None:
        return True
    return values is not None and all(
        value is None or decimal.Decimal(str(value)) == _as_float32(value) for value in values
    )


def _as_float32(value: object) -> decimal.Decimal:
    return decimal.Decimal(float(pa.scalar(float(str(value)), pa.float32()).as_py()))


def _holds_decimal(member: ir.Operand | ir.ValueSet, type_: LogicalType | None) -> bool:
    """Whether the operand is not a float, or has float64 constants that are exact as decimals."""
    if not isinstance(type_, Float):
        return True
    values = _values(member)
    if values is None or type_ != Float(64):
        return False
    return all(value is None or _keeps(float(str(value))) for value in values)


def _keeps(value: float) -> bool:
    if not abs(value) < 10**9:  # NaN, too
        return False
    exact = decimal.Decimal(repr(value)).scaleb(_DECIMAL_DIGITS)
    return round(value * 10.0**_DECIMAL_DIGITS) == exact


def _holds_double(member: ir.Operand | ir.ValueSet, type_: LogicalType | None) -> bool:
    """Whether it is a float, or constants that float64 holds exactly."""
    values = _values(member)
    if isinstance(type_, Float) or type_ is None:
        return True
    return values is not None and all(
        value is None or abs(decimal.Decimal(str(value))) <= _WHOLE_IN_DOUBLE for value in values
    )
