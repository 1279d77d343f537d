"""Joins units of several files with few wanted pages into tasks that decode them at once.

Each task has a fixed cost: a Parquet file is built in memory, opened and decoded, the predicate is
evaluated, and its rows are converted. Keys that are scattered over many parts want a page or two of
each, so a task per part would spend most of its time there. Joined units keep their order. Only
units whose columns are all read at once are joined, and only if the files store them alike.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import pyarrow as pa

from rowsieve.executor.decode_row_group import FewPages, RowGroup
from rowsieve.executor.two_phase import RowReader

MOST_ROWS: Final = 131_072  # decoded rows of a joined task

Task: TypeAlias = Callable[[], pa.RecordBatch | None]
"""Reads one row group or several units; any thread may run it."""
Unit: TypeAlias = tuple[RowReader, RowGroup]


def joined_tasks(units: Iterable[Task | Unit]) -> Iterator[Task]:
    """The tasks of these units, in their order; neighbours of one reader may share a task."""
    waiting = _Waiting()
    for unit in units:
        pages = _joinable(unit) if isinstance(unit, tuple) else None
        if waiting.units and (pages is None or not waiting.accepts(pages)):
            yield waiting.taken()
        if pages is not None:
            waiting.add(pages)
        elif isinstance(unit, tuple):
            yield partial(unit[0].read, unit[1])
        else:
            yield unit
    if waiting.units:
        yield waiting.taken()


@dataclass(frozen=True, slots=True)
class _Joinable:
    reader: RowReader
    pages: FewPages
    key: Hashable


def _joinable(unit: Unit) -> _Joinable | None:
    reader, group = unit
    if reader.predicate is None:
        return None
    found = group.joinable(reader.all_columns)
    return None if found is None else _Joinable(reader, *found)


class _Waiting:
    """Units that the next task decodes at once."""

    def __init__(self) -> None:
        self.units: list[_Joinable] = []
        self._row_count = 0

    def accepts(self, unit: _Joinable) -> bool:
        """Return whether the unit may join the waiting units; there must be at least one."""
        first = self.units[0]
        return (
            first.reader is unit.reader
            and first.key == unit.key
            and self._row_count + unit.pages.row_count <= MOST_ROWS
        )

    def add(self, unit: _Joinable) -> None:
        """Append a unit."""
        self.units.append(unit)
        self._row_count += unit.pages.row_count

    def taken(self) -> Task:
        """Remove all units, and return their task."""
        task = partial(self.units[0].reader.read_together, [each.pages for each in self.units])
        self.units, self._row_count = [], 0
        return task
