"""Gives the abstract interpreter the statistics of pages of foreign files.

In such files, pages of different columns begin at different rows. So the rows of a row group are
cut where a page of any column of the predicate begins; for each column, a cell has the statistics
of the page that contains it.

Soundness: bounds and counts need the care of `rowsieve.parquet.statistics.foreign_statistics`,
which converts them. An index is ignored if it is malformed, does not fit its row group and column
chunk, or contradicts them or itself (`rowsieve.parquet.statistics.index_checks`); all cells then
have the statistics of the row group. The index is in the tail, whose checksum the manifest has; it
is used only if the footer declares the order of bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from rowsieve.parquet.chunks import chunk_span
from rowsieve.parquet.file_mapping import PAGE_INDEX_KEY, mapping_of
from rowsieve.parquet.footer import Tail, starts_of
from rowsieve.parquet.footer_cache import cached_per_footer
from rowsieve.parquet.foreign_footer.checked_footer import CheckedFooter
from rowsieve.parquet.foreign_footer.footer_fields import (
    COLUMN_INDEX,
    COLUMN_INDEX_BYTES,
    OFFSET_INDEX,
    OFFSET_INDEX_BYTES,
)
from rowsieve.parquet.foreign_footer.read_footer import foreign_footer
from rowsieve.parquet.foreign_footer.schema_tree import Leaf
from rowsieve.parquet.foreign_footer.struct_shapes import Path
from rowsieve.parquet.leaf_columns import FileColumn
from rowsieve.parquet.statistics.foreign_chunks import chunk_statistics, is_bound, value_in
from rowsieve.parquet.statistics.foreign_statistics import foreign_column
from rowsieve.parquet.statistics.index_checks import contradicts
from rowsieve.parquet.statistics.known_faults import Claim
from rowsieve.parquet.statistics.row_groups import RowGroupStatistics
from rowsieve.parquet.statistics.stored_bounds import StoredBounds, joined_bounds
from rowsieve.parquet.thrift import MalformedThrift, Wanted, read_fields
from rowsieve.predicate.interpretation.abstract import AbstractColumn
from rowsieve.stats.model import Derived, Subject
from rowsieve.types.logical import is_ordered

Numbers = npt.NDArray[np.int64]
_MAX_PAGES: Final = 100_000  # of a column chunk; for more, the check costs more than it saves
_LOCATIONS: Final[Wanted] = {1: dict.fromkeys((1, 2, 3))}
_INDEX: Final[Wanted] = dict.fromkeys((1, 2, 3, 4, 5))


@dataclass(frozen=True, slots=True)
class ChunkIndex:
    """The pages of a column chunk: the first row of each in its row group, and their statistics."""

    starts: Numbers
    stored: StoredBounds


def has_page_index(metadata: pq.FileMetaData) -> bool:
    """Return whether the footer is of a foreign file, and its page index may be used."""
    return (metadata.metadata or {}).get(PAGE_INDEX_KEY) == b"1" and (
        mapping_of(metadata) is not None
    )


class ForeignCells:
    """The statistics of cells of rows of some row groups of one file; `rows` are their ranges.

    `row_groups`: those that are cut; `columns`: the field ids of the predicate.
    """

    def __init__(
        self,
        tail: Tail,
        statistics: RowGroupStatistics,
        row_groups: Sequence[int],
        columns: Iterable[int],
    ) -> None:
        self._statistics = statistics
        self._indexes: dict[int, list[ChunkIndex | None]] = {}
        for field_id in columns:
            column = statistics.file_column(field_id)
            type_ = statistics.type_of(field_id)
            if column is not None and type_ is not None and is_ordered(type_):
                indexes = [_index_of(tail, group, column) for group in row_groups]
                if any(each is not None for each in indexes):
                    self._indexes[field_id] = indexes
        edges = starts_of(tail.metadata)
        self._groups: list[Numbers] = []  # the row group of each cell
        self._starts: list[Numbers] = []  # its first row in the row group
        ranges = []
        for place, group in enumerate(row_groups):
            known = [index.starts for each in self._indexes.values() if (index := each[place])]
            starts = np.unique(np.concatenate([np.zeros(1, np.int64), *known]))
            stops = np.append(starts[1:], edges[group + 1] - edges[group])
            ranges.append(np.stack([starts, stops], axis=1) + edges[group])
            self._starts.append(starts)
            self._groups.append(np.full(len(starts), group, np.int64))
        self.rows: Numbers = np.concatenate(ranges)
        self.part_count = len(self.rows)

    @property
    def is_known(self) -> bool:
        """True if any column has an index, so that cells are smaller than row groups."""
        return bool(self._indexes)

    def subject(self, subject: Subject) -> AbstractColumn | None:
        """The statistics of a column in every cell; None if unknown."""
        indexes = self._indexes.get(subject) if isinstance(subject, int) else None
        if indexes is None or not isinstance(subject, int):
            return _taken(self._statistics.subject(subject), np.concatenate(self._groups))
        column, type_ = self._statistics.file_column(subject), self._statistics.type_of(subject)
        assert column is not None
        assert type_ is not None
        pages, places, first = [], [], 0
        for starts, index in zip(self._starts, indexes, strict=True):
            if index is None:  # counts as one page without statistics
                pages.append(_unknown())
                places.append(np.full(len(starts), first, np.int64))
            else:
                pages.append(index.stored)
                places.append(np.searchsorted(index.starts, starts, side="right") - 1 + first)
            first += len(pages[-1].rows)
        return _taken(foreign_column(joined_bounds(pages), column, type_), np.concatenate(places))

    def kinds(self, subject: Derived) -> None:
        """None: foreign files have no columns of JSON paths."""


def _taken(column: AbstractColumn | None, places: Numbers) -> AbstractColumn | None:
    if column is None:
        return None
    nan = None if column.may_be_nan is None else column.may_be_nan[places]
    lower, upper = column.lower.take(places), column.upper.take(places)
    return AbstractColumn(lower, upper, column.empty[places], column.may_be_null[places], nan)


def _unknown() -> StoredBounds:
    count = np.array([-1], np.int64)
    return StoredBounds(np.zeros(1, np.int64), count, np.zeros(1, np.bool_), [None], [None])


@cached_per_footer
def _known(_: pq.FileMetaData) -> dict[tuple[int, int], ChunkIndex | None]:
    """The parsed indexes, by row group and leaf."""
    return {}


def _index_of(tail: Tail, group: int, column: FileColumn) -> ChunkIndex | None:
    """The index of a column chunk; None if it has none that may be used."""
    known, footer = _known(tail.metadata), foreign_footer(tail.metadata)
    assert footer is not None
    if (place := (group, column.index)) not in known:
        try:
            known[place] = _parsed(tail, group, column, footer)
        except (MalformedThrift, KeyError, IndexError, TypeError, ValueError, OverflowError):
            known[place] = None
    return known[place]


def _parsed(tail: Tail, group: int, column: FileColumn, footer: CheckedFooter) -> ChunkIndex | None:
    leaf, place = footer.leaves[column.index], group * len(footer.leaves) + column.index
    if not leaf.has_order or leaf.doubts & Claim.PAGE_BOUNDS or footer.suspicious[place]:
        return None
    metadata = tail.metadata.row_group(group)
    locations = _struct(tail, footer, place, (OFFSET_INDEX, OFFSET_INDEX_BYTES), _LOCATIONS)[1]
    index = _struct(tail, footer, place, (COLUMN_INDEX, COLUMN_INDEX_BYTES), _INDEX)
    starts = np.array([each[3] for each in locations], np.int64)
    if not 0 < len(starts) <= _MAX_PAGES or not _fits(locations, starts, metadata, column.index):
        return None
    rows = np.diff(np.append(starts, metadata.num_rows))
    stored = _stored(index, rows, leaf)
    of_chunk = chunk_statistics(footer, group, column.index)
    if stored is None or contradicts(stored, of_chunk, leaf, index.get(4)):
        return None
    if leaf.doubts & Claim.NULLS:
        stored = replace(stored, nulls=np.full(len(rows), -1, np.int64))
    return ChunkIndex(starts, stored)


def _struct(
    tail: Tail, footer: CheckedFooter, place: int, at: tuple[Path, Path], wanted: Wanted
) -> Mapping[int, Any]:
    """The wanted fields of a struct in the page index; MalformedThrift if it lies elsewhere."""
    if any(footer.chunks.stops[path][place] < 0 for path in at):
        raise MalformedThrift("a chunk has no index")
    start, length = (int(footer.chunks.values[path][place]) for path in at)
    first = start - tail.start
    if first < 0 or length <= 0 or first + length > len(tail.data) - len(tail.footer):
        raise MalformedThrift("an index lies outside of the tail of its file")
    return read_fields(bytes(tail.data[first : first + length]), 0, wanted)


def _fits(locations: Sequence[Any], starts: Numbers, metadata: Any, leaf: int) -> bool:
    """Return whether pages begin at ascending rows, from the first one on, and fill their chunk."""
    chunk = metadata.column(leaf)
    offsets = np.array([each[1] for each in locations], np.int64)
    ends = offsets + np.array([each[2] for each in locations], np.int64)
    return bool(
        starts[0] == 0
        and starts[-1] < metadata.num_rows
        and (np.diff(starts) > 0).all()
        and offsets[0] == chunk.data_page_offset
        and ends[-1] == chunk_span(chunk)[1]
        and (offsets < ends).all()
        and (offsets[1:] == ends[:-1]).all()
    )


def _stored(index: Mapping[int, Any], rows: Numbers, leaf: Leaf) -> StoredBounds | None:
    """The counts and bounds of the pages; None if they are not well formed."""
    null_pages, lower, upper = index[1], index[2], index[3]
    nulls = index.get(5)
    lists = [null_pages, lower, upper, *([] if nulls is None else [nulls])]
    if any(len(each) != len(rows) for each in lists):
        return None
    counts = np.full(len(rows), -1, np.int64) if nulls is None else np.array(nulls, np.int64)
    only_nulls = np.array(null_pages, np.bool_)
    if nulls is None:
        counts[only_nulls] = rows[only_nulls]
    bounded = np.array(
        [
            not null and is_bound(low, leaf) and is_bound(high, leaf)
            for null, low, high in zip(null_pages, lower, upper, strict=True)
        ]
    )
    said = np.array([bool(low or high) for low, high in zip(lower, upper, strict=True)])
    wrong = (only_nulls != (counts == rows)) | (only_nulls & said)  # they contradict each other
    counts[wrong] = -1
    bounded &= ~wrong
    if (counts > rows).any():
        return None
    values = [
        [
            value_in(bound, leaf) if there else None
            for bound, there in zip(side, bounded, strict=True)
        ]
        for side in (lower, upper)
    ]
    return StoredBounds(rows, counts, bounded, values[0], values[1])
