"""Random trees in the one form that reading gives: what a dialect can write, it must read back."""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from rowsieve.bridges.sql.dialects import Dialect
from rowsieve.predicate import ir
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Time,
    Timestamp,
    Uuid,
)

_DAYS = st.integers(-719_162, 2_932_896)  # the years 1 to 9999
_DAY_US = 86_400_000_000
_TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
_NAMES = st.sampled_from(["a", "Ab", "date", "select", "x y", 'q"u`o', "ü"]) | _TEXTS.filter(bool)
_DECIMALS = (Decimal(1, 0), Decimal(10, 2), Decimal(19, 0), Decimal(38, 38), Decimal(38, 0))
_UNARY = (
    "lower",
    "upper",
    "abs",
    "length",
    "ceil",
    "floor",
    "round",
    "trim",
    "ltrim",
    "rtrim",
    "extract_year",
    "extract_doy",
    "negate",
)
_BINARY = ("add", "subtract", "multiply", "modulo", "nullif", "starts_with", "position")
_MANY = ("coalesce", "greatest", "least", "concat_strict")


def values(type_: LogicalType) -> st.SearchStrategy[Any]:
    """Physical values of a flat type."""
    match type_:
        case Bool():
            return st.booleans()
        case Int(bits=bits, signed=signed):
            low = -(2 ** (bits - 1)) if signed else 0
            return st.integers(low, low + 2**bits - 1)
        case Float(bits=bits):
            return st.floats(width=32 if bits == 32 else 64)
        case Decimal(precision=precision, scale=scale):
            top = 10**precision - 1
            return st.integers(-top, top).map(lambda whole: _scaled(whole, scale))
        case Binary():
            return st.binary(max_size=5)
        case Date():
            return _DAYS
        case Time():
            return st.integers(0, _DAY_US - 1)
        case Timestamp():
            return st.builds(lambda day, us: day * _DAY_US + us, _DAYS, st.integers(0, _DAY_US - 1))
        case Uuid():
            return st.binary(min_size=16, max_size=16)
        case String() | Json():
            return _TEXTS
        case _:
            raise AssertionError(type_)


def _scaled(whole: int, scale: int) -> decimal.Decimal:
    with decimal.localcontext(prec=60):
        return decimal.Decimal(whole).scaleb(-scale)


