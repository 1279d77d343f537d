"""Draw the pictures of the architecture page: `python -m tools.pictures`.

The rooms come from the floors that `tests/test_house.py` holds; a test compares the files with what
this draws. The SVGs have no scripts and no fonts, and are readable on light and dark pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias
from xml.sax.saxutils import escape

from tests.test_house import FLOORS

Picture: TypeAlias = str

PAGES: Final = Path(__file__).parents[1] / "docs" / "explanation"
WIDTH: Final = 860
BOX, GAP, MARGIN = 30, 10, 10
LINE, TEXT, QUIET = "#6c8ebf", "#808a94", "#d9822b"
_SUPPORT: Final = ("bridges", "objects", "stats", "types", "predicate")

# What happens to a condition, room by room; the second line says what is handed on.
WAY: Final = (
    ("where=", "text of a dialect, or an engine's expression"),
    ("bridges", "a tree, or a refusal that names the place"),
    ("predicate: bind", "types, semantics and constants are settled"),
    ("predicate: normalise", "NOT is pushed down, constants are folded"),
    ("planner: prune parts", "statistics of parts refute it: NONE, SOME, ALL"),
    ("planner: overlap", "parts that share keys are read together"),
    ("parquet: row groups, blooms, pages", "more is refuted, inside each part"),
    ("executor: visibility", "rows that newer parts hide are taken away"),
    ("executor: evaluate", "its columns are decoded, and rows decided"),
    ("executor: the other columns", "of the rows that are left"),
    ("provider", "batches in the engine's types"),
)

# What our DataFusion session does with a statement.
STATEMENT: Final = (
    ("sql(text)", "with the newest version of each table that it names, pinned for all its scans"),
    ("statements: parse", "a call, a change, a view, a refusal: run at once; a query: planned"),
    (
        "known subqueries",
        "the rows of IN (SELECT …), the value of = (SELECT …), where they come first",
    ),
    ("plan over scans of no file", "only if conditions may skip parts: those that reach each scan"),
    ("read by table", "who reads which part, and why: DataFusion or our dataset"),
    (
        "plan over the open reads",
        "a frame to build on; joins and conditions cannot reach hidden rows",
    ),
    ("facts of this plan", "no condition can fail, a LIMIT is small, only rows are counted"),
    ("plan over the closed reads", "only if others read it then: bitmaps instead of our dataset"),
    ("frame", "runs unchanged with closed reads; every other call begins at the open ones"),
)


def rooms() -> Picture:
    """The floors of the package, the lowest at the bottom; an import points down."""
    lines: list[str] = []
    floors = [floor for floor in FLOORS if floor != ("__main__",)]
    height = len(floors) * (BOX + GAP) + 2 * MARGIN
    for number, floor in enumerate(reversed(floors)):
        y = MARGIN + number * (BOX + GAP)
        width = (WIDTH - 2 * MARGIN - (len(floor) - 1) * GAP) / len(floor)
        for place, room in enumerate(floor):
            x = MARGIN + place * (width + GAP)
            colour = QUIET if room in _SUPPORT else LINE
            lines += _box(x, y, width, room.replace("_", " "), colour)
    return _svg(height, lines)


def way() -> Picture:
    """The way of a predicate, from text to rows."""
    return _steps(WAY)


def statement() -> Picture:
    """The way of a statement in our DataFusion session."""
    return _steps(STATEMENT)


def _steps(steps: Sequence[tuple[str, str]]) -> Picture:
    lines: list[str] = []
    width = 300
    for number, (step, result) in enumerate(steps):
        y = MARGIN + number * (BOX + GAP)
        lines += _box(MARGIN, y, width, step, LINE)
        lines.append(_text(MARGIN + width + 20, y + BOX / 2 + 4, result, anchor="start"))
        if number:
            lines.append(_arrow(MARGIN + width / 2, y - GAP, y))
    return _svg(len(steps) * (BOX + GAP) + 2 * MARGIN, lines)


def pictures() -> Iterator[tuple[Path, Picture]]:
    """Each file with what belongs into it."""
    yield PAGES / "rooms.svg", rooms()
    yield PAGES / "way-of-a-predicate.svg", way()
    yield PAGES / "way-of-a-statement.svg", statement()


def _box(x: float, y: float, width: float, label: str, colour: str) -> list[str]:
    box = (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{BOX}" rx="4" '
        f'fill="none" stroke="{colour}"/>'
    )
    return [box, _text(x + width / 2, y + BOX / 2 + 4, label)]


def _text(x: float, y: float, text: str, *, anchor: str = "middle") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(text)}</text>'


def _arrow(x: float, start: float, end: float) -> str:
    head = f"M{x - 4:.0f} {end - 5:.0f} L{x:.0f} {end:.0f} L{x + 4:.0f} {end - 5:.0f}"
    return f'<path d="M{x:.0f} {start:.0f} V{end:.0f} {head}" fill="none" stroke="{LINE}"/>'


def _svg(height: float, lines: Sequence[str]) -> Picture:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
        f'font-family="sans-serif" font-size="12" fill="{TEXT}">'
    )
    return "\n".join([head, *lines, "</svg>", ""])


if __name__ == "__main__":
    for path, picture in pictures():
        path.write_text(picture, "utf-8")
        print(path.name)
