"""The values of `Table.update` and `Table.merge`: text is SQL, everything else is a constant.

SQL text that is a number is refused where text is wanted and the number would be another text.
"""

from __future__ import annotations

import decimal
from typing import Any

from rowsieve.bridges.python_constants import lit
from rowsieve.bridges.where import to_operand
from rowsieve.errors import InvalidInput, repr_of
from rowsieve.predicate.ir import Literal, Operand
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Field, String, is_nested, type_name
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
