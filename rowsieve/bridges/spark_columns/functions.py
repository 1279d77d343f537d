"""Spark's functions as calls of ours: one handler for each class of Catalyst.

Soundness: where Spark's function means something else for some arguments, those are refused, or
written with what means the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from rowsieve.bridges.spark_columns.read import Handler, Reader
from rowsieve.bridges.spark_columns.read_numbers import NUMBERS
from rowsieve.bridges.spark_columns.read_texts import TEXTS
from rowsieve.bridges.spark_columns.read_times import TIMES
from rowsieve.bridges.spark_columns.tree import Node
from rowsieve.bridges.spark_columns.values import Value, constant_of, held, one_type
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.types.logical import (
    Int,
    List,
    Map,
)
from rowsieve.types.schema import Schema


def _choice(name: str) -> Handler:
    def handler(reader: Reader, node: Node) -> Value:
        values = [reader.value(child) for child in node.children]
        type_ = one_type(name, values)
        if type_ is None:
            raise UnsupportedOperation(f"{name} of NULL")
        exact = tuple(
            ir.Literal(None, type_) if value.type is None else value.exact for value in values
        )
        return Value(ir.Call(name, exact), type_)

    return handler


def _null_if(reader: Reader, node: Node) -> Value:
    condition, value = reader.predicate(node.children[0]), reader.value(node.children[1])
    if value.type is None:
        return value
    match condition:
        case ir.Comparison(op=ir.ComparisonOp.EQ, left=left, right=ir.Literal() as other):
            if left == value.operand:
                return Value(ir.Call("nullif", (value.exact, other)), value.type)
    return Value(ir.Case(((condition, ir.Literal(None, value.type)),), value.exact), value.type)


def _size(reader: Reader, node: Node) -> Value:
    value = reader.value(node.children[0])
    found: ir.Operand = ir.Call("list_length", (value.exact,))
    if node.kind == "Size" and node.option("legacySizeOfNull"):
        found = ir.Case(((ir.IsNull(value.operand), ir.Literal(-1, Int(32))),), found)
    return Value(found, Int(32))


def _element(reader: Reader, node: Node) -> Value:
    value, place = reader.value(node.children[0]), reader.value(node.children[1])
    if isinstance(value.type, Map):
        if not isinstance(place.operand, ir.Literal):
            raise UnsupportedOperation("a value of a map takes a constant key here")
        found = ir.Call("map_value", (value.exact, place.operand))
        return held(found, value.type.value.type)
    index = constant_of(place)
    first = 1 if node.kind == "ElementAt" else 0
    if not isinstance(value.type, List) or not isinstance(index, int) or index < first:
        raise UnsupportedOperation(f"an element of a list takes a constant place from {first}")
    if node.kind != "Get" and node.option("failOnError"):
        raise UnsupportedOperation(
            "a place beyond the list fails there; use F.get or try_element_at"
        )
    found = ir.Call("list_element", (value.exact, ir.Literal(index + 1 - first, Int(64))))
    return held(found, value.type.element.type)


FUNCTIONS: Mapping[str, Handler] = {
    **NUMBERS,
    **TEXTS,
    **TIMES,
    "Coalesce": _choice("coalesce"),
    "Greatest": _choice("greatest"),
    "Least": _choice("least"),
    "NullIfResult": _null_if,
    "Size": _size,
    "ArraySize": _size,
    "GetArrayItem": _element,
    "Get": _element,
    "ElementAt": _element,
    "GetMapValue": _element,
}


def reader_of(schema: Schema, *, wraps: bool = False) -> Reader:
    """What reads trees over the columns of this schema, in a session without ANSI if it `wraps`."""
    return Reader(schema, FUNCTIONS, wraps=wraps)
