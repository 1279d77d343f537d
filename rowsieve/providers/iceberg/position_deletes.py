"""Hidden rows as Iceberg's position deletes: a Parquet file of row numbers for each data file.

The name of such a file has the part's id and a digest of the row numbers: a later export with the
same hidden rows reuses it.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.bridges.extras import imported
from rowsieve.objects import ObjectExists, ObjectStore
from rowsieve.providers.iceberg.manifest_files import METADATA, location_of
from rowsieve.types.encodings import FIELD_ID_KEY

_PATH_ID: Final = 2147483546
_POSITION_ID: Final = 2147483545
_SCHEMA: Final = pa.schema(
    [
        pa.field(name, type_, nullable=False, metadata={FIELD_ID_KEY: str(field_id).encode()})
        for name, type_, field_id in (
            ("file_path", pa.string(), _PATH_ID),
            ("pos", pa.int64(), _POSITION_ID),
        )
    ]
)


def position_deletes(
    target: ObjectStore, part_id: str, data_location: str, hidden: npt.NDArray[np.int64]
) -> Any:
    """Put the file that hides these rows, in ascending order; return pyiceberg's `DataFile`."""
    numbers = np.ascontiguousarray(hidden, dtype="<i8")
    named = hashlib.sha256(data_location.encode() + b"\0" + numbers.tobytes())
    path = f"{METADATA}/{part_id}-{named.hexdigest()[:32]}-deletes.parquet"
    data = _encoded(data_location, numbers)
    size_bytes = len(data)
    try:
        target.put_new(path, data)
    except ObjectExists:
        size_bytes = target.size(path)
    manifest: Any = imported("pyiceberg.manifest", "iceberg")
    typedef: Any = imported("pyiceberg.typedef", "iceberg")
    ends = [numbers[place].tobytes() for place in (0, -1)]
    return manifest.DataFile.from_args(
        _table_format_version=2,
        content=manifest.DataFileContent.POSITION_DELETES,
        file_path=f"{location_of(target.uri)}/{path}",
        file_format=manifest.FileFormat.PARQUET,
        partition=typedef.Record(),
        record_count=len(numbers),
        file_size_in_bytes=size_bytes,
        column_sizes={},
        value_counts={_PATH_ID: len(numbers), _POSITION_ID: len(numbers)},
        null_value_counts={_PATH_ID: 0, _POSITION_ID: 0},
        nan_value_counts={},
        lower_bounds={_PATH_ID: data_location.encode(), _POSITION_ID: ends[0]},
        upper_bounds={_PATH_ID: data_location.encode(), _POSITION_ID: ends[1]},
    )


def _encoded(data_location: str, numbers: npt.NDArray[np.int64]) -> memoryview:
    paths = pa.repeat(pa.scalar(data_location, pa.string()), len(numbers))
    table = pa.table([paths, pa.array(numbers)], schema=_SCHEMA)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, store_schema=False, compression="zstd")
    return memoryview(sink.getvalue())
