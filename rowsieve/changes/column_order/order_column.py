"""Give a table the column of its column order, and keep it as it must be.

Soundness: without the column, or with sequences of another type, it would be unknown which event
set a value. So it is never dropped, renamed or widened, and only tables with the property have it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from rowsieve.errors import InvalidInput, InvalidSchemaChange
from rowsieve.properties import COLUMN_ORDER_BY, COMBINE, HISTORY, is_by_column
from rowsieve.storage.snapshot import COLUMN_ORDER as FEATURE
from rowsieve.storage.snapshot import COLUMN_ORDER_WRITER, TableInfo
from rowsieve.types.encodings import arrow_type
from rowsieve.types.ordering.column_order import COLUMN_ORDER, column_order_type
from rowsieve.types.schema import Schema


def with_order_column(
    columns: pa.Schema, sequence: Sequence[pa.DataType], properties: Mapping[str, str]
) -> pa.Schema:
    """Add the column to those of a new table with the property; InvalidInput if it cannot be.

    `sequence` are the types of the columns of the event order.
    """
    place = columns.get_field_index(COLUMN_ORDER)
    if not is_by_column(properties):
        if place >= 0:
            raise InvalidInput(
                f"create_table: the column {COLUMN_ORDER!r} has a name that tables with the "
                f"property {COLUMN_ORDER_BY}='each' reserve; set the property, or leave it out"
            )
        return columns
    if not sequence:
        raise InvalidInput(
            f"table property {COLUMN_ORDER_BY}='each' orders the values of a row by the sequence "
            "of their events, and the table has none; give sequence= as well"
        )
    check_properties_by_column(properties)
    type_ = column_order_type(sequence)
    if place < 0:
        return columns.append(pa.field(COLUMN_ORDER, type_))
    if columns.field(place).type != type_:
        raise InvalidInput(
            f"create_table: the column {COLUMN_ORDER!r} is {columns.field(place).type}, and must "
            f"be {type_} for these sequence columns; leave it out, and it is added"
        )
    return columns


def check_properties_by_column(properties: Mapping[str, str]) -> None:
    """InvalidInput for a property that gives the values of a row another meaning."""
    if not is_by_column(properties):
        return
    for name in (COMBINE, HISTORY):
        if name in properties:
            raise InvalidInput(
                f"table properties {COLUMN_ORDER_BY}='each' and {name!r} exclude each other: the "
                "newest value of each column counts, or all values together; give one of them"
            )


def with_column_order_protocol(info: TableInfo, schema: Schema) -> TableInfo:
    """Return the table information that keeps out writers which do not know the property."""
    if not is_by_column(info.properties):
        return info
    check_columns_can_wait(schema, info)
    return replace(
        info,
        writer_version=max(info.writer_version, COLUMN_ORDER_WRITER),
        features=tuple(sorted({*info.features, FEATURE})),
    )


def check_columns_can_wait(schema: Schema, info: TableInfo) -> None:
    """InvalidInput for a column that the first event of a row may not leave out."""
    for field in schema:
        is_fixed = field.name in (*info.key, *info.sequence)
        if not (field.nullable or is_fixed or field.default is not None):
            raise InvalidInput(
                f"table property {COLUMN_ORDER_BY}='each': column {field.name!r} is NOT NULL and "
                "has no default, and an event without it may come before the one that has it; "
                "allow NULL in it, or give it a default"
            )


def check_order_column(before: Schema, after: Schema, info: TableInfo) -> None:
    """Raise InvalidSchemaChange if a change of columns spoils the order by column."""
    if not is_by_column(info.properties):
        if COLUMN_ORDER in after.names:
            raise InvalidSchemaChange(
                f"the name {COLUMN_ORDER!r} is reserved for tables that are created with "
                f"{COLUMN_ORDER_BY}='each'; choose another name"
            )
        return
    old = before.field(COLUMN_ORDER)
    if old.name not in after.names or after.field(old.name) != old:
        raise InvalidSchemaChange(
            f"column {COLUMN_ORDER!r} says by which sequence the values of a row were set, since "
            f"the table has the property {COLUMN_ORDER_BY}='each'; it cannot be changed"
        )
    names = {field.id: field.name for field in after}
    renamed = {field.name: names.get(field.id, field.name) for field in before}
    for name in info.sequence:
        field = before.field(name)
        now = next((each for each in after if each.id == field.id), field)
        if arrow_type(now.type) != arrow_type(field.type):
            raise InvalidSchemaChange(
                f"column {name!r} orders the values of each row ({COLUMN_ORDER_BY}='each'), which "
                f"have their sequences in column {COLUMN_ORDER!r}; its type cannot change"
            )
    key, sequence = (tuple(renamed[name] for name in each) for each in (info.key, info.sequence))
    try:
        check_columns_can_wait(after, replace(info, key=key, sequence=sequence))
    except InvalidInput as error:
        raise InvalidSchemaChange(str(error)) from error


def without_order_column(schema: Schema) -> Schema:
    """The columns that callers give."""
    if COLUMN_ORDER not in schema.names:
        return schema
    return schema.select(tuple(name for name in schema.names if name != COLUMN_ORDER))
