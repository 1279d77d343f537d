"""The funnel of an explanation: its counts as stages, its reasons as causes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

from rowsieve.pictures.condition_tree import ConditionNode
from rowsieve.pictures.funnel import Cause, Funnel, Stage, shares
from rowsieve.planner.explaining.reasons import (
    ConditionReason,
    GroupPart,
    GroupReason,
    PartReason,
    PartRowGroups,
)

MAX_SKIPPED: Final = 100
MAX_CAUSES: Final = 30
_PHASES: Final = (
    ("planning", "planning_s"),
    ("reading", "reading_s"),
    ("CPU of the reading threads", "cpu_s"),
)


class Explained(Protocol):
    """What the picture takes of an explanation."""

    @property
    def table(self) -> str:
        """The URI of the table."""

    @property
    def version(self) -> int:
        """The version that is read."""

    @property
    def where(self) -> str:
        """The condition as text."""

    @property
    def tree(self) -> ConditionNode | None:
        """The condition, with the verdicts of all parts at each node."""

    @property
    def parts_considered(self) -> int:
        """The parts of the version."""

    @property
    def parts_read(self) -> int:
        """The parts that are read."""

    @property
    def bytes_considered(self) -> int:
        """The bytes of the parts of the version."""

    @property
    def bytes_read(self) -> int:
        """The bytes of the parts that are read."""

    @property
    def skipped(self) -> tuple[PartReason, ...]:
        """The parts that are not read."""

    @property
    def groups(self) -> tuple[GroupReason, ...]:
        """The parts that are read, in groups that may share keys."""

    @property
    def conditions(self) -> tuple[ConditionReason, ...]:
        """The conjuncts."""

    @property
    def measured(self) -> Mapping[str, Any] | None:
        """The counters of a read; None if it did not run."""


def query_picture(explanation: Explained) -> Funnel:
    """Return the picture of an explanation; O(parts)."""
    measured = explanation.measured or {}
    return Funnel(
        explanation.table,
        explanation.version,
        explanation.where,
        tuple(_stages(explanation, measured)),
        tuple(_causes(explanation)),
        explanation.tree,
        tuple((name, measured[key]) for name, key in _PHASES if key in measured),
        tuple(
            (
                part.part_id[:8],
                part.rows,
                part.size_bytes,
                part.by,
                part.condition,
                "; ".join(f"{name} in {bounds}" for name, bounds in part.bounds.items()),
            )
            for part in explanation.skipped[:MAX_SKIPPED]
        ),
        len(explanation.skipped),
    )


def _stages(explanation: Explained, measured: Mapping[str, Any]) -> Iterator[Stage]:
    parts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    rows: Counter[str] = Counter()
    for part in explanation.skipped:
        parts[part.by] += 1
        sizes[part.by] += part.size_bytes
        rows[part.by] += part.rows
    opened = [part for group in explanation.groups for part in group.parts]
    yield Stage("parts", explanation.parts_considered, explanation.parts_read, shares(parts))
    yield Stage(
        "bytes of parts",
        explanation.bytes_considered,
        explanation.bytes_read,
        shares(sizes),
        "bytes",
    )
    groups = [part.row_groups for part in opened if part.row_groups is not None]
    if groups:
        yield from _inside(groups)
    rows_opened = sum(part.rows for part in opened)
    decoded = measured.get("rows_decoded")
    note = "in the parts to read"
    if decoded is not None:
        note = f"{note}; {decoded:,} decoded, {measured['rows_returned']:,} returned"
    yield Stage("rows", rows_opened + sum(rows.values()), rows_opened, shares(rows), note=note)


def _inside(groups: list[PartRowGroups]) -> Iterator[Stage]:
    """The stages inside the parts to read."""
    skipped: Counter[str] = Counter()
    for each in groups:
        for reason in each.skipped:
            skipped[reason.by] += reason.row_groups
    total, read = sum(each.total for each in groups), sum(each.read for each in groups)
    by = [("statistics", "by statistics"), ("bloom", "by Bloom filters")]
    causes = tuple(
        ("statistics" if kind == "statistics" else "key", words, skipped[kind])
        for kind, words in by
        if skipped[kind]
    )
    yield Stage("row groups", total, read, causes)
    pages, pages_read = sum(each.pages for each in groups), sum(each.pages_read for each in groups)
    if pages:
        index = (("statistics", "by page indexes", pages - pages_read),)
        yield Stage("pages", pages, pages_read, index)
    stored, wanted = (
        sum(each.bytes_total for each in groups),
        sum(each.bytes_read for each in groups),
    )
    within = (("statistics", "by row groups and pages", stored - wanted),)
    yield Stage("bytes of columns", stored, wanted, within, "bytes")


def _causes(explanation: Explained) -> Iterator[Cause]:
    """The conditions that skipped most first, then those that skipped nothing, with the reason."""
    parts = Counter((part.condition, part.by) for part in explanation.skipped)
    groups: Counter[tuple[str, str]] = Counter()
    for part in _opened(explanation):
        if part.row_groups is not None:
            for reason in part.row_groups.skipped:
                groups[reason.condition, reason.by] += reason.row_groups
    together = parts + groups
    for condition, by in [cause for cause, _ in together.most_common(MAX_CAUSES)]:
        yield Cause(condition, by, parts[condition, by], groups[condition, by])
    named = {condition for condition, _ in together}
    for each in explanation.conditions[:MAX_CAUSES]:
        if each.condition not in named:
            yield Cause(each.condition, "nothing", 0, 0, each.note or "refutes no part")


def _opened(explanation: Explained) -> Iterator[GroupPart]:
    for group in explanation.groups:
        yield from group.parts
