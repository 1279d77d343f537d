"""Prune pages of the remaining row groups by the column indexes.

Soundness: a page is pruned only if `interpret` gives `NONE` for its bounds, which it never does if
the predicate may fail (invariant 27). All pages of a file without page locations are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from rowsieve.parquet.footer import Tail, starts_of
from rowsieve.parquet.pages import page_directory
from rowsieve.parquet.statistics.foreign_pages import ForeignCells, has_page_index
from rowsieve.parquet.statistics.page_statistics import PageStatistics
from rowsieve.parquet.statistics.row_groups import JoinedStatistics, RowGroupStatistics
from rowsieve.planner.prune_row_groups import Verdicts, cut_by
from rowsieve.predicate.arrays import Mask
from rowsieve.predicate.bind import BoundPredicate
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.types.schema import Schema

_NONE: Final = int(Verdict.NONE)  # numpy compares with an int faster than with an enum
_SOME: Final = int(Verdict.SOME)
_ALL: Final = int(Verdict.ALL)


@dataclass(frozen=True, slots=True)
class KeptPages:
    """The kept pages of a file; each page has `rows` rows, the last one may have fewer.

    `considered` counts the pages that the predicate was checked against, `pruned` those it refuted,
    `certain` the kept pages on which every row matches. `ranges`: in a foreign file, whose pages
    have any rows, the ranges of rows that are kept instead.
    """

    chosen: Mask
    rows: int
    considered: int = 0
    pruned: int = 0
    certain: int = 0
    ranges: npt.NDArray[np.int64] | None = None


def prune_pages(
    predicate: BoundPredicate,
    files: Sequence[tuple[Tail, Verdicts]],
    schema: Schema,
    group_rows: int,
    *,
    only: frozenset[int] | None = None,
) -> list[KeptPages]:
    """Return the kept pages of each file, given the verdicts of its row groups.

    `group_rows` is the number of rows per row group. Only the pages of row groups with `SOME` are
    checked; all files are interpreted together. `only` is as in `prune_row_groups`.
    """
    kept_pages = [
        KeptPages(verdicts != _NONE, group_rows, certain=int(np.count_nonzero(verdicts == _ALL)))
        for _, verdicts in files
    ]
    opened_files = [
        (place, opened)
        for place, (tail, verdicts) in enumerate(files)
        if verdicts.any()
        and (opened := _opened(predicate, tail, verdicts, schema, group_rows, only)) is not None
    ]
    if not opened_files:
        return kept_pages
    together = JoinedStatistics([opened.statistics for _, opened in opened_files])
    pages_of = cut_by(interpret(predicate, together), together.part_counts)
    for (place, opened), verdicts in zip(opened_files, pages_of, strict=True):
        kept_pages[place] = opened.cut(kept_pages[place], verdicts)
    return kept_pages


def _opened(
    predicate: BoundPredicate,
    tail: Tail,
    verdicts: Verdicts,
    schema: Schema,
    group_rows: int,
    only: frozenset[int] | None,
) -> _Opened | _Foreign | None:
    """The pages of a file that are checked; None if nothing can be pruned."""
    if has_page_index(tail.metadata):
        return _Foreign.of(predicate, tail, verdicts, schema, only)
    return _Opened.of(tail, verdicts, schema, group_rows, only)


@dataclass(frozen=True, slots=True)
class _Foreign:
    """The cells of the undecided row groups of a foreign file."""

    statistics: ForeignCells
    edges: npt.NDArray[np.int64]
    groups: list[int]

    @classmethod
    def of(
        cls,
        predicate: BoundPredicate,
        tail: Tail,
        verdicts: Verdicts,
        schema: Schema,
        only: frozenset[int] | None,
    ) -> _Foreign | None:
        """Return None if no row group is undecided, or no column has an index."""
        groups = (verdicts == _SOME).nonzero()[0].tolist()
        if not groups:
            return None
        statistics = RowGroupStatistics(tail.metadata, schema, only)
        columns = dict.fromkeys(column.field_id for column in predicate.columns)
        cells = ForeignCells(tail, statistics, groups, columns)
        edges = np.array(starts_of(tail.metadata), np.int64)
        return cls(cells, edges, groups) if cells.is_known else None

    def cut(self, groups: KeptPages, verdicts: Verdicts) -> KeptPages:
        """Return the kept rows: those of kept row groups, unless the predicate refutes them."""
        whole = np.stack([self.edges[:-1], self.edges[1:]], axis=1)
        page_mask, uncut = verdicts != _NONE, groups.chosen.copy()
        uncut[self.groups] = False
        ranges = np.concatenate([whole[uncut], self.statistics.rows[page_mask]])
        ranges = ranges[ranges[:, 0] < ranges[:, 1]]  # row groups may be empty
        ranges = ranges[np.argsort(ranges[:, 0])]
        refuted = len(page_mask) - int(np.count_nonzero(page_mask))
        return KeptPages(
            groups.chosen, groups.rows, len(page_mask), refuted, groups.certain, ranges=ranges
        )


@dataclass(frozen=True, slots=True)
class _Opened:
    """The pages of one file that are checked: `places` are their page numbers in the file."""

    statistics: PageStatistics
    places: npt.NDArray[np.int64]
    page_rows: int
    page_count: int
    pages_per_group: int

    @classmethod
    def of(
        cls,
        tail: Tail,
        verdicts: Verdicts,
        schema: Schema,
        group_rows: int,
        only: frozenset[int] | None,
    ) -> _Opened | None:
        """Return None if nothing can be pruned: no undecided row group, or unknown pages."""
        groups = (verdicts == _SOME).nonzero()[0]
        directory = page_directory(tail.metadata) if len(groups) else None
        if directory is None or group_rows % directory.page_rows:
            return None
        page_count = -(-int(tail.metadata.num_rows) // directory.page_rows)
        if page_count == len(verdicts):
            return None
        per_group = group_rows // directory.page_rows
        places = (groups[:, None] * per_group + np.arange(per_group)).ravel()
        statistics = PageStatistics(
            tail, directory, RowGroupStatistics(tail.metadata, schema, only), groups.tolist()
        )
        return cls(
            statistics, places[places < page_count], directory.page_rows, page_count, per_group
        )

    def cut(self, groups: KeptPages, verdicts: Verdicts) -> KeptPages:
        """Return the kept pages: those of kept row groups, unless the predicate refutes them."""
        page_mask = np.repeat(groups.chosen, self.pages_per_group)[: self.page_count]
        pages = verdicts != _NONE
        page_mask[self.places] = pages
        certain = groups.certain * self.pages_per_group + int(np.count_nonzero(verdicts == _ALL))
        refuted = len(pages) - int(np.count_nonzero(pages))
        return KeptPages(page_mask, self.page_rows, len(pages), refuted, certain)
