"""Lists and structs in SQL text: constructors, searches in items, ANY and ALL.

Soundness: the results for a NULL item, a NULL value or a NULL list are the dialect's own, as its
engine shows. If two engines with one spelling differ, the condition has a guard or is rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from sqlglot import exp

from rowsieve.bridges.sql.constructs.nested_access import element_at, sliced
from rowsieve.bridges.sql.dialect_rules import AnyOf, Contains, LikeLists, ListPair
from rowsieve.bridges.sql.protocols import Reads
from rowsieve.bridges.sql.typenames import logical_type
from rowsieve.predicate import ir
from rowsieve.predicate.binding.braced_lists import braced_items
from rowsieve.types.logical import Bool, Field, Int, List, String

_Handler: TypeAlias = Callable[[Reads, Any], ir.Operand | None]
_NULL = ir.Literal(None, Bool())


def made_list(reader: Reads, node: Any) -> ir.Operand:
    """Read `ARRAY[…]`, `[…]`, `array(…)`, `make_array(…)`."""
    reader.only(node, "expressions", "value_constructor", "bracket_notation", "this")
    return ir.Call("make_list", tuple(reader.operand(item) for item in node.expressions))


def made_struct(reader: Reads, node: Any) -> ir.Operand:
    """Read `named_struct('x', 1)`, `{'x': 1}`, `struct_pack(x := 1)`; `ROW(1)` has no names."""
    reader.only(node, "expressions")
    parts: list[ir.Operand] = []
    for item in node.expressions:
        if not isinstance(item, exp.PropertyEQ):
            parts += [ir.Literal(""), reader.operand(item)]
            continue
        reader.only(item, "this", "expression")
        parts += [ir.Literal(item.this.name), reader.operand(item.expression)]
    return ir.Call("make_struct", tuple(parts))


def _of_two(kind: type[Any], read: Callable[[Reads, Any], ir.Operand]) -> _Handler:
    """Return a reader of a call of two arguments as of the grammar's node of the same function."""

    def handler(reader: Reads, node: Any) -> ir.Operand | None:
        if len(node.expressions) != 2:
            return None
        first, second = node.expressions
        return read(reader, kind(this=first, expression=second))

    return handler


def _row_values(reader: Reads, node: Any) -> ir.Operand | None:
    """Read `ROW(a, b)`, a struct without names."""
    values = [reader.operand(item) for item in node.expressions]
    parts = tuple(part for value in values for part in (ir.Literal(""), value))
    return ir.Call("make_struct", parts) if parts else None


def _named_struct(reader: Reads, node: Any) -> ir.Operand | None:
    """Read `named_struct('x', 1)`."""
    if not node.expressions or len(node.expressions) % 2:
        return None
    return ir.Call("make_struct", tuple(reader.operand(item) for item in node.expressions))


def _make_array(reader: Reads, node: Any) -> ir.Operand:
    return made_list(reader, exp.Array(expressions=node.expressions))


def _list_slice(reader: Reads, node: Any) -> ir.Operand | None:
    return sliced(reader, node, *node.expressions) if len(node.expressions) == 3 else None


def _value_of_key(reader: Reads, node: Any) -> ir.Operand | None:
    """Read `map_extract_value(map, key)`."""
    if len(node.expressions) != 2:
        return None
    return ir.Call("map_value", tuple(reader.operand(item) for item in node.expressions))


def _element(reader: Reads, node: Any) -> ir.Operand | None:
    """Read `list_extract(list, place)`, which counts from the end below 0."""
    if len(node.expressions) != 2:
        return None
    values, key = node.expressions
    place = reader.operand(key)
    if not isinstance(place, ir.Literal) or type(place.value) is not int or not place.value:
        raise reader.source.refusal(node, "a list position must be a constant other than 0")
    return element_at(reader.operand(values), place.value)


def _position(reader: Reads, node: Any) -> ir.Operand:
    """Read `array_position(list, value)`: 0 or NULL if it is missing, by dialect."""
    reader.only(node, "this", "expression")
    values, sought = reader.operand(node.this), reader.operand(node.expression)
    place = ir.Call("list_position", (values, sought))
    if reader.dialect.lists.missing_place_is_zero:
        return place
    if not isinstance(sought, ir.Literal) or sought.value is None:
        raise reader.source.refusal(
            node, "the value is a constant: a NULL is found among the items there"
        )
    return ir.Call("nullif", (place, ir.Literal(0, Int(64))))


