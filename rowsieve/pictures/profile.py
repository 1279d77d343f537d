"""The profile of columns: NULLs, bounds and different values, and whether they are exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from rowsieve.pictures.data_table import Raw, data_table, scrolled
from rowsieve.pictures.markup import Markup, element, join, percent, text
from rowsieve.pictures.outcomes import swatches
from rowsieve.pictures.page import Picture

MAX_COLUMNS = 500


class ColumnProfile(NamedTuple):
    """A column: None where nothing is known. `distinct` is an estimate."""

    name: str
    type: str
    nulls: int | None
    lower: str | None
    upper: str | None
    distinct: int | None
    exact: bool


@dataclass(frozen=True, slots=True, repr=False)
class Profile(Picture):
    """The columns of one version."""

    table: str
    version: int
    rows: int
    columns: Sequence[ColumnProfile]

    @property
    def title(self) -> str:
        """What is shown."""
        return f"Columns of {self.table} at version {self.version}"

    @property
    def summary(self) -> str:
        """Columns, rows, and how many of them are exact."""
        exact = sum(column.exact for column in self.columns)
        rows = f"{self.rows:,} rows" if exact == len(self.columns) else f"up to {self.rows:,} rows"
        return f"{len(self.columns):,} columns, {rows}; {exact:,} columns are exact"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self) | {"columns": [column._asdict() for column in self.columns]}

    def body(self, ident: str) -> Markup:
        """Draw the columns with their share of NULLs."""
        del ident
        rows = [
            (
                column.name,
                column.type,
                Raw(_nulls(column, self.rows), "bar"),
                column.nulls,
                column.lower,
                column.upper,
                column.distinct,
                Raw(_state(is_exact=column.exact)),
            )
            for column in self.columns[:MAX_COLUMNS]
        ]
        headings = ("column", "type", "values and NULLs", "NULLs", "least", "greatest")
        table = data_table(
            "Columns",
            (*headings, "different, about", "exact"),
            rows,
            total=len(self.columns),
            most=MAX_COLUMNS,
        )
        legend = swatches((("read", "values"), ("key", "NULL")))
        return join((legend, scrolled("Columns", table)))


def _state(*, is_exact: bool) -> Markup:
    if is_exact:
        return element("b", text("exact"), class_="good")
    return element("b", text("bounds"), class_="weak")


def _nulls(column: ColumnProfile, rows: int) -> Markup:
    if column.nulls is None:
        return text("unknown")
    share = min(column.nulls / rows, 1.0) if rows else 0.0
    place = {"y": 2, "height": 14}
    marks = [element("rect", x=0, width=percent(1 - share), class_="mark read", **place)]
    if share:
        marks.append(
            element("rect", x=percent(1 - share), width=percent(share), class_="mark key", **place)
        )
    return element("svg", *marks, height=18, aria_hidden="true")
