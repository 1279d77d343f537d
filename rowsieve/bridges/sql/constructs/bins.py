"""Time bins and time differences: intervals inside a function or a comparison.

The width of a bin is a constant of months, or of days and less; each dialect has its own default
origin. `later - earlier > INTERVAL '1 day'` becomes a comparison of microseconds. An interval of
months has no fixed length and is rejected there, as is `age`.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from rowsieve.bridges.sql.constructs.intervals import interval_of, moved_by
from rowsieve.bridges.sql.constructs.nanoseconds import within_nanoseconds
from rowsieve.bridges.sql.protocols import Reads, Writes
from rowsieve.predicate.ir import Call, Cast, Literal, Now, Operand
from rowsieve.types.days import DAY_US
from rowsieve.types.logical import Int, Nanos, Timestamp


def binned(reader: Reads, node: Any) -> Operand:
    """Read `date_bin(width, time, origin)`, in duckdb `time_bucket`."""
    reader.only(node, "this", "expression", "unit")
    bins, width = reader.dialect.times.bins, interval_of(reader, node.this)
    if bins is None or width is None:
        raise reader.source.refusal(
            node, "write the width of a bin as a constant, INTERVAL '15 minutes'"
        )
    micros = width.days * DAY_US + width.micros
    if (width.months and (micros or not bins.by_months)) or min(width.months, micros) < 0:
        raise reader.source.refusal(
            node, "a bin is of days and less, or (not in postgres) of months alone"
        )
    third = node.args.get("unit")  # the grammar's name for the third argument
    default = bins.month_origin if width.months else bins.origin
    if third is not None:
        origin = reader.operand(third)
    elif default is None:
        raise reader.source.refusal(node, "give date_bin an origin, as in TIMESTAMP '2000-01-01'")
    else:
        origin = Literal(default, Timestamp())
    parts = (Literal(part, Int(64)) for part in (width.months, micros))
    call = Call("date_bin", (*parts, reader.operand(node.expression), origin))
    return within_nanoseconds(call) if reader.dialect.times.nanoseconds else call


def bin_text(call: Call, writer: Writes) -> str | None:
    """Write the call; None if the dialect has no bins, or none of this width."""
    months, micros, time, origin = call.arguments
    bins = writer.dialect.times.bins
    if not isinstance(months, Literal) or not isinstance(micros, Literal) or bins is None:
        return None
    if months.value and not bins.by_months:
        return None
    size = months.value or micros.value
    if not isinstance(size, int):
        return None
    unit = "months" if months.value else "microseconds"
    if not months.value and size % DAY_US == 0:  # an interval holds few digits of microseconds
        size, unit = size // DAY_US, "days"
    width = f"{size} {unit}"
    return f"{bins.function}(INTERVAL '{width}', {writer.text(time)}, {writer.text(origin)})"


def difference(reader: Reads, node: Any) -> tuple[Operand, Operand] | None:
    """Return the sides of a comparison of `later - earlier` with an interval, in microseconds."""
    sides = [node.this, node.expression]
    bare = [side.this if isinstance(side, exp.Paren) else side for side in sides]
    intervals = [interval_of(reader, side) for side in sides]
    for here, there in ((0, 1), (1, 0)):
        length, other = intervals[there], bare[here]
        if length is None or intervals[here] is not None or type(other) is not exp.Sub:
            continue
        if length.months:
            raise reader.source.refusal(
                node, "months differ in length; compare with an interval of days"
            )
        if length.days and reader.dialect.times.days_before_hours:
            raise reader.source.refusal(
                node, "DataFusion compares days before hours; write the interval in hours"
            )
        reader.only(other, "this", "expression")
        later, earlier = (reader.side(side) for side in (other.this, other.expression))
        if reader.dialect.times.nanoseconds and (_is_time(later) or _is_time(earlier)):
            if _is_time(later):  # a time moved by the length keeps its nanoseconds
                later = moved_by(reader, node, later, length.times(-1))
            else:
                earlier = moved_by(reader, node, earlier, length)
            return (later, earlier) if here == 0 else (earlier, later)
        # The type of one decides how the other is subtracted: what types them drops the second.
        times = Call("epoch_us", (later, earlier)), Call("epoch_us", (earlier, later))
        operands: list[Operand] = [Call("subtract", times)] * 2
        operands[there] = Literal(length.days * DAY_US + length.micros, Int(64))
        return operands[0], operands[1]
    return None


def _is_time(side: Operand) -> bool:
    """Whether an operand is a constant time, or the current one."""
    match side:
        case Literal(type=type_):
            return isinstance(type_, Timestamp | Nanos)
        case Now():
            return True
        case Cast(operand=inner, type=Timestamp() | Nanos()):
            return _is_time(inner)
        case _:
            return False
