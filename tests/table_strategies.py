"""Random tables: schemas, rows that meet again, and predicates over them.

Values come from small pools with the awkward ones in them, so that keys repeat, predicates hit, and
NULL, NaN, -0.0, infinities and both ends of a type are common.
"""

from __future__ import annotations

import decimal
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from rowsieve.predicate import ir
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Field,
    Float,
    Int,
    List,
    LogicalType,
    String,
    Struct,
    Time,
    Timestamp,
    Uuid,
    is_ordered,
)
from rowsieve.types.schema import Schema

NAN, INF = math.nan, math.inf
DAY = 86_400_000_000
NOON = 1_360_324_800_000_000  # 2013-02-08 12:00

POOLS: Mapping[LogicalType, tuple[Any, ...]] = {
    Bool(): (False, True),
    Int(8): (-128, -1, 0, 1, 2, 127),
    Int(32): (-(2**31), -1, 0, 1, 2, 3, 7, 2**31 - 1),
    Int(64): (-(2**63), -3, -1, 0, 1, 2, 3, 5, 8, 2**53 + 1, 2**63 - 1),
    Float(32): (-INF, -1.5, -0.0, 0.0, 1.0, 2.5, INF, NAN),
    Float(64): (-INF, -1e308, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 1e308, INF, NAN),
    Decimal(9, 2): tuple(
        map(decimal.Decimal, ("-9999999.99", "-0.01", "0.00", "0.10", "1.00", "1.25", "9999999.99"))
    ),
    Decimal(38, 10): tuple(
        map(
            decimal.Decimal,
            (
                "-1.0000000001",
                "0.0000000000",
                "1.0000000000",
                "1234567890123456789012345678.0123456789",
            ),
        )
    ),
    String(): ("", "a", "aa", "ab", "b", "B", "ä", "z", "%", "_", "'", "\U0010ffff", "a" * 70),
    Binary(): (b"", b"\x00", b"a", b"\xff", b"\xff\xff", b"\xff" * 70),
    Date(): (-719162, -1, 0, 1, 15744, 15745, 2932896),
    Time(): (0, 1, 43_200_000_000, DAY - 1),
    Timestamp(): (-1, 0, 1, NOON, NOON + 1, NOON + DAY),
    Timestamp(utc=True): (-DAY, 0, NOON - 1, NOON, NOON + DAY, 4_102_444_800_000_000),
    Uuid(): (bytes(16), bytes(15) + b"\x01", b"\x7f" + bytes(15), b"\xff" * 16),
}
KEY_TYPES = tuple(POOLS)
PAIR = Struct((Field(901, "x", Int(64)), Field(902, "y", String())))
NUMBERS = List(Field(911, "element", Float(64)))
NESTED: Mapping[LogicalType, tuple[Any, ...]] = {
    PAIR: ({"x": 1, "y": "a"}, {"x": None, "y": ""}, {"x": 2, "y": None}),
    NUMBERS: ([], [1.0, None], [NAN, -0.0]),
}
ALL_POOLS = {**POOLS, **NESTED}


@dataclass(frozen=True)
class TableShape:
    """What a random table is."""

    schema: Schema
    key: tuple[str, ...]

    @property
    def arrow(self) -> pa.Schema:
        return arrow_schema(self.schema)

    @property
    def payload(self) -> tuple[str, ...]:
        return tuple(name for name in self.schema.names if name not in self.key)


@st.composite
def table_shapes(draw: st.DrawFn, *, keyed: bool = True, nested: bool = True) -> TableShape:
    keys = draw(st.lists(st.sampled_from(KEY_TYPES), min_size=1, max_size=3)) if keyed else []
    payload_types = [*POOLS, *NESTED] if nested else [*POOLS]
    payload = draw(st.lists(st.sampled_from(payload_types), min_size=1, max_size=5))
    fields = [(f"k{i}", type_, False) for i, type_ in enumerate(keys)]
    fields += [(f"v{i}", type_, True) for i, type_ in enumerate(payload)]
    order = draw(st.permutations(fields))
    return shape_of(
        {name: type_ for name, type_, _ in order}, tuple(f"k{i}" for i in range(len(keys)))
    )


def shape_of(columns: Mapping[str, LogicalType], key: tuple[str, ...] = ()) -> TableShape:
    """A shape by hand; ids count depth-first, as the table gives them."""
    ids = iter(range(1, 10_000))

    def field_of(name: str, type_: LogicalType, nullable: bool) -> Field:
        own = next(ids)
        match type_:
            case Struct(fields=fields):
                type_ = Struct(tuple(field_of(f.name, f.type, f.nullable) for f in fields))
            case List(element=element):
                type_ = List(field_of(element.name, element.type, element.nullable))
        return Field(own, name, type_, nullable)

    fields = tuple(field_of(name, type_, name not in key) for name, type_ in columns.items())
    return TableShape(Schema(0, fields), key)


def pool_of(type_: LogicalType) -> tuple[Any, ...]:
    match type_:
        case Struct():
            return NESTED[PAIR]
        case List():
            return NESTED[NUMBERS]
    return POOLS[type_]


