"""Gives the abstract interpreter the statistics of pages, from the file's column indexes.

The guarantees are those of row groups (`rowsieve.parquet.statistics.row_groups`). Soundness: a
missing index, or one that does not cover every page, means "unknown". The statistics of the row
groups decide which columns may be used.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from rowsieve.parquet.footer import Tail
from rowsieve.parquet.footer_cache import cached_per_footer
from rowsieve.parquet.leaf_columns import FileColumn
from rowsieve.parquet.pages import PageDirectory
from rowsieve.parquet.shredded_columns import PathFacts, path_facts, value_at_path
from rowsieve.parquet.statistics.row_groups import RowGroupStatistics
from rowsieve.parquet.statistics.stored_bounds import StoredBounds, abstract_column
from rowsieve.parquet.thrift import ThriftStruct, read_struct
from rowsieve.predicate.arrays import Mask
from rowsieve.predicate.interpretation.abstract import AbstractColumn
from rowsieve.stats.model import Derived, Subject
from rowsieve.types.logical import LogicalType, is_ordered

_FROM_BYTES: Final[dict[str, Callable[[bytes], Any]]] = {
    "INT32": lambda data: int.from_bytes(data, "little", signed=True),
    "INT64": lambda data: int.from_bytes(data, "little", signed=True),
    "FLOAT": lambda data: struct.unpack("<f", data)[0],
    "DOUBLE": lambda data: struct.unpack("<d", data)[0],
    "BOOLEAN": lambda data: data != b"\0",
}

# Fields of a column index
_NULL_PAGES, _LOWER, _UPPER, _NULL_COUNTS = 1, 2, 3, 5


class PageStatistics:
    """The statistics of the pages of some row groups of one file, row group by row group.

    `statistics` are those of the row groups.
    """

    def __init__(
        self,
        tail: Tail,
        directory: PageDirectory,
        statistics: RowGroupStatistics,
        row_groups: Sequence[int],
    ) -> None:
        self.part_count = sum(directory.page_count(group) for group in row_groups)
        self._tail = tail
        self._directory = directory
        self._statistics = statistics
        self._row_groups = row_groups
        self._paths: dict[Derived, PathFacts] = {}

    def subject(self, subject: Subject) -> AbstractColumn | None:
        """The statistics of a column or struct field in every page; None if unknown."""
        if isinstance(subject, Derived):
            of_path = value_at_path(subject, self._path_facts)
            return of_path or self._statistics.filled(subject, self.part_count)
        type_ = self._statistics.type_of(subject)
        if type_ is None or not is_ordered(type_):
            return None
        stored = self._statistics.file_column(subject)
        if stored is None:
            return self._statistics.filled(subject, self.part_count)
        if len(self._row_groups) > 1:
            return abstract_column(self._read(stored), stored, type_)
        known = _of_single_groups(self._tail.metadata)
        place = self._row_groups[0], stored.index, type_
        if place not in known:  # a lookup of few keys reads few row groups, again and again
            known[place] = abstract_column(self._read(stored), stored, type_)
        return known[place]

    def kinds(self, subject: Derived) -> npt.NDArray[np.int64] | None:
        """The kinds at a JSON path in every page; None if the file has no column for it."""
        facts = self._path_facts(subject)
        if facts is not None:
            return facts.kinds
        return self._statistics.filled_kinds(subject, self.part_count)

    def _path_facts(self, path: Derived) -> PathFacts | None:
        columns = self._statistics.path_columns(path)
        if columns is None:
            return None
        if path not in self._paths:
            self._paths[path] = path_facts(columns, self._read)
        return self._paths[path]

    def _read(self, column: FileColumn) -> StoredBounds:
        count = self.part_count
        rows, nulls = np.zeros(count, dtype=np.int64), np.full(count, -1, dtype=np.int64)
        bounded = np.zeros(count, dtype=np.bool_)
        lower: list[Any] = []
        upper: list[Any] = []
        for group in self._row_groups:
            pages = slice(len(lower), len(lower) + self._directory.page_count(group))
            rows[pages] = self._rows(group)
            index = self._index(group, column)
            if index is None:
                nothing = [None] * (pages.stop - pages.start)
                lower += nothing
                upper += nothing
                continue
            there = ~np.array(index[_NULL_PAGES])
            bounded[pages] = there
            lower += _values(index[_LOWER], there, column)
            upper += _values(index[_UPPER], there, column)
            if _NULL_COUNTS in index:
                nulls[pages] = index[_NULL_COUNTS]
            nulls[pages][~there] = rows[pages][~there]
        return StoredBounds(rows, nulls, bounded, lower, upper)

    def _rows(self, group: int) -> npt.NDArray[np.int64]:
        total, page_rows = self._tail.metadata.row_group(group).num_rows, self._directory.page_rows
        rows = np.full(-(-total // page_rows), page_rows, dtype=np.int64)
        rows[-1] = total - (len(rows) - 1) * page_rows
        return rows

    def _index(self, group: int, column: FileColumn) -> ThriftStruct | None:
        """The column index of a chunk; None unless it covers every page."""
        known = _indexes_of(self._tail.metadata)
        place = group, column.index
        if place not in known:
            known[place] = self._parsed(*place)
        return known[place]

    def _parsed(self, group: int, leaf: int) -> ThriftStruct | None:
        start = self._directory.chunk(self._tail.metadata, group, leaf).index_start
        if start is None:
            return None
        index, _ = read_struct(self._tail.data, start)
        lists = [index.get(field) for field in (_NULL_PAGES, _LOWER, _UPPER)]
        lists += [index[_NULL_COUNTS]] if _NULL_COUNTS in index else []
        count = self._directory.page_count(group)
        whole = all(isinstance(one, list) and len(one) == count for one in lists)
        return index if whole else None


@cached_per_footer
def _indexes_of(_: pq.FileMetaData) -> dict[tuple[int, int], ThriftStruct | None]:
    """The parsed column indexes, by row group and leaf; they take less memory than the footer."""
    return {}


@cached_per_footer
def _of_single_groups(
    _: pq.FileMetaData,
) -> dict[tuple[int, int, LogicalType], AbstractColumn | None]:
    """The statistics of the pages of single row groups, by row group, leaf and type."""
    return {}


def _values(data: Sequence[bytes], there: Mask, column: FileColumn) -> list[Any]:
    value_of = _FROM_BYTES.get(column.physical, bytes)
    return [value_of(one) if has else None for one, has in zip(data, there, strict=True)]
