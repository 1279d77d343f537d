"""Describe a new table: its columns with field ids, its key, and its properties."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from rowsieve.changes.column_order.order_column import (
    with_column_order_protocol,
    with_order_column,
)
from rowsieve.changes.event_order.horizons import check_horizon
from rowsieve.changes.event_order.sequence_columns import with_event_order
from rowsieve.changes.expiry_condition import check_can_hold
from rowsieve.changes.property_changes import check_columns
from rowsieve.changes.vector_building import with_vectors_protocol
from rowsieve.properties import COMBINE
from rowsieve.storage.differential import (
    as_differential,
    check_properties_of_mode,
    with_reserved,
)
from rowsieve.storage.log.inline_parts import INLINE_BYTES, with_inline_protocol
from rowsieve.storage.parts.encoding_properties import check_encodings, with_encodings
from rowsieve.storage.parts.row_versions import ROW_VERSIONS
from rowsieve.storage.snapshot import COLUMN_TAGS, ORDER_WRITER, TableInfo
from rowsieve.types.encodings import arrow_type, schema_of
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema
from rowsieve.types.stored_names import has_tags


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table that does not exist yet."""

    info: TableInfo
    schema: Schema
    next_field_id: int


def new_table(
    columns: pa.Schema,
    key: Sequence[str],
    properties: Mapping[str, str],
    sequence: Sequence[str] = (),
    time: pa.DataType | None = None,
) -> NewTable:
    """Assign field ids to the columns and check the key, the sequence and the properties.

    Columns of the key and the sequence are NOT NULL. The properties are those that
    `check_properties` returned. With `time`, the type of its times, the table is differential.
    """
    if time is not None:
        columns = with_reserved(columns, time)
    schema, _ = schema_of(columns)
    names = KeyOrder.of(schema, key).names if key else ()  # key= may spell names in another case
    ordering = tuple(schema.field(name).name for name in sequence)
    types = [arrow_type(schema.field(name).type) for name in ordering]
    columns = with_order_column(columns, types, properties)
    schema, next_id = schema_of(columns, not_null=(*names, *ordering))
    check_columns(properties, schema, names)
    check_can_hold(properties, schema)
    check_encodings(properties)
    info = TableInfo(
        uuid=uuid.uuid4().hex,
        key=names,
        mode="upsert" if key else "append",
        properties=properties,
        features=(COLUMN_TAGS,) if has_tags(properties) else (),
    )
    if "visibility" in properties:
        info = with_vectors_protocol(info)
    info = _as_flags_need(info)
    info = with_encodings(info, properties)
    if COMBINE in properties or ROW_VERSIONS in properties:
        info = replace(info, writer_version=max(info.writer_version, ORDER_WRITER))
    check_horizon(properties, tuple(map(schema.field, ordering)))
    if ordering:
        info = with_event_order(info, schema, ordering)
        info = with_column_order_protocol(info, schema)
    if time is not None:
        info = as_differential(info, schema)
        check_properties_of_mode(properties, info)
    return NewTable(info, schema, next_id)


def _as_flags_need(info: TableInfo) -> TableInfo:
    """Return the table information with the protocol that this process's flags would need."""
    settings = with_inline_protocol(info).settings  # it refuses no flag
    if settings.get("visibility", "lazy") != "lazy":
        info = with_vectors_protocol(info)
    if settings.get(INLINE_BYTES, "0") != "0":
        info = with_inline_protocol(info)
    return info
