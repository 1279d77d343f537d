"""Read nodes that the grammar builds from Spark's functions, and that mean something else there.

Soundness: the meaning of a function that depends on argument types (a quotient, a place in a list)
is left to `types/typer.py` and `types/typed_calls.py`, which know them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from rowsieve.bridges.constant_values import whole_of
from rowsieve.bridges.sql.constructs.time_fields import field_argument
from rowsieve.bridges.sql.constructs.truncations import truncated
from rowsieve.bridges.sql.protocols import Reads
from rowsieve.bridges.sql.spark.read.calls_by_name import BY_FORMAT, TRUNC, constant_of
from rowsieve.bridges.sql.spark.read.calls_by_name import NAMES as OF_VALUES
from rowsieve.bridges.sql.spark.read.formatted_times import read_by_format
from rowsieve.bridges.sql.spark.read.zone_calls import converted, from_time_zone, from_utc
from rowsieve.bridges.sql.spark.rules import DATE_UNITS, UNITS
from rowsieve.bridges.sql.spark.types.numbers_and_times import QUOTIENT, WHOLE_QUOTIENT
from rowsieve.predicate import ir
from rowsieve.types.logical import Bool, Date, Float, Int

_WIDE = Int(64)
_ONE = ir.Literal(1, _WIDE)
_INT32_END = 2**31


def nanvl(reader: Reads, node: Any) -> ir.Operand:
    """Read `nanvl(a, b)`: b if a is NaN."""
    value, other = _sides(reader, node)
    nan = ir.Comparison(
        ir.ComparisonOp.EQ, ir.Call("is_nan", (value,)), ir.Literal(value=True, type=Bool())
    )
    return ir.Case(((nan, other),), value)


def _is_nan(reader: Reads, node: Any) -> ir.Operand:
    """Read `isnan(x)`, which is FALSE for NULL."""
    reader.only(node, "this")
    call = ir.Call("is_nan", (reader.operand(node.this),))
    return ir.Call("coalesce", (call, ir.Literal(value=False, type=Bool())))


def _sides(reader: Reads, node: Any) -> tuple[ir.Operand, ...]:
    reader.only(node, "this", "expression")
    return reader.operand(node.this), reader.operand(node.expression)


def _same(reader: Reads, node: Any) -> ir.Operand:
    return ir.Condition(ir.Comparison(ir.ComparisonOp.NOT_DISTINCT, *_sides(reader, node)))


def _quotient(reader: Reads, node: Any) -> ir.Operand:
    reader.only(node, "this", "expression", "typed", "safe")
    sides = reader.side(node.this), reader.side(node.expression)
    floats = [
        isinstance(side, ir.Cast | ir.Literal) and isinstance(side.type, Float) for side in sides
    ]
    return ir.Call("divide" if any(floats) else QUOTIENT, sides)


def _whole_quotient(reader: Reads, node: Any) -> ir.Operand:
    reader.only(node, "this", "expression")
    return ir.Call(WHOLE_QUOTIENT, (reader.side(node.this), reader.side(node.expression)))


def _array_size(reader: Reads, node: Any) -> ir.Operand:
    """Read `array_size`, which is NULL for NULL in every session, and `size`."""
    reader.only(node, "this")
    word = reader.source.lifted.text[node.meta["start"] : node.meta["end"] + 1]
    length = ir.Call("list_length", (reader.operand(node.this),))
    match word.lower():
        case "size":
            return length
        case "array_size":
            return ir.Call("nullif", (length, ir.Literal(-1, _WIDE)))
    raise reader.source.refusal(node, f"spark has no function {word}; write size")


def _to_date(reader: Reads, node: Any) -> ir.Operand:
    if node.args.get("format") is not None:
        return read_by_format(reader, node)
    reader.only(node, "this", "safe")
    return ir.Cast(reader.operand(node.this), Date())


def _days_since(reader: Reads, node: Any) -> ir.Operand:
    reader.only(node, "this")
    return constant_of(reader, node, node.this, Date())


def _day_of_week(reader: Reads, node: Any) -> ir.Operand:
    return ir.Call("add", (ir.Call("extract_dow", (field_argument(reader, node),)), _ONE))


def _truncated_date(reader: Reads, node: Any) -> ir.Operand:
    """Read `trunc(day, unit)`, whose result is a date."""
    reader.only(node, "this", "unit")
    spelled = reader.source.quoted_argument(node, -1) or ""  # the grammar reads Q as QUARTER
    if (name := UNITS.get(spelled.lower(), "")) not in DATE_UNITS:
        raise reader.source.refusal(node, f"trunc takes one of {', '.join(sorted(DATE_UNITS))}")
    return ir.Call(TRUNC, (ir.Literal(name), reader.operand(node.this)))


def _truncated(reader: Reads, node: Any) -> ir.Operand:
    """Read `date_trunc`: other units give NULL, and the grammar reads some, as Q, for a known."""
    spelled = reader.source.quoted_argument(node, 0) or ""
    return truncated(reader, node, UNITS.get(spelled.lower(), ""))


def _moved_days(reader: Reads, node: Any) -> ir.Operand:
    """Read `date_add(day, n)`, which casts timestamps to dates."""
    reader.only(node, "this", "expression", "unit")
    count = node.expression
    if str(node.args.get("unit")).upper() != "DAY":
        raise reader.source.refusal(node, "write the day + INTERVAL 'n days'")
    sign = 1
    if isinstance(count, exp.Mul) and count.expression == exp.Neg(this=exp.Literal.number(1)):
        sign, count = -1, count.this
    if (number := whole_of(reader.operand(count))) is None:
        raise reader.source.refusal(node, "date_add and date_sub take a constant number of days")
    return _moved(reader, node, days=sign * number)


def _later_months(reader: Reads, node: Any) -> ir.Operand:
    """Read `add_months(day, n)`, which casts timestamps to dates."""
    reader.only(node, "this", "expression")
    number = reader.operand(node.expression)
    if isinstance(number, ir.Call) and number.function == "negate":
        number = _negative(number)
    if not isinstance(number, ir.Literal):
        raise reader.source.refusal(node, "add_months takes a constant number of months in spark")
    if not isinstance(number.value, int):
        raise reader.source.refusal(node, "add_months takes a whole number")
    return _moved(reader, node, months=number.value)


def _moved(reader: Reads, node: Any, months: int = 0, days: int = 0) -> ir.Operand:
    """Return the date of the first argument plus a constant interval."""
    moves = (ir.Literal(part, _WIDE) for part in (months, days, 0))
    return ir.Call("shift", (ir.Cast(reader.operand(node.this), Date()), *moves))


def _negative(call: ir.Call) -> ir.Operand:
    (inner,) = call.arguments
    if isinstance(inner, ir.Literal) and isinstance(inner.value, int):
        return ir.Literal(-inner.value, _WIDE)
    return call


def _cut(name: str) -> Callable[[Reads, Any], ir.Operand]:
    """Return a reader of a part of text: start 0 acts as 1, and negative counts as 0."""

    def read(reader: Reads, node: Any) -> ir.Operand:
        reader.only(node, "this", "start", "length", "expression")
        keys = ("start", "length") if name == "substr" else ("expression",)
        nodes = [node.args[key] for key in keys if node.args.get(key) is not None]
        bounds = [reader.operand(each) for each in nodes]
        counts = [each.value for each in bounds if isinstance(each, ir.Literal)]
        whole = [count for count in counts if isinstance(count, int) and count < _INT32_END]
        if not whole or len(whole) < len(nodes) or (name == "substr" and whole[0] < 0):
            start = "a constant start from 0 and " if name == "substr" else ""
            raise reader.source.refusal(node, f"{name} takes {start}a constant count in spark")
        least = [1, 0] if name == "substr" else [0]
        limits = (ir.Literal(max(n, low), _WIDE) for n, low in zip(whole, least, strict=False))
        return ir.Call(name, (reader.operand(node.this), *limits))

    return read


def _by_format(reader: Reads, node: Any) -> ir.Operand | None:
    """Read a function of text and a format, or of text alone."""
    if len(node.expressions) > 1:
        return read_by_format(reader, node)
    known = OF_VALUES.get(node.name.lower())
    return None if known is None else known(reader, node)


NAMES: Mapping[str, Callable[[Reads, Any], ir.Operand | None]] = {
    **OF_VALUES,
    **dict.fromkeys(BY_FORMAT, _by_format),
}
NODES: Mapping[type[Any], Callable[[Reads, Any], ir.Operand]] = {
    exp.Nanvl: nanvl,
    exp.IsNan: _is_nan,
    exp.SafeDivide: lambda reader, node: ir.Call("try_divide", _sides(reader, node)),
    exp.Div: _quotient,
    exp.IntDiv: _whole_quotient,
    exp.EqualNull: _same,
    exp.ArraySize: _array_size,
    exp.TsOrDsToDate: _to_date,
    exp.StrToTime: read_by_format,
    exp.DateFromUnixDate: _days_since,
    exp.DayOfWeek: _day_of_week,
    exp.DateTrunc: _truncated_date,
    exp.TimestampTrunc: _truncated,
    exp.TsOrDsAdd: _moved_days,
    exp.AddMonths: _later_months,
    exp.AtTimeZone: from_utc,
    exp.FromTimeZone: from_time_zone,
    exp.ConvertTimezone: converted,
    exp.Substring: _cut("substr"),
    exp.Left: _cut("left"),
    exp.Right: _cut("right"),
}
