"""Generators: a schema of every type, batches of awkward values, and predicates over them.

Values come from small pools, so that equal ones meet; the pools hold NULL's neighbours: NaN, -0.0,
infinities, the ends of the integers, empty and non-ASCII text, days before 1970.
"""

from __future__ import annotations

import decimal
import functools
import math
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from rowsieve.predicate import ir
from rowsieve.predicate.literal_values import int_range
from rowsieve.predicate.semantics import NanOrder, OnFailure, Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Field,
    Float,
    Int,
    LogicalType,
    Numeric,
    String,
    Struct,
    Time,
    Timestamp,
    Uuid,
)
from rowsieve.types.numeric_bytes import from_text
from rowsieve.types.schema import Schema

IEEE = Semantics(
    "ieee",
    nan=NanOrder.IEEE,
    float_division_by_zero=OnFailure.IEEE,
    integer_overflow=OnFailure.NULL,
    quotient_overflow=OnFailure.NULL,
    integer_division_by_zero=OnFailure.NULL,
    failed_cast=OnFailure.NULL,
)
SEMANTICS = (
    *(Semantics.SQL, Semantics.POSTGRES, Semantics.DATAFUSION),
    *(Semantics.SPARK, Semantics.DUCKDB, IEEE),
    Semantics.of_spark(ansi=False, time_zone="UTC"),
)

COLUMN_TYPES: dict[str, LogicalType] = {
    "b": Bool(),
    "i8": Int(8),
    "i32": Int(32),
    "i64": Int(64),
    "u8": Int(8, signed=False),
    "u64": Int(64, signed=False),
    "f32": Float(32),
    "f64": Float(64),
    "d": Decimal(6, 2),
    "wide": Decimal(38, 10),
    "s": String(),
    "t": String(),
    "bin": Binary(),
    "day": Date(),
    "time": Time(),
    "ts": Timestamp(),
    "tz": Timestamp(utc=True),
    "uid": Uuid(),
}
PAIR = Struct((Field(101, "x", Int(32)), Field(102, "y", String())))
SCHEMA = Schema(
    7,
    (
        *(Field(i, name, type_) for i, (name, type_) in enumerate(COLUMN_TYPES.items(), 1)),
        Field(100, "pair", PAIR),
    ),
)
DAY_US = 86_400_000_000
_NUMERIC = tuple(
    name for name, type_ in COLUMN_TYPES.items() if isinstance(type_, Int | Float | Decimal)
)
_TEXTS = ("", "a", "ab", "abc", "b", "B", "Ab%", "a_c", "é", "\ud7ff", "\ue000", "\U0010ffff", "\n")
_SPELLED = ("0", "7", " -12 ", "007", "1e3", "2.5", "nan", "true", "2013-01-01", "2013-02-30")
_MOMENTS = ("2013-01-01 10:30", "2013-01-01T10:30:00.5", "1969-12-31")
_DAYS = (-719_162, -25_567, -1, 0, 1, 15_706, 15_765, 19_782, 2_932_896)


@functools.cache
def values_of(type_: LogicalType) -> st.SearchStrategy[Any]:
    """Physical values of a type, without NULL."""
    match type_:
        case Bool():
            return st.booleans()
        case Int():
            low, high = int_range(type_)
            near = [n for n in (-7, -2, -1, 0, 1, 2, 3, 7, 100) if low <= n <= high]
            return st.sampled_from([*near, low, low + 1, high - 1, high])
        case Float(bits=bits):
            special = [0.0, -0.0, 1.0, -1.0, 1.5, 2.0, 7.0, -2.5, math.nan, math.inf, -math.inf]
            tiny_and_huge = [0.1, 1e300, 5e-324] if bits == 64 else [3e38, 1e-45]
            pool = st.sampled_from([*special, *tiny_and_huge])
            return pool.map(lambda value: as_width(value, bits))
        case Decimal(precision=precision, scale=scale):
            limit = 10**precision - 1
            points = [0, 1, -1, 50, 100, 150, 199, 200, 700, -250, 10**scale, limit, -limit]
            fitting = [point for point in points if abs(point) <= limit]
            return st.sampled_from(fitting).map(lambda point: as_decimal(point, scale))
        case String():
            return st.sampled_from(_TEXTS)
        case Binary():
            return st.sampled_from([b"", b"\x00", b"a", b"ab", b"\xff", b"\xff\xff"])
        case Date():
            return st.sampled_from(_DAYS)
        case Time():
            return st.sampled_from([0, 1, 37_800_000_000, DAY_US - 1])
        case Timestamp():
            offsets = st.sampled_from([0, 1, -1, 37_800_000_000, 37_800_500_000])
            days = st.sampled_from(_DAYS[1:-1])
            return st.builds(lambda day, offset: day * DAY_US + offset, days, offsets)
        case Uuid():
            return st.sampled_from([bytes(16), b"\x01" * 16, b"a" * 16, b"\xff" * 16])
    raise AssertionError(type_)


