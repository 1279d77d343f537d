"""The navigation of the site, which is the list of pages in `docs/README.md`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Final

from tools.site.links import LINK

PARTS: Final = re.compile(r"^\*\*(?P<title>[^*]+)\*\*$", re.MULTILINE)
GROUP: Final = re.compile(r"^- (?P<title>[^:\[\]]+):", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Entry:
    """A page by its path from the root; an empty title in the navigation means its heading."""

    title: str
    path: str


@dataclass(frozen=True, slots=True)
class Group:
    """Pages below one caption."""

    caption: str
    entries: Sequence[Entry]


def groups(list_of_pages: Path, root: Path) -> list[Group]:
    """Return the groups of the list, in its order: one of each part, or one of each item in it.

    The first group has the list itself, and the pages that only the text above its parts names.
    """
    text = list_of_pages.read_text("utf-8")
    folder = PurePosixPath(list_of_pages.parent.relative_to(root).as_posix())
    found: list[Group] = []
    for caption, body in _split(PARTS, text):
        items = _split(GROUP, body)
        sections = [(f"{caption}: {item}", part) for item, part in items] or [(caption, body)]
        found += [Group(title, _entries(part, folder)) for title, part in sections]
    shown = {entry.path for group in found for entry in group.entries} | {"README.md"}
    above = _entries(PARTS.split(text)[0], folder)
    start = [Entry("All pages", list_of_pages.relative_to(root).as_posix())]
    return [Group("Start", start + [each for each in above if each.path not in shown]), *found]


def _split(heading: re.Pattern[str], text: str) -> list[tuple[str, str]]:
    """Return each title with the text up to the next one."""
    starts = list(heading.finditer(text))
    ends = [*(each.start() for each in starts[1:]), len(text)][: len(starts)]
    return [
        (each["title"].strip(), text[each.end() : end])
        for each, end in zip(starts, ends, strict=True)
    ]


def _entries(text: str, folder: PurePosixPath) -> list[Entry]:
    return [
        Entry(
            each["text"][0].upper() + each["text"][1:],
            normpath((folder / each["target"]).as_posix()),
        )
        for each in LINK.finditer(text)
    ]


def toctree(group: Group, *, depth: int = 1) -> str:
    """Return the group as a directive of Sphinx, in Markdown."""
    lines = [_line(each) for each in group.entries]
    options = [":hidden:", f":maxdepth: {depth}"]
    if group.caption:
        options.append(f":caption: {group.caption}")
    return "\n".join(["```{toctree}", *options, "", *lines, "```", ""])


def _line(entry: Entry) -> str:
    document = str(PurePosixPath("/", entry.path).with_suffix(""))
    return f"{entry.title} <{document}>" if entry.title else document
