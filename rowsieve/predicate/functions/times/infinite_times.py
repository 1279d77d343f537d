"""Functions of infinite days and times, for engines that have them: DuckDB's `infinity`.

DuckDB treats the greatest day or time and its negative as infinite: they have no fields, and do not
move. A call fails where DuckDB gives NULL in one spelling of the function and a value in another
one, where a finite day or time would become infinite, and in the incomplete first day of all times,
where DuckDB fails or wraps.

Soundness: `nearly_infinite` marks every part in which a call may meet or give an infinite value; no
claim of a row, and no bound on that side, holds there.

Source: DuckDB 2.0, by `tests/predicate/functions/test_infinite_times.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, Mask, filled, null_mask, without
from rowsieve.predicate.functions.casting.far_years import MAX_DAY, MAX_TIME, lacks_time
from rowsieve.predicate.functions.row import AtInfinity, Function, Signature
from rowsieve.predicate.interpretation.abstract import AbstractValue
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.days import DAY_US
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Date, LogicalType, Nanos, Timestamp

_MONTH = 32  # days: the end of a month may be past the greatest day from here
_DAY_OF = {Date: 1, Timestamp: DAY_US, Nanos: DAY_US * 1_000}


def with_infinite_times(row: Function) -> Function:
    """Return the row with the results for infinite days and times, if it takes any."""
    if row.at_infinity is None:
        return row
    return replace(
        row,
        evaluate=lambda arguments, signature, semantics: _evaluate(
            row, arguments, signature, semantics
        ),
    )


def nearly_infinite(value: AbstractValue, semantics: Semantics) -> tuple[Mask, Mask]:
    """Return where values may be within a month of negative and of positive infinity."""
    if not semantics.has_infinite_times or type(value.type) not in _DAY_OF:
        none = np.zeros(len(value.present), dtype=np.bool_)
        return none, none
    margin = _most(value.type) - _MONTH * _DAY_OF[type(value.type)]
    low = null_mask(value.lower) | (filled(value.lower) <= -margin)
    high = null_mask(value.upper) | (filled(value.upper) >= margin)
    return low & value.present, high & value.present


def _evaluate(
    row: Function, arguments: Sequence[pa.Array], signature: Signature, semantics: Semantics
) -> Computed:
    computed = row.evaluate(arguments, signature, semantics)
    if not semantics.has_infinite_times:
        return computed
    values, row_count = computed.values, len(computed.values)
    failed = np.zeros(row_count, np.bool_) if computed.failed is None else computed.failed
    failed = failed | _unusable(values, signature.result, semantics)
    for argument, type_ in zip(arguments, signature.arguments, strict=True):
        failed = failed | _unusable(argument, type_, semantics, is_result=False)
    values = without(values, failed)
    nulls = np.logical_or.reduce([null_mask(argument) for argument in arguments])
    for argument, type_ in reversed(list(zip(arguments, signature.arguments, strict=True))):
        is_infinite = infinite(argument, type_) & ~nulls
        if not is_infinite.any():
            continue
        is_infinite = np.broadcast_to(is_infinite, row_count)
        fails = row.at_infinity is AtInfinity.FAILS
        failed = (failed | is_infinite) if fails else (failed & ~is_infinite)
        values = without(values, is_infinite)
        if row.at_infinity is AtInfinity.SAME:
            ticks = argument.view(arrow_type(type_)).view(values.type)
            values = pc.if_else(pa.array(is_infinite), ticks, values)
    failed = failed & ~nulls
    return Computed(values, failed if failed.any() else None)


def _unusable(
    values: pa.Array, type_: LogicalType, semantics: Semantics, *, is_result: bool = True
) -> Mask:
    """Return the mask of times before the first midnight, and of results that became infinite."""
    unusable = infinite(values, type_) & is_result
    if isinstance(type_, Timestamp):
        unusable = unusable | (lacks_time(filled(values), semantics.far_years) & ~null_mask(values))
    return unusable


def infinite(values: pa.Array, type_: LogicalType) -> Mask:
    """Return the mask of infinite days or times; false for NULL and other types."""
    if type(type_) not in _DAY_OF:
        return np.zeros(len(values), dtype=np.bool_)
    numbers, most = filled(values), _most(type_)
    is_infinite: Mask = ((numbers == most) | (numbers == -most)) & ~null_mask(values)
    return is_infinite


def _most(type_: LogicalType) -> int:
    return MAX_DAY if isinstance(type_, Date) else MAX_TIME
