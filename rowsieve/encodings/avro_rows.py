"""The codec `avro`: a row is one Avro record, without a container and its header.

The schema of the record follows from the columns (`avro_schema`). Decimals, dates, times,
timestamps and UUIDs have the bytes of Avro's logical types, which other readers may add to it.
Columns that may be NULL are unions with "null" first; maps are lists of pairs, because keys of any
type, in any order, are kept. Integers of 64 bits without sign are decimals of 20 digits. Fields are
named f0, f1, …, because Avro allows few characters in names.

Rows are written by this module, and read by fastavro.

Soundness: rows that this module wrote are read as one block. That it took each row from its own
bytes is checked by writing the rows again; other rows, as other writers of Avro may make them, are
read one by one, and have to end where their bytes end.
"""

from __future__ import annotations

import io
from typing import Any, Final

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
from rowsieve.encodings.message_pack import batch_of
from rowsieve.encodings.number_bytes import NotPlain
from rowsieve.encodings.plain_arrays import (
    Form,
    array_of,
    from_plain,
    plain_type,
    to_plain,
)
from rowsieve.encodings.rows_as_bytes import encoded_rows, numbers_of
from rowsieve.errors import MissingExtra

VERSION: Final = 1

_NULL, _VALUE = constant(b"\x00"), constant(b"\x02")
_FALSE, _TRUE = constant(b"\x00"), constant(b"\x01")
_END: Final = constant(b"\x00")
_EMPTY: Final = constant(b"")
_SYNC: Final = b"\0" * 16
_HEADER: Final = {
    "type": "record",
    "name": "org.apache.avro.file.Header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "Sync", "size": 16}},
    ],
}
"""The header of a container, by the specification of Avro."""


def encode(batch: pa.RecordBatch) -> pa.Array:
    """Encode each row."""
    _fastavro()  # whoever writes must be able to read
    columns = [to_plain(column, Form.AVRO) for column in batch.columns]
    nullable = [field.nullable for field in batch.schema]
    return encoded_rows(columns, nullable, batch.num_rows, _EMPTY, _FORMAT)


def decode(rows: pa.Array, schema: pa.Schema) -> pa.RecordBatch:
    """Decode each row."""
    rows = rows.cast(pa.binary())
    try:
        batch = _batch(_read_block(rows, schema), schema, len(rows))
        if encode(batch).cast(pa.binary()).equals(rows):
            return batch
    except Exception:  # noqa: S110 - read one by one, which says what is wrong
        pass
    return _batch(_read_each(rows, schema), schema, len(rows))


def avro_schema(schema: pa.Schema) -> dict[str, Any]:
    """The schema of the record of a row, without logical types: values as they are stored."""
    names = iter(range(1 << 31))
    return {"type": "record", "name": "row", "fields": _members(list(schema), names)}


def _members(fields: list[pa.Field], names: Any) -> list[dict[str, Any]]:
    members = []
    for place, field in enumerate(fields):
        type_ = _avro_type(field.type, names)
        of_null = ["null", type_] if field.nullable and type_ != "null" else type_
        members.append({"name": f"f{place}", "type": of_null})
    return members


def _avro_type(type_: pa.DataType, names: Any) -> Any:
    """The Avro type of values that are not NULL."""
    if pa.types.is_struct(type_):
        fields = [field.with_nullable(nullable=True) for field in type_]
        name = f"r{next(names)}"
        return {"type": "record", "name": name, "fields": _members(fields, names)}
    if pa.types.is_map(type_):
        pair = pa.struct([("key", type_.key_type), ("value", type_.item_type)])
        items = ["null", _avro_type(pair, names)]
        return {"type": "array", "items": items}
    if pa.types.is_list(type_):
        return {"type": "array", "items": ["null", _avro_type(type_.value_type, names)]}
    if pa.types.is_fixed_size_binary(type_):
        width = type_.byte_width
        return {"type": "fixed", "name": f"b{next(names)}", "size": width}
    return _primitive(plain_type(type_, Form.AVRO))


def _primitive(plain: pa.DataType) -> str:
    if pa.types.is_integer(plain):
        return "int" if plain.bit_width < 32 or plain == pa.int32() else "long"
    names = {
        pa.null(): "null", pa.bool_(): "boolean", pa.string(): "string", pa.binary(): "bytes",
        pa.float32(): "float", pa.float64(): "double",
    }  # fmt: skip
    return names[plain]


