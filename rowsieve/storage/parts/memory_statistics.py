"""Statistics of parts in memory, taken from their rows when they are asked for.

Their manifest entries have none: pruning judges the rows themselves. What a scan says of its result
before it reads has them like those of files.

Soundness: the values are those that the columns have now, so they need no fill for columns that
were added later (trap T20). Tombstones are no rows, and widen nothing here: these statistics are
for results, never for pruning.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.stats.collect import StatisticsCollector
from rowsieve.stats.model import ColumnStatistics, Subject
from rowsieve.stats.tabulate import statistics_columns
from rowsieve.storage.manifests.manifest import FileRef, PartTable
from rowsieve.storage.parts.memory_rows import read_memory
from rowsieve.types.schema import Schema


def with_memory_statistics(parts: PartTable, schema: Schema) -> PartTable:
    """The same parts, those in memory with the statistics of their rows as well."""
    places = np.flatnonzero(parts.held_in_memory())
    refs = dict(zip(places.tolist(), parts.take(places).files("data"), strict=True))
    with_rows = {place: ref for place, ref in refs.items() if ref is not None and ref.in_memory}
    if not with_rows:
        return parts
    collected = [_collected(ref, schema) for ref in with_rows.values()]
    table = parts.table
    source = np.arange(len(parts))
    source[list(with_rows)] = len(parts) + np.arange(len(with_rows))
    for name, values in statistics_columns(collected, schema).items():
        if (index := table.schema.get_field_index(name)) < 0:
            of_files = pa.nulls(len(parts), values.type)
            table = table.append_column(name, _merged(of_files, values, source))
        elif (of_files := table.column(index)).type == values.type:
            merged = _merged(of_files, values, source)
            table = table.set_column(index, name, merged)
    return PartTable(table)


def _collected(ref: FileRef, schema: Schema) -> dict[Subject, ColumnStatistics]:
    rows, columns = read_memory(ref), {}
    for field in schema:
        values = rows.column(field)
        if isinstance(values, pa.Scalar):
            values = pa.chunked_array([pa.repeat(values, len(rows))])
        columns[field.name] = values
    collector = StatisticsCollector(schema)
    collector.add(pa.table(columns))
    return collector.finish()


def _merged(of_files: Any, of_memory: pa.Array, source: npt.NDArray[np.int64]) -> pa.ChunkedArray:
    """Element i is number `source[i]` of both, one after the other."""
    chunks = of_files.chunks if isinstance(of_files, pa.ChunkedArray) else [of_files]
    return pa.chunked_array([*chunks, of_memory], of_memory.type).take(pa.array(source))
