"""Float constants compared with decimals, which DataFusion converts to decimals."""

from __future__ import annotations

import decimal
import math

import pyarrow as pa

from rowsieve.bridges.pyarrow_exprs.literals import literal_of
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.ir import Literal, Operand
from rowsieve.types.logical import Float

_DIGITS = 15  # after the point


def as_decimal(operand: Operand) -> Operand:
    """Return the decimal to which DataFusion converts a float constant compared with a decimal."""
    value = operand.value if isinstance(operand, Literal) else None
    if isinstance(value, float) and operand.type == Float(64) and abs(value) < 10**9:  # type: ignore[union-attr]
        with decimal.localcontext(prec=40):
            digits = decimal.Decimal(_scaled(value)).scaleb(-_DIGITS)
        return literal_of(pa.array([digits], pa.decimal128(30, _DIGITS)))
    raise UnsupportedOperation("a float compared with a decimal; cast the float to a decimal")


def _scaled(value: float) -> int:
    """Return the digits: scaled as floats, then rounded half away from zero."""
    scaled = abs(value) * 10.0**_DIGITS
    whole = int(scaled) if scaled >= 2**52 else math.floor(scaled + 0.5)
    return whole if value >= 0 else -whole
