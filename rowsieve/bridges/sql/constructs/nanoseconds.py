"""DataFusion's bins, which use nanoseconds of 64 bits: NULL outside 1677 to 2262.

Soundness: a bin is kept if the value, its distance from the origin and the bin fit in nanoseconds,
and is NULL otherwise; a width or an origin that does not fit is rejected. The reader applies this
to all text, so conditions, assignments and computed columns agree, with and without a schema.
"""

from __future__ import annotations

import datetime

from rowsieve.bridges.constant_values import value_of
from rowsieve.bridges.sql.plain_shapes import between
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.types.days import DAY_US
from rowsieve.types.logical import Int, Timestamp

_EPOCH = datetime.date(1970, 1, 1)
_MAX_US = (2**63 - 1) // 1000  # the least value is as far from 1970


def within_nanoseconds(call: ir.Call) -> ir.Case:
    """Return the bin as DataFusion computes it: NULL where its nanoseconds overflow."""
    least, most = _nanosecond_range(call)
    micros = ir.Call("epoch_us", (call.arguments[2],))
    within = between(micros, ir.Literal(least, Int(64)), ir.Literal(most, Int(64)))
    return ir.Case(((within, call),), ir.Literal(None))


def bin_within(case: ir.Case) -> ir.Call | None:
    """Return the bin that `within_nanoseconds` wrapped; None for any other operand."""
    (_, then), *others = case.branches
    if others or not isinstance(then, ir.Call) or then.function != "date_bin":
        return None
    try:
        return then if within_nanoseconds(then) == case else None
    except UnsupportedOperation:
        return None


def _nanosecond_range(call: ir.Call) -> tuple[int, int]:
    """Return the range of microseconds in which bin and distance to the origin do not overflow."""
    months, micros, _, origin = call.arguments
    known = isinstance(origin, ir.Literal) and isinstance(origin.type, Timestamp)
    start = value_of(origin) if known else None
    steps = [value_of(part) for part in (months, micros)]
    if not isinstance(start, int) or abs(start) > _MAX_US:
        raise UnsupportedOperation(
            "datafusion bins in nanoseconds; give a constant origin from 1678 to 2261"
        )
    if not isinstance(steps[0], int) or not isinstance(steps[1], int) or steps[1] > _MAX_US:
        raise UnsupportedOperation(
            "datafusion bins in nanoseconds; give bins of less than 106751 days"
        )
    if steps[0]:
        first, month = _month(-_MAX_US) + 1, _month(start)
        return _month_start(month - (month - first) // steps[0] * steps[0]), _MAX_US
    width = max(steps[1], 1)  # binding rejects a bin without width
    least = max(-_MAX_US, start - _MAX_US)
    return start - (start - least) // width * width, min(_MAX_US, start + _MAX_US)


def _month(micros: int) -> int:
    day = _EPOCH + datetime.timedelta(micros // DAY_US)
    return (day.year - 1970) * 12 + day.month - 1


def _month_start(month: int) -> int:
    start = datetime.date(1970 + month // 12, month % 12 + 1, 1)
    return (start - _EPOCH).days * DAY_US
