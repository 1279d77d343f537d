"""The source of the site: a copy of the pages of the repository, at the same paths.

So links between pages stay as they are. A link to another file of the repository brings a copy of
that file along; one to a folder, which no page shows, becomes text.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tools.site.links import with_links
from tools.site.navigation import Entry, Group, groups, toctree

LIST_OF_PAGES: Final = Path("docs/README.md")
START: Final = Path("README.md")
PICTURES: Final = (".svg", ".png")
IS_ELSEWHERE: Final = re.compile(r"^(?:[a-z][a-z+.-]*:|#)")


def pages(root: Path) -> list[Path]:
    """Return the paths of all Markdown pages of the site, from the root of the repository.

    README.md is not one of them, but the start page.
    """
    beside = [root / "tests" / "README.md", root / "tests" / "RUNS.md"]
    found = [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md")), *beside]
    paths = [path.relative_to(root) for path in [*found, root / "changelog.d" / "README.md"]]
    return [path for path in paths if path != START]


def stage(
    root: Path, target: Path, *, generated: Iterable[Group] = (), moved: Mapping[str, str] = {}
) -> None:
    """Copy the pages with what they show, and write the start page with the navigation.

    `generated` are groups of pages that the build writes. `moved` has the page that is shown
    instead of a file.
    """
    moved = {START.as_posix(): "index.md", **moved}
    paths = pages(root)
    listed = [*groups(root / LIST_OF_PAGES, root)]
    navigation = [*listed[:-1], *generated, listed[-1]]
    shown = {entry.path for group in navigation for entry in group.entries}
    hidden = _hidden(paths, shown)
    for path in paths:
        text = _linked(root, path, target, moved)
        if path in hidden:
            text += "\n" + toctree(Group("", hidden[path]))
        _write(target / path, text)
    for picture in sorted((root / "docs").rglob("*")):
        if picture.suffix in PICTURES:
            _copy(picture, target / picture.relative_to(root))
    start = _linked(root, START, target, moved)
    trees = "\n".join(toctree(group, depth=2) for group in navigation)
    _write(target / "index.md", f"{start}\n{trees}")


def _hidden(paths: Iterable[Path], shown: set[str]) -> dict[Path, list[Entry]]:
    """Return pages that the navigation lacks, below the README of their folder or the list."""
    below: dict[Path, list[Entry]] = {}
    known = set(paths)
    for path in known:
        if path.as_posix() in shown:
            continue
        home = path.with_name("README.md")
        if home == path or home not in known or home.as_posix() not in shown:
            home = LIST_OF_PAGES
        below.setdefault(home, []).append(Entry("", path.as_posix()))
    return {home: sorted(entries, key=lambda each: each.path) for home, entries in below.items()}


def _linked(root: Path, page: Path, target: Path, moved: Mapping[str, str]) -> str:
    """Return the text of a page, whose links lead to pages and to copied files only."""

    def change(link: re.Match[str]) -> str:
        name, _, anchor = link["target"].partition("#")
        if not name or IS_ELSEWHERE.match(name):
            return link.group()
        path = (root / page.parent / name).resolve()
        place = path.relative_to(root).as_posix()
        if path.is_dir():
            return link["text"]
        if place in moved:
            up = "../" * len(page.parent.parts)
            return f"[{link['text']}]({up}{moved[place]}{'#' * bool(anchor)}{anchor})"
        if path.suffix != ".md":
            _copy(path, target / place)
        return link.group()

    return with_links((root / page).read_text("utf-8"), change)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _write(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, "utf-8")
