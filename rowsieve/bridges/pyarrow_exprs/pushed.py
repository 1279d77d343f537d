"""Read the pyarrow expressions that DataFusion and polars push down.

Both engines apply their own rules to the expressions that they build: NULL IN (…) is NULL, and NaN
is above all other numbers. In DataFusion a NaN with its sign bit set is below them, and equals no
stored value, because writing canonicalises NaN.

Soundness: every node and option is known here, or the whole expression is rejected with
`UnsupportedOperation`; nothing is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.base import as_operand, as_predicate
from rowsieve.bridges.functions.pyarrow import BY_NAME, SUMS
from rowsieve.bridges.pyarrow_exprs.function_table import COMPARISONS
from rowsieve.bridges.pyarrow_exprs.literals import literal_of, negative_nans, stored
from rowsieve.bridges.pyarrow_exprs.nodes import (
    Frame,
    Options,
    decode,
    junction,
)
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.types.logical import Bool, Field, Float
from rowsieve.types.schema import Schema


def pushed_predicate(expression: pc.Expression) -> ir.Predicate:
    """Read an expression under DataFusion's rules; literals get types and physical values."""
    return as_predicate(decode(expression, _datafusion_call, _constant))


def polars_predicate(expression: pc.Expression, schema: Schema) -> ir.Predicate:
    """Read an expression under polars' rules; raise if its meaning is ambiguous."""
    reader = _PolarsReader(schema)
    predicate = as_predicate(decode(expression, reader.call))
    reader.check(predicate)
    return predicate


class _PolarsReader:
    """Reads the calls that polars builds in addition to SQL's, and its lists.

    Polars writes `is_in(…)` and `is_in(…, nulls_equal=True)` identically over a list without NULL.
    For NULL the first is NULL and the second is FALSE: equivalent for the top-level AND and OR, but
    not below NOT. Over an empty list, or a list of NULL alone, it writes FALSE for both.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._lists_of_nullables: set[int] = set()  # ids of nodes of the tree being read

    def call(self, frame: Frame) -> ir.Predicate | ir.Operand:
        if frame.function == "is_nan":
            operand = as_operand(frame.arguments[0])
            if not isinstance(self._field(operand, "is_nan").type, Float):
                raise UnsupportedOperation("is_nan of a value that is not a float")
            return ir.Comparison(ir.ComparisonOp.EQ, operand, ir.Literal(math.nan, Float(64)))
        node = _call(frame)
        if not isinstance(node, ir.InList):
            return node
        field, members = self._field(node.operand, "is_in"), node.values.array
        if members.null_count:  # a NULL in the list implies nulls_equal=True
            without = ir.InList(node.operand, ir.ValueSet(members.drop_null(), node.values.type))
            return ir.Or(
                (ir.IsNull(node.operand), ir.And((ir.Not(ir.IsNull(node.operand)), without)))
            )
        if field.nullable:
            self._lists_of_nullables.add(id(node))
        return node

    def check(self, predicate: ir.Predicate) -> None:
        """Raise for lists of a nullable column below anything but AND and OR."""
        if isinstance(predicate, ir.And | ir.Or):
            for term in predicate.terms:
                self.check(term)
        elif not isinstance(predicate, ir.InList | ir.FalsePredicate) and any(
            id(node) in self._lists_of_nullables or isinstance(node, ir.FalsePredicate)
            for node in ir.walk(predicate)
        ):
            raise UnsupportedOperation(
                "is_in of a column with NULLs below NOT, with or without nulls_equal=True"
            )

    def _field(self, operand: ir.Operand, name: str) -> Field:
        if not isinstance(operand, ir.Column):
            raise UnsupportedOperation(f"{name} of something other than a column")
        return self._schema.field(operand.name)


def _call(frame: Frame) -> ir.Predicate | ir.Operand:
    name, arguments = frame.function, frame.arguments
    options = Options(name, frame.options)
    if (kernel := BY_NAME.get(name)) is not None and kernel.function in SUMS:
        return ir.Call(kernel.function, tuple(map(as_operand, arguments)))
    node: ir.Predicate | ir.Operand
    if name == "is_in":
        options.ignore("null_matching_behavior")
        members = options.take("value_set").values
        node = ir.InList(as_operand(arguments[0]), ir.ValueSet(*stored(members)))
    elif name == "is_null":
        options.must("nan_is_null", value=False)
        node = ir.IsNull(as_operand(arguments[0]))
    elif name == "starts_with":
        options.must("ignore_case", value=False)
        prefix = literal_of(pa.array([options.take("pattern").as_py()], pa.string()))
        node = ir.Call("starts_with", (as_operand(arguments[0]), prefix))
    elif name in _CALLS:
        node = _CALLS[name](arguments)
    elif (op := COMPARISONS.get(name)) is not None:
        left, right = map(as_operand, arguments)
        node = ir.Comparison(op, left, right)
    else:
        raise UnsupportedOperation(
            f"the pyarrow function {name!r} has no counterpart here; write the condition as SQL"
        )
    options.done()
    return node


def _datafusion_call(frame: Frame) -> ir.Predicate | ir.Operand:
    """Handle a call in which a NaN may have its sign bit set."""
    operands = frame.arguments
    if frame.function == "is_in" and frame.options is not None:
        members = frame.options["value_set"].values
        if pc.any(never := negative_nans(members)).as_py():
            operand, others = as_operand(operands[0]), members.filter(pc.invert(never))
            if not len(others):
                return _known(operand, truth=False)
            # Replaced, not dropped: the number of members decides how zeros compare.
            return ir.InList(operand, ir.ValueSet(*stored(pc.if_else(never, others[0], members))))
    if not any(operand is _NEGATIVE_NAN for operand in operands):
        return _call(frame)
    if (op := COMPARISONS.get(frame.function)) is None:
        raise UnsupportedOperation(f"{frame.function} of a NaN with its sign bit set")
    return _compared_to_negative_nan(op, *map(as_operand, operands))


def _constant(column: pa.Array) -> ir.Literal:
    return _NEGATIVE_NAN if negative_nans(column)[0].as_py() else literal_of(column)


def _compared_to_negative_nan(
    op: ir.ComparisonOp, left: ir.Operand, right: ir.Operand
) -> ir.Predicate:
    """Compare with a value below every stored value."""
    if left is right:
        return ir.TRUE if op.holds_if_equal else ir.FALSE
    value = left if right is _NEGATIVE_NAN else right
    greater = op.holds_if_greater if right is _NEGATIVE_NAN else op.holds_if_less
    return _known(value, truth=greater)


def _known(operand: ir.Operand, *, truth: bool) -> ir.Predicate:
    """Return the given truth where the operand is not NULL, and NULL elsewhere."""
    unknown = ir.BooleanOperand(ir.Literal(None, Bool()))
    if truth:
        return ir.Or((ir.Not(ir.IsNull(operand)), unknown))
    return ir.And((ir.IsNull(operand), unknown))


_NEGATIVE_NAN: Final = ir.Literal(math.copysign(math.nan, -1), Float(64))
_CALLS: Mapping[str, Callable[[list[Any]], ir.Predicate]] = {
    "and_kleene": partial(junction, ir.And),
    "or_kleene": partial(junction, ir.Or),
    "invert": lambda arguments: ir.Not(as_predicate(arguments[0])),
    "is_valid": lambda arguments: ir.Not(ir.IsNull(as_operand(arguments[0]))),
}