def _size(reader: Reads, node: Any) -> ir.Operand:
    """Read `array_length(list, 1)`: NULL for an empty list where lists have dimensions."""
    reader.only(node, "this", "expression")
    dimension, values = node.args.get("expression"), reader.operand(node.this)
    if reader.dialect.lists.dimensions:
        if dimension is None:
            raise reader.source.refusal(node, "write array_length(list, 1)")
        return ir.Call("array_length", (values, reader.operand(dimension)))
    if dimension is not None and not (isinstance(dimension, exp.Literal) and dimension.name == "1"):
        raise reader.source.refusal(node, "a list has one dimension, 1")
    return ir.Call("list_length", (values,))


def contained(reader: Reads, node: Any) -> ir.Operand:
    """Read `array_contains(list, value)`: with a NULL item, FALSE or NULL, by dialect."""
    reader.only(node, "this", "expression", "ensure_variant", "check_null")
    values, sought = reader.operand(node.this), reader.operand(node.expression)
    rules = reader.dialect.lists
    items = _made_items(values) if rules.any_of is AnyOf.FUNCTION else None
    if items is not None:  # its optimiser rewrites it to IN
        _check_constants(reader, node, items)
        return ir.Condition(
            ir.Or(tuple(ir.Comparison(ir.ComparisonOp.EQ, sought, item) for item in items))
        )
    if rules.contains is Contains.FALSE:
        return ir.Call("list_contains", (values, sought))
    if rules.contains is Contains.REFUSED:
        raise reader.source.refusal(node, "write value = ANY(list)")
    return _null_of_null(sought, ir.Call("equals_any", (values, sought)))


def _made_items(values: ir.Operand) -> tuple[ir.Operand, ...] | None:
    """Return the items of a list constructor; None for other lists and for an empty one."""
    is_list = isinstance(values, ir.Call) and values.function == "make_list"
    return values.arguments or None if is_list and isinstance(values, ir.Call) else None


def _check_constants(reader: Reads, node: Any, items: tuple[ir.Operand, ...]) -> None:
    """Refuse columns: a list that is cast to the value's type stays a search in its items."""
    if any(isinstance(each, ir.Column) for item in items for each in ir.walk(item)):
        raise reader.source.refusal(
            node, "whether a NULL item counts depends on the types there; write IN (…)"
        )


def _without_null(item: ir.Operand, term: ir.Predicate) -> ir.Predicate:
    """Give FALSE for an item that is NULL: the engine compares with the least or greatest one."""
    if isinstance(item, ir.Literal) and item.value is not None:
        return term
    return ir.And((ir.Not(ir.IsNull(item)), term))


def _null_of_null(sought: ir.Operand, answer: ir.Operand) -> ir.Operand:
    """Give NULL for a NULL value, even for an empty list."""
    if isinstance(sought, ir.Literal) and sought.value is not None:
        return answer
    return ir.Case(((ir.IsNull(sought), _NULL),), answer)


def _overlaps(reader: Reads, node: Any) -> ir.Operand:
    reader.only(node, "this", "expression")
    sides = reader.operand(node.this), reader.operand(node.expression)
    if not _is_known(reader.dialect.lists.overlaps, sides):
        raise reader.source.refusal(
            node,
            f"a NULL item counts otherwise in {reader.dialect.name}; write an OR of = ANY or "
            "array_contains",
        )
    return ir.Call("list_overlaps", sides)


def _contains_all(reader: Reads, node: Any) -> ir.Operand:
    reader.only(node, "this", "expression")
    sides = reader.operand(node.this), reader.operand(node.expression)
    if not _is_known(reader.dialect.lists.contains_all, sides[1:]):
        raise reader.source.refusal(
            node, "engines differ on NULL items: the second list must be of constants, without NULL"
        )
    return ir.Call("list_contains_all", sides)


def _array_slice(reader: Reads, node: Any) -> ir.Operand:
    """Read `array_slice(list, first, last)`, and `slice(list, start, count)`."""
    reader.only(node, "this", "start", "end", "is_length")
    ends = [node.args.get(key) for key in ("start", "end")]
    if reader.dialect.lists.slices:
        return sliced(reader, node, node.this, *ends)
    return ir.Call("slice", tuple(reader.operand(item) for item in (node.this, *ends)))


def _map_keys(reader: Reads, node: Any) -> ir.Operand:
    reader.only(node, "this")
    return ir.Call("map_keys", (reader.operand(node.this),))


def _contained_by(reader: Reads, node: Any) -> ir.Operand:
    reader.only(node, "this", "expression")
    return _contains_all(reader, exp.ArrayContainsAll(this=node.expression, expression=node.this))


def _is_known(pair: ListPair, sides: tuple[ir.Operand, ...]) -> bool:
    """Whether a function of two lists is known for these."""
    return pair is ListPair.ANY or (pair is ListPair.WITHOUT_NULL and _no_null(sides))


