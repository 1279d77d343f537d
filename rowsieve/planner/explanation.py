"""Explanations of plans: the reasons as values, and their text.

`rowsieve.planner.explain` builds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rowsieve.flags.resolution import ResolvedFlag, flags_as_dict
from rowsieve.planner.explaining.reasons import ConditionReason, GroupReason, PartReason
from rowsieve.shown import printable_lines

if TYPE_CHECKING:
    from rowsieve.pictures.condition_tree import ConditionNode
    from rowsieve.pictures.funnel import Funnel

MAX_LINES = 20  # of one kind in the text; `as_dict` has all


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a plan; `str` gives text, `as_dict` plain values."""

    table: str
    version: int
    where: str
    parts_considered: int
    parts_read: int
    bytes_considered: int
    bytes_read: int
    splits: int
    merged_groups: int
    filtered: bool
    skipped: tuple[PartReason, ...] = field(default=())
    groups: tuple[GroupReason, ...] = field(default=())
    conditions: tuple[ConditionReason, ...] = field(default=())
    constraints: tuple[str, ...] = field(default=())
    flags: tuple[ResolvedFlag, ...] = field(default=())
    frontiers: Mapping[str, int | str | None] = field(default_factory=dict)
    """Of a differential table: `at`, the time that is read, `since` and `upper`."""
    tree: ConditionNode | None = None
    """The condition, with the verdicts of all parts at each node; None without a condition."""
    measured: Mapping[str, Any] | None = None
    """The counters of the read, as `ScanMetrics.as_dict` has them, of `explain(analyze=True)`."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        values = asdict(replace(self, flags=()))
        return values | {"flags": flags_as_dict(self.flags)}

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return printable_lines(str(self))

    def _repr_html_(self) -> str:
        return self.picture()._repr_html_()

    def picture(self) -> Funnel:
        """Return the picture of this read, which a notebook shows; `save` writes it to a file."""
        from rowsieve.planner.explaining.query_picture import (  # noqa: PLC0415 - not for text
            query_picture,
        )

        return query_picture(self)

    def _lines(self) -> Iterator[str]:
        yield f"scan of {self.table} at version {self.version}"
        yield f"  where {self.where}"
        yield (
            f"  parts {self.parts_considered} considered, "
            f"{self.parts_considered - self.parts_read} skipped, {self.parts_read} read in "
            f"{self.splits} splits, {self.merged_groups} groups merged"
        )
        yield (
            f"  bytes {self.bytes_considered:,} considered, "
            f"{self.bytes_considered - self.bytes_read:,} skipped, {self.bytes_read:,} to read"
        )
        if self.frontiers:
            times = (f"{name}={each}" for name, each in self.frontiers.items())
            yield f"  frontiers {', '.join(times)}"
        for flag in self.flags:
            if not flag.is_usual:
                yield f"  flag {flag}"
        if self.measured is not None:
            yield from _measured(self.measured)
        for each in self.constraints:
            yield f"  decided by the constraint {each}"
        yield f"  {self._filtering()}"
        yield from _first_lines((f"  condition {one}" for one in self.conditions), "conditions")
        yield from _first_lines((line for group in self.groups for line in _group(group)), "lines")
        yield from _first_lines((f"  {reason}" for reason in self.skipped), "parts skipped")

    def _filtering(self) -> str:
        if not self.parts_read:
            return "no rows are read"
        return "rows are filtered" if self.filtered else "rows are not filtered: all of them match"


def _measured(counters: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a read of all rows counted."""
    yield (
        f"  measured {counters['rows_decoded']:,} rows decoded, {counters['rows_returned']:,} "
        f"returned, {counters['bytes_read']:,} bytes read"
    )
    yield (
        f"  measured {counters['planning_s'] * 1000:,.1f} ms planning, "
        f"{counters['reading_s'] * 1000:,.1f} ms reading, {counters['cpu_s'] * 1000:,.1f} ms CPU"
    )


def _group(group: GroupReason) -> Iterator[str]:
    yield f"  {group}"
    for part in group.parts:
        yield f"    {part}"


def _first_lines(lines: Iterable[str], of_what: str) -> Iterator[str]:
    """Yield the first lines, then the number of omitted ones."""
    more = 0
    for i, line in enumerate(lines):
        if i < MAX_LINES:
            yield line
        else:
            more += 1
    if more:
        yield f"  and {more} more {of_what}"
