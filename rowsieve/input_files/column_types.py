"""Parses the types that `--type NAME=TYPE` gives to columns of a file.

A type is one of ours (`uint64`, `timestamptz`) or a PostgreSQL type (`text`, `numeric(9,2)`).
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from rowsieve.bridges.sql.column_list import type_from_text
from rowsieve.errors import InvalidInput
from rowsieve.types.conform import conform_values
from rowsieve.types.encodings import EXTENSION_KEYS, arrow_field, logical_type, without_metadata
from rowsieve.types.logical import Field


def read_types(texts: Mapping[str, str]) -> pa.Schema:
    """Parse the types of columns."""
    return pa.schema(
        [arrow_field(Field(1, name, type_from_text(text))) for name, text in texts.items()]
    )


def with_types(table: pa.Table, types: pa.Schema, source: str) -> pa.Table:
    """Cast the rows to these types without loss; InvalidInput for a column that they lack."""
    for field in without_metadata(types, keep=EXTENSION_KEYS):
        if field.name not in table.column_names:
            have = ", ".join(table.column_names)
            raise InvalidInput(f"--type names {field.name!r}, but {source} has ({have})")
        place = table.column_names.index(field.name)
        type_ = logical_type(field, lambda: 0)
        chunks = [conform_values(chunk, type_, field.name) for chunk in table.column(place).chunks]
        column = pa.chunked_array(chunks, field.type)
        table = table.set_column(place, field, column)
    return table
