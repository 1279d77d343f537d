"""The funnel of a query: what was considered, skipped and read at each stage, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from rowsieve.pictures.condition_tree import ConditionNode, tree
from rowsieve.pictures.data_table import Raw, data_table, folded, scrolled, size_cell
from rowsieve.pictures.markup import NOTHING, Markup, element, join, percent, text
from rowsieve.pictures.outcomes import OUTCOMES, legend
from rowsieve.pictures.page import Picture
from rowsieve.shown import size_text

_BYTES: Final = "bytes"


@dataclass(frozen=True, slots=True)
class Stage:
    """One kind of thing: how many were considered, skipped by each cause, and read.

    `skipped`: (kind of `OUTCOMES`, words, count).
    """

    name: str
    considered: int
    read: int
    skipped: tuple[tuple[str, str, int], ...] = ()
    unit: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Cause:
    """A condition, the kind of proof, and the number of things that it skipped."""

    condition: str
    by: str
    parts: int
    row_groups: int
    note: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Funnel(Picture):
    """A query over one version of a table."""

    table: str
    version: int
    where: str
    stages: tuple[Stage, ...]
    causes: tuple[Cause, ...] = ()
    conditions: ConditionNode | None = None
    phases: tuple[tuple[str, float], ...] = ()
    skipped: Sequence[tuple[str, int, int, str, str, str]] = ()
    """(part, rows, bytes, by, condition, bounds) of the first parts skipped."""
    skipped_total: int = 0

    @property
    def title(self) -> str:
        """What is shown."""
        return f"What a read of {self.table} at version {self.version} does"

    @property
    def summary(self) -> str:
        """The read and the considered numbers of each stage."""
        sums = "; ".join(
            f"{stage.name} {_count(stage.read, stage.unit)} of "
            f"{_count(stage.considered, stage.unit)}"
            for stage in self.stages
        )
        return f"where {self.where}. Read: {sums}"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)

    def body(self, ident: str) -> Markup:
        """Draw the stages, the phases, the tree of conditions, and the skipped parts."""
        kinds = {kind for stage in self.stages for kind, _, count in stage.skipped if count}
        pieces = [legend({"read", *kinds}), _stages(self.stages)]
        if self.phases:
            pieces.append(_phases(self.phases))
        if self.conditions is not None:
            pieces += [element("h3", text("The condition")), tree(self.conditions)]
        if self.causes:
            pieces += [element("h3", text("Skipped by which condition")), _causes(self.causes)]
        if self.skipped:
            pieces.append(self._skipped_parts())
        del ident
        return join(pieces)

    def _skipped_parts(self) -> Markup:
        rows = [
            (part, rows, size_cell(size), by, condition, bounds)
            for part, rows, size, by, condition, bounds in self.skipped
        ]
        table = data_table(
            "Skipped parts",
            ("part", "rows", "size", "by", "condition", "its bounds"),
            rows,
            total=self.skipped_total,
        )
        return folded("The skipped parts as a table", table)


def _count(number: int, unit: str) -> str:
    return size_text(number) if unit == _BYTES else f"{number:,}"


def _stages(stages: Sequence[Stage]) -> Markup:
    rows = [
        (
            stage.name,
            Raw(_bar(stage), "bar"),
            _count(stage.considered, stage.unit),
            "; ".join(
                f"{_count(count, stage.unit)} {words}" for _, words, count in stage.skipped if count
            )
            or "none",
            _count(stage.read, stage.unit) + (f", {stage.note}" if stage.note else ""),
        )
        for stage in stages
    ]
    headings = ("", "share", "considered", "skipped", "read")
    table = data_table("Stages of the read", headings, rows)
    return scrolled("Stages of the read", table, titled=True)


def _bar(stage: Stage) -> Markup:
    """One stacked bar: read first, then what was skipped, by cause."""
    if not stage.considered:
        return NOTHING
    at, marks = 0.0, []
    pieces = [("read", stage.read), *((kind, count) for kind, _, count in stage.skipped)]
    for kind, count in pieces:
        share = count / stage.considered
        if count:
            marks.append(
                element(
                    "rect",
                    element("title", text(f"{_count(count, stage.unit)} {OUTCOMES[kind]}")),
                    x=percent(at),
                    width=percent(max(share, 0.004)),
                    y=2,
                    height=14,
                    class_=f"mark {kind}",
                )
            )
        at += share
    return element("svg", *marks, height=18, aria_hidden="true")


def _phases(phases: Sequence[tuple[str, float]]) -> Markup:
    most = max(seconds for _, seconds in phases) or 1.0
    rows = [
        (
            name,
            Raw(
                element(
                    "svg",
                    element(
                        "rect",
                        x=0,
                        y=2,
                        height=14,
                        width=percent(max(seconds / most, 0.004)),
                        class_="mark stored",
                    ),
                    height=18,
                    aria_hidden="true",
                ),
                "bar",
            ),
            f"{seconds * 1000:,.1f} ms",
        )
        for name, seconds in phases
    ]
    table = data_table("Time by phase", ("phase", "share of the longest", "time"), rows)
    return join(
        (element("h3", text("Time by phase")), scrolled("Time by phase", table, titled=True))
    )


def _causes(causes: Sequence[Cause]) -> Markup:
    rows = [
        (cause.condition, cause.by, cause.parts, cause.row_groups, cause.note) for cause in causes
    ]
    table = data_table(
        "Parts and row groups skipped by each condition",
        ("condition", "by", "parts", "row groups", "note"),
        rows,
    )
    return scrolled("Skipped by which condition", table, titled=True)


def shares(counts: Mapping[str, int]) -> tuple[tuple[str, str, int], ...]:
    """Counts by kind as `Stage.skipped`, in the order of `OUTCOMES`."""
    return tuple(
        (kind, label.removeprefix("skipped ").removeprefix(", "), counts[kind])
        for kind, label in OUTCOMES.items()
        if counts.get(kind)
    )
