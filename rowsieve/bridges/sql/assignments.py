"""The values of `Table.update` and `Table.merge`: text is SQL, everything else is a constant.

SQL text that is a number is refused where text is wanted and the number would be another text.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rowsieve.bridges.python_constants import lit
from rowsieve.bridges.where import to_operand
from rowsieve.errors import InvalidInput, InvalidPredicate, UnsupportedOperation, repr_of
from rowsieve.predicate.ir import Literal, Operand
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Decimal, Field, Int, String, is_nested, type_name
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
        _refuse_rounding(constant, field)
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


def _refuse_rounding(constant: Operand, field: Field) -> None:
    """Raise InvalidInput for a number that an integer or decimal column would round."""
    number = constant.value if isinstance(constant, Literal) else None
    if not isinstance(number, float | decimal.Decimal) or not math.isfinite(number):
        return
    match field.type:
        case Int():
            is_rounded = number != int(number)
        case Decimal(scale=scale) if isinstance(number, decimal.Decimal):
            exponent = number.normalize().as_tuple().exponent
            is_rounded = isinstance(exponent, int) and -exponent > scale
        case _:
            return
    if is_rounded:
        raise InvalidInput(
            f"update: column {field.name!r} is {type_name(field.type)}, which does not hold "
            f"{number} without loss; round it, or widen the column"
        )


def refuse_number(text: str, number: float | decimal.Decimal, field: Field, operation: str) -> None:
    """Raise InvalidInput if SQL text is a number that a text column would store otherwise."""
    if isinstance(field.type, String) and str(number) != text.strip():
        kind = "boolean" if isinstance(number, bool) else "number"
        raise InvalidInput(
            f"{operation}: {text!r} is the {kind} {number} in SQL, and column {field.name!r} is "
            f"text; give rs.lit({text.strip()!r}) to store this text, or quote it, as in "
            f"\"'{text.strip()}'\""
        )
