"""Adds the hidden columns of the property `json_shredding` to the rows of a data file.

Soundness: the values are taken from the table's documents, before columns get their names and forms
in the file. A file has hidden columns only for JSON columns that it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from rowsieve.parquet.shredded_columns import FIRST_FIELD_ID, Shredding
from rowsieve.stats.json_kinds import Path
from rowsieve.stats.json_shredding import shred
from rowsieve.stats.selection import shredded_paths
from rowsieve.types.logical import Field
from rowsieve.types.schema import Schema


@dataclass(frozen=True, slots=True)
class ShreddedRows:
    """The JSON columns and paths that files store as hidden columns."""

    shredding: Shredding
    columns: tuple[tuple[Field, tuple[Path, ...]], ...]

    @classmethod
    def of(
        cls, properties: Mapping[str, str], schema: Schema, stored: Schema
    ) -> ShreddedRows | None:
        """Read the property; None if it names no path. `stored` has the names in files.

        Also None for a table whose field ids could be those of hidden columns.
        """
        columns = shredded_paths(properties, schema)
        if not columns or any(field.id >= FIRST_FIELD_ID for field in schema):
            return None
        paths = [(field.id, path) for field, column_paths in columns for path in column_paths]
        return cls(Shredding.choose(stored.names, paths), columns)

    def add_to(self, stored: pa.Table, rows: pa.Table) -> pa.Table:
        """Append the struct of hidden columns to a row group; `rows` are its rows as written."""
        shredded = [
            values
            for field, paths in self.columns
            for values in shred(rows.column(field.name), paths)
        ]
        return stored.append_column(self.shredding.field, [self.shredding.values(shredded)])
