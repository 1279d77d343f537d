"""Values of constant operands."""

from __future__ import annotations

from rowsieve.predicate.ir import Call, Literal, Operand, PhysicalValue


def value_of(operand: Operand) -> PhysicalValue:
    """Return the value of a constant; None for NULL and for operands that are not constant."""
    return operand.value if isinstance(operand, Literal) else None


def text_of(operand: Operand) -> str | None:
    """Return the text of a constant; None for any other operand."""
    value = value_of(operand)
    return value if isinstance(value, str) else None


def whole_of(operand: Operand) -> int | None:
    """Return the whole number of a constant; None for any other operand, booleans included."""
    value = value_of(operand)
    return value if type(value) is int else None


def text_at(call: Call, place: int) -> str:
    """Return the constant text at this place of a call; empty without one."""
    return (text_of(call.arguments[place]) or "") if place < len(call.arguments) else ""
