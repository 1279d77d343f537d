"""Files with the rows of parts in memory, which other formats cannot read from our log.

They lie in the folder of the publication, beside its metadata, and have the columns of the version
that was published. Such parts are small, so they are written again when columns have changed.

Soundness: a name has the part and the schema, and an object of a name is never written again.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.objects import ObjectStore, put_if_absent
from rowsieve.storage.manifests.manifest import FileRef
from rowsieve.storage.parts.memory_rows import read_memory
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.encodings import arrow_schema, arrow_type
from rowsieve.types.schema import Schema
from rowsieve.types.stored_names import has_tags, tagged_rows

FOLDER = "metadata"


def path_beside(path: str, schema: Schema) -> str:
    """The path of the file with the rows of a part in memory, by the name that its entry has."""
    stem = path.removeprefix("data/").removesuffix(".rows")
    return f"{FOLDER}/{stem}.{schema.id}.parquet"


def write_beside(store: ObjectStore, ref: FileRef, snapshot: Snapshot) -> int:
    """Write the rows of a part in memory, in their order, unless the file exists; its size."""
    path = path_beside(ref.path, snapshot.schema)
    sink = pa.BufferOutputStream()
    rows = _rows(ref, snapshot.schema)
    if has_tags(snapshot.table.properties):
        rows = tagged_rows(rows, snapshot.schema)
    pq.write_table(rows, sink, store_schema=False, compression="zstd")
    data = memoryview(sink.getvalue())
    return len(data) if put_if_absent(store, path, data) else store.size(path)


def _rows(ref: FileRef, schema: Schema) -> pa.Table:
    stored = read_memory(ref)
    columns = []
    for field in schema:
        column = stored.column(field)
        if isinstance(column, pa.Scalar):
            column = pa.chunked_array([pa.repeat(column.cast(arrow_type(field.type)), ref.rows)])
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=arrow_schema(schema))
