"""Python and Arrow values as constants: the values of `Table.update`, and `rowsieve.lit`.

Soundness: a value becomes the constant that Arrow makes of it, or is refused; it is never read as
SQL. SQL text that is a number is refused where text is wanted and the number would be another text.
"""

from __future__ import annotations

import decimal
import uuid
from typing import Any

import pyarrow as pa

from rowsieve.arguments import checked
from rowsieve.bridges.where import to_operand
from rowsieve.errors import InvalidInput, UnsupportedOperation, repr_of
from rowsieve.predicate.ir import Literal, Operand
from rowsieve.predicate.literal_values import scalar
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Field, String, is_nested, type_name
from rowsieve.types.schema import Schema


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
            f"{repr_of(value)} ({type(value).__name__}) is no value of a column that can be given "
            "as a constant; give a number, text, bytes, a date, a time, a UUID, None, an Arrow "
            "scalar of these, or SQL text"
        ) from error


def constant_of(value: Any) -> pa.Scalar:
    """Return a value, or a constant of `lit`, as an Arrow scalar; InvalidInput for others."""
    if isinstance(value, pa.Scalar):
        return value
    operand = lit(value)
    if not isinstance(operand, Literal):
        raise InvalidInput(f"{repr_of(value)} is no constant; give SQL text, or a value")
    return pa.scalar(operand.value) if operand.type is None else scalar(operand)


def assigned(
    value: Any, field: Field, dialect: str, schema: Schema, semantics: Semantics
) -> Operand:
    """Return the expression that an update assigns: text is SQL, everything else is a constant."""
    if not isinstance(value, str):
        if value is not None and is_nested(field.type) and not isinstance(value, Operand):
            raise InvalidInput(
                f"update: column {field.name!r} is {type_name(field.type)}, and a list, struct or "
                f"map is no constant of SQL: {repr_of(value)}; upsert the rows with their new "
                "values, or give None, or SQL text such as the name of another column"
            )
        return lit(value)
    operand = to_operand(value, dialect, schema, semantics)
    if isinstance(operand, Literal) and isinstance(operand.value, int | float | decimal.Decimal):
        refuse_number(value, operand.value, field, "update")
    return operand


def refuse_number(text: str, number: float | decimal.Decimal, field: Field, operation: str) -> None:
    """Raise InvalidInput if SQL text is a number that a text column would store otherwise."""
    if isinstance(field.type, String) and str(number) != text.strip():
        raise InvalidInput(
            f"{operation}: {text!r} is the number {number} in SQL, and column {field.name!r} is "
            f"text; give rs.lit({text.strip()!r}) to store this text, or quote it, as in "
            f"\"'{text.strip()}'\""
        )
