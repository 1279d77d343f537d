"""Arrow arrays whose values text and binary codecs can hold, and the way back.

Dates and times become their stored integers, decimals text, maps lists of pairs; bytes become hex
digits for codecs of text, and decimals and numbers of 64 bits without sign bytes for Avro. Structs
and lists keep their form. All steps are Arrow's, for whole
arrays; only the last one makes Python objects.

Soundness: `from_plain(to_plain(array))` is the array, for every type that tables store.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.encodings.number_bytes import NotPlain, number_bytes, numbers_of_bytes

_PAIR = ("key", "value")


class Form(Enum):
    """What a codec holds: no bytes; bytes, but no decimals; or numbers as bytes, as Avro does."""

    TEXT = "text"
    BINARY = "binary"
    AVRO = "avro"


def plain_type(type_: pa.DataType, form: Form) -> pa.DataType:
    """The type of a plain array."""
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(each.name, plain_type(each.type, form)) for each in type_])
    if pa.types.is_map(type_):
        members = zip(_PAIR, (type_.key_type, type_.item_type), strict=True)
        pair = pa.struct([pa.field(name, plain_type(each, form)) for name, each in members])
        return pa.list_(pair)
    if pa.types.is_list(type_):
        return pa.list_(plain_type(type_.value_type, form))
    if pa.types.is_date32(type_):
        return pa.int32()
    if pa.types.is_time64(type_) or pa.types.is_timestamp(type_):
        return pa.int64()
    if form is Form.AVRO and (pa.types.is_decimal(type_) or type_ == pa.uint64()):
        return pa.binary()
    if pa.types.is_decimal(type_):
        return pa.string()
    if pa.types.is_fixed_size_binary(type_) and form is Form.AVRO:
        return type_
    if pa.types.is_binary(type_) or pa.types.is_fixed_size_binary(type_):
        return pa.string() if form is Form.TEXT else pa.binary()
    return type_


def to_plain(array: pa.Array, form: Form) -> pa.Array:
    """Return the plain array of a column."""
    type_ = array.type
    target = plain_type(type_, form)
    if target.equals(type_) and not type_.num_fields:
        return array
    if pa.types.is_struct(type_):
        members = [to_plain(each, form) for each in array.flatten()]
        return pa.StructArray.from_arrays(members, fields=list(target), mask=array.is_null())
    if pa.types.is_map(type_):
        lists = array.cast(pa.list_(pa.struct(_pair_fields(type_))))
        members = [to_plain(each, form) for each in lists.flatten().flatten()]
        pairs = pa.StructArray.from_arrays(members, fields=list(target.value_type))
        return _list_of(lists, pairs)
    if pa.types.is_list(type_):
        return _list_of(array, to_plain(array.flatten(), form))
    if pa.types.is_binary(type_) or pa.types.is_fixed_size_binary(type_):
        plain = array.cast(pa.binary())
        return _to_hex(plain) if form is Form.TEXT else plain
    if pa.types.is_binary(target):
        return number_bytes(array)
    return array.cast(target)


def from_plain(array: pa.Array, type_: pa.DataType, form: Form) -> pa.Array:
    """Return the array of a column from its plain one."""
    if pa.types.is_struct(type_):
        within = array.flatten()  # below a NULL, a member may have any value, as text may be empty
        for each, field in zip(within, type_, strict=True):
            _check_present(each, field, array.null_count)
        members = [
            _as_required(from_plain(each, field.type, form), field)
            for each, field in zip(within, type_, strict=True)
        ]
        return pa.StructArray.from_arrays(members, fields=list(type_), mask=array.is_null())
    if pa.types.is_map(type_):
        plain_keys, plain_items = array.flatten().flatten()
        keys = from_plain(plain_keys, type_.key_type, form)
        items = from_plain(plain_items, type_.item_type, form)
        if keys.null_count:
            raise NotPlain("a map has a key without a value")
        _check_present(items, type_.item_field)
        return pa.MapArray.from_arrays(_offsets(array, mask=True), keys, items, type=type_)
    if pa.types.is_list(type_):
        values = from_plain(array.flatten(), type_.value_type, form)
        _check_present(values, type_.value_field)
        return _list_of(array, values).cast(type_)
    if array.type.equals(type_):
        return array
    if pa.types.is_binary(type_) or pa.types.is_fixed_size_binary(type_):
        plain = _from_hex(array) if form is Form.TEXT else array
        if pa.types.is_fixed_size_binary(type_):
            lengths = pc.binary_length(plain)
            if not pc.all(pc.equal(lengths, type_.byte_width), min_count=0).as_py():
                raise NotPlain(f"a value does not have {type_.byte_width} bytes")
        return plain.cast(type_)
    if pa.types.is_binary(array.type):
        return numbers_of_bytes(array, type_)
    return array.cast(type_)


def _check_present(values: pa.Array, field: pa.Field, absent: int = 0) -> None:
    """Raise NotPlain if a nested value that is NOT NULL is missing; `absent` have no parent."""
    if not field.nullable and values.null_count > absent:
        missing = values.null_count - absent
        raise NotPlain(f"{missing:,} of the values of {field.name!r}, which is NOT NULL, are NULL")


def _as_required(array: pa.Array, field: pa.Field) -> pa.Array:
    """Give a required member some value below a NULL: Parquet is not written without one."""
    if field.nullable or not array.null_count:
        return array
    empty = pa.array([None], pa.struct([field.with_nullable(nullable=True)])).field(0)
    places = pc.if_else(array.is_valid(), pa.array(np.arange(len(array))), len(array))
    return pa.concat_arrays([array, empty]).take(places)


def values_of(array: pa.Array) -> list[Any]:
    """The values of a plain array as Python objects."""
    type_ = array.type
    if type_.num_fields or pa.types.is_boolean(type_) or pa.types.is_null(type_):
        return list(array.to_pylist())
    if not (pa.types.is_integer(type_) or pa.types.is_floating(type_)):
        return list(array.to_numpy(zero_copy_only=False).tolist())
    if not array.null_count:
        return list(array.to_numpy().tolist())
    objects = array.fill_null(0).to_numpy(zero_copy_only=False).astype(object)
    objects[np.asarray(array.is_null())] = None
    return list(objects.tolist())


def array_of(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """A plain array of Python objects; NotPlain if they do not have its type."""
    try:
        array = pa.array(values, type_)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise NotPlain(str(error)) from error
    if isinstance(array, pa.ChunkedArray):
        raise NotPlain("the values of a column exceed 2 GiB")
    return array


def _pair_fields(type_: pa.DataType) -> list[pa.Field]:
    return [
        pa.field(_PAIR[0], type_.key_type, nullable=False),
        pa.field(_PAIR[1], type_.item_type),
    ]


def _list_of(array: pa.Array, values: pa.Array) -> pa.Array:
    """A list array with the lengths and NULLs of another, and these values."""
    return pa.ListArray.from_arrays(_offsets(array, mask=True), values)


def _offsets(array: pa.Array, *, mask: bool) -> pa.Array:
    """The offsets of the values that `flatten` returns; NULL where the list is."""
    lengths = np.zeros(len(array) + 1, np.int32)
    if len(array):
        counted = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int32())
        lengths[1:] = counted.to_numpy(zero_copy_only=False)
    offsets = np.cumsum(lengths, dtype=np.int32)
    if not (mask and array.null_count):
        return pa.array(offsets)
    absent = np.append(np.asarray(array.is_null()), False)
    return pa.array(offsets, mask=absent)


def _to_hex(array: pa.Array) -> pa.Array:
    """Bytes as hex digits: two for each byte."""
    if array.offset or not len(array):
        array = pa.concat_arrays([array])
    validity, offsets, data = array.buffers()
    edges = np.frombuffer(offsets, np.int32, len(array) + 1, array.offset * 4)
    used = memoryview(b"" if data is None else data)[edges[0] : edges[-1]]
    digits = used.hex().encode()
    if len(digits) > np.iinfo(np.int32).max:
        raise ValueError("the bytes of a column exceed 1 GiB in a row group")
    doubled = (2 * (edges.astype(np.int64) - edges[0])).astype(np.int32)
    buffers = [validity, pa.py_buffer(doubled), pa.py_buffer(digits)]
    return pa.Array.from_buffers(pa.string(), len(array), buffers)


def _from_hex(array: pa.Array) -> pa.Array:
    array = pa.concat_arrays([array])
    validity, offsets, data = array.buffers()
    edges = np.frombuffer(offsets, np.int32, len(array) + 1)
    used = bytes(memoryview(b"" if data is None else data)[edges[0] : edges[-1]])
    places = edges - edges[0]
    if (places % 2).any() or (not used.decode("ascii", "replace").isalnum() and used):
        raise NotPlain("a value is not hex digits")
    try:
        plain = bytes.fromhex(used.decode("ascii"))
    except ValueError as error:
        raise NotPlain(str(error)) from error
    halved = (places // 2).astype(np.int32)
    buffers = [validity, pa.py_buffer(halved), pa.py_buffer(plain)]
    return pa.Array.from_buffers(pa.binary(), len(array), buffers)
