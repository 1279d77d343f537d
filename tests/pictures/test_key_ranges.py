"""Key ranges: overlap is height, an outcome is a class, many parts are counted."""

from __future__ import annotations

import random
from xml.etree import ElementTree as ET

import pytest

from rowsieve.pictures.key_bins import BINS
from rowsieve.pictures.key_ranges import KeyRanges, Panel
from rowsieve.pictures.outcomes import OUTCOMES
from rowsieve.pictures.part_bar import PartBar
from tests.pictures.parsed import HOSTILE, page_of, texts, with_class


def bar(number: int, lower: object, upper: object, outcome: str = "stored") -> PartBar:
    return PartBar(f"{number:032x}", lower, upper, 100, 0, 0, 1_000, (1, number), outcome)


def drawn(*parts: PartBar) -> KeyRanges:
    return KeyRanges("memory:///t", "k", (Panel("version 1", parts),))


def marks(root: ET.Element) -> list[ET.Element]:
    (svg,) = [each for each in root.iter("svg") if each.get("role") == "img"]
    return [each for each in svg.iter("rect") if "mark" in (each.get("class") or "")]


def test_parts_that_overlap_stand_above_each_other() -> None:
    root = page_of(drawn(bar(1, 0, 10), bar(2, 5, 15), bar(3, 10, 20), bar(4, 30, 40)))
    heights = [float(mark.attrib["y"]) for mark in marks(root)]
    assert heights[0] > heights[1] > heights[2]
    assert heights[3] == heights[0]
    assert "at most 3 parts overlap" in texts(root, "p")
    widths = [mark.attrib["width"] for mark in marks(root)]
    assert widths == ["25%"] * 4


def test_each_outcome_has_its_class_and_its_words() -> None:
    parts = [bar(number, number, number, kind) for number, kind in enumerate(OUTCOMES)]
    root = page_of(drawn(*parts))
    assert [mark.attrib["class"] for mark in marks(root)] == [f"mark {kind}" for kind in OUTCOMES]
    (legend,) = with_class(root, "legend")
    assert texts(legend, "li") == list(OUTCOMES.values())
    cells = [text for row in root.iter("tr") for text in texts(row, "td")]
    assert set(OUTCOMES.values()) - {"part"} <= set(cells)


def test_unknown_bounds_reach_to_the_ends() -> None:
    root = page_of(drawn(bar(1, None, 10), bar(2, 0, None), bar(3, 0, 10), bar(4, None, None)))
    assert {mark.attrib["width"] for mark in marks(root)} == {"100%"}
    assert len({mark.attrib["y"] for mark in marks(root)}) == 4


def test_hidden_rows_are_hatched_by_their_share() -> None:
    root = page_of(drawn(bar(1, 0, 10)._replace(hidden=25), bar(2, 20, 30)))
    hatched = [each for each in root.iter("rect") if each.get("fill", "").startswith("url(#")]
    legend, share = hatched
    assert share.attrib["width"] == f"{100 / 3 / 4:.5g}%"
    assert legend.attrib["fill"] == share.attrib["fill"]
    (pattern,) = root.iter("pattern")
    assert share.attrib["fill"] == f"url(#{pattern.attrib['id']})"


def test_two_versions_share_one_axis() -> None:
    before = Panel("version 3", [bar(1, 0, 10), bar(2, 5, 20)])
    after = Panel("version 4", [bar(3, 0, 20)])
    root = page_of(KeyRanges("t", "k", (before, after)))
    ticks = [texts(svg, "text") for svg in root.iter("svg") if svg.get("role") == "img"]
    assert len(ticks) == 2
    assert ticks[0] == ticks[1] != []
    assert len(with_class(root, "panels")) == 1


@pytest.mark.parametrize("spread", [1e6, 0.0])
def test_ten_thousand_parts_are_counted_in_intervals(spread: float) -> None:
    """Under 300 KB: a bar of every part would not be seen."""
    chosen = random.Random(5)
    parts = []
    for number in range(10_000):
        low = chosen.random() * spread
        part = bar(number, low, low + chosen.random() * 5e4, chosen.choice(list(OUTCOMES)))
        parts.append(part._replace(reason="x" * 90))
    picture = drawn(*parts)
    root = page_of(picture)
    assert len(picture.to_html().encode()) < 300_000
    both = KeyRanges("t", "k", (Panel("before", parts), Panel("after", parts)), "k < 5")
    assert len(both.to_html().encode()) < 300_000
    assert sum(1 for _ in root.iter("rect")) <= (BINS + 2) * len(OUTCOMES)
    assert any("10,000 parts, counted in 100 intervals" in text for text in texts(root, "p"))
    assert any("the first 200 of 10,000" in text for text in texts(root, "caption"))


def test_the_longest_values_fit_too() -> None:
    """The most bars that are drawn one by one, with values of any length."""
    parts = [
        bar(n, f"{n:09}" + "<" * 500, f"{n:09}" + "<" * 600)._replace(reason="y" * 900)
        for n in range(400)
    ]
    picture = drawn(*parts)
    assert len(marks(page_of(picture))) == 400
    assert len(picture.to_html().encode()) < 300_000


def test_counts_of_intervals_are_those_of_the_parts() -> None:
    parts = [bar(number, number, number, "read") for number in range(600)]
    root = page_of(drawn(*parts))
    titles = [text for text in texts(root, "title") if text.startswith("parts here: ")]
    assert sum(int(text.split()[2]) for text in titles) == 600


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(name: str) -> None:
    parts = [bar(1, name, "z" + name)._replace(reason=name, outcome="key"), bar(2, "a", "b")]
    picture = KeyRanges(name, name, (Panel(name, parts), Panel("b", parts)), name)
    page_of(picture)
    assert picture.to_html() == picture.to_html()


def test_a_table_without_parts_has_a_picture() -> None:
    root = page_of(drawn())
    assert marks(root) == []
    assert "0 parts" in "".join(root.itertext())
