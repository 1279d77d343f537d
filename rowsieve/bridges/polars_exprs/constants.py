"""Read polars' constants as literals and as members of lists.

A bare Python number has no type in polars and takes that of the other operand; here it is a
`Literal` without a type until the reader sets it. A constant that no column can hold (nanoseconds,
categories, another time zone) is refused.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from rowsieve.bridges.pyarrow_exprs.literals import nanos_of, stored
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.ir import Literal, ValueSet
from rowsieve.predicate.literal_values import decimal_type
from rowsieve.types import logical

_PLAIN: dict[str, logical.LogicalType] = {
    "Boolean": logical.Bool(),
    **{f"Int{bits}": logical.Int(bits) for bits in (8, 16, 32, 64)},
    **{f"UInt{bits}": logical.Int(bits, signed=False) for bits in (8, 16, 32, 64)},
    "Float32": logical.Float(32),
    "Float64": logical.Float(64),
    "String": logical.String(),
    "StringOwned": logical.String(),
    "Binary": logical.Binary(),
    "BinaryOwned": logical.Binary(),
    "Date": logical.Date(),
}
_TYPES = {**_PLAIN, "Time": logical.Time()}
_PER_MICROSECOND = {"Nanoseconds": 1000, "Microseconds": 1}


def single(node: Any) -> tuple[str, Any]:
    """Return the name and content of a node, which is a mapping of one entry or a bare name."""
    if isinstance(node, dict) and len(node) == 1:
        return next(iter(node.items()))
    if isinstance(node, str):
        return node, None
    raise UnsupportedOperation("this polars writes a constant in a form not known here; write SQL")


def called(node: Any) -> tuple[str, Any, Sequence[Any]]:
    """Return name, options and arguments of a function's node; an empty name for other nodes."""
    kind, content = single(node)
    if kind != "Function":
        return "", None, ()
    name, options = single(content["function"])
    if name == "Boolean" or name.endswith("Expr"):
        family, (name, options) = name, single(options)
        name = f"{family}.{name}"
    return name, options, content["input"]


def literal_of(payload: Any) -> Literal:
    """Read the constant of a `Literal` node."""
    family, content = single(payload)
    if family not in ("Dyn", "Scalar"):
        raise UnsupportedOperation(f"a constant of kind {family} has no counterpart in Rowsieve")
    kind, value = single(content)
    if family == "Dyn":
        if kind == "Int":
            return Literal(int.from_bytes(value, "big", signed=True))
        if kind == "Float":
            return Literal(float(value))
        raise UnsupportedOperation(f"a constant of the kind {kind} has no counterpart in Rowsieve")
    if kind == "Null":
        return Literal(None)
    if kind in _PLAIN:
        return Literal(bytes(value) if _PLAIN[kind] == logical.Binary() else value, _PLAIN[kind])
    if kind == "Time":
        return Literal(_microseconds(value, "Nanoseconds"), logical.Time())
    if kind == "Datetime":
        ticks, unit, zone = value
        return Literal(_microseconds(ticks, unit), logical.Timestamp(utc=_is_utc(zone)))
    if kind == "Decimal":
        digits, _, scale = value
        if isinstance(digits, bytes):
            digits = int.from_bytes(digits, "big", signed=True)
        with decimal.localcontext(prec=60):
            number = decimal.Decimal(digits).scaleb(-scale)
        return Literal(number, decimal_type(number))
    raise UnsupportedOperation(f"a constant of polars' type {kind} has no counterpart in Rowsieve")


def duration_of(payload: Any) -> int | None:
    """Return the microseconds of a constant duration; None for other constants."""
    family, content = single(payload)
    if family != "Scalar":
        return None
    kind, value = single(content)
    return _microseconds(*value) if kind == "Duration" else None


def members_of(payload: Any) -> ValueSet:
    """Read the members of a constant list."""
    family, content = single(payload)
    if family == "Scalar":
        kind, content = single(content)
        family = "Series" if kind == "List" else family
    if family != "Series" or not isinstance(content, bytes):
        raise UnsupportedOperation("is_in is read with a list of constants only")
    try:
        column = pa.ipc.open_stream(pa.py_buffer(content)).read_all().column(0).combine_chunks()
    except pa.ArrowException as error:  # integers of 128 bits
        raise UnsupportedOperation(
            f"is_in with members of a type of polars' own: {error}"
        ) from error
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        if len(column) != 1:  # a list for each row
            raise UnsupportedOperation("is_in is read with one list only")
        column = column.flatten()
    if pa.types.is_timestamp(column.type) and column.type.unit not in ("us", "ns"):
        raise UnsupportedOperation(f"is_in with members of {column.type}; cast them to us")
    if nanos_of(column) is not None:  # polars casts them to the unit of the other side
        raise UnsupportedOperation("a time of less than a microsecond")
    array, type_ = stored(column)
    return ValueSet(array, type_)


def type_of_name(dtype: Any) -> logical.LogicalType:
    """Return the logical type of a cast's data type."""
    family, content = single(dtype)
    if family != "Literal":
        raise UnsupportedOperation("a type that depends on other columns")
    kind, detail = single(content)
    if kind in _TYPES:
        return _TYPES[kind]
    if kind == "Decimal" and None not in detail:
        return logical.Decimal(*detail)
    if kind == "Datetime" and detail[0] == "Microseconds":
        return logical.Timestamp(utc=_is_utc(detail[1]))
    raise UnsupportedOperation(f"polars' type {kind} has no counterpart in Rowsieve")


def _microseconds(ticks: int, unit: str) -> int:
    if unit not in _PER_MICROSECOND:
        raise UnsupportedOperation(
            f"a constant of {unit.lower()}, to which polars would truncate the other operand"
        )
    whole, rest = divmod(int(ticks), _PER_MICROSECOND[unit])
    if rest:
        raise UnsupportedOperation("a time of less than a microsecond")
    return whole


def _is_utc(zone: Any) -> bool:
    if zone is None:
        return False
    name = zone.get("inner") if isinstance(zone, dict) else zone
    if name not in ("UTC", "Etc/UTC"):
        raise UnsupportedOperation(f"the time zone {name}; convert to UTC")
    return True
