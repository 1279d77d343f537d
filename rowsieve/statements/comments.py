"""Comments of SQL texts, as DataFusion reads them: nested, and none inside of a literal or a name.

Soundness: a text that is taken for a comment hides what it says. So a comment ends where an engine
ends it, also if another one begins inside.
"""

from __future__ import annotations

import re
from typing import Final

_SPACE: Final = re.compile(r"(?:\s++|--[^\n]*+(?:\n|$))*+(/\*)?+")
_MARK: Final = re.compile(r"/\*|\*/")
_PIECE: Final = re.compile(
    r"(?<!\w)[eE]'(?:[^'\\]|\\.|'')*+'?+"  # with backslashes
    r"|'[^']*+'?+|\"[^\"]*+\"?+|\$(\w*)\$.*?\$\1\$"
    r"|(?P<comment>--[^\n]*+|/\*)",
    re.DOTALL,
)


def after_comments(text: str, place: int) -> int:
    """The place after spaces and comments; the end if the last comment does not end."""
    while (space := _SPACE.match(text, place)) is not None and space[1] is not None:
        place = _end_of(text, space.end())
    return place if space is None else space.end()


def blanked(text: str) -> str:
    """The text with spaces in place of comments, so that all places in it stay."""
    pieces, start, place = [], 0, 0
    while (piece := _PIECE.search(text, place)) is not None:
        place = piece.end()
        if (comment := piece["comment"]) is None:
            continue
        place = _end_of(text, place) if comment == "/*" else place
        pieces += [text[start : piece.start()], " " * (place - piece.start())]
        start = place
    return "".join([*pieces, text[start:]])


def _end_of(text: str, place: int) -> int:
    """The end of a comment that begins before this place."""
    depth = 1
    while depth and (mark := _MARK.search(text, place)) is not None:
        place, depth = mark.end(), depth + (1 if mark[0] == "/*" else -1)
    return len(text) if depth else place
