"""Values on the way from Spark's tree to ours: constants of every type, and what a value is there.

Soundness: a constant is taken over exactly, or computed by Spark itself; text becomes another type
here only where it is written in full.
"""

from __future__ import annotations

import decimal
import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rowsieve.bridges.spark_columns.tree import Node
from rowsieve.bridges.spark_columns.types import held_type, type_named
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate.coerce import convert
from rowsieve.predicate.ir import Cast, Literal, Operand, PhysicalValue
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Time,
    Timestamp,
    Uuid,
    type_name,
)


@dataclass(frozen=True, slots=True)
class Value:
    """An operand, and the type that Spark gives it; None is the type of a bare NULL."""

    operand: Operand
    type: LogicalType | None
    loose: bool = False  # the operand's own type is another one that compares alike

    @property
    def exact(self) -> Operand:
        """The operand in Spark's type."""
        if not self.loose or self.type is None:
            return self.operand
        return Cast(self.operand, self.type)


def constant_of(value: Value) -> PhysicalValue:
    """The value of a constant; None where it is none, or NULL."""
    return value.operand.value if isinstance(value.operand, Literal) else None


def held(operand: Operand, type_: LogicalType) -> Value:
    """A stored value as Spark holds it."""
    if isinstance(type_, Uuid | Json):
        return Value(Cast(operand, String()), String())
    return Value(operand, held_type(type_), loose=held_type(type_) != type_)


def one_type(what: str, values: list[Value]) -> LogicalType | None:
    """The type of all values, NULLs left out."""
    types = {value.type for value in values} - {None}
    if len(types) > 1:
        shown = ", ".join(sorted(type_name(type_) for type_ in types if type_ is not None))
        raise UnsupportedOperation(f"{what} of {shown}: cast all to one type")
    return next(iter(types), None)


def literal_of(node: Node) -> Value:
    """A constant; NULL of no type is Spark's `void`."""
    spelled, value = node.fields["dataType"], node.fields["value"]
    if spelled == "void":
        return Value(Literal(None), None)
    type_ = type_named(spelled)
    if type_ is None:
        raise UnsupportedOperation(f"a constant of type {spelled} has no type here")
    if value is None:
        return Value(Literal(None, type_), type_)
    match type_:
        case Date() | Timestamp() | Time() | Binary() if node.source is not None:
            return Value(Literal(physical(node.source().value(), type_), type_), type_)
        case _:
            return Value(Literal(physical(value, type_), type_), type_)


def physical(value: Any, type_: LogicalType) -> PhysicalValue:
    """The value of a constant, as Spark holds it or writes it down."""
    match type_:
        case Bool():
            return value if isinstance(value, bool) else value == "true"
        case Int() | Date() | Timestamp():
            return int(value)
        case Time():
            return int(value) // 1000  # Spark counts nanoseconds
        case Float():
            number: float = pa.scalar(float(value), arrow_type(type_)).as_py()
            return number
        case Decimal(scale=scale):
            text = value if isinstance(value, str) else value.toString()
            with decimal.localcontext(prec=60):
                return decimal.Decimal(text).quantize(decimal.Decimal(1).scaleb(-scale))
        case Binary():
            return bytes(value)
        case _:
            return value if isinstance(value, str) else str(value.toString())


def members_of(literals: list[Literal], type_: LogicalType) -> pa.Array:
    """Constants of one type as an array."""
    return pa.array([item.value for item in literals], plain_type(type_)).view(arrow_type(type_))


def plain_type(type_: LogicalType) -> pa.DataType:
    """The type of the numbers that constants of this type are held as."""
    plain = {Date: pa.int32(), Time: pa.int64(), Timestamp: pa.int64()}
    return plain.get(type(type_), arrow_type(type_))


def folded_by_spark(node: Node) -> Value | None:
    """What Spark makes of an expression of constants; None where it cannot be asked."""
    if node.source is None:
        return None
    from py4j.protocol import Py4JError  # noqa: PLC0415 - an extra
    from pyspark.errors import PySparkException  # noqa: PLC0415 - an extra

    java = node.source()
    if not java.foldable():
        return None
    spelled = str(java.dataType().json()).strip('"')
    if spelled == "void":
        return Value(Literal(None), None)
    type_ = type_named(spelled)
    if type_ is None:
        return None
    try:
        value = java.eval(None)
    except (Py4JError, PySparkException) as error:  # the latter where PySpark knows the error
        raise UnsupportedOperation("this constant has no value: Spark fails on it") from error
    return Value(Literal(None if value is None else physical(value, type_), type_), type_)


def widens(source: LogicalType, target: LogicalType) -> bool:
    """Whether every value stays the same number, and compares as before."""
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


def parsed(text: str, target: LogicalType) -> Literal:
    """A constant out of text, as in `day > '2020-01-01'`, where it is written in full."""
    forms = {
        Date(): r"\d{4}-\d\d-\d\d",
        Timestamp(): r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?",
    }
    try:
        if target in forms and re.fullmatch(forms[target], text):
            made = convert(Literal(text), None, target, Semantics.SPARK)
            assert isinstance(made, Literal)
            return made
        if isinstance(target, Int | Decimal) and re.fullmatch(r"-?\d{1,38}(\.\d{1,38})?", text):
            made = convert(Literal(text), None, target, Semantics.SPARK)
            assert isinstance(made, Literal)
            return made
    except InvalidPredicate as error:
        raise UnsupportedOperation(f"{text!r} is no {type_name(target)}") from error
    raise UnsupportedOperation(f"the text {text!r} as {type_name(target)}; write a literal of it")
