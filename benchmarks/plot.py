"""Cases as one drawing: a panel per case, a bar per system, CPU on a logarithmic scale.

Plain SVG without scripts or fonts of its own. Colours are of middle brightness on no background,
so that they can be read on light and on dark pages alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

from benchmarks.measure import Series
from benchmarks.result import Case

WIDTH, LABELS, VALUES = 900, 190, 90
BAR, GAP, TITLE, PANEL_GAP = 13, 4, 24, 14
OURS_COLOUR, PEER_COLOUR, TEXT = "#d9822b", "#6c8ebf", "#808a94"


def draw(cases: Sequence[Case]) -> str:
    """The drawing as the text of an SVG file."""
    lines: list[str] = []
    top = 0
    for case in cases:
        if any(series.samples for series in case.series):
            lines += _panel(case, top)
            top += TITLE + len(case.series) * (BAR + GAP) + PANEL_GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {max(top, 1)}" '
        f'width="{WIDTH}" font-family="sans-serif" font-size="12" fill="{TEXT}">'
    )
    return "\n".join([head, *lines, "</svg>", ""])


def _panel(case: Case, top: int) -> list[str]:
    seconds = [series.cpu_s() for series in case.series]
    first, last = _decades(seconds)
    title = f"{case.name}: CPU, {_time(10.0**first)} to {_time(10.0**last)}, logarithmic"
    lines = [_text(0, top + TITLE - 8, title, bold=True)]
    room = WIDTH - LABELS - VALUES
    for i, (series, value) in enumerate(zip(case.series, seconds, strict=True)):
        share = (math.log10(max(value, 1e-9)) - first) / (last - first)
        y = top + TITLE + i * (BAR + GAP)
        lines.append(_bar(series, y, max(1.0, share * room)))
        lines.append(_text(LABELS - 8, y + BAR - 2, series.system, anchor="end"))
        lines.append(_text(LABELS + max(1.0, share * room) + 6, y + BAR - 2, _time(value)))
    return lines


def _bar(series: Series, y: int, width: float) -> str:
    colour = OURS_COLOUR if series.system.startswith("rowsieve") else PEER_COLOUR
    return f'<rect x="{LABELS}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{weight}>{escape(text)}</text>'


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """Powers of ten around the values, with room on the left so that the least has a bar."""
    logs = [math.log10(max(value, 1e-9)) for value in values]
    first = math.floor(min(logs) - 0.1)
    return first, max(first + 1, math.ceil(max(logs)))


def _time(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"
