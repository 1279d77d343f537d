"""Read functions that only Spark has, or whose arguments it counts differently.

Soundness: the meaning of a function that depends on argument types (a place in a list, a key of a
map) is left to `types/typed_calls.py`, which knows them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from sqlglot import exp

from rowsieve.bridges.constant_values import whole_of
from rowsieve.bridges.sql.constructs.nested_access import ELEMENT, SUBSCRIPT, TRIED_ELEMENT
from rowsieve.bridges.sql.constructs.pattern_calls import regex
from rowsieve.bridges.sql.protocols import Reads
from rowsieve.bridges.sql.spark.type_names import cast_target
from rowsieve.bridges.sql.spark.types.numbers_and_times import QUOTIENT
from rowsieve.predicate import ir
from rowsieve.types.logical import Date, Int, LogicalType, Timestamp

_WIDE, _INSTANT = Int(64), Timestamp(utc=True)
_INT32_END = 2**31
_ZERO = ir.Literal(0, _WIDE)
TRUNC = "trunc_date"  # `trunc` is a function of numbers here
# Functions that are NULL where an operator would fail, with that operator.
TRIED: Mapping[str, str] = {"try_divide": QUOTIENT, "try_mod": "modulo"}
# Functions that read text by a format, which are typed in `read/formatted_times.py`.
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
    **{name: f"{name}({{0}}, {{1}})" for name in TRIED},
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


def constant_of(reader: Reads, node: Any, number: Any, type_: Date | Timestamp) -> ir.Operand:
    """Read a function of a constant whole number, the physical value of the type."""
    value = reader.operand(number)
    if not isinstance(value, ir.Literal) or not isinstance(value.value, int):
        raise reader.source.refusal(node, "it is read of a constant only")
    return ir.Literal(value.value, type_)


def _from_zero(reader: Reads, node: Any, values: ir.Operand, from_zero: ir.Operand) -> ir.Operand:
    """Read `get(list, place)`, which counts from 0."""
    place = whole_of(from_zero)
    if place is None or not 0 <= place < _INT32_END:
        raise reader.source.refusal(node, "get takes a list and a constant place from 0")
    return ir.Call("list_element", (values, ir.Literal(place + 1, _WIDE)))


def _weekday(_: Reads, __: Any, moment: ir.Operand) -> ir.Operand:
    """Read `weekday`, which is 0 on Mondays."""
    return ir.Call("subtract", (ir.Call("extract_isodow", (moment,)), ir.Literal(1, _WIDE)))


def _is_null(_: Reads, node: Any, value: ir.Operand) -> ir.Operand:
    """Read `isnull` and `isnotnull`."""
    test = ir.IsNull(value)
    return ir.Condition(test if node.name.lower() == "isnull" else ir.Not(test))


def _cast(reader: Reads, node: Any, value: ir.Operand) -> ir.Operand:
    return reader.cast(node, value, cast_target(node.name.lower()))


def _converted(_: Reads, node: Any, value: ir.Operand) -> ir.Operand:
    name = node.name.lower()
    return ir.Cast(value, _READ[name], name.startswith("try_"))


_Handler: TypeAlias = Callable[[Reads, Any], ir.Operand | None]
_OfValues: TypeAlias = Callable[..., ir.Operand]  # takes the reader, the node and each value

# Functions of values, with their number of arguments.
_OF_VALUES: Mapping[str, tuple[int, _OfValues]] = {
    "get": (2, _from_zero),
    "weekday": (1, _weekday),
    "try_mod": (2, lambda _, __, *sides: ir.Call("try_mod", sides)),
    "nullifzero": (1, lambda _, __, value: ir.Call("nullif", (value, _ZERO))),
    "zeroifnull": (1, lambda _, __, value: ir.Call("coalesce", (value, _ZERO))),
    **dict.fromkeys(("isnull", "isnotnull"), (1, _is_null)),
    **dict.fromkeys(CASTS, (1, _cast)),
    **dict.fromkeys(_READ, (1, _converted)),
}


def _of_values(count: int, read: _OfValues) -> _Handler:
    """Return a reader of a function of values; it gives None for another number of them."""

    def handler(reader: Reads, node: Any) -> ir.Operand | None:
        if len(node.expressions) != count:
            return None
        return read(reader, node, *map(reader.operand, node.expressions))

    return handler


def _matches(reader: Reads, node: Any) -> ir.Operand | None:
    """Read `regexp(text, pattern)`."""
    if len(node.expressions) != 2:
        return None
    text, pattern = node.expressions
    return ir.Condition(regex(reader, exp.RegexpLike(this=text, expression=pattern)))


def _micros(reader: Reads, node: Any) -> ir.Operand | None:
    if len(node.expressions) != 1:
        return None
    return constant_of(reader, node, node.expressions[0], _INSTANT)


NAMES: Mapping[str, _Handler] = {
    **{name: _of_values(*row) for name, row in _OF_VALUES.items()},
    "regexp": _matches,
    "timestamp_micros": _micros,
}
"""Readers of functions that the grammar does not know; they give None for other arguments."""
