"""Gives the abstract interpreter the rows of a part in memory: each row is known by itself.

A row is a page whose bounds are its own value, so one interpretation judges the rows of all parts
in memory, together with nothing read or collected beforehand.

Soundness: as for row groups (`rowsieve.parquet.statistics.row_groups`). Columns without an order,
fields inside structs and JSON paths are unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.interpretation.abstract import AbstractColumn
from rowsieve.stats.fills import fill_for, fills_at, fills_of
from rowsieve.stats.model import Derived, Subject
from rowsieve.storage.parts.memory_rows import MemoryRows
from rowsieve.types.aliases import is_opaque
from rowsieve.types.logical import Field, is_ordered
from rowsieve.types.schema import Schema
from rowsieve.types.schema_cache import cached_by_schema


class RowStatistics:
    """The statistics of each row; `known`: the field ids that may be used, None for all."""

    def __init__(
        self, rows: MemoryRows, schema: Schema, known: Collection[int] | None = None
    ) -> None:
        self._rows = rows
        self._schema = schema
        self._known = known

    @property
    def part_count(self) -> int:
        """The number of rows."""
        return len(self._rows)

    def subject(self, subject: Subject) -> AbstractColumn | None:
        """The value of a column in each row, as bounds; None if it is not used."""
        if isinstance(subject, Derived) or (self._known is not None and subject not in self._known):
            return None
        field = _fields_of(self._schema).get(subject)
        if field is None or not is_ordered(field.type) or is_opaque(field.alias):
            return None
        if subject in self._rows.by_id:
            column = self._rows.column(field)
            assert isinstance(column, pa.ChunkedArray)
            return _points(column.combine_chunks())
        fill = fill_for(fills_at(fills_of(self._schema), subject), self._rows.schema_id)
        return None if fill is None else fill.repeated(len(self._rows))

    def kinds(self, _subject: Derived) -> npt.NDArray[np.int64] | None:
        """None: JSON is not parsed before it is read."""
        return None


@cached_by_schema
def _fields_of(schema: Schema) -> Mapping[int, Field]:
    return {field.id: field for field in schema}


def _points(values: pa.Array | pa.ChunkedArray) -> AbstractColumn:
    """Bounds of one value each; NaN has none."""
    array = pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values
    null = np.asarray(array.is_null().to_numpy(zero_copy_only=False))
    nan = None
    if pa.types.is_floating(array.type):
        is_nan = pc.fill_null(pc.is_nan(array), False)  # noqa: FBT003
        nan = np.asarray(is_nan.to_numpy(zero_copy_only=False))
        if nan.any():
            array = pc.if_else(is_nan, pa.scalar(None, array.type), array)
    return AbstractColumn(array, array, empty=null, may_be_null=null, may_be_nan=nan)
