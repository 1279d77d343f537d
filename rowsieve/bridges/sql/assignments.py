"""The values of `Table.update` and `Table.merge`: text is SQL, everything else is a constant.

SQL text that is a number is refused where text is wanted and the number would be another text.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np

from rowsieve.bridges.python_constants import lit
from rowsieve.bridges.where import to_operand
from rowsieve.errors import InvalidInput, InvalidPredicate, UnsupportedOperation, repr_of
from rowsieve.predicate.ir import Literal, Operand
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.days import DAY_US, NANOS_OF_MICRO
from rowsieve.types.logical import (
    Bool,
    Date,
    Decimal,
    Field,
    Float,
    Int,
    LogicalType,
    Nanos,
    String,
    Timestamp,
    is_nested,
    type_name,
)
from rowsieve.types.schema import Schema


def assigned(
    value: Any, field: Field, dialect: str, schema: Schema, semantics: Semantics
) -> Operand:
    """Return the expression that an update assigns: text is SQL, everything else is a constant."""
    if not isinstance(value, str):
        if value is not None and is_nested(field.type) and not isinstance(value, Operand):
            raise InvalidInput(
                f"update: column {field.name!r} is {type_name(field.type)}, and a list, struct or "
                f"map has no constant in SQL: {repr_of(value)}; upsert the rows with their new "
                "values, or give None, or SQL text such as the name of another column"
            )
        constant = lit(value)
        if _is_changed(constant, field.type):
            raise InvalidInput(
                f"update: column {field.name!r} is {type_name(field.type)}, which does not hold "
                f"{repr_of(value)} without loss; round it, or widen the column"
            )
        return constant
    if not value.strip():
        raise InvalidInput(
            f"update: the SQL text for column {field.name!r} is empty; give rs.lit({value!r}) to "
            "store this text, or None for NULL"
        )
    with noting_that_text_is_sql(value):
        operand = to_operand(value, dialect, schema, semantics)
    if isinstance(operand, Literal) and isinstance(operand.value, int | float | decimal.Decimal):
        refuse_number(value, operand.value, field, "update")
    return operand


@contextmanager
def noting_that_text_is_sql(value: Any) -> Iterator[None]:
    """Note at an error about SQL text how to store the text itself."""
    try:
        yield
    except (InvalidPredicate, UnsupportedOperation) as error:
        if isinstance(value, str):
            error.add_note(f"Text is SQL here; give rs.lit({value!r}) to store this text.")
        raise


def _is_changed(constant: Operand, type_: LogicalType) -> bool:
    """Return whether a column of the type would round a constant, or cut a time off.

    A float is the shortest decimal number that is read back as it. A fraction may be rounded to the
    nearest float. What overflows has errors of its own.
    """
    value = constant.value if isinstance(constant, Literal) else None
    match type_:
        case Int() | Decimal() if isinstance(value, float | decimal.Decimal):
            scale = type_.scale if isinstance(type_, Decimal) else 0
            return math.isfinite(value) and (Fraction(str(value)) * 10**scale).denominator > 1
        case Float(bits=bits) if isinstance(value, decimal.Decimal) or type(value) is int:
            return _loses_digits(value, bits)
        case Bool():
            return isinstance(value, int) and value not in (0, 1)
        case Date() | Timestamp():
            return isinstance(value, int) and value % _unit_of(type_, constant) != 0
        case _:
            return False


def _loses_digits(value: int | decimal.Decimal, bits: int) -> bool:
    """Return whether the nearest float of this width lies 1 or more from the number."""
    try:
        with np.errstate(over="ignore"):
            nearest = float(np.dtype(f"float{bits}").type(value))
    except OverflowError:
        return False
    return math.isfinite(nearest) and abs(Fraction(value) - Fraction(nearest)) >= 1


def _unit_of(type_: LogicalType, constant: Operand) -> int:
    """The value of a time's constant that is one day, or one microsecond, of a column; 1 if any."""
    match constant:
        case Literal(type=Nanos()) if isinstance(type_, Timestamp):
            return NANOS_OF_MICRO
        case Literal(type=Nanos(utc=False)):
            return DAY_US * NANOS_OF_MICRO
        case Literal(type=Timestamp(utc=False)) if isinstance(type_, Date):
            return DAY_US
        case _:
            return 1


def refuse_number(text: str, number: float | decimal.Decimal, field: Field, operation: str) -> None:
    """Raise InvalidInput if SQL text is a number that a text column would store otherwise."""
    if isinstance(field.type, String) and str(number) != text.strip():
        kind = "boolean" if isinstance(number, bool) else "number"
        raise InvalidInput(
            f"{operation}: {text!r} is the {kind} {number} in SQL, and column {field.name!r} is "
            f"text; give rs.lit({text.strip()!r}) to store this text, or quote it, as in "
            f"\"'{text.strip()}'\""
        )
