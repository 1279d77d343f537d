"""Access to nested values in SQL text: list elements, map values, JSON paths.

An index in brackets counts as in the dialect, and must be constant. JSON operators are supported
for PostgreSQL only: other engines reformat the numbers that they find.
"""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp

from rowsieve.bridges.constant_values import whole_of
from rowsieve.bridges.sql.constructs.jsonb_values import is_jsonb, text_is_equal, value_at
from rowsieve.bridges.sql.dialect_rules import Subscripts
from rowsieve.bridges.sql.protocols import Reads
from rowsieve.predicate import ir
from rowsieve.types.logical import Int

ELEMENT, SUBSCRIPT, TRIED_ELEMENT = "element_at", "subscript", "try_element_at"  # of Spark
_BY_COLUMN = (Subscripts.FROM_START, Subscripts.BOTH_ENDS)
_INT32_MAX = 2**31 - 1
PLAIN_PATH = re.compile(r"\{\s*[^\s{},\"\\]+(?:\s*,\s*[^\s{},\"\\]+)*\s*\}")


def bracket(reader: Reads, node: Any) -> ir.Operand:
    """Read `list[1]`, and `struct['name']` or `map['key']` if the dialect has them."""
    reader.only(node, "this", "expressions", "offset", "safe")
    keys = node.expressions
    named = [key for key in keys if isinstance(key, exp.Literal) and key.is_string]
    offset = bool(node.args.get("offset"))
    rules = reader.dialect.lists
    if rules.subscripts is Subscripts.TYPED and len(keys) == 1 and (offset or not named):
        return _typed(reader, node)
    if not rules.subscripts_nest and _slices_twice(node):
        raise reader.source.refusal(
            node, "postgres takes slices of several dimensions; write (list[1:2])[1]"
        )
    if len(keys) == 1 and isinstance(keys[0], exp.Slice):
        if not rules.slices or keys[0].args.get("step") is not None:
            raise reader.source.refusal(node, _SLICES)
        return sliced(reader, node, node.this, keys[0].this, keys[0].expression)
    if (element := _value_of_key(reader, node)) is not None:
        return element
    if named and (offset or node.args.get("safe")) and rules.keyed_elements:
        return ir.Call("map_value", (reader.operand(node.this), reader.operand(keys[0])))
    if len(keys) == 1 and isinstance(keys[0], exp.Literal):
        if not keys[0].is_string:
            return _element(reader, node, keys[0])
        if reader.dialect.bracket_members and not node.args.get("offset"):
            return ir.FieldAccess(reader.operand(node.this), keys[0].this)
    if len(keys) == 1 and node.args.get("safe") is None and (element := _counted(reader, node)):
        return element
    raise reader.source.refusal(
        node, "a subscript is a place in a list from 1, and a struct's member is point.x"
    )


def _typed(reader: Reads, node: Any) -> ir.Operand:
    """Read Spark's `list[0]`, `element_at(list, 1)` and `try_element_at(map, 'key')`."""
    tried = bool(node.args.get("safe"))
    name = TRIED_ELEMENT if tried else ELEMENT if node.args.get("offset") else SUBSCRIPT
    (key,) = node.expressions
    return ir.Call(name, (reader.operand(node.this), reader.operand(key)))


def _slices_twice(node: Any) -> bool:
    """Whether it is a subscript of a subscript, one of them a slice."""
    inner = node.this
    return isinstance(inner, exp.Bracket) and any(
        isinstance(key, exp.Slice) for key in (*node.expressions, *inner.expressions)
    )


def _value_of_key(reader: Reads, node: Any) -> ir.Operand | None:
    """Read `map_extract(map, 'key')[1]`, the value in a list of at most one; None for others."""
    inner, (key, *more) = node.this, node.expressions
    if more or not isinstance(inner, exp.Anonymous) or len(inner.expressions) != 2:
        return None
    if inner.name.lower() not in reader.dialect.lists.one_value_lists:
        return None
    if not isinstance(key, exp.Literal) or key.is_string or key.name != "0":  # the grammar's 1
        return None
    return ir.Call("map_value", tuple(reader.operand(item) for item in inner.expressions))


def sliced(reader: Reads, node: Any, values: Any, first: Any, last: Any) -> ir.Operand:
    """Read the items from one place to another, both included; without a place, to that end."""
    start, stop = (
        default if place is None else _place(reader, place)
        for place, default in ((first, 1), (last, _INT32_MAX))
    )
    if start is None or stop is None or start < 1:
        raise reader.source.refusal(node, _SLICES)
    count = max(min(stop, _INT32_MAX) - start + 1, 0)
    places = (ir.Literal(start, Int(64)), ir.Literal(count, Int(64)))
    return ir.Call("slice", (reader.operand(values), *places))


_SLICES = "a slice has constant places, the first from 1, and no step"


