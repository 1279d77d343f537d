"""Choose the names that data files give to columns and nested fields.

Files have the users' names, or tags made of the field ids, such as `f7` (property `column_names`).
Readers find columns by field id, so every reader reads both forms, also side by side in one table.
With tags, a file tells nothing about the names, and a column that is added again under the name of
a dropped one has another name in the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pyarrow as pa

from rowsieve.types.encodings import arrow_schema, relabelled
from rowsieve.types.logical import Field, List, LogicalType, Map, Struct
from rowsieve.types.schema import Schema
from rowsieve.types.schema_cache import cached_by_schema

COLUMN_NAMES: Final = "column_names"
TAG: Final = "tag"


def has_tags(properties: Mapping[str, str]) -> bool:
    """Return whether the data files of a table with these properties have tags instead of names."""
    return properties.get(COLUMN_NAMES) == TAG


@cached_by_schema
def tagged(schema: Schema) -> Schema:
    """Return the schema with a tag for the name of every column and nested field."""
    return Schema(schema.id, tuple(map(_tagged_field, schema.fields)))


def tagged_rows(rows: pa.Table, schema: Schema) -> pa.Table:
    """Return the rows of `schema` with the names of `tagged`; no buffer is copied."""
    source, target = arrow_schema(schema), arrow_schema(tagged(schema))
    if rows.schema != source:  # relabelling does not check the layout
        rows = rows.select(schema.names).cast(source)
    return pa.Table.from_batches(
        [relabelled(batch, target) for batch in rows.to_batches()], schema=target
    )


def tag_of(field_id: int) -> str:
    """Return the name of the column or nested field with this id in files with tags."""
    return f"f{field_id}"


def _tagged_field(field: Field) -> Field:
    return replace(field, name=tag_of(field.id), type=_tagged_type(field.type))


def _tagged_type(type_: LogicalType) -> LogicalType:
    match type_:
        case List(element=element):
            return List(_tagged_field(element))
        case Struct(fields=fields):
            return Struct(tuple(map(_tagged_field, fields)))
        case Map(key=key, value=value):
            return Map(_tagged_field(key), _tagged_field(value))
        case _:
            return type_
