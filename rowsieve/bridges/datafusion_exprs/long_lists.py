"""Long lists as one constant: `array_has` of a list, which DataFusion plans as IN.

An expression per member costs 20 microseconds each, to write as to read; a list constant is one
Arrow array. Python hands such a constant over value by value, too (2 s for a million), so it is put
together in the form in which expressions are serialised, `datafusion_proto`, from the array's own
buffers. Soundness: only lists without NULL, of which `array_has` and IN mean the same; what comes
out is read back and compared before it is handed on.
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
_LENGTHS = 2  # the wire type of what has a length


def found_in(operand: Expr, members: pa.Array) -> Expr:
    """`array_has(members, operand)`."""
    import datafusion  # noqa: PLC0415 - an extra, at its first use

    name = _field(_NAME, b"array_has")
    arguments = _field(_ARGUMENT, _constant(members)), _field(_ARGUMENT, operand.to_bytes())
    made = datafusion.Expr.from_bytes(_field(_CALL, name + b"".join(arguments)))
    kept = made.rex_call_operands()[0].python_value().values
    if kept.type != members.type or len(kept) != len(members) or kept.null_count:
        raise UnsupportedOperation("this DataFusion serialises constants in another form")
    return made


def members_of(arguments: Sequence[Expr]) -> pa.Array | None:
    """The members of the constant list in a call of `array_has`; None if it is no such call."""
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
    """One row that is the list of them, without a copy."""
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
            raise UnsupportedOperation("this DataFusion serialises constants in another form")
        yield tag >> 3, message[place : place + size]
        place += size
