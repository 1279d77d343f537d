"""Bind casts and calls of timestamps with nanoseconds by the rules of each engine.

Engines differ in the unit of a function's argument, so an operation is bound only where its result
is known to be the engine's. All others are rejected.

Source: DuckDB 2.0 and DataFusion 55, by `tests/predicate/test_nanoseconds.py`; Spark has no such
type, and sees whole microseconds only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.arrays import filled, null_mask, with_nulls
from rowsieve.predicate.binding.zoned import cast_of_session, instant, is_utc, local_time
from rowsieve.predicate.functions.registry import find, names_by_time_use
from rowsieve.predicate.functions.row import TimeUse
from rowsieve.predicate.functions.times.temporal import unit_name
from rowsieve.predicate.semantics import Nanoseconds, Semantics, TimestampText
from rowsieve.types.days import NANOS_OF_MICRO
from rowsieve.types.logical import Date, LogicalType, Nanos, String, Timestamp, type_name

Typed: TypeAlias = tuple[ir.Operand, LogicalType | None]

_LOCAL: Final = Nanos(utc=False)
_SQL: Final = frozenset({Semantics.SQL.name, Semantics.POSTGRES.name})
_COMPARED: Final = _SQL | {
    s.name for s in (Semantics.DUCKDB, Semantics.DATAFUSION, Semantics.SPARK)
}
# Functions whose result has as many digits as the engine's.
_EXACT: Final = names_by_time_use(TimeUse.FIELDS, TimeUse.START, TimeUse.MOVED)
_ZONED: Final = names_by_time_use(TimeUse.ZONED)
_OF_TIMES: Final = names_by_time_use()
_KNOWN: Final[Mapping[Nanoseconds, frozenset[str]]] = {
    Nanoseconds.KEPT: _OF_TIMES,
    Nanoseconds.KEPT_FLOOR: _OF_TIMES,
    Nanoseconds.UNSPELLED: _EXACT,
    Nanoseconds.ROUNDED: _ZONED,
    Nanoseconds.REFUSED: frozenset(),
}
# Functions of microseconds that an engine applies to rounded nanoseconds.
_OF_ROUNDED: Final = (_OF_TIMES - _ZONED) | {"epoch_us"}
# Fields with a fraction, which engines return as floats or with six digits.
_FRACTIONS: Final = frozenset({"second", "epoch"})


def arguments_of(name: str, bound: Sequence[Typed], semantics: Semantics) -> list[Typed]:
    """Convert the arguments of a call as its engine does; raise for an unsupported call."""
    fine = [type_ for _, type_ in bound if isinstance(type_, Nanos)]
    if name == "timezone":  # binding chooses one of two calls
        name = "local_time"
    if not fine or (name not in _OF_TIMES and name not in _OF_ROUNDED):
        return list(bound)
    rounds = semantics.nanoseconds is Nanoseconds.ROUNDED and name in _OF_ROUNDED
    if rounds and Nanos(utc=True) not in fine:  # DuckDB has no such functions of instants
        return [_rounded(operand, type_) for operand, type_ in bound]
    if name not in _KNOWN[semantics.nanoseconds] or _is_fraction(name, bound, semantics):
        raise InvalidPredicate(
            f"{name} of {type_name(fine[0])} is not supported under the rules of {semantics.name}; "
            "compare the value with constants"
        )
    return list(bound)


def compares_times(semantics: Semantics) -> bool:
    """Whether other times become nanoseconds in comparisons, and fail outside their years."""
    return semantics.name in _COMPARED


def compared_constant(
    literal: ir.Literal, operand: ir.Operand, type_: LogicalType | None, semantics: Semantics
) -> ir.Literal:
    """Convert a constant for a comparison with an operand: DataFusion cuts it to microseconds."""
    match type_, literal.type, literal.value:
        case Timestamp(utc=utc), Nanos(utc=other), int(nanos) if utc == other:
            if semantics.nanoseconds is Nanoseconds.UNSPELLED:
                if nanos % NANOS_OF_MICRO:
                    _check_unit(operand)
                return ir.Literal(_cut(nanos), Timestamp(utc))
    return literal


def compared_members(values: ir.ValueSet, operand: ir.Operand, semantics: Semantics) -> ir.ValueSet:
    """Convert an IN list for an operand in microseconds, likewise."""
    members = values.array
    is_fine = pa.types.is_timestamp(members.type) and members.type.unit == "ns"
    if semantics.nanoseconds is not Nanoseconds.UNSPELLED or not is_fine:
        return values
    nanos, nulls = filled(members), null_mask(members)
    micros, rest = np.divmod(nanos, NANOS_OF_MICRO)
    if rest.any():
        _check_unit(operand)
    micros = micros + ((nanos < 0) & (rest > 0))
    return ir.ValueSet(with_nulls(micros, nulls, pa.timestamp("us", members.type.tz)))


def _check_unit(operand: ir.Operand) -> None:
    """InvalidPredicate if the operand may have nanoseconds in DataFusion.

    In DataFusion a cast to a timestamp has them or not, depending on the name of its type, which
    the tree does not keep.
    """
    match operand:
        case ir.BoundColumn():
            return
        case ir.Call(function=name, arguments=arguments) if times := find(name).times:
            for place in times.places:
                _check_unit(arguments[place])
            return
    raise InvalidPredicate(
        "a constant with nanoseconds cannot be compared with a computed timestamp under the rules "
        "of datafusion: whether it is cut to microseconds depends on the type of a cast; compare "
        "with whole microseconds"
    )


def _cut(nanos: int) -> int:
    whole = abs(nanos) // NANOS_OF_MICRO
    return whole if nanos >= 0 else -whole


def _rounded(operand: ir.Operand, type_: LogicalType | None) -> Typed:
    if type_ != _LOCAL:
        return operand, type_
    return ir.Cast(operand, Timestamp()), Timestamp()


def _is_fraction(name: str, bound: Sequence[Typed], semantics: Semantics) -> bool:
    field = bound[0][0] if bound else None
    if name != "extract" or not isinstance(field, ir.Literal):
        return False
    return unit_name(field.value) in _FRACTIONS and semantics.name not in _SQL


def cast_of_nanoseconds(
    operand: ir.Operand,
    source: LogicalType,
    target: LogicalType,
    semantics: Semantics,
    *,
    try_: bool,
) -> ir.Operand | None:
    """Bind a cast from or to a timestamp with nanoseconds; None for any other cast."""
    if source == target or not (isinstance(source, Nanos) or isinstance(target, Nanos)):
        return None
    if semantics.nanoseconds is Nanoseconds.REFUSED:
        _refuse(source, target, semantics)
    bound_cast = _cast(operand, source, target, semantics, try_=try_)
    if bound_cast is None:
        _refuse(source, target, semantics)
    return bound_cast


def _refuse(source: LogicalType, target: LogicalType, semantics: Semantics) -> None:
    raise InvalidPredicate(
        f"CAST from {type_name(source)} to {type_name(target)} is not supported under the rules "
        f"of {semantics.name}; compare the value with constants"
    )


def _cast(
    operand: ir.Operand,
    source: LogicalType,
    target: LogicalType,
    semantics: Semantics,
    *,
    try_: bool,
) -> ir.Operand | None:
    rounds = semantics.nanoseconds is Nanoseconds.ROUNDED
    match source, target:
        case Nanos(utc=utc), Nanos():
            return _between_zones(operand, semantics, utc=utc, try_=try_)
        case Nanos(utc=utc), Timestamp(utc=other):
            if semantics.nanoseconds is Nanoseconds.UNSPELLED:
                return None  # in that engine TIMESTAMP means nanoseconds
            if rounds and (try_ or (utc and not other)):
                return None  # infinite times; DuckDB has no such cast
            plain = Timestamp(utc)
            return _cast_times(ir.Cast(operand, plain, try_), plain, target, semantics, try_=try_)
        case Nanos(utc=False), Date():
            if rounds:
                return None if try_ else ir.Cast(ir.Cast(operand, Timestamp()), target)
            return ir.Cast(operand, target, try_)
        case Nanos(utc=True), Date():
            local = _between_zones(operand, semantics, utc=True, try_=try_)
            return None if local is None else ir.Cast(local, target, try_)
        case Nanos(utc=False), String():
            if semantics.timestamp_text is TimestampText.REFUSED:
                return None
            return ir.Cast(operand, target, try_)
        case Date(), Nanos(utc=False):
            return ir.Cast(operand, target, try_)
        case Timestamp() | Date(), Nanos(utc=utc):
            plain = Timestamp(utc)
            return ir.Cast(_cast_times(operand, source, plain, semantics, try_=try_), target, try_)
    return None


def _cast_times(
    operand: ir.Operand,
    source: LogicalType,
    target: Timestamp,
    semantics: Semantics,
    *,
    try_: bool,
) -> ir.Operand:
    if source == target:
        return operand
    session_cast = cast_of_session(operand, source, target, semantics, try_=try_)
    return session_cast or ir.Cast(operand, target, try_)


def _between_zones(
    operand: ir.Operand, semantics: Semantics, *, utc: bool, try_: bool
) -> ir.Operand | None:
    """Convert an instant to the session's local time (`utc`), or back."""
    if is_utc(semantics):
        return ir.Cast(operand, Nanos(not utc), try_)
    if utc:
        return local_time(semantics.time_zone, operand)
    if try_:
        return None
    rules = semantics.repeated_time, semantics.skipped_time
    call = instant(semantics.time_zone, operand, *rules)
    return call if isinstance(call, ir.Call) and call.function == "instant" else None
