"""Constants of lists in braces, as PostgreSQL writes them: `{1,2}`, `{a,"b c",NULL}`."""

from __future__ import annotations

import re

_ITEM = re.compile(
    r"""\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^\s"\\{},][^"\\{},]*?))\s*(?P<end>[,}])"""
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def braced_items(text: str) -> list[str | None]:
    """Return the texts of the items, None for NULL; ValueError for another form.

    A list of lists, a backslash outside of quotes and bounds (`[0:1]={1,2}`) are not read.
    """
    inner = text.strip()
    if re.fullmatch(r"\{\s*\}", inner):
        return []
    if not inner.startswith("{"):
        raise ValueError(_FORM)
    items: list[str | None] = []
    place, closed = 1, False
    while not closed:
        if (item := _ITEM.match(inner, place)) is None:
            raise ValueError(_FORM)
        bare = item["bare"]
        if bare is None:
            items.append(_ESCAPED.sub(r"\1", item["quoted"]))
        else:
            items.append(None if bare.upper() == "NULL" else bare)
        place, closed = item.end(), item["end"] == "}"
    if place != len(inner):
        raise ValueError(_FORM)
    return items


_FORM = "write the list as ARRAY[…]"
