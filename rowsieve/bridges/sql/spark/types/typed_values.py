"""An operand with its type in Spark, which may be wider than ours."""

from __future__ import annotations

from dataclasses import dataclass

from rowsieve.bridges.sql.spark.type_names import held_type
from rowsieve.predicate.ir import Cast, Operand
from rowsieve.types.logical import (
    Binary,
    Decimal,
    Float,
    Int,
    Interval,
    Json,
    LogicalType,
    Nanos,
    String,
    Timestamp,
    Uuid,
)


@dataclass(frozen=True, slots=True)
class Value:
    """An operand and its type in Spark, None for a bare NULL."""

    operand: Operand
    type: LogicalType | None
    loose: bool = False  # the operand has another type with equal values

    @property
    def exact(self) -> Operand:
        """The operand in Spark's type."""
        if not self.loose or self.type is None:
            return self.operand
        return Cast(self.operand, self.type)


def typed_value(operand: Operand, type_: LogicalType) -> Value:
    """Return a stored value with its type in Spark."""
    if isinstance(type_, Uuid | Json):
        return Value(Cast(operand, String()), String())
    if isinstance(type_, Interval):
        return Value(Cast(operand, Binary()), Binary())
    if isinstance(type_, Nanos):  # Spark reads it if it holds whole microseconds
        return Value(Cast(operand, Timestamp(type_.utc)), Timestamp(type_.utc))
    return Value(operand, held_type(type_), loose=held_type(type_) != type_)


def widens(source: LogicalType, target: LogicalType) -> bool:
    """Whether a cast keeps every value and its order."""
    match source, target:
        case Int(bits=bits), Int(bits=wider):
            return wider >= bits
        case Float(bits=32), Float(bits=64):
            return True
        case Int(bits=bits), Decimal(precision=precision, scale=scale):
            return precision - scale >= {8: 3, 16: 5, 32: 10, 64: 19}[bits]
        case Decimal(), Decimal():
            whole = target.precision - target.scale
            return target.scale >= source.scale and whole >= source.precision - source.scale
    return False
