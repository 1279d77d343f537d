"""The keys of a part with contiguous keys, generated from its row numbers instead of being read.

`rowsieve.planner.contiguous_keys` proves which parts these are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.executor.merging.windows import Numbered
from rowsieve.planner.split import ContiguousKeys
from rowsieve.predicate.rowset import RowSet
from rowsieve.storage.parts.part_writer import ROW_GROUP_ROWS
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.schema import Schema

_MASK = 2**64 - 1


def generates(keys: ContiguousKeys | None, columns: Schema) -> bool:
    """Return whether `keys` are all of these columns."""
    return keys is not None and [field.id for field in columns] == [keys.field_id]


def generated_keys(
    keys: ContiguousKeys,
    columns: Schema,
    row_count: int,
    wanted: RowSet | None = None,
    batch_rows: int = ROW_GROUP_ROWS,
) -> Iterator[Numbered]:
    """The keys of each run of 65,536 rows with a wanted row, in batches of at most `batch_rows`."""
    first, last = (0, row_count) if wanted is None else wanted.span
    schema = arrow_schema(columns)
    for group in range(first - first % ROW_GROUP_ROWS, last, ROW_GROUP_ROWS):
        stop = min(group + ROW_GROUP_ROWS, row_count)
        if wanted is not None and wanted.slice(group, stop).is_empty:
            continue
        for start in range(group, stop, batch_rows):
            numbers = np.arange(start, min(start + batch_rows, stop), dtype=np.uint64)
            values = numbers + np.uint64(keys.first & _MASK)  # wraps as signed numbers do
            array = values.astype(schema.types[0].to_pandas_dtype())
            yield start, pa.RecordBatch.from_arrays([pa.array(array)], schema=schema)


def rows_with(keys: ContiguousKeys, row_count: int, values: pa.Array) -> RowSet:
    """The rows of a part whose key is one of these values, which have its type."""
    unsigned: npt.NDArray[np.uint64] = np.asarray(values).astype(np.uint64)
    numbers = unsigned - np.uint64(keys.first & _MASK)  # a value below the first one: too large
    ids = np.unique(numbers[numbers < row_count]).astype(np.int64)
    return RowSet.from_ids(ids, row_count)
