"""Spark's resolved expressions as our tree, with Spark's choices of types kept.

What `table` does not list is refused by name. Soundness: Spark has written every conversion into
its tree, so each node is read in the types that it has there. A value that we hold in another type
than Spark does (a part of a date, an unsigned column) is `loose`: equal in every comparison, but
cast to Spark's type before anything is computed from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import pyarrow as pa

from rowsieve.bridges.spark_columns import lists, table, zones
from rowsieve.bridges.spark_columns.patterns import check_pattern
from rowsieve.bridges.spark_columns.tree import Node
from rowsieve.bridges.spark_columns.types import type_named
from rowsieve.bridges.spark_columns.values import (
    Value,
    folded_by_spark,
    held,
    literal_of,
    members_of,
    one_type,
    parsed,
    widens,
)
from rowsieve.bridges.sql import spark_rules
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.coerce import convert
from rowsieve.predicate.limits import MAX_DEPTH
from rowsieve.predicate.semantics import Semantics
from rowsieve.predicate.zoned import depends_on_zone
from rowsieve.types.logical import (
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    String,
    Struct,
    Timestamp,
    is_ordered,
    type_name,
)
from rowsieve.types.schema import Schema

_READ_OF_TEXT = (Bool, Int, Float, Decimal, Date, Timestamp)
_MOST_LEVELS = MAX_DEPTH // 2  # each takes five calls, and Python allows 1,000


class Reader:
    """Reads trees over the columns of one schema; recursion ends at 100 levels.

    `functions`: what reads the classes of Catalyst that are no node of the tree of their own.
    `wraps`: the predicates are meant by the rules of a session without ANSI mode.
    """

    def __init__(
        self, schema: Schema, functions: Mapping[str, Handler], *, wraps: bool = False
    ) -> None:
        self.wraps = wraps
        self._schema = schema
        self._functions = functions
        self._depth = 0
        self._common: dict[str, Node] = {}  # expressions that Spark has named

    def predicate(self, node: Node) -> ir.Predicate:
        """The node as a condition."""
        found = self._read(node)
        if isinstance(found, Value):
            if isinstance(found.operand, ir.Literal) and isinstance(found.operand.value, bool):
                return ir.TRUE if found.operand.value else ir.FALSE
            if isinstance(found.operand, ir.Condition):
                return found.operand.predicate
            if not isinstance(found.type, Bool | None):
                raise UnsupportedOperation(f"a {type_name(found.type)} is no condition")
            return ir.BooleanOperand(found.operand)
        return found

    def value(self, node: Node) -> Value:
        """The node as a value."""
        found = self._read(node)
        if isinstance(found, Value):
            return found
        if isinstance(found, ir.BooleanOperand):
            return Value(found.operand, Bool())
        return Value(ir.Condition(found), Bool())

    def exact(self, node: Node) -> ir.Operand:
        """The node as a value in Spark's type."""
        return self.value(node).exact

    def common(self, node: Node) -> Value:
        """What a reference to a named expression stands for."""
        return self.value(self._common[_name_of(node)])

    def named(self, node: Node) -> ir.Predicate | Value:
        """An expression, and those that it refers to by name."""
        body, *definitions = node.children
        for definition in definitions:
            self._common[_name_of(definition)] = definition.children[0]
        return self._read(body)

    def _read(self, node: Node) -> ir.Predicate | Value:
        self._depth += 1
        try:
            if self._depth > _MOST_LEVELS:
                raise UnsupportedOperation(f"it nests deeper than {_MOST_LEVELS} levels")
            if node.constant and node.kind not in ("Literal", "Cast"):
                folded = folded_by_spark(node)
                if folded is not None:
                    return folded
            return self._listed(node)
        finally:
            self._depth -= 1

    def _listed(self, node: Node) -> ir.Predicate | Value:
        row = table.ROWS.get(node.kind)
        if row is None or row.reads is not Exactness.EXACT:
            raise UnsupportedOperation(f"{node.kind}: {row.note if row else 'not known here'}")
        handler = NODES.get(node.kind) or self._functions.get(node.kind)
        if handler is not None:
            return handler(self, node)
        if "replacement" not in node.fields:
            raise UnsupportedOperation(f"{node.kind} without what Spark puts for it")
        return self._read(node.children[0])

    # Leaves

    def column(self, node: Node) -> Value:
        """A column as Spark holds it."""
        field = self._schema.field(str(node.fields["name"]))
        return held(ir.Column(field.name), field.type)

    def member(self, node: Node) -> Value:
        """A member of a struct, by its place."""
        struct = self.value(node.children[0])
        if not isinstance(struct.type, Struct):
            raise UnsupportedOperation("a member of something that is no struct")
        field = struct.type.fields[int(node.fields["ordinal"])]
        return held(ir.FieldAccess(struct.operand, field.name), field.type)

    # Conditions

    def junction(self, node: Node) -> ir.Predicate:
        """AND or OR, chains of them as one."""
        terms: list[ir.Predicate] = []
        stack = [node]
        while stack:
            item = stack.pop()
            if item.kind == node.kind:
                stack.extend(reversed(item.children))
            else:
                terms.append(self.predicate(item))
        return ir.And(tuple(terms)) if node.kind == "And" else ir.Or(tuple(terms))

    def comparison(self, node: Node) -> ir.Predicate:
        """A comparison of two values of one type."""
        op = table.COMPARISONS[node.kind]
        left, right = (self.value(child) for child in node.children)
        if left.type != right.type and None not in (left.type, right.type):
            raise UnsupportedOperation(f"{op.value} of two types: cast one side")
        for side in (left, right):
            if side.type is not None and not is_ordered(side.type):
                raise UnsupportedOperation(f"values of {type_name(side.type)} are not compared")
        return ir.Comparison(op, left.operand, right.operand)

    def in_list(self, node: Node) -> ir.Predicate:
        """IN; an empty list is FALSE, even for NULL where ANSI mode is on."""
        operand, *members = (self.value(child) for child in node.children)
        if not members:
            if not node.option("legacyNullInEmptyBehavior"):
                return ir.FALSE
            empty = ir.ValueSet(members_of([], operand.type or Bool()), operand.type)
            return ir.InList(operand.operand, empty)
        types = {value.type for value in (operand, *members)} - {None}
        if len(types) > 1 or not all(map(is_ordered, types)):  # type: ignore[arg-type]
            raise UnsupportedOperation("IN of several types, or of values without an order")
        literals = [value.operand for value in members]
        constants = [item for item in literals if isinstance(item, ir.Literal)]
        if len(constants) < len(literals):
            return ir.Or(
                tuple(ir.Comparison(ir.ComparisonOp.EQ, operand.operand, item) for item in literals)
            )
        type_ = next(iter(types), None)
        if type_ is None:
            return ir.InList(operand.operand, ir.ValueSet(pa.nulls(len(constants))))
        return ir.InList(operand.operand, ir.ValueSet(members_of(constants, type_), type_))

    def in_set(self, node: Node) -> ir.Predicate:
        """IN of a long list, whose members are here, or in the set that Spark compares with."""
        operand = self.value(node.children[0])
        if operand.type is None or not is_ordered(operand.type):
            raise UnsupportedOperation("IN of values without an order")
        members = node.fields.get("members")
        if members is None and node.source is not None:
            members = lists.members_of(node.source(), operand.type)
        return ir.InList(operand.operand, ir.ValueSet(members, operand.type))

    def like(self, node: Node) -> ir.Predicate:
        """LIKE with a constant pattern; after the escape Spark takes a wildcard or itself only."""
        text, pattern = node.children
        found = self.value(pattern).operand
        escape = str(node.option("escapeChar"))
        if not isinstance(found, ir.Literal) or not isinstance(found.value, str):
            raise UnsupportedOperation("LIKE takes a constant pattern here")
        check_pattern(found.value, escape)
        used = escape if escape in found.value else None
        if node.kind == "Like":
            return ir.Like(self.text(text), found.value, used)
        if escape.isalpha():
            raise UnsupportedOperation("a letter as the escape of a pattern of any case")
        return ir.Like(ir.Call("lower", (self.text(text),)), found.value.lower(), used)

    def text(self, node: Node) -> ir.Operand:
        """A value that must be text."""
        found = self.value(node)
        if not isinstance(found.type, String | None):
            raise UnsupportedOperation(f"{type_name(found.type)} where text is wanted")
        return found.exact

    # Casts and choices

    def cast(self, node: Node) -> Value:
        """A cast, where ours gives the same value and fails alike."""
        target = type_named(node.fields["dataType"])
        if target is None:
            raise UnsupportedOperation(f"a cast to {node.fields['dataType']} has no type here")
        value = self.value(node.children[0])
        if isinstance(value.operand, ir.Literal):
            return self._cast_constant(node, value, target)
        source = value.type
        if source == target or source is None:
            return Value(value.operand, target, value.loose)
        if widens(source, target):
            return Value(value.operand, target, loose=True)
        if isinstance(source, String) and isinstance(target, _READ_OF_TEXT):
            return self._cast_text(node, value.exact, target)
        if (type(source).__name__, type(target).__name__) not in spark_rules.CASTS:
            raise UnsupportedOperation(
                spark_rules.CAST_REFUSALS.get(_pair(source, target), _NO_CAST)
            )
        spark_rules.check_cast(source, target)
        mode = node.mode()
        in_zone = zones.cast(node, value.exact, source, target, try_=mode == "TRY")
        if in_zone is not None and (mode in ("TRY", "ANSI") or _always(source, target)):
            return Value(in_zone, target)
        if mode == "TRY":
            return Value(ir.Cast(value.exact, target, try_=True), target)
        wraps = self.wraps and mode == "LEGACY" and isinstance(source, Int | Float | Decimal)
        if mode != "ANSI" and not wraps and not _always(source, target):
            raise UnsupportedOperation("a failing cast gives no error where ANSI mode is off")
        return Value(ir.Cast(value.exact, target), target)

    def _cast_text(self, node: Node, operand: ir.Operand, target: LogicalType) -> Value:
        """A cast of text, which the mode of the session decides."""
        mode = node.mode()
        if mode not in ("TRY", "LEGACY" if self.wraps else "ANSI"):
            raise UnsupportedOperation("a cast of text in another mode than that of its session")
        if target != Timestamp(utc=True):
            return Value(ir.Cast(operand, target, mode == "TRY"), target)
        name = "text_instant" if mode == "ANSI" else "try_text_instant"
        zone = ir.Literal(zones.session_rules(node).time_zone, String())
        return Value(ir.Call(name, (zone, operand)), target)

    def _cast_constant(self, node: Node, value: Value, target: LogicalType) -> Value:
        literal, source = value.operand, value.type
        assert isinstance(literal, ir.Literal)
        if literal.value is None:
            return Value(ir.Literal(None, target), target)
        if source == target or (source is not None and widens(source, target)):
            made = convert(literal, source, target, Semantics.SPARK)
            return Value(made, target)
        folded = folded_by_spark(node)
        if folded is not None:
            return folded
        if isinstance(literal.value, str):
            return Value(parsed(literal.value, target), target)
        if source is not None and _pair(source, target) in spark_rules.CASTS:
            spark_rules.check_cast(source, target)
            zoned = depends_on_zone(source, target)
            rules = zones.session_rules(node) if zoned else Semantics.SPARK
            made = convert(literal, source, target, rules)
            if isinstance(made, ir.Literal):
                return Value(made, target)
        raise UnsupportedOperation(f"a constant {literal.value!r} cast to {type_name(target)}")

    def case(self, node: Node) -> Value:
        """CASE and IF: all results have one type."""
        pairs = list(node.children)
        last = Node("Literal", {"value": None, "dataType": "void"})
        if len(pairs) % 2:
            last = pairs.pop()
        conditions = [self.predicate(when) for when in pairs[::2]]
        results = [self.value(then) for then in (*pairs[1::2], last)]
        type_ = one_type("CASE", results)
        branches = tuple(
            (when, _typed(then, type_)) for when, then in zip(conditions, results[:-1], strict=True)
        )
        return Value(ir.Case(branches, _typed(results[-1], type_)), type_)


