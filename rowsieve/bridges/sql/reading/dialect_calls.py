"""Readers of functions whose name, counting or result type depends on the dialect.

Soundness: the meaning of a name is looked up by dialect and name, never by the name alone:
`dayofweek` begins with Sunday as 1 in Spark and as 0 elsewhere, `^` is a power in two dialects and
a bitwise operator in two others, `isnan(NULL)` is FALSE in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from rowsieve.bridges.constant_values import text_of, whole_of
from rowsieve.bridges.sql.constructs.bins import binned
from rowsieve.bridges.sql.protocols import Reads
from rowsieve.predicate.ir import Call, Cast, Literal, Operand
from rowsieve.types.logical import Bool, Date, Float, Int, String

_ONE = Literal(1, Int(64))
_BITS: Mapping[type[Any], str] = {
    exp.BitwiseAnd: "bit_and",
    exp.BitwiseOr: "bit_or",
    exp.BitwiseXor: "bit_xor",
    exp.BitwiseLeftShift: "shift_left",
    exp.BitwiseRightShift: "shift_right",
}
NAMES: Mapping[tuple[str, str], str] = {
    ("duckdb", "isoyear"): "extract_isoyear",
    ("duckdb", "weekday"): "extract_dow",
}


def _bits(reader: Reads, node: Any) -> Operand:
    reader.only(node, "this", "expression", requires_int128=False)
    sides = (node.this, node.expression)
    if any(isinstance(side, exp.Binary) and not isinstance(side, exp.Dot) for side in sides):
        raise reader.source.refusal(node, "put the operands of a bitwise operator in parentheses")
    return Call(_BITS[type(node)], tuple(reader.beside(side) for side in sides))


def _power(reader: Reads, node: Any) -> Operand:
    """Read DataFusion's `^`, which the grammar parses as a power."""
    named = any(token.text.upper() in ("POW", "POWER") for token in reader.source.tokens)
    if reader.dialect.name != "datafusion" or named:
        raise reader.source.refusal(
            node, "POW is not supported: powers differ in their last digits between engines"
        )
    beside = isinstance(node.parent, exp.Binary | exp.Neg)
    if beside and not isinstance(node.parent, exp.Predicate | exp.Connector):
        raise reader.source.refusal(node, "put ^ and its sides in parentheses: it binds loosest")
    return _bits(reader, exp.BitwiseXor(this=node.this, expression=node.expression))


def _is_nan(reader: Reads, node: Any) -> Operand:
    reader.only(node, "this")
    found = Call("is_nan", (reader.operand(node.this),))
    if reader.dialect.name == "spark":
        return Call("coalesce", (found, Literal(value=False, type=Bool())))
    return found


def _coalesce(reader: Reads, node: Any) -> Operand:
    """Read COALESCE; DataFusion's IFNULL and NVL differ: they convert decimals to floats."""
    words = {token.text.upper() for token in reader.source.tokens}
    if reader.dialect.name == "datafusion" and words & {"IFNULL", "NVL"}:
        raise reader.source.refusal(
            node, "datafusion makes floats of decimals in IFNULL and NVL: write COALESCE"
        )
    reader.only(node, "this", "expressions")
    items = (node.this, *node.expressions)
    return Call("coalesce", tuple(reader.operand(item) for item in items))


def array_size(reader: Reads, node: Any) -> Operand:
    """Read Spark's `array_size`, which is NULL for NULL in every session, and `size`."""
    reader.only(node, "this")
    word = reader.source.lifted.text[node.meta["start"] : node.meta["end"] + 1]
    length = Call("list_length", (reader.operand(node.this),))
    match word.lower():
        case "size":
            return length
        case "array_size":
            return Call("nullif", (length, Literal(-1, Int(64))))
    raise reader.source.refusal(node, f"spark has no function {word}; write size")


def _sign(reader: Reads, node: Any) -> Operand:
    reader.only(node, "this")
    found = Call("sign", (reader.operand(node.this),))
    return Cast(found, Int(8)) if reader.dialect.name == "duckdb" else found