def _place(reader: Reads, node: Any) -> int | None:
    """Return a constant place from 0; None for other operands."""
    value = whole_of(reader.operand(node))
    return value if value is not None and value >= 0 else None


def _counted(reader: Reads, node: Any) -> ir.Operand | None:
    """Read an element counted from the end, or at a column's index; None for others."""
    (key,), subscripts = node.expressions, reader.dialect.lists.subscripts
    if isinstance(key, exp.Neg) and isinstance(key.this, exp.Literal):
        digits = key.this.name
        back = int(digits) - 1 if digits.isdecimal() and len(digits) <= 9 else 0
        if back < 1 or subscripts is not Subscripts.BOTH_ENDS:
            return None
        return element_at(reader.operand(node.this), -back)
    if not isinstance(key, exp.Column) or subscripts not in _BY_COLUMN:
        return None
    values, place = reader.operand(node.this), reader.operand(key)
    element = ir.Call("list_element", (values, place))
    if subscripts is Subscripts.FROM_START:
        return element
    start = ir.Call("add", (ir.Call("list_length", (values,)), ir.Literal(1, Int(64))))
    from_end = ir.Call("list_element", (values, ir.Call("add", (start, ir.Cast(place, Int(64))))))
    return ir.Case(
        ((ir.Comparison(ir.ComparisonOp.LT, place, ir.Literal(0, Int(64))), from_end),), element
    )


def element_at(values: ir.Operand, place: int) -> ir.Operand:
    """Read the element at a constant index from 1 or, below 0, from the end; NULL if missing."""
    if place >= 0:
        return ir.Call("list_element", (values, ir.Literal(place, Int(64))))
    length = ir.Call("list_length", (values,))
    return ir.Call(
        "list_element", (values, ir.Call("add", (length, ir.Literal(1 + place, Int(64)))))
    )


def _element(reader: Reads, node: Any, key: Any) -> ir.Operand:
    if not key.name.isdecimal() or len(key.name) > 9:
        raise reader.source.refusal(node, "a subscript is a place in a list from 1")
    place = int(key.name) + 1  # the grammar counts from 0
    return ir.Call("list_element", (reader.operand(node.this), ir.Literal(place, Int(64))))


def json_operator(reader: Reads, node: Any) -> ir.Operand:
    """Read `->` and `->>` with a constant key."""
    if not reader.dialect.json_operators:
        raise reader.source.refusal(
            node, "engines spell JSON values differently; write json_get or json_get_text"
        )
    reader.only(node, "this", "expression", only_json_types=True)
    shows = isinstance(node, exp.JSONExtractScalar) and is_jsonb(node.this)
    if shows and not text_is_equal(node):
        return ir.Call("jsonb_text", (json_operator(reader, value_at(node)),))
    name = "json_get_text" if isinstance(node, exp.JSONExtractScalar) else "json_get"
    operand = reader.side(node.this)
    key = _key(reader, node, node.expression)
    if isinstance(key.value, int) and is_jsonb(node.this):
        raise reader.source.refusal(
            node, "element 0 of a jsonb value that is not an array is that value; remove ::jsonb"
        )
    if isinstance(operand, ir.Call) and operand.function == "json_get":
        return ir.Call(name, (*operand.arguments, key))
    return ir.Call(name, (operand, key))


def _key(reader: Reads, node: Any, path: Any) -> ir.Literal:
    if isinstance(path, exp.JSONPath) and len(path.expressions) == 2:
        last = path.expressions[1]
        if isinstance(last, exp.JSONPathKey) and isinstance(last.this, str):
            return ir.Literal(last.this)
        if isinstance(last, exp.JSONPathSubscript) and isinstance(last.this, int):
            return ir.Literal(last.this, Int(64))
    digits = path.this if isinstance(path, exp.Neg) else None
    if isinstance(digits, exp.Literal) and not digits.is_string and digits.name.isdecimal():
        return ir.Literal(-int(digits.name), Int(64))
    raise reader.source.refusal(node, "a key of JSON is a quoted constant or a whole number")


def json_path(reader: Reads, node: Any) -> ir.Operand:
    """Read `#>` and `#>>` with a constant path."""
    reader.only(node, "this", "expression")
    path = node.expression
    text = path.this if isinstance(path, exp.Literal) and path.is_string else ""
    if not reader.dialect.json_operators or not PLAIN_PATH.fullmatch(text):
        raise reader.source.refusal(node, "write the path as in '{member,0}', without quotes in it")
    shows = isinstance(node, exp.JSONBExtractScalar) and is_jsonb(node.this)
    if shows and not text_is_equal(node):
        return ir.Call("jsonb_text", (json_path(reader, value_at(node)),))
    keys = [ir.Literal(key.strip()) for key in text[1:-1].split(",")]
    name = "json_path_text" if isinstance(node, exp.JSONBExtractScalar) else "json_path"
    return ir.Call(name, (reader.side(node.this), *keys))
