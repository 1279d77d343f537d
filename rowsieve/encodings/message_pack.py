"""The codec `msgpack`: a row is a MessagePack array of its values, in the order of the columns.

Numbers have the shortest form that holds them, as every common encoder writes them. Structs are
maps by name, and floats of 32 bits are written as 64.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.encodings.cells import (
    Cells,
    big_endian,
    bytes_of,
    chosen,
    constant,
    first_bytes,
    fixed,
    joined,
    lengths_of,
)
from rowsieve.encodings.number_bytes import NotPlain
from rowsieve.encodings.plain_arrays import (
    Form,
    array_of,
    from_plain,
    plain_type,
    to_plain,
)
from rowsieve.encodings.rows_as_bytes import encoded_rows, numbers_of

VERSION: Final = 1

_decoder: Final = msgspec.msgpack.Decoder(tuple[Any, ...])
_pack: Final = msgspec.msgpack.Encoder().encode
_NIL: Final = constant(b"\xc0")
_DOUBLE: Final = constant(b"\xcb")
_FALSE, _TRUE = constant(b"\xc2"), constant(b"\xc3")


class _Forms(NamedTuple):
    """The forms of numbers or lengths, in the order of the values that they are for.

    Values below `edges[0]` have form 0, those below `edges[1]` form 1, and so on. A form has a
    first byte and a size in bytes, with the number in the others; the shortest has the number in
    its first byte.
    """

    edges: tuple[int, ...]
    firsts: tuple[int, ...]
    sizes: tuple[int, ...]


_SIGNED: Final = _Forms(
    (-(1 << 31), -(1 << 15), -(1 << 7), -32, 1 << 7, 1 << 8, 1 << 16, 1 << 32),
    (0xD3, 0xD2, 0xD1, 0xD0, 0x00, 0xCC, 0xCD, 0xCE, 0xCF),
    (9, 5, 3, 2, 1, 2, 3, 5, 9),
)
_UNSIGNED: Final = _Forms(*(part[4:] for part in _SIGNED))
_TEXTS: Final = _Forms((1 << 5, 1 << 8, 1 << 16), (0xA0, 0xD9, 0xDA, 0xDB), (1, 2, 3, 5))
_BYTES: Final = _Forms((1 << 8, 1 << 16), (0xC4, 0xC5, 0xC6), (2, 3, 5))
_LISTS: Final = _Forms((1 << 4, 1 << 16), (0x90, 0xDC, 0xDD), (1, 3, 5))


def encode(batch: pa.RecordBatch) -> pa.Array:
    """Encode each row."""
    count = batch.num_columns
    head = constant(_pack((None,) * count)[: 1 if count < 16 else 3 if count < 1 << 16 else 5])
    columns = [to_plain(column, Form.BINARY) for column in batch.columns]
    return encoded_rows(columns, [True] * count, batch.num_rows, head, _FORMAT)


def decode(rows: pa.Array, schema: pa.Schema) -> pa.RecordBatch:
    """Decode each row."""
    try:
        values = list(map(_decoder.decode, rows.to_numpy(zero_copy_only=False)))
        columns = list(zip(*values, strict=True))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise NotPlain(str(error)) from error
    except ValueError as error:
        raise NotPlain(f"rows differ in their number of values: {error}") from error
    if len(columns) != len(schema) and len(rows):
        raise NotPlain(f"a row has {len(columns)} values for {len(schema)} columns")
    arrays = [
        from_plain(
            array_of(columns[place] if columns else [], plain_type(field.type, Form.BINARY)),
            field.type,
            Form.BINARY,
        )
        for place, field in enumerate(schema)
    ]
    return batch_of(arrays, schema, len(rows))


def batch_of(arrays: list[pa.Array], schema: pa.Schema, row_count: int) -> pa.RecordBatch:
    """One batch, which has `row_count` rows even without columns."""
    if arrays:
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    return pa.RecordBatch.from_arrays([pa.nulls(row_count)], ["row"]).select([])


class _MessagePack:
    """MessagePack, as `rowsieve.encodings.rows_as_bytes.Format`."""

    def leaf(self, values: pa.Array) -> list[Any]:
        type_ = values.type
        if pa.types.is_boolean(type_):
            return [chosen(values.fill_null(pa.scalar(value=False)), _TRUE, _FALSE)]
        if pa.types.is_integer(type_):
            forms = _SIGNED if pa.types.is_signed_integer(type_) else _UNSIGNED
            return [_numbers(numbers_of(values), forms)]
        if pa.types.is_floating(type_):
            return [_DOUBLE, fixed(big_endian(numbers_of(values).astype(np.float64)))]
        cells = bytes_of(values)
        forms = _TEXTS if pa.types.is_string(type_) else _BYTES
        return [_numbers(lengths_of(cells), forms), cells]

    def members(self, members: list[list[Any]], struct: pa.DataType) -> list[Any]:
        count = struct.num_fields
        parts: list[Any] = [constant(_pack(dict.fromkeys(range(count)))[: 1 if count < 16 else 3])]
        for field, member in zip(struct, members, strict=True):
            parts += [constant(_pack(field.name)), *member]
        return parts

    def items(self, items: Cells, lengths: npt.NDArray[np.int64]) -> list[Any]:
        return [_numbers(lengths, _LISTS), items]

    def nullable(self, parts: list[Any], is_valid: pa.Array | None, count: int) -> list[Any]:
        if not parts:
            return [_NIL]
        return parts if is_valid is None else [chosen(is_valid, joined(parts, count), _NIL)]


_FORMAT: Final = _MessagePack()


def _numbers(values: npt.NDArray[Any], forms: _Forms) -> Cells:
    """Cells of whole numbers in the shortest of these forms."""
    if not len(values):
        return fixed(np.empty((0, 0), np.uint8))
    low, high = int(values.min()), int(values.max())
    form = sum(edge <= low for edge in forms.edges)
    crossed = [edge for edge in forms.edges if low < edge <= high]
    if not crossed:
        first, size = forms.firsts[form], forms.sizes[form]
        octets = big_endian(values.astype(np.uint64))
        if size == 1:
            return fixed(octets[:, 7:] | np.uint8(first))
        head = np.full((len(values), 1), first, np.uint8)
        return fixed(np.hstack([head, octets[:, 9 - size :]]))
    of_rows = np.full(len(values), form, np.uint8)
    for edge in crossed:
        of_rows += values >= edge
    sizes = np.array(forms.sizes, np.uint8)[of_rows]
    octets = np.empty((len(values), 9), np.uint8)
    shifts = np.array([8 * (9 - size) % 64 for size in forms.sizes], np.uint64)
    octets[:, 1:] = big_endian(values.astype(np.uint64) << shifts[of_rows])
    firsts = np.array(forms.firsts, np.uint8)[of_rows]
    octets[:, 0] = np.where(sizes == 1, firsts | values.astype(np.uint8), firsts)
    return first_bytes(octets, sizes)
