"""The changes of columns that come with data: new ones, and types that hold its values.

A column is widened only if a value of the data does not fit it, and only to the type that the data
has. So a library that reads every number as 64 bits does not widen all columns.
"""

from __future__ import annotations

import pyarrow as pa

from rowsieve.errors import InvalidSchemaChange, SchemaMismatch
from rowsieve.types.conform import conform_values
from rowsieve.types.evolution import SchemaChange
from rowsieve.types.logical import Field
from rowsieve.types.ordering.keys import flat
from rowsieve.types.schema import ColumnNames, Schema
from rowsieve.types.schema_diff import columns_to_add, columns_to_widen


def changes_with_data(schema: Schema, rows: pa.Table) -> tuple[SchemaChange, ...]:
    """Return the changes after which the table has the columns and the values of these rows.

    A column of an unrelated type is left as it is: the rows are refused when they are converted.
    """
    columns, names = {field.name: field for field in schema}, ColumnNames(schema.names)
    widened: list[SchemaChange] = []
    for source, values in zip(rows.schema, rows.columns, strict=True):
        column = columns.get(names.column(source.name))
        if column is None or _fit(values, column):
            continue
        try:
            widened += columns_to_widen(schema.select((column.name,)), pa.schema([source]))
        except (InvalidSchemaChange, SchemaMismatch):
            continue
    return (*columns_to_add(schema, rows.schema), *widened)


def _fit(values: pa.ChunkedArray, column: Field) -> bool:
    try:
        conform_values(flat(values), column.type, column.name)
    except SchemaMismatch:
        return False
    return True
