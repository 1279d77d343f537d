"""Clauses that the text of a query may have, before an engine has planned it.

Soundness: a keyword may also occur in a string literal or a name. So a match is only a hint: it may
lead to a slower plan, never to other rows.
"""

from __future__ import annotations

import re
from typing import Final

from rowsieve.statements.comments import blanked

_VIEW: Final = re.compile(r"\s*create\s+(or\s+replace\s+)?(temp(orary)?\s+)?view\b", re.IGNORECASE)
CONDITION: Final = re.compile(r"\b(where|having|on|filter|qualify)\b", re.IGNORECASE)
LIMIT: Final = re.compile(r"\blimit\b", re.IGNORECASE)
ORDER: Final = re.compile(r"\border\s+by\b", re.IGNORECASE)
MAY_JOIN: Final = re.compile(
    r"\b(join|in|exists|any|all|some)\b|\bselect\b.*\bselect\b", re.I | re.S
)
MAY_FOLD: Final = re.compile(r"\b(null|having|select\b.*\bselect)\b|[$:]\w", re.I | re.S)
"""Queries whose conditions may become constants below: by NULL, parameters or several levels."""
COMMITS: Final = re.compile(r"\b(changes|last_changed)\b", re.IGNORECASE)
"""Functions that read commits."""

INTO: Final = re.compile(r"\binto\b", re.IGNORECASE)
RETURNING: Final = re.compile(r"\breturning\b", re.IGNORECASE)
_USING: Final = re.compile(r"\busing\s+`?rowsieve\b", re.IGNORECASE)
UNION: Final = re.compile(r"\bunion\b", re.IGNORECASE)
VERSION: Final = re.compile(
    r"\b(?:(?:version|timestamp|system_time|system_version)\s+as\s+of\b|as\s+of\s+[\d'(])",
    re.IGNORECASE,
)


def searchable(text: str) -> str:
    """The text in one case, with doubled quotes as one, to search for names in it."""
    return text.casefold().replace('""', '"')


def may_name(text: str, name: str) -> bool:
    """Return whether a text from `searchable` may have this name, between other characters."""
    return re.search(rf"(?<!\w){re.escape(name.casefold())}(?!\w)", text) is not None


def takes_first(text: str) -> bool:
    """Return whether a statement may be ORDER BY with LIMIT."""
    return LIMIT.search(text) is not None and ORDER.search(text) is not None


def may_choose(text: str) -> bool:
    """Return whether conditions, or the first rows in an order, may leave only some parts."""
    return CONDITION.search(text) is not None or takes_first(text)


def may_create_view(text: str) -> bool:
    """Return whether a statement may create a view."""
    return _VIEW.match(blanked(text)) is not None


def may_use_rowsieve(text: str) -> bool:
    """Return whether a CREATE TABLE may be one of `USING rowsieve`."""
    return _USING.search(text) is not None
