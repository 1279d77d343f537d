"""The site has every page, in the navigation or below a page of it, and every public name."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import profiles
from tests.test_docs import LONGEST_PARAGRAPH, anchors
from tools import api
from tools.release import ROOT
from tools.site import api_pages, checks, notebooks, staging
from tools.site.links import slug, with_links
from tools.site.navigation import Entry, Group, groups, toctree

NOTEBOOKS = sorted((ROOT / notebooks.FOLDER).glob("*.py"))


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


@pytest.mark.parametrize("script", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_text_with_cells(script: Path) -> None:
    found = notebooks.cells(script.read_text("utf-8"))
    assert found[0].text.startswith("# ")
    assert not found[0].is_code
    assert any(cell.is_code for cell in found)
    words = [len(cell.text.split()) for cell in found if not cell.is_code]
    assert max(words) <= LONGEST_PARAGRAPH


@pytest.mark.skipif(not profiles.IS_DEEP, reason="kernels are started in the deep profile")
@pytest.mark.parametrize("script", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(script: Path) -> None:
    pytest.importorskip("nbclient", reason="`make test-deep` installs what runs notebooks")
    run = subprocess.run(
        [sys.executable, "-m", "tools.site.notebooks", str(script)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "output_type" in run.stdout


@pytest.mark.skipif(not profiles.IS_DEEP, reason="the site is built in the deep profile")
def test_the_site_is_built_without_a_warning_and_searches(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="`make test-deep` installs what builds the site")
    command = [sys.executable, "-m", "tools.site", "--target", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    html = tmp_path / "html"
    assert checks.faults(html) == []
    assert '"Table.upsert"' in (html / "api" / "rowsieve.table.html").read_text("utf-8")
    if (chromium := shutil.which("chromium")) is None:
        return
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000")
    profile, page = f"--user-data-dir={tmp_path / 'profile'}", (html / "search.html").as_uri()
    shown = subprocess.run(
        [chromium, *options, profile, "--dump-dom", f"{page}?q=tombstone"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    assert "glossary.html" in shown


def test_faults_of_a_site_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("@import url(https://example.org/x.css);")
    (tmp_path / "a.html").write_text(
        '<a href="b.html#there">b</a><a href="b.html#gone">b</a><a href="c.html">c</a>'
        '<a href="https://example.org">elsewhere</a><script src="//example.org/x.js"></script>'
        '<img src="missing.svg"><p id="here"></p><a href="#here">here</a>'
    )
    (tmp_path / "b.html").write_text('<p id="there"></p>')
    assert checks.faults(tmp_path) == [
        "a.html: loads //example.org/x.js from elsewhere",
        "a.html: loads missing.svg, which is missing",
        "a.html: links to b.html#gone, which has no such anchor",
        "a.html: links to c.html, which is missing",
        "a.css: loads from elsewhere",
    ]
