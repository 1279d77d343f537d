"""Links and anchors of Markdown, as they are where the repository is shown."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

LINK: Final = re.compile(r"(?<!!)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\)")
"""A link, but not an image; its text may have brackets."""
FENCED: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def slug(heading: str) -> str:
    """Return the anchor of a heading: lower case, without punctuation, a hyphen per space."""
    return re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-")


def with_links(text: str, change: Callable[[re.Match[str]], str]) -> str:
    """Return the Markdown with each link replaced, but not those in blocks of code."""
    parts: list[str] = []
    end = 0
    for block in FENCED.finditer(text):
        parts += [LINK.sub(change, text[end : block.start()]), block.group()]
        end = block.end()
    return "".join([*parts, LINK.sub(change, text[end:])])
