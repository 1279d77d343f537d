"""What every Dataset of ours shares: the schema that engines see, and a body that cannot be read.

Engines ask for an instance of `pyarrow.dataset.Dataset` and then call its Python methods. The C++
dataset underneath holds one file that does not exist: code that bypasses our methods gets an error,
never an empty or unmerged table.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs

from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.encodings import arrow_schema

_NOWHERE = "read-this-rowsieve-dataset-through-its-own-methods-such-as-to_table-and-scanner"


class UnreadableDataset(pads.FileSystemDataset):  # type: ignore[misc] # pyarrow is untyped
    """A Dataset of a schema; reads that bypass the subclass raise FileNotFoundError."""

    def __init__(self, schema: pa.Schema) -> None:
        nowhere = pyarrow.fs.SubTreeFileSystem("/nonexistent", pyarrow.fs.LocalFileSystem())
        file_format = pads.ParquetFileFormat()
        fragment = file_format.make_fragment(_NOWHERE, nowhere)
        super().__init__([fragment], schema, file_format, nowhere)


def plain_schema(snapshot: Snapshot) -> pa.Schema:
    """The Arrow schema without metadata, which would make equal types differ in a query."""
    return pa.schema([plain_field(field) for field in arrow_schema(snapshot.schema)])


def plain_field(field: pa.Field) -> pa.Field:
    """The field without metadata, at every depth."""
    return pa.field(field.name, plain_type(field.type), field.nullable)


def plain_type(type_: pa.DataType) -> pa.DataType:
    """The type without metadata on its members."""
    if pa.types.is_struct(type_):
        return pa.struct([plain_field(type_.field(i)) for i in range(type_.num_fields)])
    if pa.types.is_list(type_):
        return pa.list_(plain_field(type_.value_field))
    if pa.types.is_map(type_):
        return pa.map_(plain_field(type_.key_field), plain_field(type_.item_field))
    return type_


def projected(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    """The columns asked for, in that order; all of them for None."""
    return schema if columns is None else pa.schema([schema.field(name) for name in columns])
