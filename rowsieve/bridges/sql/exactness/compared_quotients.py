"""Quotients of decimals that are compared with a number, as products, which no engine rounds.

PostgreSQL keeps 16 digits of `d / 3` or more, DataFusion 4 places more than `d` has. Compared with
a constant, their result is that of `d` compared with a product of constants, unless a quotient can
be so near to the constant that it is rounded to it. Soundness: only quotients that are further away
than one unit of their last place, or equal, are rewritten; the rest stays what it is.

Source: PostgreSQL 18 (`select_div_scale` in its numeric.c), DataFusion 55; both run.
"""

from __future__ import annotations

import decimal
import fractions
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from rowsieve.bridges.sql.exactness.coercion import as_decimal
from rowsieve.bridges.sql.exactness.own_formulas import TypeOf
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.types.logical import Decimal, Float, Int, Numeric

_MAX_DIGITS: Final = 38
_EXACT: Final = decimal.Context(prec=2 * _MAX_DIGITS)
_LONG_DIGITS: Final = 20  # of an int64 next to a decimal
_FLOAT_PLACES: Final = 15  # of a float64 compared with one
_MAX_ITEMS: Final = 100
_QUOTIENTS: Final = frozenset({"divide", "rounded_quotient", "truncated_quotient"})


@dataclass(frozen=True, slots=True)
class _Quotient:
    """A decimal of some places that is divided by a number and compared with another one."""

    dividend: Decimal
    divisor: decimal.Decimal
    other: decimal.Decimal


# The least number of places that the engine keeps near the other number; None if it may fail.
_Places: TypeAlias = Callable[[_Quotient], int | None]


def _of_postgres(quotient: _Quotient) -> int:
    """Return 16 digits from the first group of four on, or the places of the divisor."""
    groups = (len(str(int(abs(quotient.other)) + 1)) - 1) // 4
    return max(16 - 4 * groups, _places(quotient.divisor))


def _of_datafusion(quotient: _Quotient) -> int | None:
    places = quotient.dividend.scale + 4
    wholes = max(quotient.dividend.precision - quotient.dividend.scale, _LONG_DIGITS)
    fits = max(quotient.dividend.precision + 4, wholes + max(places, _FLOAT_PLACES)) <= _MAX_DIGITS
    return places if fits and not _places(quotient.divisor) else None


@dataclass(frozen=True, slots=True)
class _Engine:
    """The places that an engine keeps, and whether it compares decimals with floats as decimals."""

    places: _Places
    draws_floats: bool = False


_ENGINES: Mapping[str, _Engine] = {
    "postgres": _Engine(_of_postgres),
    "datafusion": _Engine(_of_datafusion, draws_floats=True),
}


def product_comparison(node: ir.Comparison, type_of: TypeOf, engine: str) -> ir.Comparison:
    """Return `d > k * c` for `d / c > k` where the engine gives the same; else the comparison."""
    if (known := _ENGINES.get(engine)) is None:
        return node
    products = _Products(known, type_of)
    return products.comparison(node.op, node.left, node.right) or (
        products.comparison(node.op.mirrored, node.right, node.left) or node
    )


def product_list(node: ir.InList, type_of: TypeOf, engine: str) -> ir.Predicate:
    """Return `d = k * c OR …` for `d / c IN (k, …)` where the engine gives the same."""
    known = _ENGINES.get(engine)
    if known is None or not is_quotient(node.operand) or len(node.values) > _MAX_ITEMS:
        return node
    products = _Products(known, type_of)
    items = [ir.Literal(each.as_py(), node.values.type) for each in node.values.array]
    equalities = [products.comparison(ir.ComparisonOp.EQ, node.operand, item) for item in items]
    terms = tuple(term for term in equalities if term is not None)
    return ir.Or(terms) if terms and len(terms) == len(items) else node


def is_quotient(node: ir.Node) -> bool:
    """Whether it is a quotient, in any of its forms."""
    return isinstance(node, ir.Call) and node.function in _QUOTIENTS


@dataclass(frozen=True, slots=True)
class _Products:
    engine: _Engine
    type_of: TypeOf

    def comparison(
        self, op: ir.ComparisonOp, left: ir.Operand, right: ir.Operand
    ) -> ir.Comparison | None:
        """Return `dividend op product` for a quotient on the left; None for other operands."""
        if not isinstance(left, ir.Call) or not is_quotient(left):
            return None
        dividend, divisor = map(_exact, left.arguments)
        by, other = _number(divisor), _number(_exact(self.compared(right)))
        if not by or other is None or isinstance(self.type_of(left), Int):
            return None
        type_ = self.decimal(dividend)
        if type_ is None:
            return None
        quotient = _Quotient(type_, by, other)
        places = self.engine.places(quotient)
        if places is None or not _is_apart(quotient, places):
            return None
        with decimal.localcontext(prec=2 * _MAX_DIGITS):
            product = by * other
        digits = _places(product)
        if len(str(int(abs(product)))) + digits > _MAX_DIGITS:
            return None
        constant = ir.Literal(product, Decimal(_MAX_DIGITS, digits)) if digits else _whole(product)
        return ir.Comparison(op if by > 0 else op.mirrored, dividend, constant)

    def compared(self, other: ir.Operand) -> ir.Operand:
        """Return the constant with which the engine compares a decimal."""
        if (
            not isinstance(other, ir.Literal)
            or other.type != Float(64)
            or not self.engine.draws_floats
        ):
            return other
        try:
            return as_decimal(other)
        except UnsupportedOperation:  # refused as it is
            return other

    def decimal(self, dividend: ir.Operand) -> Decimal | None:
        """Return the type of a decimal or whole number as a decimal; None for other types."""
        type_ = self.type_of(dividend)
        if isinstance(type_, Int):
            return Decimal(_LONG_DIGITS, 0)
        return type_ if isinstance(type_, Decimal) else None


def _exact(operand: ir.Operand) -> ir.Operand:
    """Return the operand below a cast to a number of any size."""
    if isinstance(operand, ir.Cast) and isinstance(operand.type, Numeric):
        return operand.operand
    return operand


def _number(operand: ir.Operand) -> decimal.Decimal | None:
    """Return the value of a whole or decimal constant; None for any other operand, or digits."""
    value = operand.value if isinstance(operand, ir.Literal) else None
    if type(value) is int and abs(value) < 10**_MAX_DIGITS:
        return decimal.Decimal(value)
    if not isinstance(value, decimal.Decimal) or not value.is_finite():
        return None
    fits = value.adjusted() < _MAX_DIGITS and _places(value) <= _MAX_DIGITS
    return value.normalize(_EXACT) if fits else None


def _whole(product: decimal.Decimal) -> ir.Literal:
    whole = int(product)
    if abs(whole) < 2**63:
        return ir.Literal(whole, Int(64))
    return ir.Literal(decimal.Decimal(whole), Decimal(_MAX_DIGITS, 0))


def _places(value: decimal.Decimal) -> int:
    return max(-int(value.as_tuple().exponent), 0)


def _is_apart(quotient: _Quotient, places: int) -> bool:
    """Whether quotients that differ from the other number do so by more than the last place."""
    factors = _places(quotient.divisor) + _places(quotient.other)
    grid = fractions.Fraction(1, 10 ** max(quotient.dividend.scale, factors))
    unit = fractions.Fraction(1, 10**places)
    return (
        _places(quotient.other) <= places
        and grid / abs(fractions.Fraction(quotient.divisor)) > unit
    )
