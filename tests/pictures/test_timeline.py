"""Timelines: rows up and down, links to the calls, runs of many versions."""

from __future__ import annotations

import pytest

from rowsieve.pictures.timeline import MAX_MARKS, Timeline, VersionMark
from tests.pictures.parsed import HOSTILE, page_of, texts, with_class


def mark(version: int, rows_in: int = 5, rows_out: int = 0) -> VersionMark:
    return VersionMark(
        version, "2026-01-01", "upsert", rows_in, rows_out, 1, 0, call=f"open(version={version})"
    )


def test_each_version_links_to_the_call_that_opens_it() -> None:
    root = page_of(Timeline("t", [mark(0), mark(1, 0, 7), mark(2)]))
    first, *links = root.iter("a")
    assert first.attrib["href"].endswith("-table")
    assert [link.attrib["href"].rpartition("-")[2] for link in links] == ["v0", "v1", "v2"]
    assert all("rows in" in link.attrib["aria-label"] for link in links)
    rows = {row.get("id"): row for row in root.iter("tr")}
    for version, link in enumerate(links):
        assert texts(rows[link.attrib["href"][1:]], "code") == [f"open(version={version})"]


def test_rows_out_stand_below_the_line() -> None:
    root = page_of(Timeline("t", [mark(1, 10, 0), mark(2, 0, 10)]))
    (down,) = [each for each in with_class(root, "hides") if each.get("height") != "12"]
    ups = [each for each in with_class(root, "read") if each.get("height") != "12"]
    assert all(float(up.attrib["y"]) < float(down.attrib["y"]) for up in ups)


def test_rewrites_change_no_rows() -> None:
    rewrite = mark(2, 100, 100)._replace(operation="compact", is_rewrite=True)
    picture = Timeline("t", [mark(1), rewrite])
    assert "5 rows in, 0 out" in picture.summary
    assert len(with_class(page_of(picture), "merged")) == 2  # legend and bar


def test_many_versions_are_summed_in_runs() -> None:
    """Under 300 KB for 10,000 versions."""
    picture = Timeline("t", [mark(version) for version in range(10_000)], floor=3)
    root = page_of(picture)
    assert len(picture.to_html().encode()) < 300_000
    assert len(with_class(root, "read")) <= MAX_MARKS + 1
    assert any("sums of up to 84" in text for text in texts(root, "p"))
    assert "versions before 3 cannot be read" in picture.summary


def test_nothing_has_a_picture_too() -> None:
    page_of(Timeline("t", []))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(name: str) -> None:
    hostile = mark(1)._replace(operation=name, labels=(name,), call=name, when=name)
    page_of(Timeline(name, [hostile], notes=(name,)))


def test_a_narrow_picture_leaves_out_bytes_and_parts() -> None:
    versions = [mark(0)._replace(bytes_in=2_400, bytes_out=0), mark(1)]
    root = page_of(Timeline("t", versions, None, ()))
    heads = {"".join(head.itertext()): head.get("class", "") for head in root.iter("th")}
    wide = {name for name, kind in heads.items() if "wide" in kind.split()}
    assert wide == {"bytes in", "bytes out", "parts"}
    sizes = [cell for cell in root.iter("td") if "".join(cell.itertext()) == "2.4 KB"]
    assert [cell.get("class") for cell in sizes] == ["number wide"]
