"""Draw the pictures of the documentation: `python -m tools.pictures`.

The rooms come from the floors that `tests/test_house.py` holds; a test compares the files with what
this draws. The SVGs have no scripts and no fonts, and are readable on light and dark pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from rowsieve.pictures.key_ranges import KeyRanges, Panel
from rowsieve.pictures.page import Picture as TablePicture
from rowsieve.pictures.part_bar import PartBar
from rowsieve.pictures.style import STYLE
from rowsieve.pictures.timeline import Timeline, VersionMark
from tests.test_house import FLOORS
from tools import readme_pictures
from tools.drawing import BOX, GAP, LINE, MARGIN, QUIET, WIDTH, Picture, arrow, box, svg, text

PAGES: Final = Path(__file__).parents[1] / "docs" / "explanation"
HOW_TO: Final = PAGES.parent / "how-to"
_AS_IMAGE: Final = (
    f".rowsieve-picture{{padding:0;border:0;margin:0}}.rowsieve-picture svg{{width:{WIDTH - 20}px}}"
)
_SUPPORT: Final = ("bridges", "objects", "stats", "types", "predicate")

# What happens to a condition, room by room; the second line says what is handed on.
WAY: Final = (
    ("where=", "text of a dialect, or an engine's expression"),
    ("bridges", "a tree, or a refusal that names the place"),
    ("predicate: normalise", "AND and OR are flattened, equalities become lists"),
    ("predicate: bind", "names, types and semantics are settled, constants computed"),
    ("planner: prune parts", "statistics of parts refute it: NONE, SOME, ALL"),
    ("planner: overlap", "parts that share keys are read together"),
    ("planner: row groups, pages", "footers and Bloom filters refute more, inside each part"),
    ("executor: visibility", "rows that newer parts hide are taken away"),
    ("executor: evaluate", "its columns are decoded, and rows decided"),
    ("executor: the other columns", "of the rows that are left"),
    ("scan or provider", "batches in the types of the table, or of the engine"),
)

# What our DataFusion session does with a statement.
STATEMENT: Final = (
    ("sql(text)", "one statement"),
    ("statements: parse", "a call, a change, a view, a refusal: run at once; a query: planned"),
    ("newest versions", "of the tables that a query names, pinned for all its scans"),
    (
        "known subqueries",
        "the rows of IN (SELECT …), the value of = (SELECT …), where they come first",
    ),
    ("read by table", "who reads which part, and why: DataFusion or our dataset"),
    ("open plan", "over all parts; a frame to build on, whose conditions cannot reach hidden rows"),
    ("part choice", "the conditions in this plan leave parts, which our datasets in it then read"),
    ("facts of this plan", "no condition can fail, no LIMIT stops early, a column is read"),
    ("final plan", "only if DataFusion reads files: those of chosen parts, without hidden rows"),
    ("frame", "runs unchanged by the final plan; every other call begins at the open one"),
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
            lines += box(x, y, width, room.replace("_", " "), colour)
    return svg(height, lines)


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
        lines += box(MARGIN, y, width, step, LINE)
        lines.append(text(MARGIN + width + 20, y + BOX / 2 + 4, result, anchor="start"))
        if number:
            lines.append(arrow(MARGIN + width / 2, y - GAP, y))
    return svg(len(steps) * (BOX + GAP) + 2 * MARGIN, lines)


def pictures() -> Iterator[tuple[Path, Picture]]:
    """Each file with what belongs into it."""
    yield PAGES / "rooms.svg", rooms()
    yield PAGES / "way-of-a-predicate.svg", way()
    yield PAGES / "way-of-a-statement.svg", statement()
    yield HOW_TO / "key-ranges.svg", drawing(key_ranges())
    yield HOW_TO / "versions.svg", drawing(versions())
    yield HOW_TO.parent / "what-it-is.svg", readme_pictures.what_it_is()
    yield HOW_TO.parent / "why-little.svg", readme_pictures.why_little()


def key_ranges() -> KeyRanges:
    """The parts of a small table, as a read of `id < 400` meets them."""
    facts = (
        *((0, 250, 0, "merged"), (40, 120, 0, "merged"), (200, 330, 40, "merged")),
        *((90, 210, 0, "hides"), (350, 395, 0, "read"), (420, 640, 30, "key")),
        *((500, 590, 0, "key"), (660, 900, 0, "key"), (700, 760, 0, "key"), (910, 990, 0, "key")),
    )
    parts = [
        PartBar(f"{n:032x}", low, high, 100, hidden, 0, 1_000, (n, n), outcome)
        for n, (low, high, hidden, outcome) in enumerate(facts)
    ]
    return KeyRanges("trips", "id", (Panel("version 10", parts),), "id < 400")


def versions() -> Timeline:
    """Forty versions: changes, a compaction, a tag."""
    marks = [
        VersionMark(n, "", "upsert", 10 + n * n * 37 % 900, 60 if n % 9 == 5 else 0, 1, 0)
        for n in range(40)
    ]
    marks[24] = marks[24]._replace(operation="compact", rows_in=4_000, is_rewrite=True)
    marks[16] = marks[16]._replace(labels=("tag audit",))
    return Timeline("trips", marks)


def drawing(picture: TablePicture) -> Picture:
    """The drawing of a picture alone, as an image: its style inside, without links."""
    body = ElementTree.fromstring(f"<div>{picture.body('p')}</div>")
    (svg,) = [each for each in body.iter("svg") if each.get("role") in ("img", "group")]
    for link in svg.iter("a"):
        link.tag = "g"
        link.attrib.clear()
    height = float(svg.attrib["height"])
    svg.attrib.update({"x": "10", "y": "8", "width": str(WIDTH - 20)})
    inner = ElementTree.tostring(svg, encoding="unicode")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height + 20:.0f}" '
        f'class="rowsieve-picture"><style>{STYLE}{_AS_IMAGE}</style>'
        f'<rect width="100%" height="100%" class="paper"/>{inner}</svg>\n'
    )


if __name__ == "__main__":
    for path, picture in pictures():
        path.write_text(picture, "utf-8")
        print(path.name)
