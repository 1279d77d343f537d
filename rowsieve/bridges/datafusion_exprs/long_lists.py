"""Write long lists as one constant: `array_has` of a list, which DataFusion plans as IN.

An expression per member costs 20 microseconds, both to write and to read. A list constant is one
Arrow array, but the Python API passes it value by value (2 s for a million). So its serialised
form, `datafusion_proto`, is assembled from the array's buffers.

Soundness: only lists without NULL, for which `array_has` and IN are equivalent. The result is
decoded and compared before it is returned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from rowsieve.errors import UnsupportedOperation
from rowsieve.varints import decode_varint, encode_varint

if TYPE_CHECKING:
    from datafusion import Expr

LONG = 256
_CALL = 20  # ScalarUDFExprNode in LogicalExprNode
_NAME, _ARGUMENT = 1, 2  # in ScalarUDFExprNode
_MESSAGE, _BODY, _SCHEMA = 1, 2, 3  # in ScalarNestedValue
_LENGTHS = 2  # the wire type of length-delimited fields


def found_in(operand: Expr, members: pa.Array) -> Expr:
    """Return `array_has(members, operand)`."""
    import datafusion  # noqa: PLC0415 - an extra, at its first use

    name = _field(_NAME, b"array_has")
    arguments = _field(_ARGUMENT, _constant(members)), _field(_ARGUMENT, operand.to_bytes())
    call = datafusion.Expr.from_bytes(_field(_CALL, name + b"".join(arguments)))
    values = call.rex_call_operands()[0].python_value().values
    if values.type != members.type or len(values) != len(members) or values.null_count:
        raise UnsupportedOperation(
            "this version of DataFusion serialises constants in an unknown form; write SQL text"
        )
    return call


def members_of(arguments: Sequence[Expr]) -> pa.Array | None:
    """Return the members of the constant list in a call of `array_has`; None for other calls."""
    listed = arguments[0]
    if listed.variant_name() != "Literal":
        return None
    value = listed.python_value()
    if not pa.types.is_list(value.type) or not value.is_valid:
        return None
    return value.values


def _constant(members: pa.Array) -> bytes:
    import datafusion  # noqa: PLC0415 - an extra, at its first use

    ((kind, scalar),) = _fields(datafusion.Expr.literal(_listed(members[:1])[0]).to_bytes())
    ((list_, nested),) = _fields(scalar)
    schema = dict(_fields(nested))[_SCHEMA]
    batch = pa.record_batch([_listed(members)], ["field_name"])
    message = pa.ipc.read_message(batch.serialize())
    parts = (
        _field(_MESSAGE, message.metadata.to_pybytes()),
        _field(_BODY, message.body.to_pybytes()),
        _field(_SCHEMA, schema),
    )
    return _field(kind, _field(list_, b"".join(parts)))


def _listed(members: pa.Array) -> pa.Array:
    """Return one row with the list of the members, without a copy."""
    offsets = pa.array([0, len(members)], pa.int32())
    return pa.ListArray.from_arrays(offsets, members)


def _field(number: int, payload: bytes) -> bytes:
    return encode_varint(number << 3 | _LENGTHS) + encode_varint(len(payload)) + payload


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while place < len(message):
        tag, place = decode_varint(message, place)
        size, place = decode_varint(message, place)
        if tag & 7 != _LENGTHS:
            raise UnsupportedOperation(
                "this version of DataFusion serialises constants in an unknown form; write SQL text"
            )
        yield tag >> 3, message[place : place + size]
        place += size
