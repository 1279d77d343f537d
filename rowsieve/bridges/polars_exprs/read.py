"""Read a `polars.Expr` as our tree, with polars' implicit casts as casts.

A node that the tables do not list is refused by name.

Soundness: polars casts the sides of an operator to one type by rules of its own. A pair of types is
read only if the rules are ours, or can be written as a cast or as another constant.
"""

from __future__ import annotations

import io
import math
import operator
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from rowsieve.bridges.base import supported
from rowsieve.bridges.chains import flattened
from rowsieve.bridges.extras import imported
from rowsieve.bridges.functions import polars
from rowsieve.bridges.functions.casts import CASTS, kinds_of
from rowsieve.bridges.polars_exprs import constants, function_table, zones
from rowsieve.bridges.polars_exprs.messagepack import decode
from rowsieve.bridges.polars_exprs.operands import Operands, as_value, read_call
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import (
    Binary,
    Bool,
    Float,
    Int,
    LogicalType,
    Timestamp,
    Uuid,
    type_name,
)
from rowsieve.types.schema import Schema

_SHOWN_BYTES = 4_000
_CLOSED = {
    "Both": (ir.ComparisonOp.GE, ir.ComparisonOp.LE),
    "Left": (ir.ComparisonOp.GE, ir.ComparisonOp.LT),
    "Right": (ir.ComparisonOp.GT, ir.ComparisonOp.LE),
    "None": (ir.ComparisonOp.GT, ir.ComparisonOp.LT),
}
_OF_FLOATS: Mapping[str, tuple[tuple[ir.ComparisonOp, float], ...]] = {
    "IsNan": ((ir.ComparisonOp.EQ, math.nan),),
    "IsNotNan": ((ir.ComparisonOp.NE, math.nan),),
    "IsFinite": ((ir.ComparisonOp.GT, -math.inf), (ir.ComparisonOp.LT, math.inf)),
    "IsInfinite": ((ir.ComparisonOp.EQ, -math.inf), (ir.ComparisonOp.EQ, math.inf)),
}


class PolarsSource:
    """A serialised expression, with the conditions of its top-level AND.

    Aliases are ignored. `conditions` are decoded nodes, in the order written.
    """

    def __init__(self, expression: Any) -> None:
        self._whole = expression
        self._data = expression.meta.serialize()
        root, self._spans = decode(self._data)
        self.conditions = _chain(root, "And")

    def joined(self, nodes: Sequence[Any]) -> Any:
        """Return the AND of some conditions as an expression."""
        if len(nodes) == len(self.conditions):
            return self._whole
        return reduce(operator.and_, map(self._piece, nodes))

    def shown(self, node: Any) -> str:
        """Return polars' text of a condition."""
        start, stop = self._spans.get(id(node), (0, 0))
        if stop - start > _SHOWN_BYTES:
            return f"an expression of {stop - start:,} bytes"
        return str(self._piece(node))

    def _piece(self, node: Any) -> Any:
        if id(node) not in self._spans:  # a bare name, as that of the length
            return self._whole
        start, stop = self._spans[id(node)]
        return imported("polars", "polars").Expr.deserialize(io.BytesIO(self._data[start:stop]))


_HORIZONTAL = {"And": "Boolean.AllHorizontal", "Or": "Boolean.AnyHorizontal"}


def _chain(node: Any, name: str) -> list[Any]:
    def terms_of(item: Any) -> Sequence[Any] | None:
        kind, content = constants.single(item)
        if kind == "Alias":
            return [content[0]]
        if kind == "BinaryExpr" and content["op"] == name:
            return content["left"], content["right"]
        function, _, inputs = constants.called(item)
        return inputs if function == _HORIZONTAL[name] else None

    return flattened(node, terms_of)


