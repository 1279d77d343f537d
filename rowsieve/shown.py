"""Display of tables and scans: text in a terminal, HTML in a notebook.

Soundness: names and values are untrusted. Text output escapes control characters, so that a
column's name cannot move the cursor; HTML output escapes everything.
"""

from __future__ import annotations

import html as markup
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

MAX_COLUMNS: Final = 40
_UNITS: Final = ("B", "KB", "MB", "GB", "TB", "PB")


@dataclass(frozen=True, slots=True)
class Shown:
    """A title, facts by name, and columns as (name, type), or pairs with other `headings`."""

    title: str
    facts: Mapping[str, str]
    columns: Sequence[tuple[str, str]]
    headings: tuple[str, str] = ("column", "type")

    def text(self) -> str:
        """Format as lines for a terminal; at most `MAX_COLUMNS` columns."""
        lines = [printable(self.title)]
        lines += [f"  {name}: {printable(value)}" for name, value in self.facts.items()]
        names = [printable(name) for name, _ in self.columns[:MAX_COLUMNS]]
        width = max(map(len, names), default=0)
        if names:
            lines.append("  columns:")
        for name, (_, type_) in zip(names, self.columns, strict=False):
            lines.append(f"    {name:<{width}}  {printable(type_)}")
        if (more := len(self.columns) - len(names)) > 0:
            lines.append(f"    and {more:,} more")
        return "\n".join(lines)


def html(shown: Shown) -> str:
    """Format as HTML; at most `MAX_COLUMNS` columns."""

    def row(name: str, value: str) -> str:
        cells = (printable(name), printable(value))
        return "<tr>" + "".join(f"<td>{markup.escape(cell)}</td>" for cell in cells) + "</tr>"

    facts = "".join(row(name, value) for name, value in shown.facts.items())
    columns = "".join(row(name, type_) for name, type_ in shown.columns[:MAX_COLUMNS])
    if (more := len(shown.columns) - MAX_COLUMNS) > 0:
        columns += row(f"and {more:,} more", "")
    head = "".join(f"<th>{heading}</th>" for heading in shown.headings)
    below = f"<table><tr>{head}</tr>{columns}</table>" if shown.columns else ""
    return f"<strong>{markup.escape(printable(shown.title))}</strong><table>{facts}</table>{below}"


def printable(text: str) -> str:
    """Escape control characters and all other characters that are not printable."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable_lines(text: str) -> str:
    """Apply `printable` to each line of the text."""
    return "\n".join(map(printable, text.split("\n")))


def size_text(size_bytes: int) -> str:
    """Format a size in the unit that gives one to three digits before the point."""
    value, unit = float(size_bytes), 0
    while value >= 1000 and unit + 1 < len(_UNITS):
        value, unit = value / 1000, unit + 1
    return f"{size_bytes} B" if not unit else f"{value:.1f} {_UNITS[unit]}"
