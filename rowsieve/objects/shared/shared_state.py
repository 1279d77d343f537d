"""What a shared log says at one version: names, and where each table's own entries are.

A state is a root of pages plus the entries after it, so that it costs what was touched since, and
never the number of tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from rowsieve.objects.shared.shared_entry import Section, SharedEntry
from rowsieve.objects.shared.table_pages import Root


class SharedChange(NamedTuple):
    """A section, and the entry that it stands in."""

    section: Section
    entry: SharedEntry


@dataclass(frozen=True, slots=True)
class State:
    """The database at a version: a root, and by table and name what the entries after it say.

    `recent`: those entries, without data.
    """

    version: int
    commit_id: str
    timestamp_us: int
    database: str
    root: Root
    changes: Mapping[str, tuple[SharedChange, ...]] = field(default_factory=dict)
    names: Mapping[str, str | None] = field(default_factory=dict)
    recent: tuple[SharedEntry, ...] = ()

    @staticmethod
    def of(root: Root) -> State:
        """The state of a root's version."""
        return State(root.version, root.commit_id, root.timestamp_us, root.database, root)

    def after(self, entry: SharedEntry) -> State:
        """The state of the next version."""
        changes, names = dict(self.changes), dict(self.names)
        light = entry.without_data()
        for section in light.sections:
            changes[section.table] = (*changes.get(section.table, ()), SharedChange(section, light))
            if section.former is not None:
                names[section.former] = None
        names |= {each.name: each.table for each in light.sections if each.name is not None}
        return replace(
            self,
            version=entry.version,
            commit_id=entry.commit_id,
            timestamp_us=entry.timestamp_us,
            changes=changes,
            names=names,
            recent=(*self.recent, light),
        )