def as_width(value: float, bits: int) -> float:
    return value if bits == 64 else float(pa.scalar(value, pa.float32()).as_py())


def as_decimal(point: int, scale: int) -> decimal.Decimal:
    with decimal.localcontext(prec=60):
        return decimal.Decimal(point).scaleb(-scale)


def arrow_array(values: list[Any], type_: LogicalType) -> pa.Array:
    """Physical values as an array in storage type."""
    storage = arrow_type(type_)
    if isinstance(type_, Date):
        return pa.array(values, pa.int32()).view(storage)
    if isinstance(type_, Time | Timestamp):
        return pa.array(values, pa.int64()).view(storage)
    if isinstance(type_, Numeric):
        return from_text(pa.array(values, pa.string()))
    return pa.array(values, storage)


def _cells(pool: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | pool


_CELLS: dict[str, st.SearchStrategy[Any]] = {
    name: _cells(st.sampled_from(_SPELLED + _MOMENTS) if name == "t" else values_of(type_))
    for name, type_ in COLUMN_TYPES.items()
}
_PAIRS = _cells(
    st.fixed_dictionaries({"x": _cells(st.integers(-2, 2)), "y": _cells(st.sampled_from(_TEXTS))})
)
_ROW = st.tuples(*_CELLS.values(), _PAIRS)


@functools.cache
def batches(min_rows: int = 0, max_rows: int = 6) -> st.SearchStrategy[pa.RecordBatch]:
    """Batches of the schema. Cells are drawn row by row from strategies that are made once."""
    return st.lists(_ROW, min_size=min_rows, max_size=max_rows).map(_batch)


def _batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    cells = list(map(list, zip(*rows, strict=True))) or [[] for _ in SCHEMA.fields]
    types = (*COLUMN_TYPES.values(), PAIR)
    arrays = map(arrow_array, cells, types)
    return pa.record_batch(dict(zip((*COLUMN_TYPES, "pair"), arrays, strict=True)))


@functools.cache
def literals_of(type_: LogicalType) -> st.SearchStrategy[ir.Literal]:
    """Constants of the type, sometimes NULL."""
    return st.builds(ir.Literal, values_of(type_), st.just(type_)) | st.just(
        ir.Literal(None, type_)
    )


_INTEGERS = st.sampled_from([-129, -1, 0, 1, 2, 5, 7, 128, 255, 2**31, 2**63, -(2**63) - 1, 2**64])
_DECIMALS = st.sampled_from(
    ["0", "-0.5", "1.5", "1.50", "1.999", "7.00", "10000", "1e30", "-1e-30"]
)
_BARE_NUMBERS = (
    st.builds(ir.Literal, _INTEGERS | _DECIMALS.map(decimal.Decimal))
    | st.builds(ir.Literal, values_of(Float(64)))
    | st.just(ir.Literal(None))
)
_BARE_NUMBER_TEXT = st.sampled_from(["0", "7", "-1", "300"]).map(ir.Literal)


@functools.cache
def numbers(depth: int = 2) -> st.SearchStrategy[ir.Operand]:
    """Numeric operands: columns, constants, arithmetic, casts, choices."""
    columns = st.sampled_from(_NUMERIC).map(ir.Column)
    if depth == 0:
        return columns
    below = numbers(depth - 1)
    any_number = below | _BARE_NUMBERS
    small = st.sampled_from([ir.Column("i8"), ir.Column("i32"), ir.Column("f64"), ir.Column("d")])
    binary = st.sampled_from(["add", "subtract", "multiply", "divide"])
    pairs = st.tuples(
        small, small | st.sampled_from([ir.Literal(2), ir.Literal(0), ir.Literal(-3)])
    )
    whole = st.sampled_from([ir.Column("i8"), ir.Column("i32"), ir.Column("i64"), ir.Column("u8")])
    same = st.sampled_from(_NUMERIC).flatmap(
        lambda name: st.tuples(st.just(ir.Column(name)), literals_of(COLUMN_TYPES[name]))
    )
    targets = st.sampled_from(
        [Int(8), Int(64), Float(32), Float(64), Decimal(6, 2), Decimal(20, 4)]
    )
    instants = st.sampled_from([ir.Column("ts"), ir.Column("tz"), ir.Column("day")])
    fields = st.sampled_from(["year", "month", "day", "week", "doy", "dow", "epoch"])
    return st.one_of(
        columns,
        st.builds(ir.Call, binary, pairs),
        st.builds(ir.Call, binary, st.tuples(whole, whole)),
        st.builds(lambda p: ir.Call("modulo", p), st.tuples(whole, whole)),
        st.builds(lambda c: ir.Call("modulo", (ir.Column("d"), c)), literals_of(Decimal(4, 1))),
        st.builds(
            lambda x, n: ir.Call("round", (x, *n)),
            st.sampled_from([ir.Column("i8"), ir.Column("u64"), ir.Column("d"), ir.Column("wide")]),
            st.sampled_from([(), (ir.Literal(1),), (ir.Literal(-1),), (ir.Literal(-2),)]),
        ),
        st.builds(
            lambda x: ir.Call("round", (x,)), st.sampled_from([ir.Column("f32"), ir.Column("f64")])
        ),
        st.builds(
            lambda x, part: ir.Call("position", (x, ir.Literal(part))),
            st.just(ir.Column("s")),
            st.sampled_from(["", "a", "b", "é"]),
        ),
        st.builds(
            lambda f, x: ir.Call(f, (x,)),
            st.sampled_from(["negate", "abs", "floor", "ceil"]),
            columns,
        ),
        st.builds(ir.Cast, any_number.filter(_is_typed), targets, st.booleans()),
        st.builds(ir.Cast, st.just(ir.Column("t")), targets, st.booleans()),
        st.builds(ir.Call, st.sampled_from(CHOICES), same),
        st.builds(lambda x: ir.Call("length", (x,)), st.just(ir.Column("s"))),
        st.builds(lambda f, x: ir.Call("extract", (ir.Literal(f), x)), fields, instants),
        st.just(ir.FieldAccess(ir.Column("pair"), "x")),
        st.builds(
            lambda when, then: ir.Case(((when, then[0]),), then[1]), predicates(depth - 1), same
        ),
    )


CHOICES = ("coalesce", "nullif", "greatest", "least")


def _is_typed(operand: ir.Operand) -> bool:
    return not (isinstance(operand, ir.Literal) and operand.value is None and operand.type is None)


_TRIMS = ("trim", "ltrim", "rtrim")


@functools.cache
def texts() -> st.SearchStrategy[ir.Operand]:
    """Text operands."""
    columns = st.sampled_from([ir.Column("s"), ir.Column("t")])
    positions = st.sampled_from([ir.Literal(-1), ir.Literal(1), ir.Literal(2), ir.Column("i8")])
    spelled = st.sampled_from(["b", "i32", "u64", "d", "day", "ts", "tz", "uid", "time"])
    parts = st.sampled_from(["", "a", "ab", "bA", "é"])
    return st.one_of(
        columns,
        st.just(ir.FieldAccess(ir.Column("pair"), "y")),
        st.builds(lambda f, x: ir.Call(f, (x,)), st.sampled_from(["lower", "upper"]), columns),
        st.builds(lambda x, a: ir.Call("substr", (x, a)), columns, positions),
        st.builds(lambda x, a, n: ir.Call("substr", (x, a, n)), columns, positions, positions),
        st.builds(
            lambda f, x, y: ir.Call(f, (x, y)),
            st.sampled_from(["concat", "concat_strict"]),
            columns,
            columns | literals_of(String()),
        ),
        st.builds(lambda f, x: ir.Call(f, (x, ir.Literal("a"))), st.sampled_from(CHOICES), columns),
        st.builds(lambda f, x: ir.Call(f, (x,)), st.sampled_from(["reverse", *_TRIMS]), columns),
        st.builds(
            lambda f, x, part: ir.Call(f, (x, ir.Literal(part))),
            st.sampled_from(_TRIMS),
            columns,
            parts,
        ),
        st.builds(
            lambda x, old, new: ir.Call("replace", (x, ir.Literal(old), ir.Literal(new))),
            columns,
            parts,
            parts,
        ),
        st.builds(
            lambda f, x, n: ir.Call(f, (x, n)),
            st.sampled_from(["left", "right"]),
            columns,
            positions,
        ),
        st.builds(lambda x, t: ir.Cast(x, String(), t), spelled.map(ir.Column), st.booleans()),
    )


@functools.cache
def instants() -> st.SearchStrategy[ir.Operand]:
    """Dates and timestamps."""
    columns = st.sampled_from([ir.Column("day"), ir.Column("ts"), ir.Column("tz")])
    units = ["second", "hour", "day", "week", "month", "quarter", "year", "decade", "century"]
    targets = st.sampled_from([Date(), Timestamp(), Timestamp(utc=True)])
    return st.one_of(
        columns,
        st.builds(
            lambda unit, x: ir.Call("date_trunc", (ir.Literal(unit), x)),
            st.sampled_from(units),
            columns,
        ),
        st.builds(ir.Cast, columns | st.just(ir.Column("t")), targets, st.booleans()),
        st.builds(
            lambda f, x, m, d, us: ir.Call(f, (x, *(ir.Literal(n, Int(64)) for n in (m, d, us)))),
            st.sampled_from(["add_interval", "shift"]),
            columns,
            st.sampled_from([0, 0, 1, -1, 13, -1200]),
            st.sampled_from([0, 1, -30]),
            st.sampled_from([0, 0, 1, -3_600_000_000]),
        ),
    )


_INSTANT_CONSTANTS = (
    literals_of(Date())
    | literals_of(Timestamp())
    | st.sampled_from(["2013-01-01", "1969-12-31", "0001-01-01"]).map(ir.Literal)
)
_OPS = st.sampled_from(list(ir.ComparisonOp))


@functools.cache
def comparisons(depth: int) -> st.SearchStrategy[ir.Predicate]:
    """Comparisons of every family, with the constant on either side or none."""
    number = numbers(depth)
    pairs = st.one_of(
        st.tuples(number, number | _BARE_NUMBERS),
        st.tuples(st.sampled_from(_NUMERIC).map(ir.Column), _BARE_NUMBERS | _BARE_NUMBER_TEXT),
        st.tuples(
            texts(), texts() | literals_of(String()) | st.sampled_from(_TEXTS).map(ir.Literal)
        ),
        st.tuples(instants(), instants() | _INSTANT_CONSTANTS),
        st.sampled_from(["b", "bin", "time", "uid", "s"]).flatmap(
            lambda name: st.tuples(
                st.just(ir.Column(name)), st.just(ir.Column(name)) | literals_of(COLUMN_TYPES[name])
            )
        ),
    )
    swapped = st.tuples(pairs, st.booleans()).map(lambda it: it[0][::-1] if it[1] else it[0])
    return st.builds(lambda op, sides: ir.Comparison(op, *sides), _OPS, swapped)


@functools.cache
@st.composite
def in_lists(draw: st.DrawFn, depth: int) -> ir.Predicate:
    """IN over lists of the column's own type and of kindred ones, with NULL members at times."""
    name = draw(st.sampled_from([name for name in COLUMN_TYPES if name != "pair"]))
    type_ = COLUMN_TYPES[name]
    members: LogicalType = type_
    if isinstance(type_, Int | Float | Decimal):
        members = draw(st.sampled_from([type_, Int(64), Float(64), Decimal(12, 3)]))
    elif isinstance(type_, Uuid):
        members = Binary()
    pool = values_of(type_ if isinstance(type_, Uuid) else members)
    values = draw(st.lists(st.none() | pool, max_size=5))
    operand: ir.Operand = ir.Column(name)
    if isinstance(type_, Int) and depth:
        operand = draw(st.sampled_from([operand, ir.Call("add", (operand, ir.Literal(1)))]))
    return ir.InList(operand, ir.ValueSet(arrow_array(values, members), members))


_PATTERNS = st.sampled_from(
    ["", "%", "_", "a%", "ab%", "%b%", "a_c", "abc", "Ab!%", "!%%", "\ud7ff%", "\U0010ffff%", "a%%"]
)


@functools.cache
def predicates(depth: int = 2) -> st.SearchStrategy[ir.Predicate]:
    """Predicates that bind in `SCHEMA`, of at most this depth of junctions."""
    anything = (
        numbers(min(depth, 1))
        | texts()
        | instants()
        | st.sampled_from([ir.Column(name) for name in COLUMN_TYPES])
    )
    leaves = st.one_of(
        comparisons(min(depth, 1)),
        comparisons(min(depth, 1)),
        in_lists(depth),
        st.builds(ir.IsNull, anything),
        st.builds(ir.Like, texts(), _PATTERNS, st.just("!"), st.booleans()),
        st.just(ir.BooleanOperand(ir.Column("b"))),
        st.builds(
            lambda x, p: ir.BooleanOperand(ir.Call("starts_with", (x, ir.Literal(p)))),
            texts(),
            st.sampled_from(_TEXTS),
        ),
        st.sampled_from([ir.TRUE, ir.FALSE, ir.BooleanOperand(ir.Literal(None, Bool()))]),
    )
    if depth == 0:
        return leaves
    below = predicates(depth - 1)
    terms = st.lists(below, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        leaves,
        st.builds(ir.Not, below),
        st.builds(ir.And, terms),
        st.builds(ir.Or, terms),
        st.builds(lambda p: ir.IsNull(ir.Condition(p)), below),
        st.builds(lambda p: ir.BooleanOperand(ir.Condition(p)), below),
    )
