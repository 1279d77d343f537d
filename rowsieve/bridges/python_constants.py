"""Python and Arrow values as constants: `rowsieve.lit`.

Soundness: a value becomes the constant that Arrow makes of it, or is refused; it is never read as
SQL.
"""

from __future__ import annotations

import decimal
import uuid
from typing import Any

import pyarrow as pa

from rowsieve.arguments import checked
from rowsieve.errors import InvalidInput, UnsupportedOperation, repr_of
from rowsieve.predicate.ir import Literal, Operand
from rowsieve.predicate.literal_values import scalar


@checked
def lit(value: Any) -> Operand:
    """Return a Python or Arrow value as a constant: text, a number, a time, bytes, a UUID, None.

    For `Table.update`, where text is SQL: `{"phone": rs.lit("007")}`.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return Literal(value)
    if isinstance(value, Operand):
        return value
    from rowsieve.bridges.pyarrow_exprs.literals import literal_of  # noqa: PLC0415 - on first use

    try:
        if isinstance(value, uuid.UUID):
            array = pa.array([value.bytes], pa.uuid())
        elif isinstance(value, pa.Scalar):
            array = pa.array([value], value.type)
        else:
            array = pa.array([value])
        return literal_of(array)
    except (
        OverflowError,
        pa.ArrowException,
        TypeError,
        ValueError,
        UnsupportedOperation,
    ) as error:
        raise InvalidInput(
            f"{repr_of(value)} ({type(value).__name__}) cannot be given as a constant for a "
            "column; give a number, text, bytes, a date, a time, a UUID, None, an Arrow "
            "scalar of these, or SQL text"
        ) from error


def constant_of(value: Any) -> pa.Scalar:
    """Return a value, or a constant of `lit`, as an Arrow scalar; InvalidInput for others."""
    if isinstance(value, pa.Scalar):
        return value
    operand = lit(value)
    if not isinstance(operand, Literal):
        raise InvalidInput(
            f"{repr_of(value)} is an expression, not a constant; give a value, or SQL text"
        )
    if operand.type is not None:
        return scalar(operand)
    number = operand.value
    if type(number) is not int or -(2**63) <= number < 2**63:
        return pa.scalar(number)
    try:
        return pa.scalar(decimal.Decimal(number))
    except pa.ArrowException as error:
        raise InvalidInput(f"{repr_of(number)} has more digits than any type of columns") from error
