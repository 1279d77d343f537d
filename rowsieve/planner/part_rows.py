"""The rows that a resolved plan reads of each part, and what excluded the other rows.

    rows(part) = candidates(row groups, blooms, pages) ∩ visible ∩ not in its deletion vector

Row ids are those of the part's file, which never changes. Soundness: a row outside the set is
hidden in this version, or the predicate is FALSE or NULL on it and cannot fail. Therefore, reading
the set and evaluating the predicate where there is a residual gives the same rows as a scan.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from rowsieve.errors import CorruptData, InvalidInput
from rowsieve.predicate.rowset import RowSet


@dataclass(frozen=True, slots=True)
class PartRows:
    """The rows to read of one part, and counts of what the file's metadata refuted.

    Of `row_groups`, statistics refuted `row_groups_by_statistics`, and Bloom filters refuted
    `row_groups_by_bloom` more. `pages` counts the pages of undecided row groups; the page index
    refuted `pages_by_index` of them. All counts are 0 if no predicate was checked against the file.
    `rows_hidden`: remaining rows that a newer part or a deletion vector hides. `page_rows`: rows
    per page of the file, a hint for readers of single pages; 0 if unknown.
    """

    part_id: str
    rows: RowSet
    row_groups: int = 0
    row_groups_by_statistics: int = 0
    row_groups_by_bloom: int = 0
    pages: int = 0
    pages_by_index: int = 0
    rows_hidden: int = 0
    page_rows: int = 0

    @property
    def emptied_by(self) -> str:
        """The last step that excluded rows: "row_groups", "bloom", "pages" or "visibility"."""
        refuted = self.row_groups_by_statistics + self.row_groups_by_bloom
        if self.rows_hidden:
            return "visibility"
        if refuted < self.row_groups or not refuted:
            return "pages"
        return "bloom" if self.row_groups_by_bloom else "row_groups"

    def joined(self, other: PartRows) -> PartRows:
        """Combine two reads of one part; the counts of the file are not added."""
        return replace(
            self,
            rows=self.rows.union(other.rows),
            rows_hidden=self.rows_hidden + other.rows_hidden,
        )


class PartRowsForm(msgspec.Struct, frozen=True):
    """The serialised form of `PartRows`, with the row set as bytes."""

    part_id: str
    rows: bytes
    row_count: int
    counts: tuple[int, ...]

    @classmethod
    def of(cls, part: PartRows) -> PartRowsForm:
        """Convert the rows of a part to their serialised form."""
        counts = tuple(getattr(part, name) for name in _COUNTS)
        return cls(part.part_id, part.rows.to_bytes(), part.rows.row_count, counts)

    def part_rows(self) -> PartRows:
        """Decode the rows of the part; InvalidInput for impossible counts or rows."""
        if len(self.counts) != len(_COUNTS) or min(self.counts) < 0:
            raise InvalidInput(
                f"the scan plan has impossible counts for part {self.part_id!r}; plan the scan "
                "again"
            )
        try:
            rows = RowSet.from_bytes(self.rows, self.row_count)
        except CorruptData as error:
            raise InvalidInput(
                f"the scan plan has an invalid row set for part {self.part_id!r}: {error}; plan "
                "the scan again"
            ) from error
        counts: dict[str, Any] = dict(zip(_COUNTS, self.counts, strict=True))
        return PartRows(self.part_id, rows, **counts)


_COUNTS = (
    "row_groups",
    "row_groups_by_statistics",
    "row_groups_by_bloom",
    "pages",
    "pages_by_index",
    "rows_hidden",
    "page_rows",
)


def joined_by_part(part_rows: Iterable[PartRows]) -> tuple[PartRows, ...]:
    """Combine the entries of each part, in the order of their first occurrence."""
    parts: dict[str, PartRows] = {}
    for each in part_rows:
        known = parts.get(each.part_id)
        parts[each.part_id] = each if known is None else known.joined(each)
    return tuple(parts.values())


def within(rows: RowSet, start: int, stop: int) -> RowSet:
    """Return the rows of the set in [start, stop)."""
    if (start, stop) == (0, rows.row_count):
        return rows
    return rows.intersect(RowSet.from_ranges([(start, stop)], rows.row_count))
