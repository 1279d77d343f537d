"""The pages of the API: one of each public module and class, with an anchor for each name."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tools.api import MODULES, argument_types, entry, members, public_names
from tools.site.navigation import Entry, Group

FOLDER: Final = "api"
LEAST_MEMBERS: Final = 3
"""A class with as many methods and properties has a page of its own."""


def write_pages(target: Path) -> Group:
    """Write the pages below `target`; return their group in the navigation."""
    folder = target / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for title, lines in _pages():
        path = f"{FOLDER}/{title.lower().replace(' ', '-')}.md"
        (target / path).write_text("\n".join(lines) + "\n", "utf-8")
        entries.append(Entry(title, path))
    return Group("API", entries)


def _pages() -> Iterator[tuple[str, list[str]]]:
    """Yield the title and the lines of each page."""
    for module in MODULES:
        names = list(public_names(module))
        own = [name for name, value in names if _has_page(value)]
        lines = [f"# `{module}`", ""]
        lines += [f"- [`{name}`]({_title(module, name).lower()}.md)" for name in own]
        lines.append("")
        for name, value in names:
            if name not in own:
                lines += _anchored(name, value)
        yield module, lines
        for name, value in names:
            if name in own:
                yield (
                    _title(module, name),
                    [f"# `{name}` of `{module}`", "", *_anchored(name, value)],
                )
    types = [f"- `{name}`: {text}" for name, text in argument_types()]
    yield "Types of arguments", ["# Types of arguments", "", *types]


def _has_page(value: Any) -> bool:
    if not inspect.isclass(value) or issubclass(value, BaseException):
        return False
    return sum(1 for _ in members(value)) >= LEAST_MEMBERS


def _title(module: str, name: str) -> str:
    return f"{module}.{name}"


def _anchored(name: str, value: Any) -> Iterator[str]:
    """Yield the lines of an entry, one level up, with the name as an anchor before each heading."""
    for line in entry(name, value):
        if line.startswith(("### `", "#### `")):
            yield f'<a id="{line.split("`")[1]}"></a>'
            yield ""
            yield line[1:]
        else:
            yield line