_NO_CAST = "this cast may give other values here"
Handler: TypeAlias = Callable[[Reader, Node], Value | ir.Predicate]
NODES: Mapping[str, Handler] = {
    "AttributeReference": Reader.column,
    "Literal": lambda _, node: literal_of(node),
    "Alias": lambda reader, node: reader.value(node.children[0]),
    "UnaryPositive": lambda reader, node: reader.value(node.children[0]),
    "GetStructField": Reader.member,
    "And": Reader.junction,
    "Or": Reader.junction,
    "Not": lambda reader, node: _negated(reader.predicate(node.children[0])),
    "IsNull": lambda reader, node: ir.IsNull(reader.value(node.children[0]).operand),
    "IsNotNull": lambda reader, node: ir.Not(ir.IsNull(reader.value(node.children[0]).operand)),
    **dict.fromkeys(table.COMPARISONS, Reader.comparison),
    "In": Reader.in_list,
    "InSet": Reader.in_set,
    "Like": Reader.like,
    "ILike": Reader.like,
    "Cast": Reader.cast,
    "CaseWhen": Reader.case,
    "If": Reader.case,
    "With": Reader.named,
    "CommonExpressionRef": Reader.common,
}


def _name_of(node: Node) -> str:
    """What Spark calls a common expression; its data lacks that, and such expressions nest."""
    name = node.option("id")
    if name is None:
        raise UnsupportedOperation("a common expression without a name")
    return str(name)


def _typed(value: Value, type_: LogicalType | None) -> ir.Operand:
    if value.type is None and isinstance(value.operand, ir.Literal) and type_ is not None:
        return ir.Literal(None, type_)
    return value.exact


def _negated(predicate: ir.Predicate) -> ir.Predicate:
    """NOT; of `=` and `<=>` it is the comparison that says so."""
    if isinstance(predicate, ir.Comparison):
        if predicate.op is ir.ComparisonOp.EQ:
            return ir.Comparison(ir.ComparisonOp.NE, predicate.left, predicate.right)
        if predicate.op is ir.ComparisonOp.NOT_DISTINCT:
            return ir.Comparison(ir.ComparisonOp.DISTINCT, predicate.left, predicate.right)
    return ir.Not(predicate)


def _always(source: LogicalType, target: LogicalType) -> bool:
    """Whether a cast does the same whatever the mode of failing."""
    return _pair(source, target) in spark_rules.CAST_ANY_MODE


def _pair(source: LogicalType, target: LogicalType) -> tuple[str, str]:
    return type(source).__name__, type(target).__name__
