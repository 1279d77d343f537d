"""The types that a table of ours has for Arrow types: written down again, to be compared with."""

from __future__ import annotations

import pyarrow as pa


def as_stored(rows: pa.Table) -> pa.Table:
    """The rows in the types that a table gives back; ArrowException where values do not fit."""
    fields = [pa.field(f.name, stored_type(f.type), f.nullable) for f in rows.schema]
    columns = [
        _rebuilt(column.cast(field.type) if column.type != field.type else column, field.type)
        for column, field in zip(rows.columns, fields, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def stored_type(type_: pa.DataType) -> pa.DataType:
    """The type that values of this one are stored in."""
    is_ = pa.types
    if is_.is_dictionary(type_):
        return stored_type(type_.value_type)
    if is_.is_string(type_) or is_.is_large_string(type_) or is_.is_string_view(type_):
        return pa.string()
    if is_.is_binary(type_) or is_.is_large_binary(type_) or is_.is_binary_view(type_):
        return pa.binary()
    if is_.is_fixed_size_binary(type_):
        return pa.binary()
    if is_.is_timestamp(type_):
        return pa.timestamp("us", type_.tz)
    if is_.is_time(type_):
        return pa.time64("us")
    if is_.is_date(type_):
        return pa.date32()
    if is_.is_float16(type_):
        return pa.float32()
    if is_.is_decimal32(type_) or is_.is_decimal64(type_):
        return pa.decimal128(type_.precision, type_.scale)
    if is_.is_struct(type_):
        members = [type_.field(i) for i in range(type_.num_fields)]
        return pa.struct([_member(member) for member in members])
    if is_.is_map(type_):
        return pa.map_(_member(type_.key_field), _member(type_.item_field))
    if is_.is_list(type_) or is_.is_large_list(type_) or is_.is_fixed_size_list(type_):
        return pa.list_(_member(type_.value_field))
    return type_


def _member(field: pa.Field) -> pa.Field:
    return pa.field(field.name, stored_type(field.type), field.nullable)


def _rebuilt(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """Nested values anew, members of a NULL struct NULL, too: DataFusion shows what lies there."""
    if not pa.types.is_nested(type_):
        return column
    return pa.chunked_array([_hidden(pa.array(column.to_pylist(), type_))], type_)


def _hidden(values: pa.Array) -> pa.Array:
    type_ = values.type
    if pa.types.is_struct(type_):
        fields = [type_.field(i) for i in range(type_.num_fields)]
        members = [_hidden(member) for member in values.flatten()]
        return pa.StructArray.from_arrays(members, fields=fields, mask=values.is_null())
    if pa.types.is_list(type_):
        items = _hidden(values.values)
        return pa.ListArray.from_arrays(values.offsets, items, type=type_, mask=values.is_null())
    return values