def _day_of_week(reader: Reads, node: Any) -> Operand:
    found = Call("extract_dow", (day(reader, node),))
    return Call("add", (found, _ONE)) if reader.dialect.name == "spark" else found


def day(reader: Reads, node: Any) -> Operand:
    """Read the argument of a part of a date, without the cast that the grammar adds."""
    reader.only(node, "this")
    inner = node.this
    if isinstance(inner, exp.TsOrDsToDate):
        reader.only(inner, "this")
        inner = inner.this
    return reader.operand(inner)


def _part(name: str) -> Callable[[Reads, Any], Operand]:
    return lambda reader, node: Call(f"extract_{name}", (day(reader, node),))


def _moved_days(reader: Reads, node: Any) -> Operand:
    """Read Spark's `date_add(day, n)`, which casts timestamps to dates."""
    reader.only(node, "this", "expression", "unit")
    count = node.expression
    if reader.dialect.name != "spark" or str(node.args.get("unit")).upper() != "DAY":
        raise reader.source.refusal(node, "write the day + INTERVAL 'n days'")
    sign = 1
    if isinstance(count, exp.Mul) and count.expression == exp.Neg(this=exp.Literal.number(1)):
        sign, count = -1, count.this
    if (number := whole_of(reader.operand(count))) is None:
        raise reader.source.refusal(node, "date_add and date_sub take a constant number of days")
    return _moved(reader, node, days=sign * number)


def _day_alone(reader: Reads, node: Any) -> Operand:
    """Read `date(x)`."""
    return Cast(day(reader, node), Date())


def _later_months(reader: Reads, node: Any) -> Operand:
    """Read Spark's `add_months(day, n)`, which casts timestamps to dates."""
    reader.only(node, "this", "expression")
    number = reader.operand(node.expression)
    if isinstance(number, Call) and number.function == "negate":
        number = _negative(number)
    if reader.dialect.name != "spark" or not isinstance(number, Literal):
        raise reader.source.refusal(node, "add_months takes a constant number of months in spark")
    if not isinstance(number.value, int):
        raise reader.source.refusal(node, "add_months takes a whole number")
    return _moved(reader, node, months=number.value)


def _moved(reader: Reads, node: Any, months: int = 0, days: int = 0) -> Operand:
    """Return the date of the first argument plus a constant interval."""
    moves = (Literal(part, Int(64)) for part in (months, days, 0))
    return Call("shift", (Cast(reader.operand(node.this), Date()), *moves))


def _negative(call: Call) -> Operand:
    (inner,) = call.arguments
    whole = isinstance(inner, Literal) and isinstance(inner.value, int)
    return Literal(-inner.value, Int(64)) if whole else call  # type: ignore[union-attr, operator]


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
    """Read DuckDB's `epoch(timestamp)`, a double."""
    reader.only(node, "this")
    return seconds(reader.operand(node.this))


def seconds(moment: Operand) -> Operand:
    """Return the seconds since 1970 with their fraction, as a double."""
    micros = Cast(Call("epoch_us", (moment,)), Float(64))
    return Call("divide", (micros, Literal(1e6, Float(64))))


HANDLERS: Mapping[type[Any], Callable[[Reads, Any], Operand]] = {
    **dict.fromkeys(_BITS, _bits),
    exp.Pow: _power,
    exp.Coalesce: _coalesce,
    exp.IsNan: _is_nan,
    exp.Sign: _sign,
    exp.DayOfWeek: _day_of_week,
    exp.DayOfWeekIso: _part("isodow"),
    exp.DayOfYear: _part("doy"),
    exp.DayOfMonth: _part("day"),
    exp.WeekOfYear: _part("week"),
    exp.Week: _part("week"),
    exp.Date: _day_alone,
    exp.AddMonths: _later_months,
    exp.Chr: _character,
    exp.Overlay: _overlaid,
    exp.TimeToUnix: _epoch,
    exp.Second: _part("whole_second"),
    exp.TsOrDsAdd: _moved_days,
    exp.DateBin: binned,
}
