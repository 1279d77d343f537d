"""Quotients of decimals that no engine rounds, whatever digits it keeps."""

from __future__ import annotations

import decimal
import fractions

from rowsieve.bridges.constant_values import value_of
from rowsieve.predicate import ir
from rowsieve.predicate.functions.numbers.decimals import int_as_decimal
from rowsieve.predicate.operand_types import type_of
from rowsieve.types.logical import Decimal, Int, LogicalType

# PostgreSQL keeps 16 digits or more, and the places of both sides; DataFusion 4 places more than
# the dividend has.
_DIGITS = 15
_MORE_PLACES = 4


def is_short_quotient(node: ir.Call) -> bool:
    """Whether the divisor is a constant such as 2, 10 or 1.25, so that a quotient has few digits.

    The node is bound, and its result a decimal.
    """
    dividend, divisor = node.arguments
    return has_few_digits(type_of(dividend), divisor, type_of(node))


def has_few_digits(
    dividend: LogicalType | None, divisor: ir.Operand, result: LogicalType | None
) -> bool:
    """Whether a quotient of decimals by a constant has digits that every engine keeps."""
    while isinstance(divisor, ir.Cast):
        divisor = divisor.operand
    value = value_of(divisor)
    if not isinstance(value, int | decimal.Decimal) or not value:
        return False
    if isinstance(dividend, Int):
        dividend = int_as_decimal(dividend)
    if not isinstance(dividend, Decimal) or not isinstance(result, Decimal):
        return False
    part = abs(fractions.Fraction(value))
    places = range(_MORE_PLACES + 1)
    more = next((k for k in places if (10**k / part).denominator == 1), None)
    if more is None or dividend.scale + more > result.scale:
        return False
    digits = max(dividend.scale, -int(decimal.Decimal(value).as_tuple().exponent))
    return (
        dividend.scale + more <= digits
        or dividend.precision + len(str(10**more // part)) <= _DIGITS
    )
