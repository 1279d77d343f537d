"""Which pages of the row groups that are left can hold a matching row: by their column indexes.

Soundness: a page is left out only where `interpret` says `NONE` of its bounds, which it never says
where the predicate may fail (invariant 27). Files that do not say where their pages are keep all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rowsieve.parquet.footer import Tail
from rowsieve.parquet.page_statistics import PageStatistics
from rowsieve.parquet.pages import PageDirectory
from rowsieve.parquet.row_groups import JoinedStatistics, RowGroupStatistics
from rowsieve.planner.prune_row_groups import Verdicts
from rowsieve.predicate.arrays import Mask
from rowsieve.predicate.bind import BoundPredicate
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.types.schema import Schema


@dataclass(frozen=True, slots=True)
class KeptPages:
    """What is left of a file, in pages of `rows` rows, the last of which may have less.

    `considered` and `pruned` count the pages that the predicate was held against.
    """

    kept: Mask
    rows: int
    considered: int = 0
    pruned: int = 0


def prune_pages(
    predicate: BoundPredicate,
    files: Sequence[tuple[Tail, Verdicts]],
    schema: Schema,
    group_rows: int,
    *,
    only: frozenset[int] | None = None,
) -> list[KeptPages]:
    """What is left of each file whose row groups, of `group_rows`, have these verdicts.

    Only row groups with `SOME` are looked into; all files are interpreted together. `only` as for
    row groups.
    """
    found = [KeptPages(verdicts != Verdict.NONE, group_rows) for _, verdicts in files]
    asked = [
        (place, opened)
        for place, (tail, verdicts) in enumerate(files)
        if (opened := _Opened.of(tail, verdicts, schema, group_rows, only)) is not None
    ]
    if not asked:
        return found
    together = JoinedStatistics([opened.statistics for _, opened in asked])
    kept = interpret(predicate, together) != Verdict.NONE
    ends = np.cumsum([opened.statistics.part_count for _, opened in asked])[:-1]
    for (place, opened), pages in zip(asked, np.split(kept, ends), strict=True):
        found[place] = opened.cut(found[place].kept, pages)
    return found


@dataclass(frozen=True, slots=True)
class _Opened:
    """The pages of one file that are looked at: `places`, among `pages_per_group` for each."""

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
        """None where there is nothing to gain: no row group to look into, or no pages known."""
        directory = PageDirectory.of(tail.metadata)
        groups = np.flatnonzero(verdicts == Verdict.SOME)
        if directory is None or not len(groups) or group_rows % directory.page_rows:
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

    def cut(self, groups: Mask, pages: Mask) -> KeptPages:
        """The pages of the row groups that are kept, without those that are not."""
        kept = np.repeat(groups, self.pages_per_group)[: self.page_count]
        kept[self.places] = pages
        return KeptPages(kept, self.page_rows, len(pages), int((~pages).sum()))