def _no_null(sides: tuple[ir.Operand, ...]) -> bool:
    """Whether one of them is a list of constants without NULL."""
    return any(
        isinstance(side, ir.Call)
        and side.function == "make_list"
        and all(isinstance(item, ir.Literal) and item.value is not None for item in side.arguments)
        for side in sides
    )


def cast_list(reader: Reads, node: Any) -> ir.Operand | None:
    """Read `ARRAY[1, 2]::bigint[]` and `'{1,2}'::bigint[]` with the cast at each item.

    An empty list and NULL have the type of the items. None for other casts.
    """
    inner, target = node.this, node.args["to"]
    if not target.is_type(exp.DataType.Type.ARRAY) or isinstance(node, exp.TryCast):
        return None
    if reader.dialect.lists.braces and isinstance(inner, exp.Literal) and inner.is_string:
        inner = exp.Array(expressions=_spelled_items(reader, inner))
    if not isinstance(inner, exp.Array | exp.Null) or len(target.expressions) != 1:
        return None
    kind, empty = target.expressions[0], None if isinstance(inner, exp.Null) else ()
    if inner.expressions:
        casts = [exp.Cast(this=item.copy(), to=kind.copy()) for item in inner.expressions]
        return reader.operand(exp.Array(expressions=casts))
    try:
        return ir.Literal(empty, List(Field(0, "item", logical_type(kind, reader.dialect))))
    except ValueError as error:
        raise reader.source.refusal(node, str(error)) from error


def quantified(node: Any) -> tuple[Any, bool] | None:
    """Return whether it is `ALL(…)` rather than `ANY(…)`; None if it is neither."""
    if isinstance(node, exp.Any | exp.All):
        inner = node.this
        return inner.this if isinstance(inner, exp.Paren) else inner, isinstance(node, exp.All)
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if name in ("all", "any", "some") and len(node.expressions) == 1:
        return node.expressions[0], name == "all"
    return None


def compare_with_items(reader: Reads, op: ir.ComparisonOp, node: Any) -> ir.Predicate | None:
    """Read `value op ANY(list)` and `value op ALL(list)`; None for other nodes."""
    if (quantifier := quantified(node.expression)) is None:
        return None
    inner, all_of = quantifier
    any_of = reader.dialect.lists.any_of
    if any_of is AnyOf.REFUSED:
        raise reader.source.refusal(node, "ANY and ALL are not supported; write IN")
    value, values = reader.side(node.this), _items(reader, inner)
    if (settled := _without_items(any_of, ir.Comparison(op, value, values), all_of)) is not None:
        return settled
    if (items := _made_items(values)) is not None:
        terms = tuple(ir.Comparison(op, value, item) for item in items)
        if all_of:
            return ir.And(terms)
        if any_of is AnyOf.FUNCTION and op is not ir.ComparisonOp.EQ:
            return ir.Or(tuple(map(_without_null, items, terms)))
        if any_of is AnyOf.FUNCTION:
            _check_constants(reader, node, items)
        return ir.Or(terms)
    if any_of is AnyOf.FUNCTION and op is ir.ComparisonOp.EQ and not all_of:
        return ir.BooleanOperand(ir.Call("list_contains", (values, value)))
    wanted = ir.ComparisonOp.NE if all_of else ir.ComparisonOp.EQ
    if op is not wanted:
        raise reader.source.refusal(
            node, "only = ANY and <> ALL of a column of lists are read; of items, write ARRAY[…]"
        )
    among: ir.Operand = ir.Call("equals_any", (values, value))
    if any_of is AnyOf.QUERY:
        inside = ir.And((ir.Not(ir.IsNull(values)), ir.BooleanOperand(among)))
        return ir.Not(inside) if all_of else inside
    return ir.Not(ir.BooleanOperand(among)) if all_of else ir.BooleanOperand(among)


def _without_items(any_of: AnyOf, node: ir.Comparison, all_of: bool) -> ir.Predicate | None:
    """Compare with an empty list, or with a list that is NULL; None for other lists."""
    values = node.right
    is_null = isinstance(values, ir.Literal) and values.value is None
    # DataFusion's `NULL = ANY(list)` is its function, which is NULL of an empty list too.
    called = any_of is AnyOf.FUNCTION and node.op is ir.ComparisonOp.EQ and not all_of
    is_null |= called and node.left == ir.Literal(None) and _is_empty(values)
    if is_null and any_of is not AnyOf.QUERY:
        return ir.Comparison(node.op, node.left, ir.Literal(None))
    if is_null or _is_empty(values):
        return always(node.left) if all_of else ir.Not(always(node.left))
    return None


