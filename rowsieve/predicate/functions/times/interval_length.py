"""`interval_us`: the length of an interval in microseconds, by which SQL compares intervals.

A month is 30 days and a day is 24 hours, as in PostgreSQL and DuckDB. It is defined for every
interval; parts have statistics of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from rowsieve.predicate.arrays import Computed
from rowsieve.predicate.functions.row import (
    Argument,
    Function,
    NullRule,
    Signature,
    never_fails,
)
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.interval_bytes import TOTAL, total_us
from rowsieve.types.logical import Decimal, Interval

LENGTH_TYPE: Final = Decimal(TOTAL.precision, TOTAL.scale)


def _resolve(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 1 or not isinstance(arguments[0].type, Interval):
        return None
    return Signature((Interval(),), LENGTH_TYPE)


def _evaluate(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    return Computed(total_us(arguments[0]))


ROWS = (
    Function(
        "interval_us(interval)",
        _resolve,
        _evaluate,
        can_fail=never_fails,
        nulls=NullRule.STRICT,
    ),
)
