"""Pictures and pages by the keyboard alone, and as a screen reader is given them.

Skipped where there is no Chromium; Debian's package of this name is one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rowsieve.pages.served_tables import table_pages
from rowsieve.pages.server import make_server
from rowsieve.pictures.health import Health
from rowsieve.pictures.key_ranges import KeyRanges
from rowsieve.pictures.page import Picture
from rowsieve.pictures.timeline import Timeline
from tests import profiles
from tests.pictures.browser import CHROMIUM, Tab, open_tab
from tests.pictures.test_in_chromium import pictures
from tests.small_tables import keyed

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
    pytest.mark.skipif(not profiles.IS_DEEP, reason="a browser is started in the deep profile"),
]
FOCUSED = """(() => {
    const each = document.activeElement, style = getComputedStyle(each);
    return [each.tagName.toLowerCase(), each.id, each.name || "",
            style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2];
})()"""


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with open_tab(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module", params=pictures(), ids=lambda picture: type(picture).__name__)
def picture(request: pytest.FixtureRequest) -> Any:
    return request.param


def opened(tab: Tab, picture: Picture, folder: Path) -> None:
    path = folder / "picture.html"
    picture.save(path)
    tab.open(path.as_uri())


def stops(tab: Tab) -> list[tuple[str, str, str]]:
    """Tag, id and name of each element that Tab stops at; each shows that it has the focus."""
    passed: list[tuple[str, str, str]] = []
    while len(passed) < 200:
        tab.press("Tab")
        tag, ident, name, is_outlined = tab.run(FOCUSED)
        if tag == "body":
            return passed
        assert is_outlined, (tag, ident)
        passed.append((tag, ident, name))
    raise AssertionError("Tab never leaves the page")


def test_tab_visits_all_that_scrolls_opens_or_leads_on(
    tab: Tab, picture: Picture, tmp_path: Path
) -> None:
    opened(tab, picture, tmp_path)
    reached = stops(tab)
    selector = "a[href], summary, [tabindex='0']:not(details:not([open]) *)"
    assert len(reached) == tab.run(f'document.querySelectorAll("{selector}").length')
    tab.press("Tab")
    tab.press("Tab", shift=True)
    assert tab.run(FOCUSED)[0] == "body"  # backwards, too


def test_enter_and_space_fold_and_unfold_the_table(tab: Tab, tmp_path: Path) -> None:
    folding = next(each for each in pictures() if isinstance(each, KeyRanges))
    opened(tab, folding, tmp_path)
    tab.press("Tab")
    for key, is_open in (("Enter", True), (" ", False), ("Enter", True), ("Escape", True)):
        tab.press(key)
        assert tab.run("document.querySelector('details').open") is is_open
    tab.press("Tab")
    assert tab.run("document.activeElement.getAttribute('role')") == "region"


def test_enter_on_a_version_goes_to_its_row(tab: Tab, tmp_path: Path) -> None:
    timeline = next(each for each in pictures() if isinstance(each, Timeline))
    opened(tab, timeline, tmp_path)
    tab.press("Tab")
    tab.press("Tab")
    tab.press("Enter")
    tag, ident, _, is_outlined = tab.run(FOCUSED)
    assert (tag, is_outlined) == ("tr", True)
    assert tab.run(f"document.getElementById('{ident}').querySelector('th, td').textContent") == "0"


def test_the_first_stop_of_a_timeline_leads_past_its_versions(tab: Tab, tmp_path: Path) -> None:
    timeline = next(each for each in pictures() if isinstance(each, Timeline))
    opened(tab, timeline, tmp_path)
    tab.press("Tab")
    tab.press("Enter")
    assert tab.run("document.activeElement.getAttribute('role')") == "region"


def test_a_screen_reader_is_given_a_heading_and_the_name_of_each_mark(
    tab: Tab, picture: Picture, tmp_path: Path
) -> None:
    opened(tab, picture, tmp_path)
    assert tab.run("[...document.querySelectorAll('h1')].map(each => each.textContent)") == [
        tab.run("document.title")
    ]
    nodes = tab.accessible()
    assert all(
        name for role, name in nodes if role in ("heading", "image", "link", "region", "textbox")
    )
    titles = tab.run(
        "[...document.querySelectorAll('g > title, rect > title, a')]"
        ".filter(each => !each.closest('[aria-hidden]'))"
        ".map(each => each.getAttribute('aria-label') || each.textContent)"
    )
    names = {name for _, name in nodes}
    assert set(titles) <= names
    assert titles or not isinstance(picture, KeyRanges | Timeline | Health)


def test_a_served_page_is_used_by_the_keyboard(tab: Tab) -> None:
    table = keyed({"k": [1, 2], "v": [3, 4]})
    server = make_server(table_pages(lambda: table))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        tab.open(f"http://127.0.0.1:{server.server_address[1]}/")
        assert tab.run("document.querySelectorAll('h1').length") == 1
        fields = [name for tag, _, name in stops(tab) if tag == "input"]
        assert fields == ["where", "column", "refresh"]
        given = [name for role, name in tab.accessible() if role == "textbox"]
        assert given == ["condition", "column of the ranges", "reload every … seconds"]
        tab.run("document.querySelector('input').value = 'k = 1'; document.forms[0][0].focus()")
        tab.press("Enter")
        tab.wait_for("location.search.includes('where=k') && document.readyState === 'complete'")
        headings = tab.run("[...document.querySelectorAll('h2')].map(each => each.textContent)")
        assert headings[0].startswith("What a read of")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
