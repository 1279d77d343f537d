"""The site has every page, in the navigation or below a page of it, and every public name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_docs import anchors
from tools import api
from tools.release import ROOT
from tools.site import api_pages, staging
from tools.site.links import slug, with_links
from tools.site.navigation import Entry, Group, groups, toctree


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    generated = [api_pages.write_pages(target)]
    staging.stage(ROOT, target, generated=generated)
    return target


def test_anchors_are_those_of_the_links(source: Path) -> None:
    page = ROOT / "docs" / "reference" / "python.md"
    headings = [line.lstrip("# ") for line in page.read_text().split("\n") if line.startswith("#")]
    assert {slug(heading) for heading in headings} == anchors(page)


def test_every_page_is_below_the_start_page(source: Path) -> None:
    listed = {
        line.partition("<")[2].rstrip(">") or line
        for page in source.rglob("*.md")
        for line in page.read_text().split("\n")
        if line.startswith("/") or line.endswith(">")
    }
    pages = {f"/{page.relative_to(source).with_suffix('')}" for page in source.rglob("*.md")}
    assert pages - listed == {"/index"}


def test_the_navigation_is_the_list_of_pages() -> None:
    found = groups(ROOT / "docs" / "README.md", ROOT)
    captions = [group.caption for group in found]
    assert captions[0] == "Start"
    assert {"How to: Spark", "Explanation", "Reference", "Background"} <= set(captions)
    assert found[0].entries[1] == Entry("Quickstart", "docs/quickstart.md")


def test_every_public_method_has_an_anchor(source: Path) -> None:
    text = "".join(page.read_text() for page in (source / "api").glob("*.md"))
    missing = [
        anchor
        for module in api.MODULES
        for name, value in api.public_names(module)
        for anchor in (name, *names_of_members(name, value))
        if f'<a id="{anchor}"></a>' not in text
    ]
    assert missing == []


def names_of_members(name: str, value: object) -> list[str]:
    if not isinstance(value, type) or issubclass(value, BaseException):
        return []
    return [f"{name}.{member}" for member, _ in api.members(value)]


def test_links_outside_of_pages_bring_their_file_or_become_text(source: Path) -> None:
    assert (source / "ops" / "prometheus-alerts.yml").exists()
    start = (source / "index.md").read_text()
    assert "](rowsieve/predicate)" not in start
    assert "`rowsieve/predicate`" in start


def test_links_in_code_stay() -> None:
    text = "[a](b)\n\n```sh\n[a](b)\n```\n"
    assert with_links(text, lambda link: link["text"]) == "a\n\n```sh\n[a](b)\n```\n"


def test_a_group_becomes_a_directive() -> None:
    group = Group("Start", [Entry("All pages", "docs/README.md"), Entry("", "docs/errata.md")])
    assert toctree(group) == (
        "```{toctree}\n:hidden:\n:maxdepth: 1\n:caption: Start\n\n"
        "All pages </docs/README>\n/docs/errata\n```\n"
    )
