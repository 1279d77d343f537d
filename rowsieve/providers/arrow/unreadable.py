"""The base class of our Datasets: engines see its schema, but cannot read it except by our methods.

Engines require an instance of `pyarrow.dataset.Dataset` and then call its Python methods. The C++
dataset beneath it has one file that does not exist: code that bypasses our methods gets an error,
never an empty or unmerged table.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs

from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.encodings import arrow_schema, without_metadata

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
    return without_metadata(arrow_schema(snapshot.schema))


def projected(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    """The schema of these columns in this order; None for all columns."""
    return schema if columns is None else pa.schema([schema.field(name) for name in columns])