class PolarsReader(Operands):
    """Reads decoded expressions over the columns of one schema."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema, Semantics.POLARS)

    def read(self, node: Any) -> ir.Predicate | ir.Operand:
        """Read one node of the expression."""
        kind, content = constants.single(node)
        supported(function_table.NODE_ROWS.get(kind), kind, "unknown to Rowsieve")
        match kind:
            case "Column":
                return ir.Column(content)
            case "Literal":
                return constants.literal_of(content)
            case "Alias":
                return self.read(content[0])
            case "BinaryExpr":
                return self._binary(node, content)
            case "Cast":
                return self._cast(content)
            case "Ternary":
                return self._case(content)
            case "Function":
                return self._function(*constants.called(node))
        raise AssertionError(kind)

    def _binary(self, node: Any, content: Any) -> ir.Predicate | ir.Operand:
        name = content["op"]
        row = function_table.OPERATOR_ROWS.get(name)
        supported(row, f"the operator {name}", "unknown to Rowsieve")
        if name in _HORIZONTAL:
            return self.junction(_chain(node, name), all_of=name == "And")
        if name in ("Plus", "Minus") and (moved := self._moved(content)) is not None:
            return moved
        left, right = self.operand(content["left"]), self.operand(content["right"])
        if name == "Xor":
            self.expect("^", (left, right), Bool)
            return ir.Comparison(ir.ComparisonOp.NE, left, right)
        if name in function_table.COMPARISONS:
            return self._compared(function_table.COMPARISONS[name], left, right)
        return self.arithmetic(name, left, right)

    def _compared(self, op: ir.ComparisonOp, left: ir.Operand, right: ir.Operand) -> ir.Predicate:
        return ir.Comparison(op, *self.met(left, right))

    def _moved(self, content: Any) -> ir.Operand | None:
        """Read the sum of a timestamp and a constant duration; None without a duration."""
        for side, other in (("right", "left"), ("left", "right")):
            node = content[side]
            kind, detail = constants.single(node)
            while kind == "Alias":
                kind, detail = constants.single(detail[0])
            micros = constants.duration_of(detail) if kind == "Literal" else None
            if micros is None:
                continue
            if side == "left" and content["op"] == "Minus":
                raise UnsupportedOperation("a duration minus a time is not a time")
            moment = self.operand(content[other])
            self.expect("a duration added", (moment,), Timestamp)
            sign = 1 if content["op"] == "Plus" else -1
            parts = (ir.Literal(number, Int(64)) for number in (0, 0, sign * micros))
            return ir.Call("shift_timestamp", (moment, *parts))
        return None

    def _cast(self, content: Any) -> ir.Operand:
        operand, target = self.operand(content["expr"]), constants.type_of_name(content["dtype"])
        source = self.type_of(operand)
        if content["options"] not in ("Strict", "NonStrict"):
            raise UnsupportedOperation("a cast that wraps around has no counterpart in Rowsieve")
        if isinstance(operand, ir.Literal) and operand.type is None and operand.value is not None:
            raise UnsupportedOperation("a cast of a plain constant; write a constant of the type")
        if (
            source is not None
            and source != target
            and kinds_of(source, target) not in CASTS["polars"]
        ):
            raise UnsupportedOperation(
                f"a cast from {type_name(source)} to {type_name(target)} may differ in Rowsieve"
            )
        return ir.Cast(as_value(operand), target, content["options"] == "NonStrict")

    def _case(self, content: Any) -> ir.Operand:
        conditions: list[ir.Predicate] = []
        values: list[ir.Operand] = []
        while True:
            conditions.append(self.predicate(content["predicate"]))
            values.append(self.operand(content["truthy"]))
            kind, following = constants.single(content["falsy"])
            if kind != "Ternary":
                break
            content = following
        values.append(self.operand(content["falsy"]))
        *branches, otherwise = self.aligned("when", values)
        return ir.Case(tuple(zip(conditions, branches, strict=True)), otherwise)

    # Functions

    def _function(
        self, name: str, options: Any, inputs: Sequence[Any]
    ) -> ir.Predicate | ir.Operand:
        family, _, short = name.partition(".")
        if family == "Boolean":
            return self._boolean(short, options, inputs)
        supported(function_table.FUNCTIONS.get(name), f"the function {name}")
        match short:
            case "ConvertTimeZone":
                return zones.converted(self, options, inputs)
            case "ReplaceTimeZone":
                return zones.replaced(self, options, inputs)
        if name in polars.OF_LOCAL_TIME:
            return read_call(self, name, (zones.local_argument(self, inputs[0]),), options)
        return read_call(self, name, tuple(map(self.operand, inputs)), options)

    def _boolean(self, name: str, options: Any, inputs: Sequence[Any]) -> ir.Predicate | ir.Operand:
        row = function_table.BOOLEANS.get(name)
        supported(row, f"the function {row.foreign if row else name}")
        if name in ("AnyHorizontal", "AllHorizontal"):
            return self.junction(inputs, all_of=name == "AllHorizontal")
        if name == "Not":
            return ir.Not(self.predicate(inputs[0]))
        operand = as_value(self.operand(inputs[0]))
        match name:
            case "IsNull":
                return ir.IsNull(operand)
            case "IsNotNull":
                return ir.Not(ir.IsNull(operand))
            case "IsIn":
                return self._is_in(operand, inputs[1], nulls_equal=options["nulls_equal"])
            case "IsBetween":
                return self._between(operand, inputs[1:], options["closed"])
        return self._about_floats(name, operand)

    def _about_floats(self, name: str, operand: ir.Operand) -> ir.Predicate:
        type_ = self.expect(name, (operand,), Float)
        terms = tuple(
            ir.Comparison(op, operand, ir.Literal(value, type_)) for op, value in _OF_FLOATS[name]
        )
        if len(terms) == 1:
            return terms[0]
        return ir.Or(terms) if name == "IsInfinite" else ir.And(terms)

    def _between(self, operand: ir.Operand, bounds: Sequence[Any], ends: str) -> ir.Predicate:
        low, high = (self.operand(bound) for bound in bounds)
        kinds = {(type(b.value) if isinstance(b, ir.Literal) else None) for b in (low, high)}
        types = {self.type_of(b) for b in (low, high)}
        typed = types - {None}
        drawn = len(types) > 1 and typed != {self.type_of(operand)}
        if len(kinds - {type(None)}) > 1 or len(typed) > 1 or drawn:
            raise UnsupportedOperation("is_between with bounds of two types")
        if ir.Literal(None) in (low, high):
            raise UnsupportedOperation("is_between with an untyped NULL is NULL on all rows")
        lower, upper = _CLOSED[ends]
        return ir.And((self._compared(lower, operand, low), self._compared(upper, operand, high)))

    def _is_in(self, operand: ir.Operand, listed: Any, *, nulls_equal: bool) -> ir.Predicate:
        kind, content = constants.single(listed)
        if kind == "Agg":  # a Series made into one list
            kind, content = constants.single(content)
            inner = content["input"] if kind == "Implode" else None
            kind, content = constants.single(inner) if inner is not None else (kind, None)
        if kind != "Literal" or content is None:
            raise UnsupportedOperation("is_in is read with a list of constants only")
        values = constants.members_of(content)
        self._check_members(self.type_of(operand), values.type)
        among: ir.Predicate = ir.InList(operand, ir.ValueSet(values.array.drop_null(), values.type))
        if not nulls_equal:
            return among  # NULL among the members is never matched, and hides nothing
        if not values.array.null_count:
            raise UnsupportedOperation(
                "is_in(…, nulls_equal=True) without NULL among the members, whose NOT polars' "
                "optimiser takes for one that hides NULL; leave nulls_equal out"
            )
        return ir.Or((ir.IsNull(operand), ir.And((ir.Not(ir.IsNull(operand)), among))))

    def _check_members(self, type_: LogicalType | None, members: LogicalType | None) -> None:
        if members is None or type_ == members:
            return
        if isinstance(type_, Binary | Uuid) and isinstance(members, Binary):
            return
        if type_ is None or type(type_) is not type(members) or isinstance(type_, Timestamp):
            raise UnsupportedOperation("is_in with members of another type; cast one side")
