"""Escaped HTML and SVG: `Markup` is text that may stand in a page, `text` is the way to it.

The results are well-formed XML, so that a parser can check them.

Soundness: names and values are untrusted. Characters that are not printable, such as controls and
marks that turn the direction of text, are shown as escapes.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Final, NewType

from rowsieve.shown import printable

Markup = NewType("Markup", str)
NOTHING: Final = Markup("")
MAX_CHARACTERS: Final = 200  # of one name or value
_VOID: Final = frozenset({"br", "meta", "rect", "line", "path", "circle", "input"})


def text(value: object, most: int = MAX_CHARACTERS) -> Markup:
    """Escape a value for content and attributes; shortened with … beyond `most` characters."""
    shown = printable(str(value))
    if len(shown) > most:
        shown = f"{shown[: most - 1]}…"
    return Markup(html.escape(shown))


def join(pieces: Iterable[Markup]) -> Markup:
    """Concatenate."""
    return Markup("".join(pieces))


def element(name: str, /, *content: Markup, **attributes: object) -> Markup:
    """Return an element; attributes are escaped, those that are None left out.

    A trailing underscore of an attribute's name is dropped, others become dashes. Numbers have at
    most five digits.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID and not content:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{''.join(content)}</{name}>")


def named(value: object, most: int = MAX_CHARACTERS) -> Markup:
    """A name or value of a table, apart from the direction of the text around it."""
    return element("bdi", text(value, most))


def count(number: int, noun: str) -> str:
    """A number with its noun in the right form."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def percent(share: float) -> str:
    """A coordinate: a share of the width, between 0 and 1."""
    return f"{100 * min(max(share, 0.0), 1.0):.5g}%"


def _attribute(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.5g}"
    return text(value, 400)
