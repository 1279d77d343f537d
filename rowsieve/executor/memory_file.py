"""The rows of a part in memory, read as those of an open file: columns by field id, as now.

They need no store, footer, pages or bytes of a file. Row groups are runs of 65,536 rows, as plans
count them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import pyarrow as pa

from rowsieve.parquet.page_reader import PageReader
from rowsieve.parquet.pages import Pages
from rowsieve.parquet.spans import Span
from rowsieve.storage.manifests.manifest import FileRef
from rowsieve.storage.parts.memory_rows import read_memory
from rowsieve.storage.parts.part_writer import ROW_GROUP_ROWS
from rowsieve.storage.parts.row_versions import ROW_VERSION
from rowsieve.types.logical import Field
from rowsieve.types.schema import Schema


class MemoryFile:
    """A part in memory as an `OpenFile`; see there for the methods."""

    __slots__ = ("_commit_ts", "_rows", "path", "starts")

    mapping: Final = None
    forms: Final[Mapping[str, bytes]] = {}
    page_rows: Final = 0
    fetches_together: Final = False
    at_once: Final = True

    def __init__(self, ref: FileRef, commit_ts: int | None = None) -> None:
        self._commit_ts = commit_ts
        self._rows = read_memory(ref)
        self.path = ref.path
        self.starts = (*range(0, ref.rows, ROW_GROUP_ROWS), ref.rows)

    @property
    def pages(self) -> PageReader:
        """There are none: `page_rows` is 0."""
        raise AssertionError(f"{self.path} is in memory and has no pages")

    def stored(self, columns: Schema) -> list[str | pa.Scalar]:
        """The name among the rows of each column, or its value in all rows."""
        by_id = self._rows.by_id
        return [
            by_id[field.id].name if field.id in by_id else self._constant(field)
            for field in columns.fields
        ]

    def _constant(self, field: Field) -> pa.Scalar:
        if field.id == ROW_VERSION.id:
            return pa.scalar(self._commit_ts, pa.int64())
        value = self._rows.column(field)
        assert isinstance(value, pa.Scalar)
        return value

    def spans(self, _row_group: int, _columns: Schema, _pages: Pages | None) -> list[Span]:
        """Nothing is requested from the store."""
        return []

    def physical(self, fields: Iterable[Field]) -> list[str]:
        """The names among the rows of these columns, without those that were added later."""
        by_id = self._rows.by_id
        return [by_id[field.id].name for field in fields if field.id in by_id]

    def finished(
        self, table: pa.Table, _fields: Iterable[Field], _runs: Sequence[tuple[int, int]]
    ) -> pa.Table:
        """The same columns."""
        return table

    def as_now(self, column: pa.ChunkedArray, field: Field) -> pa.ChunkedArray:
        """Convert a column to the table's type."""
        return self._rows.as_now(column, field)

    def cuts(
        self, row_group: int, _most_rows: int, _columns: Schema, _memory_bytes: int
    ) -> Sequence[tuple[int, int]]:
        """One slice: the rows are in memory anyway."""
        return [(self.starts[row_group], self.starts[row_group + 1])]

    def read(
        self, row_group: int, columns: Iterable[Field], rows: tuple[int, int] | None = None
    ) -> tuple[pa.Table, int]:
        """Columns of a run of rows, without those that were added later; no bytes are read."""
        first, stop = self.starts[row_group], self.starts[row_group + 1]
        if rows is not None:
            first, stop = first + rows[0], first + rows[1]
        return self._rows.table.select(self.physical(columns)).slice(first, stop - first), 0