@functools.cache
def values(type_: LogicalType, *, nullable: bool) -> st.SearchStrategy[Any]:
    pool = st.sampled_from(pool_of(type_))
    return st.none() | pool if nullable else pool


def rows(
    shape: TableShape, *, min_size: int = 1, max_size: int = 8
) -> st.SearchStrategy[list[dict[str, Any]]]:
    row = st.fixed_dictionaries({f.name: values(f.type, nullable=f.nullable) for f in shape.schema})
    return st.lists(row, min_size=min_size, max_size=max_size)


ORDERINGS = tuple(ir.ComparisonOp)
SOME_PATTERNS = ("a%", "%b", "_", "%", "", "a\\%", "ab", "%ä%", "a_%")


def predicates(
    shape: TableShape, *, functions: bool = True, depth: int = 2
) -> st.SearchStrategy[ir.Predicate]:
    """Predicates over the columns of a shape; with `functions`, some of which can fail."""
    leaves = leaf(shape, functions)
    for _ in range(depth):
        several = st.lists(leaves, min_size=2, max_size=3).map(tuple)
        leaves = leaves | several.map(ir.And) | several.map(ir.Or) | leaves.map(ir.Not)
    return leaves


def leaf(shape: TableShape, functions: bool) -> st.SearchStrategy[ir.Predicate]:
    found: list[st.SearchStrategy[ir.Predicate]] = []
    ordered = [f for f in shape.schema if is_ordered(f.type)]
    found += [st.just(ir.IsNull(ir.Column(field.name))) for field in shape.schema]
    for field in ordered:
        found += of_column(field)
        twins = [other.name for other in ordered if other.type == field.type and other != field]
        found += [
            st.builds(
                ir.Comparison,
                st.sampled_from(ORDERINGS),
                st.just(ir.Column(field.name)),
                st.just(ir.Column(name)),
            )
            for name in twins
        ]
        if functions:
            found += calls_on(field)
    return st.one_of(found)


def of_column(field: Field) -> list[st.SearchStrategy[ir.Predicate]]:
    column = ir.Column(field.name)
    constant = st.builds(ir.Literal, values(field.type, nullable=True), st.just(field.type))
    found: list[st.SearchStrategy[ir.Predicate]] = [
        st.builds(ir.Comparison, st.sampled_from(ORDERINGS), st.just(column), constant),
        st.builds(ir.Comparison, st.sampled_from(ORDERINGS), constant, st.just(column)),
        st.builds(ir.InList, st.just(column), members(field)),
        st.builds(lambda found: ir.Not(ir.InList(column, found)), members(field)),
    ]
    if isinstance(field.type, Bool):
        found.append(st.just(ir.BooleanOperand(column)))
    if isinstance(field.type, String):
        found.append(
            st.builds(ir.Like, st.just(column), st.sampled_from(SOME_PATTERNS), st.just("\\"))
        )
    return found


def members(field: Field) -> st.SearchStrategy[ir.ValueSet]:
    from tests.oracle_table import to_arrow

    one = Schema(0, (Field(1, "x", field.type),))

    def build(found: list[Any]) -> ir.ValueSet:
        array = to_arrow([{"x": value} for value in found], one).column("x")
        return ir.ValueSet(array, field.type)

    return st.lists(values(field.type, nullable=True), min_size=1, max_size=5).map(build)


def calls_on(field: Field) -> list[st.SearchStrategy[ir.Predicate]]:
    column = ir.Column(field.name)
    comparison = st.sampled_from(
        (ir.ComparisonOp.EQ, ir.ComparisonOp.LT, ir.ComparisonOp.GE, ir.ComparisonOp.NE)
    )
    match field.type:
        case Int():
            constant = st.sampled_from((-1, 0, 1, 2, 10)).map(lambda v: ir.Literal(v, Int(64)))
            function = st.sampled_from(("add", "subtract", "multiply", "divide", "modulo"))
            swapped = st.booleans()
            call = st.builds(
                lambda name, c, swap: ir.Call(name, (c, column) if swap else (column, c)),
                function,
                constant,
                swapped,
            )
            return [st.builds(ir.Comparison, comparison, call, constant)]
        case Timestamp() | Date():
            unit = st.sampled_from(("day", "month", "year", "hour")).map(
                lambda u: ir.Literal(u, String())
            )
            call = st.builds(lambda u: ir.Call("date_trunc", (u, column)), unit)
            point = st.sampled_from((0, NOON - NOON % DAY, NOON)).map(
                lambda v: ir.Literal(
                    v, field.type if isinstance(field.type, Timestamp) else Timestamp()
                )
            )
            return [st.builds(ir.Comparison, comparison, call, point)]
        case String():
            call = st.sampled_from(("lower", "upper")).map(lambda name: ir.Call(name, (column,)))
            text = st.sampled_from(("", "a", "B", "b")).map(lambda v: ir.Literal(v, String()))
            return [st.builds(ir.Comparison, comparison, call, text)]
    return []
