"""Readers of functions whose name, counting or result type depends on the dialect.

Soundness: the meaning of a name is looked up by dialect and name, never by the name alone:
`weekday` is 0 on Sundays in DuckDB and on Mondays in Spark. Functions that a single dialect has, or
understands in its own way, are in `calls_by_dialect`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from rowsieve.bridges.constant_values import text_of, whole_of
from rowsieve.bridges.sql.constructs.bins import binned
from rowsieve.bridges.sql.constructs.time_fields import field_argument
from rowsieve.bridges.sql.protocols import Reads
from rowsieve.predicate.ir import Call, Cast, Literal, Operand
from rowsieve.types.logical import Date, Int, String

_BITS: Mapping[type[Any], str] = {
    exp.BitwiseAnd: "bit_and",
    exp.BitwiseOr: "bit_or",
    exp.BitwiseXor: "bit_xor",
    exp.BitwiseLeftShift: "shift_left",
    exp.BitwiseRightShift: "shift_right",
}
ALIASES: Mapping[tuple[str, str], str] = {
    ("duckdb", "isoyear"): "extract_isoyear",
    ("duckdb", "weekday"): "extract_dow",
}


def bits(reader: Reads, node: Any) -> Operand:
    """Read a bitwise operator between operands in parentheses."""
    reader.only(node, "this", "expression", requires_int128=False)
    sides = (node.this, node.expression)
    if any(isinstance(side, exp.Binary) and not isinstance(side, exp.Dot) for side in sides):
        raise reader.source.refusal(node, "put the operands of a bitwise operator in parentheses")
    return Call(_BITS[type(node)], tuple(reader.side(side) for side in sides))


def refused(reason: str, *arguments: str) -> Callable[[Reads, Any], Operand]:
    """Return a reader that refuses a function which most dialects lack in this form."""

    def read(reader: Reads, node: Any) -> Operand:
        reader.only(node, *arguments)
        raise reader.source.refusal(node, reason)

    return read


_other_power = refused(
    "POW is not supported: powers differ in their last digits between engines",
    *("this", "expression"),
)


def power(reader: Reads, node: Any) -> Operand:
    """Read a power of an engine that computes it as we do."""
    reader.only(node, "this", "expression")
    return Call("power", (reader.side(node.this), reader.side(node.expression)))


def _is_nan(reader: Reads, node: Any) -> Operand:
    reader.only(node, "this")
    return Call("is_nan", (reader.operand(node.this),))


def coalesce(reader: Reads, node: Any) -> Operand:
    """Read COALESCE."""
    reader.only(node, "this", "expressions")
    items = (node.this, *node.expressions)
    return Call("coalesce", tuple(reader.operand(item) for item in items))


def _sign(reader: Reads, node: Any) -> Operand:
    reader.only(node, "this")
    return Call("sign", (reader.operand(node.this),))


def narrow_sign(reader: Reads, node: Any) -> Operand:
    """Read DuckDB's `sign(x)`, an integer of 8 bits."""
    return Cast(_sign(reader, node), Int(8))


def _part(name: str) -> Callable[[Reads, Any], Operand]:
    return lambda reader, node: Call(f"extract_{name}", (field_argument(reader, node),))


def _day_alone(reader: Reads, node: Any) -> Operand:
    """Read `date(x)`."""
    return Cast(field_argument(reader, node), Date())


def _character(reader: Reads, node: Any) -> Operand:
    """Read `chr(10)`: a constant character of ASCII, in which engines agree."""
    reader.only(node, "expressions")
    codes = [reader.operand(item) for item in node.expressions]
    code = whole_of(codes[0]) if len(codes) == 1 else None
    if code is None or not 0 < code < 128:
        raise reader.source.refusal(
            node, "chr takes a constant from 1 to 127: engines differ on others"
        )
    return Literal(chr(code), String())


def _overlaid(reader: Reads, node: Any) -> Operand:
    """Read `overlay(text PLACING other FROM n FOR count)` with constants."""
    reader.only(node, "this", "expression", "from_", "for_")
    text, other = reader.operand(node.this), reader.operand(node.expression)
    start, count = (
        None if item is None else whole_of(reader.operand(item))
        for item in (node.args.get("from_"), node.args.get("for_"))
    )
    if node.args.get("for_") is None and (part := text_of(other)) is not None:
        count = len(part)
    if start is None or count is None or start < 1 or count < 0:
        raise reader.source.refusal(node, "overlay takes a constant start from 1 and a count")
    head = Call("left", (text, Literal(start - 1, Int(64))))
    tail = Call("substr", (text, Literal(start + count, Int(64))))
    return Call("concat_strict", (head, other, tail))


def _epoch(reader: Reads, node: Any) -> Operand:
    """Read DuckDB's `epoch(timestamp)`, a double by `own_formulas`."""
    reader.only(node, "this")
    return Call("extract_epoch", (reader.operand(node.this),))


HANDLERS: Mapping[type[Any], Callable[[Reads, Any], Operand]] = {
    **dict.fromkeys(_BITS, bits),
    exp.Pow: _other_power,
    exp.Coalesce: coalesce,
    exp.IsNan: _is_nan,
    exp.Sign: _sign,
    exp.DayOfWeek: _part("dow"),
    exp.DayOfWeekIso: _part("isodow"),
    exp.DayOfYear: _part("doy"),
    exp.DayOfMonth: _part("day"),
    exp.WeekOfYear: _part("week"),
    exp.Week: _part("week"),
    exp.Date: _day_alone,
    exp.AddMonths: refused(
        "add_months takes a constant number of months in spark", "this", "expression"
    ),
    exp.Chr: _character,
    exp.Overlay: _overlaid,
    exp.TimeToUnix: _epoch,
    exp.Second: _part("whole_second"),
    exp.TsOrDsAdd: refused("write the day + INTERVAL 'n days'", "this", "expression", "unit"),
    exp.DateBin: binned,
}