def _read_block(rows: pa.Array, schema: pa.Schema) -> list[dict[str, Any]]:
    """All rows as the one block of a container."""
    fastavro = _fastavro()
    data = b"".join(rows.to_pylist())
    sink = io.BytesIO()
    header = msgspec.json.encode(avro_schema(schema))
    metadata = {"avro.schema": header, "avro.codec": b"null"}
    fastavro.schemaless_writer(
        sink, _HEADER, {"magic": b"Obj\x01", "meta": metadata, "sync": _SYNC}
    )
    lengths = np.array([len(rows), len(data)], np.int64)
    for size in _varints(lengths).to_pylist():
        sink.write(size)
    sink.write(data)
    sink.write(_SYNC)
    sink.seek(0)
    return list(fastavro.reader(sink))


def _read_each(rows: pa.Array, schema: pa.Schema) -> list[dict[str, Any]]:
    fastavro = _fastavro()
    parsed = fastavro.parse_schema(avro_schema(schema))
    values = []
    for row in rows.to_pylist():
        source = io.BytesIO(row)
        try:
            values.append(fastavro.schemaless_reader(source, parsed, None))
        except Exception as error:
            raise NotPlain(f"{type(error).__name__}: {error}") from error
        if source.tell() != len(row):
            raise NotPlain(f"a row has {len(row) - source.tell()} bytes after its last value")
    return values


def _batch(values: list[dict[str, Any]], schema: pa.Schema, count: int) -> pa.RecordBatch:
    if len(values) != count:
        raise NotPlain(f"{count} rows have {len(values)} records")
    arrays = []
    for place, field in enumerate(schema):
        plain = _named_by_place(plain_type(field.type, Form.AVRO))
        name = f"f{place}"
        column = array_of([row[name] for row in values], plain)
        arrays.append(from_plain(column, field.type, Form.AVRO))
    return batch_of(arrays, schema, count)


def _named_by_place(type_: pa.DataType) -> pa.DataType:
    """The type with the members of structs named as in the record."""
    if pa.types.is_struct(type_):
        members = [(f"f{place}", _named_by_place(each.type)) for place, each in enumerate(type_)]
        return pa.struct(members)
    if pa.types.is_list(type_):
        return pa.list_(_named_by_place(type_.value_type))
    return type_


class _Avro:
    """Avro, as `rowsieve.encodings.rows_as_bytes.Format`."""

    def leaf(self, values: pa.Array) -> list[Any]:
        type_ = values.type
        if pa.types.is_boolean(type_):
            return [chosen(values.fill_null(pa.scalar(value=False)), _TRUE, _FALSE)]
        if pa.types.is_integer(type_):
            return [_varints(numbers_of(values).astype(np.int64))]
        if pa.types.is_floating(type_):
            return [fixed(big_endian(numbers_of(values))[:, ::-1])]
        if pa.types.is_fixed_size_binary(type_):
            empty = pa.scalar(b"\0" * type_.byte_width, type_)
            return [values.fill_null(empty).cast(pa.binary()).cast(_EMPTY.type)]
        cells = bytes_of(values)
        return [_varints(lengths_of(cells)), cells]

    def members(self, members: list[list[Any]], _struct: pa.DataType) -> list[Any]:
        return [part for member in members for part in member]

    def items(self, items: Cells, lengths: npt.NDArray[np.int64]) -> list[Any]:
        has_items = pa.array(lengths > 0)
        return [chosen(has_items, _varints(lengths), _EMPTY), items, _END]

    def nullable(self, parts: list[Any], is_valid: pa.Array | None, count: int) -> list[Any]:
        if is_valid is None:
            return [_VALUE, *parts]
        return [chosen(is_valid, joined([_VALUE, *parts], count), _NULL)]


_FORMAT: Final = _Avro()


def _varints(values: npt.NDArray[np.int64]) -> Cells:
    """Cells of signed integers, as Avro writes int and long."""
    zigzag = ((values << 1) ^ (values >> 63)).view(np.uint64)
    longest = max(-(-int(zigzag.max(initial=0)).bit_length() // 7), 1)
    septets = np.empty((len(values), longest), np.uint8)
    lengths = np.ones(len(values), np.uint8)
    rest = zigzag
    for place in range(longest):
        septets[:, place] = rest
        rest = rest >> np.uint64(7)
        more = rest != 0
        septets[:, place] &= 0x7F
        septets[:, place] |= more.view(np.uint8) << np.uint8(7)
        lengths += more
    return first_bytes(septets, lengths)


def _fastavro() -> Any:
    try:
        import fastavro  # noqa: PLC0415 - an extra, imported at first use
    except ImportError as error:
        raise MissingExtra("the codec avro needs fastavro: pip install 'rowsieve[avro]'") from error
    return fastavro
