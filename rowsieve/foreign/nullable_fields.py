"""Convert fields of foreign files to fields of a table: nullable, of any size.

A file's declarations about NULL are not trusted. A field that never has a value (Parquet's UNKNOWN,
Delta's void, Iceberg's unknown) is an int32, which is how files store it.
"""

from __future__ import annotations

import pyarrow as pa

from rowsieve.types.encodings import EXTENSION_KEYS, is_plain_field


def nullable_field(field: pa.Field) -> pa.Field:
    """Return the field, nullable at every depth; its metadata keeps the extension's name only."""
    if field.nullable and is_plain_field(field):
        return field
    metadata = field.metadata or {}
    metadata_of_extension = {key: metadata[key] for key in EXTENSION_KEYS if key in metadata}
    type_ = field.type if metadata_of_extension else _of_any_size(field.type)
    return pa.field(
        field.name, _nullable_type(type_), nullable=True, metadata=metadata_of_extension or None
    )


def _of_any_size(type_: pa.DataType) -> pa.DataType:
    """Return bytes of any size for a fixed-size type: other files may have other sizes."""
    return pa.binary() if pa.types.is_fixed_size_binary(type_) else type_


def _nullable_type(type_: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_null(type_):
        return pa.int32()
    if types.is_map(type_):
        key = pa.field("key", _nullable_type(_of_any_size(type_.key_type)), nullable=False)
        return pa.map_(key, nullable_field(type_.item_field).with_name("value"))
    if types.is_struct(type_):
        return pa.struct([nullable_field(type_.field(i)) for i in range(type_.num_fields)])
    if types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_):
        return pa.list_(nullable_field(type_.value_field).with_name("element"))
    return type_
