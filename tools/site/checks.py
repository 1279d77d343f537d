"""Checks of the built site: links lead somewhere, and nothing is loaded from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

LOADED: Final = {
    "audio": "src",
    "embed": "src",
    "iframe": "src",
    "img": "src",
    "link": "href",
    "object": "data",
    "script": "src",
    "source": "src",
    "video": "src",
}
"""Elements that a browser loads, with the attribute that names what."""
REMOTE: Final = re.compile(r"^(?:https?:)?//", re.IGNORECASE)
IN_STYLES: Final = re.compile(r"@import\s|url\(\s*['\"]?(?:https?:)?//", re.IGNORECASE)
NOT_LOADED: Final = {"canonical", "next", "prev", "search", "index", "author", "license"}


class Page(HTMLParser):
    """The anchors of a page, its links, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element names; see HTMLParser."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        named = values.get(LOADED.get(tag, ""), "")
        if named and values.get("rel", "") not in NOT_LOADED and not named.startswith("data:"):
            self.loads.append(named)


def faults(html: Path) -> list[str]:
    """Return each broken link or anchor, and each thing that a page loads from elsewhere."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(html.rglob("*.html"))}
    found = [
        f"{path.relative_to(html)}: {fault}"
        for path, page in pages.items()
        for fault in _faults_of(path, page, pages)
    ]
    styles = [
        f"{path.relative_to(html)}: loads from elsewhere"
        for path in sorted(html.rglob("*.css"))
        if IN_STYLES.search(path.read_text("utf-8"))
    ]
    return found + styles


def _faults_of(path: Path, page: Page, pages: dict[Path, Page]) -> Iterator[str]:
    for name in page.loads:
        if REMOTE.match(name):
            yield f"loads {name} from elsewhere"
        elif not _target(path, name).exists():
            yield f"loads {name}, which is missing"
    for link in page.links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = _target(path, parts.path) if parts.path else path
        if not target.exists():
            yield f"links to {link}, which is missing"
        elif not _has(pages.get(target), unquote(parts.fragment)):
            yield f"links to {link}, which has no such anchor"


def _has(page: Page | None, anchor: str) -> bool:
    return page is None or not anchor or anchor in page.anchors


def _target(path: Path, name: str) -> Path:
    return (path.parent / unquote(urlsplit(name).path)).resolve()
