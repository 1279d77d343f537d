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

from rowsieve.parquet.footer import Tail
from rowsieve.parquet.page_statistics import PageStatistics
from rowsieve.parquet.pages import PageDirectory
from rowsieve.parquet.row_groups import JoinedStatistics, RowGroupStatistics
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
    `certain` the kept pages on which every row matches.
    """

    kept: Mask
    rows: int
    considered: int = 0
    pruned: int = 0
    certain: int = 0


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
    checked; all files are interpreted together. `only` is that of `prune_row_groups`.
    """
    found = [
        KeptPages(verdicts != _NONE, group_rows, certain=int(np.count_nonzero(verdicts == _ALL)))
        for _, verdicts in files
    ]
    opened_files = [
        (place, opened)
        for place, (tail, verdicts) in enumerate(files)
        if verdicts.any()
        and (opened := _Opened.of(tail, verdicts, schema, group_rows, only)) is not None
    ]
    if not opened_files:
        return found
    together = JoinedStatistics([opened.statistics for _, opened in opened_files])
    pages_of = cut_by(interpret(predicate, together), together.part_counts)
    for (place, opened), verdicts in zip(opened_files, pages_of, strict=True):
        found[place] = opened.cut(found[place], verdicts)
    return found


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
        directory = PageDirectory.of(tail.metadata) if len(groups) else None
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
        kept = np.repeat(groups.kept, self.pages_per_group)[: self.page_count]
        pages = verdicts != _NONE
        kept[self.places] = pages
        certain = groups.certain * self.pages_per_group + int(np.count_nonzero(verdicts == _ALL))
        refuted = len(pages) - int(np.count_nonzero(pages))
        return KeptPages(kept, self.page_rows, len(pages), refuted, certain)
