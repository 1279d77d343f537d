"""Random typed expressions: every function of the registry over one another, from a seed.

A call is one of the `sample_calls` whose columns are replaced by expressions of their types, drawn
the same way; so a function that joins the registry with its samples is drawn at once.
Up to four levels, 64 nodes and nine columns.
"""

from __future__ import annotations

import decimal
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeVar

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Bool, Decimal, LogicalType, String, Struct, is_ordered
from rowsieve.types.schema import Schema
from tests.predicate.functions.sample_calls import SAMPLES, Sample, cast_samples
from tests.predicate.functions.sample_ranges import pool, schema_of
from tests.strategies import arrow_array

MAX_NODES, MAX_DEPTH, MAX_COLUMNS = 64, 4, 9

_ALL: Mapping[str, Sequence[Sample]] = {**SAMPLES, "cast": cast_samples()}
N = TypeVar("N", ir.Operand, ir.Predicate)
_PATTERNS = ("a%", "%b", "a_c", "", "%", "_", "ab", "a%c_")


@dataclass(frozen=True)
class Typed:
    """An operand and its type."""

    operand: ir.Operand
    type: LogicalType


class Expressions:
    """Expressions over some columns, drawn from one generator of random numbers.

    Over those of a schema, or over random ones of the samples' types. `values` has the values that
    literals of a type are drawn from, where those of its pool rarely meet the rows.
    """

    def __init__(
        self,
        rng: random.Random,
        schema: Schema | None = None,
        values: Mapping[LogicalType, Sequence[Any]] = MappingProxyType({}),
        *,
        depth: int = MAX_DEPTH,
    ) -> None:
        self._rng, self._values_of, self._depth = rng, values, depth
        if schema is None:
            count = rng.randint(1, MAX_COLUMNS)
            types = rng.sample(_TYPES, min(count, len(_TYPES)))
            schema = schema_of({f"c{i}": type_ for i, type_ in enumerate(types)})
        self.schema = schema
        self.columns = {field.name: field.type for field in schema}

    def operand(self) -> ir.Operand:
        """An operand of any type."""
        return self._smallest(lambda: self._grown(self._depth).operand)

    def predicate(self) -> ir.Predicate:
        """A condition."""
        return self._smallest(lambda: self._condition(self._depth - 1))

    def _smallest(self, draw: Callable[[], N]) -> N:
        while True:
            found = draw()
            if sum(1 for _ in ir.walk(found)) <= MAX_NODES:
                return found

    def _grown(self, depth: int) -> Typed:
        """An operand of at most this depth: a column, or a call of operands that are less deep."""
        if not depth or self._rng.random() < 0.15:
            return self._column()
        for _ in range(8):
            inner = self._grown(depth - 1)
            if self._rng.random() < 0.1:
                inner = Typed(ir.Condition(self._condition(depth - 1)), Bool())
            functions = _BY_TYPE.get(inner.type) or _BY_KIND.get(type(inner.type))
            if functions is None:
                continue
            sample = self._rng.choice(functions[self._rng.choice(list(functions))])
            other = None if sample.y is None else self._of(sample.y, depth - 1)
            operand = _replaced(sample.operand, inner.operand, other)
            if self._rng.random() < 0.08:
                operand = ir.Case(((self._condition(depth - 1), operand),), operand)
            try:
                bound = bind_operand(operand, self.schema)
            except InvalidPredicate:  # not every constant folds, nor every argument fits
                continue
            return Typed(operand, bound.type)
        return self._column()

    def _column(self) -> Typed:
        name = self._rng.choice(list(self.columns))
        type_ = self.columns[name]
        if isinstance(type_, Struct) and self._rng.random() < 0.8:
            member = self._rng.choice(type_.fields)
            return Typed(ir.FieldAccess(ir.Column(name), member.name), member.type)
        return Typed(ir.Column(name), type_)

    def _of(self, type_: LogicalType, depth: int) -> ir.Operand:
        """An operand of just this type."""
        for _ in range(4):
            found = self._grown(depth)
            if found.type == type_:
                return found.operand
        names = [name for name, one in self.columns.items() if one == type_]
        return ir.Column(self._rng.choice(names)) if names else self._literal(type_)

    def _literal(self, type_: LogicalType) -> ir.Literal:
        return ir.Literal(self._rng.choice(self._members(type_)), type_)

    def _members(self, type_: LogicalType) -> Sequence[Any]:
        """Values of a type for literals, and NULL."""
        return self._values_of.get(type_) or _values(type_)

    def _condition(self, depth: int) -> ir.Predicate:
        kind = self._rng.randrange(10 if depth > 0 else 5)
        if kind >= 8:
            return ir.Not(self._condition(depth - 1))
        if kind >= 5:
            join = ir.And if kind % 2 else ir.Or
            return join(tuple(self._condition(depth - 1) for _ in range(self._rng.randint(2, 3))))
        one = self._grown(max(depth - 1, 0))
        if kind == 4 or not is_ordered(one.type):
            return ir.IsNull(one.operand)
        if kind == 3 and isinstance(one.type, Bool):
            return ir.BooleanOperand(one.operand)
        if kind == 3 and isinstance(one.type, String):
            return ir.Like(one.operand, self._rng.choice(_PATTERNS))
        if kind >= 2:
            members = self._rng.choices(self._members(one.type), k=self._rng.randint(1, 4))
            return ir.InList(one.operand, ir.ValueSet(arrow_array(members, one.type), one.type))
        other = self._literal(one.type) if kind else self._of(one.type, max(depth - 1, 0))
        return ir.Comparison(self._rng.choice(list(ir.ComparisonOp)), one.operand, other)


_TYPES = list(dict.fromkeys(sample.x for samples in _ALL.values() for sample in samples))
_BY_TYPE: dict[LogicalType, dict[str, list[Sample]]] = {}
_BY_KIND: dict[type, dict[str, list[Sample]]] = {}  # for a type that no sample has, such as int32
for _name, _samples in _ALL.items():
    for _sample in _samples:
        _BY_TYPE.setdefault(_sample.x, {}).setdefault(_name, []).append(_sample)
        _BY_KIND.setdefault(type(_sample.x), {}).setdefault(_name, []).append(_sample)


def _values(type_: LogicalType) -> list[Any]:
    """Awkward values of a type, and NULL."""
    values = pool(type_)
    if isinstance(type_, Decimal):
        most = decimal.Decimal(10) ** (type_.precision - type_.scale)
        values = [value for value in values if abs(value) < most]
    return [*values, None]


def _replaced(node: Any, x: ir.Operand, y: ir.Operand | None) -> Any:
    """The sample's operand with these in the places of its columns."""
    match node:
        case ir.Column(name="x"):
            return x
        case ir.Column(name="y"):
            return y
        case ir.Call(function=name, arguments=arguments):
            return ir.Call(name, tuple(_replaced(one, x, y) for one in arguments))
        case ir.Cast() | ir.FieldAccess():
            return replace(node, operand=_replaced(node.operand, x, y))
        case ir.Literal():
            return node
    raise AssertionError(f"samples have grown: {node}")


def semantics_of(seed: int) -> Semantics:
    """The engines in turns."""
    every = (
        *(Semantics.SQL, Semantics.POSTGRES, Semantics.DATAFUSION),
        *(Semantics.SPARK, Semantics.DUCKDB),
        Semantics.of_spark(ansi=False, time_zone="UTC"),
    )
    return every[seed % len(every)]