def _is_empty(values: ir.Operand) -> bool:
    if isinstance(values, ir.Call):
        return values.function == "make_list" and not values.arguments
    return isinstance(values, ir.Literal) and values.value == ()


def always(value: ir.Operand) -> ir.Predicate:
    """Return a condition that is TRUE for every value, NULL too, and names its columns."""
    return ir.Or((ir.IsNull(value), ir.Not(ir.IsNull(value))))


def _items(reader: Reads, node: Any) -> ir.Operand:
    """Read the list; where braces make one, also constants as `'{1,2}'`."""
    if reader.dialect.lists.braces and isinstance(node, exp.Literal) and node.is_string:
        return reader.operand(exp.Array(expressions=_spelled_items(reader, node)))
    if isinstance(node, exp.Query):
        raise reader.source.refusal(
            node, "a filter cannot hold a query; run it first and pass its values"
        )
    return reader.operand(node)


def _spelled_items(reader: Reads, node: Any) -> list[Any]:
    try:
        items = braced_items(node.this)
    except ValueError as error:
        raise reader.source.refusal(node, str(error)) from error
    return [exp.Null() if item is None else exp.Literal.string(item) for item in items]


def patterns(reader: Reads, node: Any) -> tuple[list[Any], bool] | None:
    """Return the patterns of `LIKE ANY` (False) or `LIKE ALL` (True); None for one pattern."""
    if not isinstance(node.expression, exp.Any | exp.All):
        return None
    inner, all_of = node.expression.this, isinstance(node.expression, exp.All)
    bare = _without_cast(reader, inner.this if isinstance(inner, exp.Paren) else inner)
    form = reader.dialect.texts.like_lists
    if form is LikeLists.VALUES:
        return (inner.expressions if isinstance(inner, exp.Tuple) else [bare]), all_of
    if form is LikeLists.ONE_LIST and isinstance(bare, exp.Array):
        return bare.expressions, all_of
    if form is LikeLists.ONE_LIST and isinstance(bare, exp.Literal) and bare.is_string:
        return _spelled_items(reader, bare), all_of
    raise reader.source.refusal(
        node, "LIKE ANY and LIKE ALL take constants, in postgres ARRAY[…], in spark ('a%', 'b%')"
    )


def _without_cast(reader: Reads, node: Any) -> Any:
    """Return `ARRAY['a%']::text[]` without its cast; a cast to another type changes patterns."""
    if not isinstance(node, exp.Cast) or not node.to.is_type(exp.DataType.Type.ARRAY):
        return node
    try:
        types = [logical_type(kind, reader.dialect) for kind in node.to.expressions]
    except ValueError as error:
        raise reader.source.refusal(node, str(error)) from error
    return node.this if types == [String()] else node


_PLACES = dict.fromkeys(
    ("list_position", "list_indexof", "array_indexof"), _of_two(exp.ArrayPosition, _position)
)
_ELEMENTS = dict.fromkeys(("list_extract", "array_extract", "list_element"), _element)
_SUPERSETS = dict.fromkeys(
    ("list_has_all", "array_has_all"), _of_two(exp.ArrayContainsAll, _contains_all)
)

# Functions that the grammar does not know, by dialect.
POSTGRES: Mapping[str, _Handler] = {"row": _row_values, "list_slice": _list_slice, **_PLACES}
DUCKDB: Mapping[str, _Handler] = {
    "row": _row_values,
    "list_slice": _list_slice,
    "map_extract_value": _value_of_key,
    **_PLACES,
    **_ELEMENTS,
    **_SUPERSETS,
}
DATAFUSION: Mapping[str, _Handler] = {
    "named_struct": _named_struct,
    "make_array": _make_array,
    "list_slice": _list_slice,
    "array_element": _element,
    **dict.fromkeys(("list_contains", "list_has"), _of_two(exp.ArrayContains, contained)),
    **dict.fromkeys(("array_has_any", "list_has_any"), _of_two(exp.ArrayOverlaps, _overlaps)),
    **_PLACES,
    **_ELEMENTS,
    **_SUPERSETS,
}
TRINO: Mapping[str, _Handler] = _PLACES
HANDLERS: Mapping[type[Any], Callable[[Reads, Any], ir.Operand]] = {
    exp.Array: made_list,
    exp.Struct: made_struct,
    exp.ArrayContains: contained,
    exp.ArrayPosition: _position,
    exp.ArraySize: _size,
    exp.ArraySlice: _array_slice,
    exp.MapKeys: _map_keys,
    exp.ArrayOverlaps: _overlaps,
    exp.ArrayContainsAll: _contains_all,
    exp.ArrayContainedBy: _contained_by,
}
