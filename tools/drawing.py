"""What drawings of the documentation are made of: boxes, texts and arrows of an SVG.

They have no scripts and no fonts, and are readable on light and dark pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias
from xml.sax.saxutils import escape

Picture: TypeAlias = str

WIDTH: Final = 860
BOX, GAP, MARGIN = 30, 10, 10
LINE, TEXT, QUIET = "#6c8ebf", "#808a94", "#d9822b"


def box(x: float, y: float, width: float, label: str, colour: str) -> list[str]:
    """Return a box with its label in the middle."""
    box = (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{BOX}" rx="4" '
        f'fill="none" stroke="{colour}"/>'
    )
    return [box, text(x + width / 2, y + BOX / 2 + 4, label)]


def text(x: float, y: float, text: str, *, anchor: str = "middle") -> str:
    """Return a text."""
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(text)}</text>'


def arrow(x: float, start: float, end: float) -> str:
    """Return an arrow downwards."""
    head = f"M{x - 4:.0f} {end - 5:.0f} L{x:.0f} {end:.0f} L{x + 4:.0f} {end - 5:.0f}"
    return f'<path d="M{x:.0f} {start:.0f} V{end:.0f} {head}" fill="none" stroke="{LINE}"/>'


def svg(height: float, lines: Sequence[str]) -> Picture:
    """Return the drawing as the text of a file."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
        f'font-family="sans-serif" font-size="12" fill="{TEXT}">'
    )
    return "\n".join([head, *lines, "</svg>", ""])
