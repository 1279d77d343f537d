"""How events spell the names of a table's columns, where they do not match exactly.

Oracle writes `ID` for a column that the table may call `id`. As everywhere, a name that differs in
case only matches if it is the only one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Spelling:
    """The names that events use: of columns that are spelled otherwise, and without a meaning."""

    columns: Sequence[str]
    ignores: str | None = None  # the prefix of names that mean nothing to us
    names: dict[str, str] = field(default_factory=dict)
    ignored: dict[str, None] = field(default_factory=dict)

    def learn(self, message: Any) -> bool:
        """Look for unknown names in a message that could not be decoded; True if there are some."""
        present = set(_names_in(message))
        before = len(self.names) + len(self.ignored)
        by_fold: dict[str, list[str]] = {}
        for name in present:
            by_fold.setdefault(name.lower(), []).append(name)
        folds = Counter(column.lower() for column in self.columns)
        known = {*self.columns, *self.names.values(), *self.ignored}
        for column in self.columns:
            spelled = by_fold.get(column.lower(), [])
            only = len(spelled) == 1 and folds[column.lower()] == 1
            if column not in present and only and spelled[0] not in known:
                self.names[column] = spelled[0]
        if self.ignores is not None:
            self.ignored.update(
                dict.fromkeys(
                    name
                    for name in sorted(present)
                    if name.startswith(self.ignores) and name not in known
                )
            )
        return len(self.names) + len(self.ignored) > before


def spelled_as(columns: Iterable[str], given: Iterable[str]) -> dict[str, str]:
    """The given name of each column that has one, exactly or else uniquely ignoring case."""
    by_fold: dict[str, list[str]] = {}
    names = list(given)
    for name in names:
        by_fold.setdefault(name.lower(), []).append(name)
    wanted = list(columns)
    folds = Counter(column.lower() for column in wanted)
    taken = set(wanted) & set(names)
    result = {name: name for name in taken}
    for column in wanted:
        free = [name for name in by_fold.get(column.lower(), []) if name not in taken]
        if column not in result and len(free) == 1 and folds[column.lower()] == 1:
            result[column] = free[0]
    return result


def _names_in(message: Any, depth: int = 4) -> Iterator[str]:
    """The names of objects in a message; rows are never deeper."""
    if isinstance(message, dict):
        for name, value in message.items():
            if isinstance(name, str):
                yield name
            if name != "schema" and depth:
                yield from _names_in(value, depth - 1)
    elif isinstance(message, list) and depth:
        for item in message[:1]:
            yield from _names_in(item, depth - 1)
            if isinstance(item, dict) and isinstance(item.get("name"), str):
                yield from (str(each.get("name")) for each in message if isinstance(each, dict))
