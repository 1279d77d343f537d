"""The two pictures of README.md: what Rowsieve is, and why a query reads little.

The numbers of the second are those that `rowsieve demo` prints for its selective query.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tools.drawing import BOX, GAP, LINE, MARGIN, QUIET, WIDTH, Picture, box, svg, text

WRITERS: Final = ("upsert, delete, update", "SQL: MERGE, UPDATE, …", "streams, change events")
READERS: Final = ("DataFusion, Spark", "DuckDB, Polars, pandas", "a plan for any engine")
PARTS: Final = 6
CHANGED: Final = {4, 5}  # the newest parts are small: they have the changed rows alone
SIDE: Final = 210
CONSIDERED: Final[dict[str, tuple[tuple[str, float], ...]]] = {
    "parts": (("70 in the table", 70), ("10 cannot be skipped", 10), ("6 are read", 6)),
    "megabytes": (("8.5 in the table", 8.55), ("0.7 in those parts", 0.72), ("0.4 are read", 0.4)),
}
"""By what is counted: all, what statistics leave, and what is read."""


def what_it_is() -> Picture:
    """Writers on the left, a folder with a log and parts, readers on the right."""
    left, right = MARGIN + SIDE + 50, WIDTH - MARGIN - SIDE - 50
    lines: list[str] = []
    for column, labels in ((MARGIN, WRITERS), (WIDTH - MARGIN - SIDE, READERS)):
        for row, label in enumerate(labels):
            lines += box(column, MARGIN + 20 + row * (BOX + GAP), SIDE, label, LINE)
    height = 20 + len(WRITERS) * (BOX + GAP) + GAP
    middle = MARGIN + height / 2
    lines.append(
        f'<rect x="{left}" y="{MARGIN}" width="{right - left}" height="{height}" rx="6" '
        f'fill="none" stroke="{QUIET}"/>'
    )
    lines += [
        text((left + right) / 2, MARGIN + 18, "a table: a folder on a disk or an object store"),
        *box(left + 20, MARGIN + 30, right - left - 40, "log: one entry a version", QUIET),
    ]
    for start, end in ((MARGIN + SIDE, left), (right, WIDTH - MARGIN - SIDE)):
        head = f"M{end - 10} {middle - 4:.0f} L{end - 4} {middle:.0f} L{end - 10} {middle + 4:.0f}"
        way = f"M{start + 4} {middle:.0f} H{end - 4} {head}"
        lines.append(f'<path d="{way}" fill="none" stroke="{LINE}"/>')
    lines += _parts(left + 20, right - 20, MARGIN + 30 + BOX + GAP)
    lines.append(text((left + right) / 2, MARGIN + height - 8, "parts: Parquet files, statistics"))
    return svg(height + 2 * MARGIN, lines)


def _parts(left: float, right: float, top: float) -> list[str]:
    shares = [1 if number in CHANGED else 3 for number in range(PARTS)]
    unit = (right - left - (PARTS - 1) * 6) / sum(shares)
    lines, x = [], left
    for number, share in enumerate(shares):
        colour = QUIET if number in CHANGED else LINE
        lines.append(
            f'<rect x="{x:.0f}" y="{top:.0f}" width="{share * unit:.0f}" height="20" rx="3" '
            f'fill="{colour}" fill-opacity="0.35" stroke="{colour}"/>'
        )
        x += share * unit + 6
    return lines


def why_little() -> Picture:
    """A bar for all, for what statistics leave, and for what is read, of parts and of bytes."""
    where = "WHERE time_hour >= '2013-12-20' AND carrier = 'HA': 12 of 328,521 flights"
    lines = [text(WIDTH / 2, MARGIN + 12, where)]
    y = MARGIN + 30.0
    for name, stages in CONSIDERED.items():
        lines.append(text(MARGIN, y + 12, name, anchor="start"))
        y += 20
        lines += _bars(stages, y)
        y += 3 * 24 + 10
    return svg(y + MARGIN, lines)


def _bars(stages: Sequence[tuple[str, float]], top: float) -> list[str]:
    most = stages[0][1]
    room = WIDTH - 2 * MARGIN - 180
    lines = []
    for row, (label, size) in enumerate(stages):
        length = max(3.0, room * size / most)
        colour, y = (LINE, QUIET, QUIET)[row], top + row * 24
        opacity = (0.25, 0.45, 0.9)[row]
        bar = (
            f'<rect x="{MARGIN}" y="{y:.0f}" width="{length:.0f}" height="16" rx="2" '
            f'fill="{colour}" fill-opacity="{opacity}" stroke="{colour}"/>'
        )
        lines += [bar, text(MARGIN + length + 8, y + 13, label, anchor="start")]
    return lines
