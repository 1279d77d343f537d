"""Constants of DataFusion's expressions: lists of them, and those that are spelt as casts of text.

Soundness: what DataFusion makes of a constant is computed here only where every version makes the
same of it; any other form is refused.
"""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.pyarrow_exprs.literals import literal_of, negative_nans, stored
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.ir import Cast, Literal, Operand, ValueSet
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    String,
    Timestamp,
)

if TYPE_CHECKING:
    from datafusion import Expr

_TYPES: dict[str, LogicalType] = {
    "Boolean": Bool(),
    **{f"Int{bits}": Int(bits) for bits in (8, 16, 32, 64)},
    **{f"UInt{bits}": Int(bits, signed=False) for bits in (8, 16, 32, 64)},
    "Float32": Float(32),
    "Float64": Float(64),
    **dict.fromkeys(("Utf8", "LargeUtf8", "Utf8View"), String()),
    **dict.fromkeys(("Binary", "LargeBinary", "BinaryView"), Binary()),
    "Date32": Date(),
    "Timestamp(µs)": Timestamp(),
    'Timestamp(µs, "UTC")': Timestamp(utc=True),
    'Timestamp(µs, "+00:00")': Timestamp(utc=True),
}
_DECIMAL = re.compile(r"Decimal(?:32|64|128)\((\d+), (\d+)\)")
_DECIMAL_DIGITS = 15  # how DataFusion writes a float that meets a decimal


def plain_members(members: Sequence[Expr]) -> ValueSet | None:
    """Members that are constants of one Arrow type, all at once: lists may be long."""
    values = []
    for member in members:
        if member.variant_name() != "Literal":
            return None
        values.append(member.python_value())
    if not values or any(value.type != values[0].type for value in values):
        return None
    found = pa.array(values, values[0].type)
    _check_sign(found)
    array, type_ = stored(found)
    return None if type_ is None else ValueSet(array, type_)


def single(value: Any) -> Literal:
    """A constant, given as a pyarrow scalar."""
    found = pa.array([value])
    _check_sign(found)
    return literal_of(found)


def member_type(literals: Sequence[Literal]) -> LogicalType | None:
    """The one type of the members, or of whole numbers the one that holds all; None of NULLs."""
    types = {item.type for item in literals if item.type is not None}
    if types and all(isinstance(type_, Int) for type_ in types):
        greatest = max((item.value for item in literals if isinstance(item.value, int)), default=0)
        return Int(64, signed=greatest < 2**63)
    if len(types) > 1:
        raise UnsupportedOperation("the members of IN have several types; cast them to one")
    return next(iter(types), None)


def is_steady(operand: Operand) -> bool:
    """A constant beside which arithmetic gives NaN only where the other side is NaN."""
    while isinstance(operand, Cast):
        operand = operand.operand
    value = operand.value if isinstance(operand, Literal) else None
    return isinstance(value, int | float) and value != 0 and math.isfinite(value)


def is_zero(operand: Operand) -> bool:
    """Whether this is a constant zero."""
    return isinstance(operand, Literal) and operand.value == 0


def as_float(operand: Operand) -> Operand:
    """The operand as a float64; a whole constant at once."""
    if isinstance(operand, Literal) and isinstance(operand.value, int):
        return Literal(float(operand.value), Float(64))
    return Cast(operand, Float(64))


def as_decimal(operand: Operand) -> Operand:
    """A float constant as the decimal that DataFusion makes of it beside a decimal."""
    value = operand.value if isinstance(operand, Literal) else None
    if isinstance(value, float) and operand.type == Float(64) and abs(value) < 10**9:  # type: ignore[union-attr]
        with decimal.localcontext(prec=40):
            digits = decimal.Decimal(_scaled(value)).scaleb(-_DECIMAL_DIGITS)
        return literal_of(pa.array([digits], pa.decimal128(30, _DECIMAL_DIGITS)))
    raise UnsupportedOperation("a float beside a decimal; cast the float to a decimal")


def _scaled(value: float) -> int:
    """The digits: multiplied in floats, and rounded half away from zero."""
    scaled = abs(value) * 10.0**_DECIMAL_DIGITS
    whole = int(scaled) if scaled >= 2**52 else math.floor(scaled + 0.5)
    return whole if value >= 0 else -whole


def type_named(spelled: str) -> LogicalType | None:
    """The type that DataFusion spells so; None if columns have none such."""
    if (found := _TYPES.get(spelled)) is not None:
        return found
    if (match := _DECIMAL.fullmatch(spelled)) is not None:
        return Decimal(int(match[1]), int(match[2]))
    return None


def constant(text: Any, spelled: str, target: LogicalType | None, *, try_: bool) -> Operand:
    """A constant out of text, as in `DATE '2020-01-01'`, where it is written in full."""
    forms: dict[str, tuple[str, pa.DataType]] = {
        "Date32": (r"\d{4}-\d\d-\d\d", pa.date32()),
        "Timestamp(ns)": (_MOMENT, pa.timestamp("us")),
        "Timestamp(µs)": (_MOMENT, pa.timestamp("us")),
    }
    if isinstance(target, String):
        return Literal(text, String())
    if spelled in forms:
        pattern, storage = forms[spelled]
        if re.fullmatch(pattern, text):
            try:
                return literal_of(pa.array([text]).cast(storage))
            except pa.ArrowInvalid as error:
                raise UnsupportedOperation(f"{text!r} is no {spelled}") from error
    if target == Float(64) and re.fullmatch(r"NaN|-?\d{1,15}(\.\d{1,15})?", text):
        return Literal(float(text), Float(64))
    if isinstance(target, Int) and re.fullmatch(r"-?\d{1,18}", text) and not try_:
        try:
            return literal_of(pa.array([int(text)], arrow_type(target)))
        except (pa.ArrowInvalid, OverflowError) as error:
            raise UnsupportedOperation(f"{text!r} is no {spelled}") from error
    raise UnsupportedOperation(f"the text {text!r} as {spelled}; write a literal of the type")


_MOMENT = r"(?:1[7-9]|20|21)\d\d-\d\d-\d\d(?:[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?)?"


def _check_sign(values: pa.Array) -> None:
    if pc.any(negative_nans(values)).as_py():
        raise UnsupportedOperation(
            "NaN with its sign bit set, which DataFusion orders below every number"
        )
