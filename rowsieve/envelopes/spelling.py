"""How events spell the names of a table's columns, where they do not match exactly.

Oracle writes `ID` for a column that the table may call `id`. As everywhere, a name that differs in
case only matches if it is the only one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Spelling:
    """The names that events use: of columns that are spelled otherwise, and without a meaning."""

    columns: Sequence[str]
    ignores: str | None = None  # the prefix of names that mean nothing to us
    names: dict[str, str] = field(default_factory=dict)
    ignored: dict[str, None] = field(default_factory=dict)

    def learn(self, present: Collection[str]) -> bool:
        """Look for unknown names among those of rows; True if there are some."""
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


def spelled_as(columns: Iterable[str], spellings: Iterable[str]) -> dict[str, str]:
    """The given name of each column that has one, exactly or else uniquely ignoring case."""
    by_fold: dict[str, list[str]] = {}
    names = list(spellings)
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
