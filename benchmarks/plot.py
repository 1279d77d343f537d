"""Draws cases as an SVG: a panel per case, a bar per system, CPU on a logarithmic scale.

The SVG has no scripts and no fonts. Colours have medium brightness on a transparent background, so
that they are readable on light and dark pages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

from benchmarks.markdown import duration
from benchmarks.measure import Series
from benchmarks.result import Case

ACROSS = 2
PANEL, LABELS, VALUES, MARGIN = 480, 150, 70, 30
BAR, GAP, TITLE, BETWEEN = 12, 4, 22, 22
OURS_COLOUR, PEER_COLOUR, TEXT_COLOUR = "#d9822b", "#6c8ebf", "#808a94"


def draw(cases: Sequence[Case]) -> str:
    """The drawing as the text of an SVG file."""
    lines: list[str] = []
    top = 0
    measured = [case for case in cases if case.series]
    for row in (measured[i : i + ACROSS] for i in range(0, len(measured), ACROSS)):
        for column, case in enumerate(row):
            lines += _panel(case, column * (PANEL + MARGIN), top)
        top += TITLE + max(len(case.series) for case in row) * (BAR + GAP) + BETWEEN
    width = ACROSS * PANEL + (ACROSS - 1) * MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {max(top, 1)}" '
        f'font-family="sans-serif" font-size="11" fill="{TEXT_COLOUR}">'
    )
    return "\n".join([head, *lines, "</svg>", ""])


def _panel(case: Case, left: float, top: float) -> list[str]:
    seconds = [series.cpu_s() for series in case.series]
    first, last = _decades(seconds)
    title = f"{case.name} (CPU, {duration(10.0**first)} to {duration(10.0**last)}, logarithmic)"
    lines = [_text(left, top + TITLE - 8, title, bold=True)]
    room = PANEL - LABELS - VALUES
    start = left + LABELS
    for i, (series, value) in enumerate(zip(case.series, seconds, strict=True)):
        share = (math.log10(max(value, 1e-9)) - first) / (last - first)
        length = max(1.0, share * room)
        y = top + TITLE + i * (BAR + GAP)
        lines.append(_text(start - 6, y + BAR - 2, series.system, anchor="end"))
        lines.append(_bar(series, start, y, length))
        lines.append(_text(start + length + 5, y + BAR - 2, duration(value)))
    return lines


def _bar(series: Series, x: float, y: float, length: float) -> str:
    colour = OURS_COLOUR if series.system.startswith("rowsieve") else PEER_COLOUR
    return f'<rect x="{x:.0f}" y="{y:.0f}" width="{length:.1f}" height="{BAR}" fill="{colour}"/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.0f}" text-anchor="{anchor}"{weight}>{escape(text)}</text>'


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """Powers of ten around the values, with space on the left so that the least has a bar."""
    logs = [math.log10(max(value, 1e-9)) for value in values]
    first = math.floor(min(logs) - 0.1)
    return first, max(first + 1, math.ceil(max(logs)))
