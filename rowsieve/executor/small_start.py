"""Reads the first page of a read by itself, so that a consumer that needs few rows stops early.

An engine does not say that a query has a LIMIT: it just asks for no further batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rowsieve.executor.decode_row_group import RowGroup
from rowsieve.predicate.rowset import RowSet


def with_small_start(groups: Iterator[RowGroup]) -> Iterator[RowGroup]:
    """The same rows in the same order; the first row group is cut after its first wanted page."""
    first = next(groups, None)
    if first is None:
        return
    rows, page_rows = first.row_count, first.file.page_rows
    wanted = RowSet.full(rows) if first.wanted is None else first.wanted
    start, stop = wanted.span
    cut = (start // page_rows + 1) * page_rows if page_rows else rows
    if cut < stop:
        yield replace(first, wanted=wanted.intersect(RowSet.from_ranges([(0, cut)], rows)))
        yield replace(first, wanted=wanted.intersect(RowSet.from_ranges([(cut, rows)], rows)))
    else:
        yield first
    yield from groups
