"""Units of a read: row groups that one call decodes, in output order.

Each call has a fixed cost: a Parquet file is built in memory, opened and decoded, the predicate is
evaluated, and its rows are converted. Keys that are scattered over many row groups and parts want a
page or two of each. So the wanted pages of neighbouring row groups, of one file or of several that
store the columns alike, are decoded together. A row group with many wanted pages is decoded by
column chunk, as a unit of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, TypeVar

import pyarrow as pa

from rowsieve.executor.decode_row_group import RowGroup
from rowsieve.executor.two_phase import RowReader
from rowsieve.predicate.rowset import RowSet

MAX_ROWS: Final = 65_536  # decoded rows of a unit of several row groups

Task: TypeAlias = Callable[[], pa.RecordBatch | None]
"""Reads rows; any thread may run it."""
_Other = TypeVar("_Other")


@dataclass(frozen=True, slots=True)
class Unit:
    """Row groups that one call of their reader decodes."""

    reader: RowReader
    groups: tuple[RowGroup, ...]

    def read(self) -> pa.RecordBatch | None:
        """The matching rows; None if there are none."""
        return self.reader.read(self.groups)

    def count(self) -> int:
        """Count the matching rows."""
        return self.reader.count(self.groups)

    def joins(self, other: Unit) -> bool:
        """Return whether one call can decode both."""
        if other.reader is not self.reader:
            return False
        columns = self.reader.all_columns
        return self.groups[0].form(columns) == other.groups[0].form(columns)


def joined(units: Iterable[Unit | _Other]) -> Iterator[Unit | _Other]:
    """The same rows in the same order; neighbours with few wanted pages become one unit."""
    waiting: list[Unit] = []
    row_count = 0
    for unit in units:
        more = unit.groups[0].page_rows if isinstance(unit, Unit) else 0
        if waiting and not (
            more
            and row_count + more <= MAX_ROWS
            and isinstance(unit, Unit)
            and waiting[0].joins(unit)
        ):
            yield _together(waiting)
            waiting, row_count = [], 0
        if more and isinstance(unit, Unit):
            waiting.append(unit)
            row_count += more
        else:
            yield unit
    if waiting:
        yield _together(waiting)


def starting_small(units: Iterator[Unit | _Other]) -> Iterator[Unit | _Other]:
    """The same rows in the same order; the first wanted page is a unit of its own.

    For a consumer that may need few rows: an engine does not say that a query has a LIMIT, it just
    asks for no further batch.
    """
    first = next(units, None)
    if first is None:
        return
    if isinstance(first, Unit):
        group, *others = first.groups
        rows, page_rows = group.row_count, group.file.page_rows
        wanted = RowSet.full(rows) if group.wanted is None else group.wanted
        cut = (wanted.span[0] // page_rows + 1) * page_rows if page_rows else rows
        if cut < wanted.span[1]:
            page = RowSet.from_ranges([(0, cut)], rows)
            yield Unit(first.reader, (replace(group, wanted=wanted.intersect(page)),))
            rest = replace(group, wanted=wanted.difference(page))
            first = Unit(first.reader, (rest, *others))
    yield first
    yield from units


def _together(units: list[Unit]) -> Unit:
    if len(units) == 1:
        return units[0]
    return Unit(units[0].reader, tuple(group for unit in units for group in unit.groups))