class Trees:
    """The strategies for one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        instants = [Timestamp(utc=True)] if dialect.name == "datafusion" else []
        self.types: Sequence[LogicalType] = [*dialect.types, *instants, *_DECIMALS]

    def literals(self) -> st.SearchStrategy[ir.Literal]:
        typed = st.sampled_from(self.types).flatmap(
            lambda type_: st.builds(ir.Literal, st.none() | values(type_), st.just(type_))
        )
        return typed | st.builds(ir.Literal, st.none() | _TEXTS)

    def columns(self) -> st.SearchStrategy[ir.Operand]:
        column = st.builds(ir.Column, _NAMES)
        return column | st.builds(ir.FieldAccess, st.builds(ir.FieldAccess, column, _NAMES), _NAMES)

    def operands(self, depth: int) -> st.SearchStrategy[ir.Operand]:
        leaves = self.columns() | self.literals() | st.just(ir.Now())
        if not depth:
            return leaves
        below = self.operands(depth - 1)
        untyped = below.filter(
            lambda node: not (isinstance(node, ir.Literal) and node.type is None)
        )
        unchained = below.filter(
            lambda node: not (isinstance(node, ir.Call) and node.function == "concat_strict")
        )
        conditions = self.predicates(depth - 1).filter(_is_condition)
        return st.one_of(
            leaves,
            st.builds(ir.Cast, untyped, st.sampled_from(self.types)),
            st.builds(
                ir.Cast, untyped, st.sampled_from([*self.dialect.types]), st.just(value=True)
            ),
            st.builds(lambda name, one: ir.Call(name, (one,)), st.sampled_from(_UNARY), below),
            st.builds(
                lambda name, *two: ir.Call(name, two), st.sampled_from(_BINARY), below, below
            ),
            st.builds(
                lambda name, many: ir.Call(name, tuple(many)),
                st.sampled_from(_MANY),
                st.lists(unchained, min_size=2, max_size=3),
            ),
            st.builds(
                lambda unit, one: ir.Call("date_trunc", (ir.Literal(unit), one)),
                st.sampled_from(["day", "week", "month", "microsecond"]),
                below,
            ),
            st.builds(
                lambda one, start: ir.Call("substr", (one, ir.Literal(start, Int(64)))),
                below,
                st.integers(1, 9),
            ),
            st.builds(
                lambda one, two: ir.Call("divide", (ir.Cast(one, Float(64)), two)), untyped, below
            ),
            st.builds(
                lambda branches, other: ir.Case(tuple(branches), other),
                st.lists(st.tuples(self.predicates(depth - 1), below), min_size=1, max_size=2),
                below,
            ),
            st.builds(ir.Condition, conditions),
        )

    def predicates(self, depth: int) -> st.SearchStrategy[ir.Predicate]:
        below = self.operands(max(depth - 1, 0))
        leaves = st.one_of(
            st.just(ir.TRUE),
            st.just(ir.FALSE),
            st.builds(ir.Comparison, st.sampled_from(ir.ComparisonOp), below, below),
            st.builds(ir.InList, below, self.members()),
            st.builds(ir.IsNull, below),
            self.likes(below),
            st.builds(ir.BooleanOperand, self.columns() | st.just(ir.Literal(None))),
        )
        if not depth:
            return leaves
        inner = self.predicates(depth - 1)
        return st.one_of(
            leaves,
            st.builds(ir.Not, inner),
            st.lists(
                inner.filter(lambda term: not isinstance(term, ir.And)), min_size=2, max_size=3
            ).map(lambda terms: ir.And(tuple(terms))),
            st.lists(
                inner.filter(lambda term: not isinstance(term, ir.Or)), min_size=2, max_size=3
            ).map(lambda terms: ir.Or(tuple(terms))),
        )

    def members(self) -> st.SearchStrategy[ir.ValueSet]:
        def of(type_: LogicalType) -> st.SearchStrategy[ir.ValueSet]:
            value = values(type_).filter(lambda item: not _is_nan(item))
            return st.lists(st.none() | value, min_size=1, max_size=4).map(
                lambda items: ir.ValueSet(pa.array(items, arrow_type(type_)), type_)
            )

        quoted = st.lists(st.none() | _TEXTS, min_size=1, max_size=90).map(
            lambda texts: ir.ValueSet(
                pa.array(texts, pa.string() if any_text(texts) else pa.null())
            )
        )
        numbers = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=60, max_size=70).map(
            lambda items: ir.ValueSet(pa.array(items, pa.int64()), Int(64))
        )
        return st.sampled_from(self.types).flatmap(of) | quoted | numbers

    def likes(self, operands: st.SearchStrategy[ir.Operand]) -> st.SearchStrategy[ir.Like]:
        pieces = st.lists(st.sampled_from(["%", "_", "a", "'", "\\", "!", "\n", "é"]), max_size=5)
        if self.dialect.name in ("datafusion", "spark"):  # they escape with backslashes only
            sequences = ["%", "_", "a", "'", "\\\\", "\\%", "\\_"]
            return st.builds(
                lambda node, parts, fold: _like(node, "".join(parts), "\\", fold),
                operands,
                st.lists(st.sampled_from(sequences), max_size=5),
                st.booleans(),
            )
        return st.builds(
            lambda node, parts, escape, fold: _like(node, "".join(parts), escape, fold),
            operands,
            pieces,
            st.sampled_from([None, "\\", "!"]),
            st.booleans(),
        )


def _several(
    terms: st.SearchStrategy[ir.Predicate], node: type[ir.And | ir.Or]
) -> st.SearchStrategy[ir.Predicate]:
    unlike = terms.filter(lambda term: not isinstance(term, node))
    return st.lists(unlike, min_size=2, max_size=3).map(lambda found: node(tuple(found)))


def any_text(texts: Sequence[str | None]) -> bool:
    """Whether a list holds more than NULLs."""
    return any(text is not None for text in texts)


def _like(node: ir.Operand, pattern: str, escape: str | None, ignore_case: bool) -> ir.Like:
    if escape is None or escape not in pattern:
        return ir.Like(node, pattern, None, ignore_case)
    dangling = (len(pattern) - len(pattern.rstrip(escape))) % 2
    return ir.Like(node, pattern + "a" * dangling, escape, ignore_case)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _is_condition(node: ir.Predicate) -> bool:
    return not isinstance(node, ir.BooleanOperand) and node not in (ir.TRUE, ir.FALSE)
