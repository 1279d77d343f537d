"""Key ranges: the parts of a version as bars over a column; bars above each other overlap.

Up to `MAX_BARS` parts in all are drawn one by one, in at most `MAX_LANES` lanes. More are counted
in intervals of the axis, and the picture says so.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from rowsieve.pictures.data_table import MAX_ROWS, Cell, data_table, folded, size_cell
from rowsieve.pictures.key_bins import BINS, counted, stacked
from rowsieve.pictures.markup import Markup, count, element, join, percent, text
from rowsieve.pictures.outcomes import OUTCOMES, hatching, legend
from rowsieve.pictures.page import Picture
from rowsieve.pictures.part_bar import PartBar
from rowsieve.pictures.scale import Axis, axis_of, drawn
from rowsieve.shown import size_text

MAX_BARS: Final = 400
MAX_LANES: Final = 40
_BAR, _LANE, _TOP, _FOOT = 11, 14, 4, 22
_MIN_BAR_WIDTH: Final = 0.003  # the width of a bar of one value


@dataclass(frozen=True, slots=True)
class Panel:
    """The parts of one version, with a heading."""

    heading: str
    parts: Sequence[PartBar]


@dataclass(frozen=True, slots=True, repr=False)
class KeyRanges(Picture):
    """The parts of one version over a column, or of two versions side by side on one axis."""

    table: str
    column: str
    panels: tuple[Panel, ...]
    where: str | None = None

    @property
    def title(self) -> str:
        """What is shown."""
        return f"Parts of {self.table} over {self.column}"

    @property
    def summary(self) -> str:
        """Parts and outcomes of each panel."""
        sentences = [f"{panel.heading}: {_counts(panel.parts)}" for panel in self.panels]
        if self.where is not None:
            sentences.append(f"condition: {self.where}")
        return "; ".join(sentences)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "table": self.table,
            "column": self.column,
            "where": self.where,
            "panels": [
                {"heading": panel.heading, "parts": [part._asdict() for part in panel.parts]}
                for panel in self.panels
            ],
        }

    def body(self, ident: str) -> Markup:
        """Draw the panels on one axis, a legend and the tables."""
        every = [part for panel in self.panels for part in panel.parts]
        axis = axis_of(bound for part in every for bound in (part.lower, part.upper))
        drawings = [
            _drawing(panel.parts, axis, f"{ident}-{number}", MAX_BARS // len(self.panels))
            for number, panel in enumerate(self.panels)
        ]
        hatched = next((drawing.ident for drawing in drawings if drawing.is_hatched), None)
        panels = [
            _panel(panel, drawing, axis, self.column, MAX_ROWS // len(self.panels))
            for panel, drawing in zip(self.panels, drawings, strict=True)
        ]
        return join(
            (
                legend({part.outcome for part in every}, hidden_in=hatched),
                element("div", *panels, class_="panels" if len(panels) > 1 else None),
            )
        )


class _Drawing(NamedTuple):
    ident: str
    height: float
    marks: Markup
    note: str
    is_hatched: bool


def _counts(parts: Sequence[PartBar]) -> str:
    counts = Counter(part.outcome for part in parts)
    if set(counts) <= {"stored"}:
        rows, hidden = sum(part.rows for part in parts), sum(part.hidden for part in parts)
        size = size_text(sum(part.size_bytes for part in parts))
        return f"{count(len(parts), 'part')}, {count(rows, 'row')} ({hidden:,} hidden), {size}"
    return f"{count(len(parts), 'part')}: " + ", ".join(
        f"{counts[kind]:,} {label}" for kind, label in OUTCOMES.items() if counts[kind]
    )


def _drawing(parts: Sequence[PartBar], axis: Axis, ident: str, most_bars: int) -> _Drawing:
    """Draw each part, or counts if there are too many for a screen."""
    lanes = _lanes(parts, axis)
    depth = max(lanes, default=-1) + 1
    if len(parts) > most_bars or depth > MAX_LANES:
        bins = counted(parts, axis)
        most = max(sum(counts.values()) for counts in bins)
        note = (
            f"{len(parts):,} parts, counted in {BINS} intervals of the axis; the height is the "
            f"number of parts that reach into an interval, at most {most:,}"
        )
        return _Drawing(ident, *stacked(bins), note, is_hatched=False)
    return _Drawing(
        ident,
        float(_TOP + max(depth, 1) * _LANE),
        join(_bar(part, lane, depth, axis, ident) for part, lane in zip(parts, lanes, strict=True)),
        f"at most {depth:,} parts overlap" if depth > 1 else "no parts overlap",
        is_hatched=any(part.hidden for part in parts),
    )


def _panel(panel: Panel, drawing: _Drawing, axis: Axis, column: str, rows: int) -> Markup:
    ident, note = drawing.ident, drawing.note
    if axis.note:
        note += f"; values of {column} {axis.note}"
    described = f"{panel.heading}, {_counts(panel.parts)}; {note}"
    svg = element(
        "svg",
        element("title", text(f"{panel.heading}: parts over {column}"), id=f"{ident}-t"),
        element("desc", text(described, 600), id=f"{ident}-d"),
        hatching(ident),
        drawn(axis, 0, drawing.height),
        drawing.marks,
        role="img",
        height=drawing.height + _FOOT,
        aria_labelledby=f"{ident}-t {ident}-d",
    )
    return element(
        "div",
        element("h3", text(panel.heading)),
        svg,
        element("p", text(note, 400)),
        _table(panel.parts, column, rows),
    )


def _lanes(parts: Sequence[PartBar], axis: Axis) -> list[int]:
    """The lowest lane in which each part overlaps no other, for parts by their lower bound."""
    lanes = [0] * len(parts)
    spans = [_span(part, axis) for part in parts]
    busy: list[tuple[float, int]] = []  # (end, lane)
    free: list[int] = []
    count = 0
    for number in sorted(range(len(parts)), key=lambda i: (spans[i], parts[i].commits)):
        start, end = spans[number]
        while busy and busy[0][0] < start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane, count = count, count + 1
        lanes[number] = lane
        heapq.heappush(busy, (end, lane))
    return lanes


def _span(part: PartBar, axis: Axis) -> tuple[float, float]:
    """The shares of the axis where a part begins and ends; unknown bounds are infinite."""
    start = 0.0 if part.lower is None else axis.place(part.lower)
    end = 1.0 if part.upper is None else axis.place(part.upper)
    return start, max(start, end)


def _bar(part: PartBar, lane: int, depth: int, axis: Axis, ident: str) -> Markup:
    start, end = _span(part, axis)
    width = max(end - start, _MIN_BAR_WIDTH)
    start = min(start, 1.0 - width)
    place = {"x": percent(start), "y": _TOP + (depth - 1 - lane) * _LANE, "height": _BAR, "rx": 2}
    marks = [element("rect", width=percent(width), class_=f"mark {part.outcome}", **place)]
    if part.hidden and part.rows:
        share = width * min(part.hidden / part.rows, 1.0)
        marks.append(element("rect", width=percent(share), fill=f"url(#{ident}-hatch)", **place))
    return element("g", element("title", text(_part_title(part), 240)), *marks)


def _part_title(part: PartBar) -> str:
    reason = f": {part.reason}" if part.reason else ""
    outcome = "" if part.outcome == "stored" else f"; {OUTCOMES[part.outcome]}{reason}"
    return (
        f"part {part.part_id[:8]} of {_commits(part)}: {_known(part.lower)} to "
        f"{_known(part.upper)}, {part.rows:,} rows, {part.hidden:,} hidden, "
        f"{part.tombstones:,} deletes, {size_text(part.size_bytes)}{outcome}"
    )


def _commits(part: PartBar) -> str:
    oldest, newest = part.commits
    return f"version {newest}" if oldest == newest else f"versions {oldest} to {newest}"


def _known(bound: Any) -> str:
    return "unknown" if bound is None else _short(str(bound), 40)


def _short(shown: str, most: int) -> str:
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def _table(parts: Sequence[PartBar], column: str, most: int) -> Markup:
    headings: tuple[str, ...] = (
        *("part", f"{column} from", "to", "rows", "hidden", "deletes", "size", "written in"),
        *("a read", "by"),
    )
    order = {kind: number for number, kind in enumerate(OUTCOMES)}
    ordered = sorted(parts, key=lambda part: order[part.outcome])[:most]
    rows: list[tuple[Cell, ...]] = [
        (
            part.part_id[:8],
            _known(part.lower),
            _known(part.upper),
            part.rows,
            part.hidden,
            part.tombstones,
            size_cell(part.size_bytes),
            _commits(part),
            OUTCOMES[part.outcome] if part.outcome != "stored" else "",
            _short(part.reason, 120),
        )
        for part in ordered
    ]
    if all(part.outcome == "stored" for part in ordered):
        headings, rows = headings[:-2], [row[:-2] for row in rows]
    return folded("The parts as a table", data_table("Parts", headings, rows, total=len(parts)))
