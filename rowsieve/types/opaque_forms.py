"""The opaque forms of values: `<type>.0`, plain bytes, and their structured form `<type>.1`.

A table writes one form (property `value_forms`) and reads both, even for one column whose files
differ in form. Soundness: an opaque form has no statistics and no dictionary, so nothing is pruned
by it; values are compared and merged only after they are decoded. Key columns, and fields inside
columns, always have their structured form.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.types import numeric_bytes
from rowsieve.types.encodings import arrow_field, arrow_type
from rowsieve.types.logical import Binary, Field, Interval, Json, LogicalType, Numeric, Uuid
from rowsieve.types.schema import Schema
from rowsieve.types.schema_cache import cached_by_schema

VALUE_FORMS: Final = "value_forms"
OPAQUE: Final = "opaque"

_FORMS: Final[Mapping[type[LogicalType], str]] = {
    Numeric: "numeric.0",
    Interval: "interval.0",
    Uuid: "uuid.0",
    Json: "json.0",
}


def has_opaque_forms(properties: Mapping[str, str]) -> bool:
    """Return whether a table with these properties writes opaque forms."""
    return properties.get(VALUE_FORMS) == OPAQUE


def opaque_form(field: Field) -> str | None:
    """Return the name of the opaque form of a column's type, such as `uuid.0`, or None."""
    return _FORMS.get(type(field.type))


@cached_by_schema
def opaque(schema: Schema, key: Collection[int]) -> Schema:
    """Return the schema with bytes for each column that has an opaque form and is not in the key.

    `key`: the field ids of the key, as a frozenset. Returns `schema` itself if there is none.
    """
    forms = {field.id: form for field in schema if (form := opaque_form(field)) is not None}
    fields = tuple(
        replace(field, type=Binary(), alias=forms[field.id])
        if field.id in forms and field.id not in key
        else field
        for field in schema
    )
    return schema if fields == schema.fields else Schema(schema.id, fields)


def opaque_rows(rows: pa.Table, schema: Schema, stored: Schema) -> pa.Table:
    """Return the rows of `schema` with the opaque forms of `stored`; other columns are shared."""
    for field, form in zip(schema, stored, strict=True):
        if field.type != form.type:
            encoded = _encoded(rows.column(field.name), field.type)
            place = rows.schema.get_field_index(field.name)
            rows = rows.set_column(place, arrow_field(form), encoded)
    return rows


def from_opaque(values: pa.ChunkedArray, field: Field) -> pa.ChunkedArray:
    """Decode the opaque form of a column; ValueError for bytes that are none of its values."""
    decode, target = _DECODERS[type(field.type)], arrow_type(field.type)
    try:
        return pa.chunked_array([decode(_plain(chunk)) for chunk in values.chunks], target)
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error


def _encoded(values: pa.ChunkedArray, type_: LogicalType) -> pa.ChunkedArray:
    if isinstance(type_, Numeric):
        values = pc.struct_field(values, [1])
    return values.cast(pa.binary())


def _plain(chunk: pa.Array) -> pa.Array:
    plain = chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk
    return plain.cast(pa.binary())


def _of_16_bytes(values: pa.Array) -> pa.Array:
    lengths = pc.binary_length(values)
    if not pc.all(pc.equal(lengths, 16), min_count=0).as_py():
        raise ValueError("a value of this type has 16 bytes")
    return values.cast(pa.binary(16))


def _text(values: pa.Array) -> Any:
    return values.cast(pa.string())


_DECODERS: Final[Mapping[type[LogicalType], Callable[[pa.Array], pa.Array]]] = {
    Numeric: numeric_bytes.of_exact,
    Interval: _of_16_bytes,
    Uuid: _of_16_bytes,
    Json: _text,
}
