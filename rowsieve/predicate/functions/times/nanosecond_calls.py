"""Functions of timestamps with nanoseconds, derived from those of microseconds (`Times`).

A time is a whole number of microseconds, rounded down, and the nanoseconds after it. Dates, fields
and starts of units depend on the microseconds alone; a shift by an interval or to another zone
moves these and keeps the nanoseconds. Seconds with a fraction and the epoch have all digits.

Soundness: rounding down is monotone, so the properties of a row hold for its nanoseconds, too.
Bounds in microseconds include all nanoseconds after the last one. A result outside the years 1677
to 2262 fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from rowsieve.predicate.arrays import Computed, any_of, filled, null_mask, with_nulls
from rowsieve.predicate.functions.casting.nanosecond_casts import Numbers, joined, split
from rowsieve.predicate.functions.row import Argument, Direction, Function, Range, Signature
from rowsieve.predicate.functions.times.temporal import as_decimal, unit_name
from rowsieve.predicate.interpretation.abstract import AbstractValue
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.days import NANOS_OF_MICRO
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Decimal, LogicalType, Nanos, String, Timestamp

_CUT: Final = frozenset({"date_trunc", "date_bin", "zoned_trunc"})
_DIGITS: Final[Mapping[str, LogicalType]] = {"second": Decimal(11, 9), "epoch": Decimal(19, 9)}
_MINUTE: Final = 60 * 10**9
_LAST: Final = NANOS_OF_MICRO - 1


def with_nanoseconds(row: Function) -> Function:
    """Return the row with overloads for timestamps with nanoseconds, if it has any."""
    if row.times is None:
        return row
    places = row.times.places
    return replace(
        row,
        resolve=lambda arguments: _resolve(row, places, arguments),
        evaluate=lambda arguments, signature, semantics: _evaluate(
            row, arguments, signature, semantics
        ),
        direction=lambda signature: _direction(row, signature),
        can_fail=lambda signature: (
            isinstance(signature.result, Nanos) or row.can_fail(_coarse(signature))
        ),
        bounds=None if row.bounds is None else _bounds_of(row),
    )


def _resolve(
    row: Function, places: frozenset[int], arguments: Sequence[Argument]
) -> Signature | None:
    fine = [i for i, argument in enumerate(arguments) if isinstance(argument.type, Nanos)]
    if not fine:
        return row.resolve(arguments)
    if not places.issuperset(fine):
        return None
    field = unit_name(arguments[0].constant) if row.name == "extract" else None
    if field is not None and field in _DIGITS and len(arguments) == 2:
        argument_type = arguments[1].type
        assert argument_type is not None
        return Signature((String(), argument_type), _DIGITS[field], field)
    coarse = [replace(each, type=_micros(each.type)) for each in arguments]
    signature = row.resolve(coarse)
    if signature is None or any(signature.arguments[i] != coarse[i].type for i in fine):
        return None
    types = list(signature.arguments)
    for i in fine:
        types[i] = arguments[i].type or types[i]
    result = signature.result
    return Signature(
        tuple(types),
        Nanos(result.utc) if isinstance(result, Timestamp) else result,
        signature.option,
    )


def _micros(type_: LogicalType | None) -> LogicalType | None:
    return Timestamp(type_.utc) if isinstance(type_, Nanos) else type_


def _coarse(signature: Signature) -> Signature:
    """Return the signature of the same call with microseconds."""
    types = tuple(_micros(type_) or type_ for type_ in signature.arguments)
    return replace(signature, arguments=types, result=_micros(signature.result) or signature.result)


def _first(signature: Signature) -> int | None:
    """Return the place of the first argument with nanoseconds; None if there is none."""
    types = signature.arguments
    return next((i for i, type_ in enumerate(types) if isinstance(type_, Nanos)), None)


def _with_digits(signature: Signature) -> bool:
    return signature.option in _DIGITS and _DIGITS[signature.option] == signature.result


def _evaluate(
    row: Function, arguments: Sequence[pa.Array], signature: Signature, semantics: Semantics
) -> Computed:
    if (place := _first(signature)) is None:
        return row.evaluate(arguments, signature, semantics)
    if _with_digits(signature):
        return _fraction(arguments[1], signature)
    coarse = _coarse(signature)
    rounded = [
        _rounded_down(values, type_) if isinstance(type_, Nanos) else values
        for values, type_ in zip(arguments, signature.arguments, strict=True)
    ]
    computed = row.evaluate(rounded, coarse, semantics)
    if not isinstance(signature.result, Nanos):
        return computed
    micros = filled(computed.values)
    rest = np.zeros_like(micros)
    if row.name not in _CUT:
        rest = split(_numbers(arguments[place], len(micros)))[1]
    nulls = null_mask(computed.values)
    nanos, outside = joined(micros, rest)
    failed = outside & ~nulls
    array = with_nulls(nanos, nulls | failed, arrow_type(signature.result))
    return Computed(array, any_of(computed.failed, failed if failed.any() else None))


def _numbers(values: pa.Array, row_count: int) -> Numbers:
    return np.broadcast_to(filled(values), row_count)


def _rounded_down(values: pa.Array, type_: Nanos) -> pa.Array:
    micros = split(filled(values))[0]
    return with_nulls(micros, null_mask(values), arrow_type(Timestamp(type_.utc)))


def _fraction(values: pa.Array, signature: Signature) -> Computed:
    """Return the seconds of the minute, or those since 1970, with nine digits after the point."""
    nanos, type_ = filled(values), signature.result
    assert isinstance(type_, Decimal)
    number = nanos % _MINUTE if signature.option == "second" else nanos
    return Computed(as_decimal(number, null_mask(values), 9).cast(arrow_type(type_)))


def _direction(row: Function, signature: Signature) -> tuple[Direction, ...]:
    return row.direction(_coarse(signature))


def _bounds_of(
    row: Function,
) -> Callable[[Sequence[AbstractValue], Signature, Semantics], Range | None]:
    rule = row.bounds
    assert rule is not None

    def bounds(
        arguments: Sequence[AbstractValue], signature: Signature, semantics: Semantics
    ) -> Range | None:
        if _first(signature) is None:
            return rule(arguments, signature, semantics)
        if _with_digits(signature):
            return None
        coarse = [
            _rounded_bounds(value, value.type) if isinstance(value.type, Nanos) else value
            for value in arguments
        ]
        coarse_bounds = rule(coarse, _coarse(signature), semantics)
        if coarse_bounds is None or not isinstance(signature.result, Nanos):
            return coarse_bounds
        return _finer(coarse_bounds, signature.result)

    return bounds


def _rounded_bounds(value: AbstractValue, type_: Nanos) -> AbstractValue:
    return replace(
        value,
        type=Timestamp(type_.utc),
        lower=_rounded_down(value.lower, type_),
        upper=_rounded_down(value.upper, type_),
        alternatives=(),
    )


def _finer(bounds: Range, type_: Nanos) -> Range:
    """Return bounds of nanoseconds; none, and not safe, where they are beyond 64 bits."""
    ends, lost = [], np.zeros(len(bounds.lower), np.bool_)
    for end, rest in ((bounds.lower, 0), (bounds.upper, _LAST)):
        micros = filled(end)
        nanos, outside = joined(micros, np.full_like(micros, rest))
        ends.append(with_nulls(nanos, null_mask(end) | outside, arrow_type(type_)))
        lost = lost | outside
    safe = None if bounds.safe is None else bounds.safe & ~lost & ~null_mask(ends[0])
    safe = None if safe is None else safe & ~null_mask(ends[1])
    return Range(ends[0], ends[1], bounds.nan, safe)
