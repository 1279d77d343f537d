"""Find the columns of an Iceberg table in its files: by field id, or else by the name mapping.

Files that were not written for Iceberg, such as those of a migrated Hive table, have no field ids.
The property `schema.name-mapping.default` then says which names a field has in them.

Soundness: a field without an id and without a name is never guessed by its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rowsieve.errors import SchemaMismatch, UnsupportedOperation
from rowsieve.foreign.footers import Footer
from rowsieve.foreign.nested_in_files import refuse_without_ids
from rowsieve.types import logical
from rowsieve.types.encodings import FIELD_ID_KEY
from rowsieve.types.schema import Schema


def id_of(field: pa.Field) -> int:
    """The Parquet field id; -1 if there is none."""
    return int((field.metadata or {}).get(FIELD_ID_KEY, b"-1"))


@dataclass(frozen=True, slots=True)
class NamesOfFields:
    """`names`: the names in files without ids, by field id; None if the table has no mapping."""

    schema: Schema
    names: Mapping[int, frozenset[str]] | None

    @classmethod
    def of(cls, table: Any, schema: Schema) -> NamesOfFields:
        """Read the name mapping of a pyiceberg table."""
        mapping = table.name_mapping()
        return cls(schema, None if mapping is None else dict(_names(mapping)))

    def columns_of(self, footer: Footer) -> dict[int, pa.Field]:
        """The file's columns by field id; UnsupportedOperation if nothing identifies them."""
        stored = footer.stored
        if self.names is None:
            _refuse_without_ids(stored, footer.uri)
        columns: dict[int, pa.Field] = {}
        for column in stored:
            field = self._field(self.schema.fields, column)
            if field is None:
                continue
            if field.id in columns:
                raise SchemaMismatch(
                    f"from_iceberg: {footer.uri} has {columns[field.id].name!r} and "
                    f"{column.name!r}, which are both {field.name!r} by the table's name mapping; "
                    "correct schema.name-mapping.default"
                )
            columns[field.id] = column
        return columns

    def field_in(self, struct: logical.Struct, member: pa.Field) -> logical.Field | None:
        """The table's field for one in a struct of a file: a `FieldIn`."""
        return self._field(struct.fields, member)

    def _field(self, fields: tuple[logical.Field, ...], stored: pa.Field) -> logical.Field | None:
        wanted, names = id_of(stored), self.names or {}
        if wanted != -1:
            return next((each for each in fields if each.id == wanted), None)
        return next((each for each in fields if stored.name in names.get(each.id, ())), None)


def _refuse_without_ids(stored: pa.Schema, uri: str) -> None:
    try:
        refuse_without_ids(stored, f"from_iceberg: {uri}")
    except UnsupportedOperation as error:
        raise UnsupportedOperation(
            f"{error}; or set the property schema.name-mapping.default of the table, which gives "
            "the names of its fields"
        ) from error


def _names(mapping: Any) -> Iterator[tuple[int, frozenset[str]]]:
    for each in mapping:
        if each.field_id is not None:
            yield int(each.field_id), frozenset(each.names)
        yield from _names(each.fields)
