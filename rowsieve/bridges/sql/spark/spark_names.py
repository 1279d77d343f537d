"""Read functions that only Spark has, or whose arguments it counts differently.

Soundness: the meaning of a function that depends on argument types (a place in a list, a key of a
map) is left to `spark_calls`, which knows them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from rowsieve.bridges.sql.constructs.nested_access import ELEMENT, SUBSCRIPT, TRIED_ELEMENT
from rowsieve.bridges.sql.protocols import Reads
from rowsieve.bridges.sql.spark.spark_coercion import QUOTIENT
from rowsieve.bridges.sql.spark.spark_rules import DATE_UNITS, UNITS
from rowsieve.bridges.sql.spark.spark_type_names import cast_target
from rowsieve.predicate import ir
from rowsieve.types.logical import Bool, Date, Int, LogicalType, Timestamp

_WIDE, _INSTANT = Int(64), Timestamp(utc=True)
_MOST = 2**31
_ZERO = ir.Literal(0, _WIDE)
TRUNC = "trunc_date"  # `trunc` is a function of numbers here
# Functions that read text by a format, which are typed in `spark_formats`.
BY_FORMAT = (
    *("to_date", "try_to_date", "to_timestamp", "try_to_timestamp", "to_timestamp_ltz"),
    *("to_timestamp_ntz", "unix_timestamp", "to_unix_timestamp"),
)
WRITTEN: Mapping[str, str] = {
    **{name: f"{name}({{0}}, {{1}})" for name in BY_FORMAT},
    ELEMENT: "element_at({0}, {1})",
    TRIED_ELEMENT: "try_element_at({0}, {1})",
    SUBSCRIPT: "{0}[{1}]",
    TRUNC: "trunc({1}, {0})",
}
CASTS = frozenset(
    (
        *("bigint", "binary", "boolean", "date", "decimal", "double", "float", "int"),
        *("smallint", "string", "time", "timestamp", "tinyint"),
    )
)
_READ: Mapping[str, LogicalType] = {
    "to_timestamp_ltz": _INSTANT,
    "to_timestamp_ntz": Timestamp(),
    "try_to_timestamp": _INSTANT,
    "try_to_date": Date(),
}


def _unless_zero(name: str, sides: tuple[ir.Operand, ...]) -> ir.Operand:
    """Return a quotient that is NULL if the divisor is zero."""
    zero = ir.Comparison(ir.ComparisonOp.EQ, sides[1], _ZERO)
    return ir.Case(((zero, ir.Literal(None)),), ir.Call(name, sides))


def _sides(reader: Reads, node: Any) -> tuple[ir.Operand, ...]:
    reader.only(node, "this", "expression")
    return reader.operand(node.this), reader.operand(node.expression)


def _nanvl(reader: Reads, node: Any) -> ir.Operand:
    value, other = _sides(reader, node)
    nan = ir.Comparison(
        ir.ComparisonOp.EQ, ir.Call("is_nan", (value,)), ir.Literal(value=True, type=Bool())
    )
    return ir.Case(((nan, other),), value)


def _same(reader: Reads, node: Any) -> ir.Operand:
    return ir.Condition(ir.Comparison(ir.ComparisonOp.NOT_DISTINCT, *_sides(reader, node)))


def _days_since(reader: Reads, node: Any) -> ir.Operand:
    reader.only(node, "this")
    return _constant(reader, node, node.this, Date())


def _constant(reader: Reads, node: Any, number: Any, type_: Date | Timestamp) -> ir.Operand:
    value = reader.operand(number)
    if not isinstance(value, ir.Literal) or not isinstance(value.value, int):
        raise reader.source.refusal(node, "it is read of a constant only")
    return ir.Literal(value.value, type_)


def truncated_date(reader: Reads, node: Any) -> ir.Operand:
    """Read `trunc(day, unit)`, whose result is a date."""
    reader.only(node, "this", "unit")
    spelled = reader.source.quoted_argument(node, -1) or ""  # the grammar reads Q as QUARTER
    if (name := UNITS.get(spelled.lower(), "")) not in DATE_UNITS:
        raise reader.source.refusal(node, f"trunc takes one of {', '.join(sorted(DATE_UNITS))}")
    return ir.Call(TRUNC, (ir.Literal(name), reader.operand(node.this)))


def named(
    reader: Reads, node: Any, name: str, arguments: tuple[ir.Operand, ...]
) -> ir.Operand | None:
    """Read a function that only Spark has; None for any other."""
    match name, arguments:
        case "try_mod", (_, _):
            return _unless_zero("modulo", arguments)
        case "nullifzero", (value,):
            return ir.Call("nullif", (value, _ZERO))
        case "zeroifnull", (value,):
            return ir.Call("coalesce", (value, _ZERO))
        case _, (value,) if name in CASTS:
            return reader.cast(node, value, cast_target(name))
        case (
            ("to_timestamp_ltz" | "to_timestamp_ntz" | "try_to_timestamp" | "try_to_date"),
            (value,),
        ):
            return ir.Cast(value, _READ[name], name.startswith("try_"))
        case "timestamp_micros", (_,):
            return _constant(reader, node, node.expressions[0], _INSTANT)
        case "date_part" | "datepart", (ir.Literal(value=str() as part), _):
            made = exp.Extract(this=exp.Var(this=part), expression=node.expressions[1])
            return reader.operand(made)
    return None


def _cut(name: str) -> Callable[[Reads, Any], ir.Operand]:
    """Return a reader of a part of text: start 0 acts as 1, and negative counts as 0."""

    def read(reader: Reads, node: Any) -> ir.Operand:
        reader.only(node, "this", "start", "length", "expression")
        keys = ("start", "length") if name == "substr" else ("expression",)
        given = [node.args[key] for key in keys if node.args.get(key) is not None]
        bounds = [reader.operand(each) for each in given]
        counts = [each.value for each in bounds if isinstance(each, ir.Literal)]
        whole = [count for count in counts if isinstance(count, int) and count < _MOST]
        if not whole or len(whole) < len(given) or (name == "substr" and whole[0] < 0):
            start = "a constant start from 0 and " if name == "substr" else ""
            raise reader.source.refusal(node, f"{name} takes {start}a constant count in spark")
        least = [1, 0] if name == "substr" else [0]
        limits = (ir.Literal(max(n, low), _WIDE) for n, low in zip(whole, least, strict=False))
        return ir.Call(name, (reader.operand(node.this), *limits))

    return read


NODES: Mapping[type[Any], Callable[[Reads, Any], ir.Operand]] = {
    exp.Nanvl: _nanvl,
    exp.SafeDivide: lambda reader, node: _unless_zero(QUOTIENT, _sides(reader, node)),
    exp.EqualNull: _same,
    exp.DateFromUnixDate: _days_since,
    exp.Substring: _cut("substr"),
    exp.Left: _cut("left"),
    exp.Right: _cut("right"),
}
