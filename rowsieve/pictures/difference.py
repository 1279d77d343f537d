"""The net difference of two versions: rows by kind, cells by column, and samples."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

from rowsieve.pictures.data_table import Raw, data_table, scrolled
from rowsieve.pictures.markup import NOTHING, Markup, element, join, percent, text
from rowsieve.pictures.outcomes import swatches
from rowsieve.pictures.page import Picture

_KINDS: Final = {"inserted": "read", "updated": "merged", "deleted": "hides"}


class ChangedCell(NamedTuple):
    """One column of a changed row; `before` of an inserted and `after` of a deleted one are "".

    Values are cells as of a text table: NULL is `NULL`, that text `'NULL'` and empty text `''`.
    """

    key: str
    kind: str
    column: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, repr=False)
class VersionDifference(Picture):
    """What turns one version into another: each key counts once, however often it changed."""

    table: str
    before: int
    after: int
    inserted: int
    updated: int
    deleted: int
    columns: tuple[tuple[str, int], ...] = ()
    """The updated rows in which each column differs."""
    samples: tuple[ChangedCell, ...] = ()

    @property
    def title(self) -> str:
        """What is shown."""
        return f"Difference of versions {self.before} and {self.after} of {self.table}"

    @property
    def summary(self) -> str:
        """The rows by kind."""
        return f"{self.inserted:,} inserted, {self.updated:,} updated, {self.deleted:,} deleted"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self) | {"samples": [cell._asdict() for cell in self.samples]}

    def body(self, ident: str) -> Markup:
        """Draw the rows by kind, the columns, and the samples."""
        counts = {"inserted": self.inserted, "updated": self.updated, "deleted": self.deleted}
        total = sum(counts.values())
        if not total:
            return element("p", text("The versions have the same rows."))
        pieces = [
            swatches((kind, name) for name, kind in _KINDS.items()),
            _bar([(_KINDS[name], counts[name]) for name in _KINDS], total, ident, self.summary),
        ]
        if self.columns:
            rows = [
                (name, Raw(_share(changed, self.updated), "bar"), changed)
                for name, changed in self.columns
            ]
            table = data_table(
                "Updated rows by column", ("column", "share of updated rows", "rows"), rows
            )
            pieces += [
                element("h3", text("Updated rows by column")),
                scrolled("Updated rows by column", table, titled=True),
            ]
        if self.samples:
            table = data_table("Samples", ("key", "row", "column", "before", "after"), self.samples)
            pieces += [element("h3", text("Samples")), scrolled("Samples", table, titled=True)]
        return join(pieces)


def _bar(pieces: list[tuple[str, int]], total: int, ident: str, words: str) -> Markup:
    marks, at = [], 0.0
    for kind, number in pieces:
        share = number / total
        if number:
            marks.append(
                element(
                    "rect",
                    x=percent(at),
                    width=percent(max(share, 0.003)),
                    y=2,
                    height=22,
                    class_=f"mark {kind}",
                )
            )
        at += share
    title = element("title", text(words), id=f"{ident}-rows")
    return element("svg", title, *marks, role="img", height=28, aria_labelledby=f"{ident}-rows")


def _share(number: int, total: int) -> Markup:
    if not number or not total:
        return NOTHING
    mark = element(
        "rect",
        x=0,
        y=2,
        height=14,
        width=percent(max(number / total, 0.004)),
        class_="mark merged",
    )
    return element("svg", mark, height=18, aria_hidden="true")
