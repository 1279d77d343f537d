"""Convert Arrow constants: one value to a literal, many to the members of a list."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rowsieve.errors import SchemaMismatch, UnsupportedOperation
from rowsieve.predicate.ir import Literal
from rowsieve.predicate.literal_values import from_scalar
from rowsieve.types.conform import conform_values
from rowsieve.types.days import NANOS_OF_MICRO
from rowsieve.types.encodings import logical_type
from rowsieve.types.logical import LogicalType, Map, Nanos


def literal_of(column: pa.Array) -> Literal:
    """Convert the first value of the array to a literal of its logical type."""
    array, type_ = stored(column)
    if type_ is None:
        return Literal(None)
    return from_scalar(array[0], type_)


def stored(array: pa.Array) -> tuple[pa.Array, LogicalType | None]:
    """Convert values to the storage type of their logical type; raise for those that do not fit."""
    if pa.types.is_null(array.type):
        return array, None
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_float16(array.type):
        raise UnsupportedOperation("a 16-bit constant, to which engines coerce the other operand")
    try:
        type_ = nanos_of(array) or logical_type(pa.field("literal", array.type), lambda: 0)
        values = conform_values(array, type_, "literal")
    except SchemaMismatch as error:
        raise UnsupportedOperation(
            f"a constant of the Arrow type {array.type} is not supported in a predicate: {error}"
        ) from error
    if isinstance(type_, Map):
        raise UnsupportedOperation(f"a constant of the Arrow type {array.type} is not supported")
    return values, type_


def nanos_of(array: pa.Array) -> Nanos | None:
    """Return the type of timestamps with digits that microseconds lack; None for all others."""
    if not pa.types.is_timestamp(array.type) or array.type.unit != "ns":
        return None
    ticks = array.view(pa.int64()).drop_null().to_numpy()
    return Nanos(array.type.tz is not None) if (ticks % NANOS_OF_MICRO).any() else None


def negative_nans(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the mask of NaNs with the sign bit set; false for NULL."""
    if not pa.types.is_floating(values.type):
        return pa.repeat(pa.scalar(value=False), len(values))
    floats = values.to_numpy(zero_copy_only=False)
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(np.isnan(floats) & np.signbit(floats) & valid)
